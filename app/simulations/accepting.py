"""What somebody asks for, read, checked and pinned to revisions, so that it can be put aside for a worker."""

import msgspec

from app.answering.sources import Compiled, Documents
from app.base.decoding import decode
from app.base.errors import BadInput
from app.simulations.core.scenario import scenario_of, variants_of
from app.simulations.pinning import Pinning
from app.simulations.schemas import SimulationRequest, Trace, too_many_jobs
from app.solver.model.problems import Problem, pointer


class Terms(msgspec.Struct, frozen=True, tag=True):
    """The most ``variants`` that one may have, and ``jobs`` that it may bring along."""

    variants: int
    jobs: int


class Accepted(msgspec.Struct, frozen=True, tag=True):
    """``names`` of the variants; ``trace``: the stored one that it names; ``request``: as JSON, with revisions."""

    names: list[str]
    trace: str | None
    request: bytes


def accept(body: bytes, terms: Terms, documents: Documents, configurations: Compiled) -> Accepted:
    """Raises InvalidInput, BadInput, NotFound, Unavailable."""
    request = decode(body, SimulationRequest)
    names = variant_names(request, terms.variants)
    if isinstance(request.trace, Trace) and len(request.trace.jobs) > terms.jobs:
        raise BadInput([Problem(pointer="/trace/jobs", detail=too_many_jobs(terms.jobs))])
    pinned = Pinning(documents).request(request)
    for _, one in variants_of(pinned, configurations):  # what is wrong is told now
        scenario_of(one, configurations, None if isinstance(request.trace, Trace) else ())
    return Accepted(names, request.trace if isinstance(request.trace, str) else None, msgspec.json.encode(pinned))


def variant_names(request: SimulationRequest, most: int) -> list[str]:
    """The names of the variants; one empty name where there are none. Raises BadInput."""
    if request.variants is None:
        return [""]
    names = [variant.name for variant in request.variants]
    problems = [
        Problem(pointer=pointer("variants", i, "name"), detail="another variant has this name")
        for i, name in enumerate(names)
        if name in names[:i]
    ]
    if not 0 < len(names) <= most:
        problems.append(Problem(pointer="/variants", detail=f"{len(names)} variants; 1 to {most} are allowed"))
    if problems:
        raise BadInput(problems)
    return names
