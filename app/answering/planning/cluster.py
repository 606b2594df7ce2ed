"""The cluster that work is planned for, however the request gives it: compiled, with what waits there."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from app.answering.answers import asks_of, configure, load
from app.answering.plan_bodies import PlanRequest
from app.answering.sources import Sources
from app.answering.variants.overrides import with_fields
from app.base.documents import Path, read
from app.formats import import_configuration
from app.formats.manifests import kept_objects
from app.formats.objects import PriorityClass
from app.formats.reader import Findings
from app.formats.work.read import Beside, read_beside
from app.formats.yson import is_yson
from app.solver import solve
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.request import StateOrReference
from app.solver.model.state import Ask
from app.solver.solve import Loaded

_CLUSTER = "/cluster"
_GROUPS = ("scheduling.k8s.io", "kueue.x-k8s.io")


@dataclass(slots=True)
class Situation:
    """A cluster compiled. ``asks``: what waits there."""

    loaded: Loaded
    asks: list[Ask]
    beside: Beside
    findings: list[Finding] = field(default_factory=list[Finding])


def situation(request: PlanRequest, sources: Sources) -> Situation:
    """The cluster of ``request``. Raises InvalidInput, NotFound, Conflict, Unavailable."""
    beside = Beside()
    if request.cluster is None:
        state = request.state or StateOrReference()
        if request.configuration is None and state.snapshot is None:
            detail = "what cluster? give `configuration` and `state`, or `cluster`"
            raise InvalidInput([Problem(pointer="/configuration", detail=detail)])
        loaded = load(request.configuration, request.engine, state, sources)
        found = Situation(loaded, asks_of(request.asks, loaded), beside)
    else:
        found = _of_manifests(request, request.cluster.encode(), beside, sources)
    if request.set:
        found.loaded = with_configuration(found.loaded, with_fields(found.loaded.configured.configuration, request.set))
    kept = kept_objects(found.loaded.configured.configuration)
    of_configuration = Beside()
    read_beside(kept, of_configuration, Findings())
    beside.complete(of_configuration)
    beside.admission.kueue = found.loaded.configured.engine.name == "kueue"
    beside.local_queues.update(request.local_queues)
    for name, value in request.priority_classes.items():
        for group in _GROUPS:
            beside.classes.put(group, name, PriorityClass(value, False, False, None))
    return found


def _of_manifests(request: PlanRequest, text: bytes, beside: Beside, sources: Sources) -> Situation:
    known = None
    if request.configuration is not None:
        state = request.state or StateOrReference()
        known = configure(request.configuration, request.engine, sources, state).configuration
    try:
        imported = import_configuration(text, request.engine or "kubernetes", known)
        read_beside(_objects(text), beside, Findings())
    except InvalidInput as invalid:
        raise InvalidInput(_below(problem) for problem in invalid.problems) from None
    configuration = imported.configuration
    if not configuration.queues:
        detail = "there are no queues in it: give them with `configuration`"
        raise InvalidInput([Problem(pointer=_CLUSTER, detail=detail)])
    state = request.state or StateOrReference(**_fields(imported.state))
    named = known is not None and configuration.queues == known.queues
    loaded = load(
        (request.configuration if named else None) or configuration,
        request.engine,
        state,
        sources,
    )
    findings = [msgspec.structs.replace(f, pointer=_CLUSTER + f.pointer) for f in imported.findings]
    return Situation(loaded, [*imported.asks, *asks_of(request.asks, loaded)], beside, findings)


def _objects(text: bytes) -> list[tuple[Path, Any]]:
    """The documents, where they can be objects that stand beside work."""
    return [] if is_yson(text) else read(text)


def with_queues(loaded: Loaded, queues: list[Queue]) -> Loaded:
    """The same cluster with more queues. Raises InvalidInput."""
    document = loaded.configured.configuration
    return with_configuration(loaded, msgspec.structs.replace(document, queues=[*document.queues, *queues]))


def with_configuration(loaded: Loaded, document: Configuration) -> Loaded:
    """The same cluster with another configuration. Raises InvalidInput."""
    was = loaded.configured
    made = solve.configure(document, was.engine.name, name=was.used.name, revision=was.used.revision)
    again = solve.load(made, loaded.state, snapshot=loaded.snapshot, generation=loaded.generation)
    return replace(again, beside=loaded.beside)


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _below(problem: Problem) -> Problem:
    return Problem(pointer=_CLUSTER + problem.pointer, detail=problem.detail)
