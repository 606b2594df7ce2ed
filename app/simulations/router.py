"""``/v1/simulations``: a trace of jobs through the engines, round by round."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from anyio import to_thread
from fastapi import Depends, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from app.answering.answers import encode
from app.auth.audit import Seats
from app.http.openapi import NDJSON, lines, operation, reference
from app.http.responses import json_response
from app.http.routing import provided, service
from app.jobs.service import READ, First, Most, Said, Which, router_of
from app.simulations.plots import Evictions, Free, Kind, Usage, Waits
from app.simulations.results import FragmentationSeries, Series, Simulation, SimulationPage
from app.simulations.schemas import Event, JobLine, RoundLine, SimulationRequest
from app.simulations.service import ENDED, Simulations
from app.solver.engine import example
from app.solver.engines import FIRST
from app.solver.model.request import DecisionRequest
from app.workers.dispatcher import Offload

_CPU = {"cpu": {"guaranteed": "8"}}
SIMULATION: dict[str, Any] = {
    "configuration": {
        "engine": FIRST,
        "queues": [
            example().parent,
            {"name": "team-a", "parent": "all", "quota": _CPU, **example().preempting},
            {"name": "team-b", "parent": "all", "quota": _CPU, **example().preempting},
        ],
    },
    "variants": [{"name": "classical"}, example().variant],
    "trace": {
        "jobs": [
            {
                "ask": {"id": "train-1", "queue": "team-a", "tasks": [{"name": "main", "requests": {"cpu": 12}}]},
                "submitted_at": 0,
                "duration": 3600,
                "checkpoint": {"every": "10m"},
            },
            {
                "ask": {"id": "serve-1", "queue": "team-b", "tasks": [{"name": "main", "requests": {"cpu": 8}}]},
                "submitted_at": 600,
                "duration": "30m",
            },
        ]
    },
    "grace": "30s",
}


PICTURES = (Usage, Waits, Evictions, Free)
DOCUMENTED = (
    SimulationRequest,
    Simulation,
    SimulationPage,
    Series,
    FragmentationSeries,
    *PICTURES,
    Event,
    RoundLine,
    JobLine,
)
_EVENT_STREAM = "text/event-stream"
_SVG = "image/svg+xml"
_EVENTS = {"description": "Events `progress` and `end`; the data of each is a simulation, as JSON."}
"""Without a type: what checks the stream against it looks at each event, what reads it at a text."""
LOOK_SECONDS = 0.5

router = router_of(
    Simulations, "simulation", request=SimulationRequest, shown=Simulation, page=SimulationPage, example=SIMULATION,
    begin=Said("simulate", "Play a trace", """
    Accepted at once, made by a worker: every round is what `/v1/decisions` in mode `cycle` answers to the state as
    it then is. `Location` is where to look."""),
    listed=Said("list_simulations", "Simulations, newest first", "Without summaries."),
    got=Said(
        "get_simulation", "Status, progress and, once done, the summary of each variant",
        "A run that lost its worker is begun again from the start: `attempt` counts.",
    ),
    forgotten="forgotten with its results",
)  # fmt: skip


Service = Annotated[Simulations, provided(Simulations)]
Id = Annotated[UUID, Path(description="`id` of a simulation")]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Some lines of one variant of a simulation."""

    id: Id
    variant: Which = None
    first: First = 0
    limit: Most = None


Wanted = Annotated[_Wanted, Depends()]


@router.get(
    "/{id}/progress",
    operation_id="follow_simulation",
    summary="Progress as server-sent events",
    **operation(needs="read", responses={200: {_EVENT_STREAM: {"schema": _EVENTS}}}, errors=(*READ, 429)),
)
async def follow_simulation(id: Id, simulations: Service, seats: Annotated[Seats, provided(Seats)]) -> Response:  # noqa: A002
    """An event `progress` whenever it has moved, and an event `end` with the whole answer; then the stream ends. 429
    where as many listen as may: ask for the simulation itself now and then."""
    first = await to_thread.run_sync(simulations.get, id)
    headers = {"Cache-Control": "no-store"}
    following = _following(simulations, first, seats, seats.join())
    return StreamingResponse(following, media_type=_EVENT_STREAM, headers=headers)


@router.get(
    "/{id}/events",
    operation_id="list_simulation_events",
    summary="What happened, in order",
    **operation(needs="read", responses={200: lines(Event)}, errors=READ),
)
def events(wanted: Wanted, simulations: Service) -> Response:
    """One line an event, as far as the run has come."""
    return _lines(simulations, wanted, "events")


@router.get(
    "/{id}/rounds",
    operation_id="list_simulation_rounds",
    summary="The rounds",
    **operation(needs="read", responses={200: lines(RoundLine)}, errors=READ),
)
def rounds(
    wanted: Wanted,
    simulations: Service,
    only: Annotated[
        Literal["evictions", "loops"] | None,
        Query(description="Only rounds that evict, or that would have begun a loop again. Absent: each."),
    ] = None,
) -> Response:
    """One line a round: what was asked, who was admitted, who was evicted. With `only` those from line `from` on that
    are such, at most `limit` of them."""
    if only is None:
        return _lines(simulations, wanted, "rounds")
    chosen = simulations.rounds(wanted.id, wanted.variant, only, wanted.first, wanted.limit)
    return StreamingResponse(chosen, media_type=NDJSON)


@router.get(
    "/{id}/jobs",
    operation_id="list_simulation_jobs",
    summary="What became of each job",
    **operation(needs="read", responses={200: lines(JobLine)}, errors=READ),
)
def jobs(wanted: Wanted, simulations: Service) -> Response:
    """One line a job, in the order in which they ended; then those that have not."""
    return _lines(simulations, wanted, "jobs")


_Resource = Annotated[str | None, Query(max_length=512, description="One resource. Absent: each.")]
_Points = Annotated[int, Query(ge=1, le=10_000, description="Intervals of equal length.")]


@router.get(
    "/{id}/series",
    operation_id="get_simulation_series",
    summary="Usage, guarantee and demand over time",
    **operation(needs="read", responses={200: Series}, errors=(*READ, 409, 429, 504)),
)
async def get_series(
    id: Id,  # noqa: A002
    request: Request,
    simulations: Service,
    variant: Which = None,
    queue: Annotated[str | None, Query(max_length=512, description="A queue. Absent: all together.")] = None,
    resource: _Resource = None,
    points: _Points = 200,
) -> Response:
    """Exact areas over intervals of equal length, not samples: added up they are the summary's. 409 before the end."""
    series = await service(request, Offload).run(
        "large", partial(simulations.series, variant=variant, queue=queue, resource=resource, points=points), id
    )
    return json_response(encode(series))


@router.get(
    "/{id}/fragmentation",
    operation_id="get_simulation_fragmentation",
    summary="What was free by level of topologies over time",
    **operation(needs="read", responses={200: FragmentationSeries}, errors=(*READ, 409, 429, 504)),
)
async def get_fragmentation(
    id: Id,  # noqa: A002
    request: Request,
    simulations: Service,
    variant: Which = None,
    resource: _Resource = None,
    points: _Points = 200,
) -> Response:
    """In all domains of a level together, and in the one that had most: much that is free and little of it in one place
    is fragmentation. Exact areas over intervals of equal length. 409 before the end."""
    look = partial(simulations.fragmentation, variant=variant, resource=resource, points=points)
    return json_response(encode(await service(request, Offload).run("large", look, id)))


@router.get(
    "/{id}/plots/{kind}.svg",
    operation_id="get_simulation_plot",
    summary="A picture",
    **operation(
        needs="read", responses={200: {_SVG: {"schema": {"type": "string"}}}}, errors=(*READ, 409, 429, 501, 504)
    ),
)
async def get_plot(
    id: Id,  # noqa: A002
    kind: Annotated[Kind, Path(description="What to draw", examples=["usage"])],
    request: Request,
    simulations: Service,
    variant: Which = None,
    resource: Annotated[
        str | None,
        Query(
            max_length=512,
            description="Of `usage` and `fragmentation`. Absent: the one that was used, or lay scattered, most.",
        ),
    ] = None,
) -> Response:
    """`usage`: of each queue over time against its guarantee; `waits`: to the first start, as a distribution, of all
    variants where none is named; `evictions`: from queue to queue; `fragmentation`: what was free at most in one domain
    against all, by level of topologies. The same simulation gives the same bytes. 409 before
    the end, 501 where the service lacks the extra `arbiter-preemption[plot]`."""
    draw = partial(simulations.plot, variant=variant, kind=kind, resource=resource)
    return Response(await service(request, Offload).run("large", draw, id), media_type=_SVG)


@router.get(
    "/{id}/plots/{kind}.json",
    operation_id="get_simulation_plot_data",
    summary="The numbers of a picture",
    **operation(
        needs="read",
        responses={200: {"application/json": {"schema": {"anyOf": [reference(picture) for picture in PICTURES]}}}},
        errors=(*READ, 409, 429, 504),
    ),
)
async def get_plot_data(
    id: Id,  # noqa: A002
    kind: Annotated[Kind, Path(description="Of what", examples=["usage"])],
    request: Request,
    simulations: Service,
    variant: Which = None,
    resource: Annotated[str | None, Query(max_length=512, description="As for the picture.")] = None,
) -> Response:
    """To draw them elsewhere. Lines of more than 201 waits come as their quantiles: 0, 0.5 … 100 %. 409 before the
    end."""
    picture = partial(simulations.picture, variant=variant, kind=kind, resource=resource)
    return json_response(msgspec.json.encode(await service(request, Offload).run("large", picture, id)))


@router.get(
    "/{id}/rounds/{n}",
    operation_id="get_simulation_round",
    summary="One round",
    **operation(needs="read", responses={200: RoundLine}, errors=READ),
)
def get_round(
    id: Id,  # noqa: A002
    n: Annotated[int, Path(ge=1, le=2**31, description="Its number, from 1", examples=[1])],
    simulations: Service,
    variant: Which = None,
) -> Response:
    """What was asked, and what came of it."""
    return json_response(simulations.line(id, variant, "rounds", n - 1))


@router.get(
    "/{id}/rounds/{n}/request",
    operation_id="get_simulation_round_request",
    summary="The decision request of a round",
    **operation(needs="read", responses={200: DecisionRequest}, errors=(*READ, 429, 504)),
)
async def get_round_request(
    id: Id,  # noqa: A002
    n: Annotated[int, Path(ge=1, le=2**31, description="Its number, from 1", examples=[1])],
    request: Request,
    simulations: Service,
    variant: Which = None,
) -> Response:
    """Post it to `/v1/decisions`, and the answer is the round's. It is made of what the run has kept; nothing is played
    again."""
    body = await service(request, Offload).run("large", simulations.request_of, id, variant, n)
    return json_response(body)


def _lines(simulations: Simulations, of: _Wanted, kind: str) -> Response:
    return StreamingResponse(simulations.lines(of.id, of.variant, kind, of.first, of.limit), media_type=NDJSON)


async def _following(simulations: Simulations, simulation: Simulation, seats: Seats, who: str) -> AsyncGenerator[bytes]:
    sent = b""
    try:
        while simulation.status not in ENDED:
            news = encode(simulation)
            if news != sent:
                sent = news
                yield b"event: progress\ndata: %b\n\n" % news
            await asyncio.sleep(LOOK_SECONDS)
            simulation = await to_thread.run_sync(simulations.get, simulation.id)
        yield b"event: end\ndata: %b\n\n" % encode(simulation)
    finally:
        seats.leave(who)
