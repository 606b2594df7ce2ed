"""``POST /v1/plans``: the manifest of work that does not run yet to what would become of it."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from app.answering.answers import Stopwatch, encode, stats_of
from app.answering.plan_bodies import PlanAnswer, PlannedWork, PlanRequest
from app.answering.planning.changes import changes
from app.answering.planning.cluster import Situation, situation, with_queues
from app.answering.planning.rounds import settle
from app.answering.sources import Sources
from app.base.decoding import decode
from app.base.documents import Path
from app.formats.kai.pods import gpu_memory
from app.formats.reader import Findings
from app.formats.work import SPECIAL, kueue, pods
from app.formats.work import kueue as ytsaurus
from app.formats.work.kinds import Work
from app.formats.work.read import Cluster, Planned, read_work, resource_names
from app.formats.yson import read_any
from app.solver.model import duration
from app.solver.model.base import Time
from app.solver.model.decision import Decision, Outcome
from app.solver.model.instant import micros
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.quantity import parse, scale_of, units
from app.solver.question import Question
from app.solver.solve import Loaded

_MANIFEST = "/manifest"
_WORST: tuple[Outcome, ...] = ("admit", "preempt", "wait", "infeasible")
_READERS: dict[str, Callable[[list[Work], Cluster], list[Planned]]] = {
    "kueue": kueue.plan_work,
    "yunikorn": pods.plan_yunikorn,
    "kai": pods.plan_kai,
}


def plan(body: bytes, now: Time, sources: Sources) -> bytes:
    """``POST /v1/plans``. ``now`` fills in for the request. Raises InvalidInput, with pointers into the request."""
    watch = Stopwatch()
    with watch.stage("decode"):
        request = decode(body, PlanRequest)
        at = request.now or now
        submitted = _before(at, _waited(request))
    with watch.stage("compile"):
        cluster = situation(request, sources)
        findings = Findings()
        planned = _planned(request, cluster, submitted, findings)
    new = [ask for one in planned for ask in one.asks]
    with watch.stage("solve"):
        question = Question(micros(at), [], "cycle", request.options, request.explain)
        families = [[ask] for ask in cluster.asks] + [one.asks for one in planned]
        settled = settle(cluster.loaded, families, question)
        queues = changes(cluster.loaded, cluster.asks, new, settled, micros(at), request.options)
    answer, by_ask = settled.answer, settled.decisions
    work = [_described(one, by_ask) for one in planned]
    made = PlanAnswer(
        engine=answer.engine, configuration=answer.configuration, state=answer.state,
        outcome=_worst(one.outcome for one in work), work=work, asks=new,
        decisions=[by_ask[ask.id] for ask in new], waiting=[by_ask[ask.id] for ask in cluster.asks], plan=answer.plan,
        queues=queues, findings=[*cluster.findings, *_below(findings.all())], stats=stats_of(watch.seconds),
    )  # fmt: skip
    return encode(made)


def _waited(request: PlanRequest) -> timedelta:
    try:
        waited = duration.parse(request.waited)
    except duration.DurationError as error:
        raise InvalidInput([Problem(pointer="/waited", detail=str(error))]) from None
    if not 0 <= waited <= 10**15:
        raise InvalidInput([Problem(pointer="/waited", detail="a time from 0 to 30 years is expected")])
    return timedelta(microseconds=waited)


def _before(at: Time, waited: timedelta) -> datetime:
    try:
        return at - waited
    except OverflowError:
        raise InvalidInput([Problem(pointer="/waited", detail="that is before the first year")]) from None


def _planned(request: PlanRequest, cluster: Situation, submitted: datetime, findings: Findings) -> list[Planned]:
    """The objects of the manifest with their asks; queues that they make are added to ``cluster``. Raises InvalidInput
    where nothing of it can be planned."""
    loaded = cluster.loaded
    around = Cluster(
        configuration=loaded.configured.configuration, beside=cluster.beside, findings=findings, created_at=submitted,
        queue=request.queue, taken={*loaded.index.workloads, *(ask.id for ask in cluster.asks)},
        running=set(loaded.index.workloads), counted=_counted(loaded), gpus=gpu_memory((node.name, node.labels) for
        node in loaded.state.nodes),
    )  # fmt: skip
    documents = _documents(request)
    if loaded.configured.engine.name == "ytsaurus":
        found = ytsaurus.plan_operations(documents, around)
    else:
        works = read_work(documents, cluster.beside, findings, namespace=request.namespace, special=SPECIAL)
        found = _READERS[loaded.configured.engine.name](works, around)
    found = [one for one in found if one.asks]
    if not found:
        listed = _below(findings.all())
        errors = [f for f in listed if f.severity == "error"] or [f for f in listed if f.severity == "warning"]
        raise InvalidInput(
            [Problem(pointer=f.pointer, detail=f.detail) for f in errors]
            or [Problem(pointer=_MANIFEST, detail="there is nothing in it that starts pods")]
        )
    if around.dynamic:
        cluster.loaded = with_queues(loaded, around.dynamic)
    return found


def _counted(loaded: Loaded) -> set[str]:
    """The resources that queues or nodes have."""
    return resource_names(loaded.configured.configuration) | {r for node in loaded.state.nodes for r in node.capacity}


def _documents(request: PlanRequest) -> list[tuple[Path, object]]:
    manifest = request.manifest
    if isinstance(manifest, str):
        try:
            return list(read_any(manifest.encode()))
        except InvalidInput as invalid:
            raise InvalidInput(
                Problem(pointer=_MANIFEST + problem.pointer, detail=problem.detail) for problem in invalid.problems
            ) from None
    return [((), manifest)]


def _below(findings: list[Finding]) -> list[Finding]:
    return [msgspec.structs.replace(finding, pointer=_MANIFEST + finding.pointer) for finding in findings]


def _described(planned: Planned, by_ask: dict[str, Decision]) -> PlannedWork:
    asks = planned.asks
    tasks = [task for ask in asks for task in ask.tasks]
    steps: dict[str, int] = {}
    for task in tasks:
        for name, value in task.requests.items():
            steps[name] = steps.get(name, 0) + task.count * parse(value, scale_of(name))
    return PlannedWork(
        object=planned.title, queue=asks[0].queue, priority=asks[0].priority or 0,
        pods=sum(task.count for task in tasks), requests={name: units(value, name) for name, value in steps.items()},
        outcome=_worst(by_ask[ask.id].outcome for ask in asks), asks=[ask.id for ask in asks],
    )  # fmt: skip


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    return _WORST[max(map(_WORST.index, outcomes))]
