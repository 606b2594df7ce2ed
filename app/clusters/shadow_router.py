"""``/v1/shadow``: real preemptions beside Arbiter's."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.answering.answers import encode
from app.clusters.repository import Filters
from app.clusters.shadow import Shadow
from app.clusters.shadow_schemas import ShadowCounts, ShadowOutcome, ShadowPage, ShadowRecord, ShadowReport
from app.decisions.schemas import ASK, SITUATION
from app.http.body import Body
from app.http.openapi import operation
from app.http.parameters import Cursor, Limit, Moment
from app.http.responses import json_response
from app.http.routing import service
from app.solver.model.configuration import EngineName
from app.solver.model.request import DecisionRequest
from app.workers.dispatcher import Dispatcher, Offload

DOCUMENTED = (ShadowReport, ShadowRecord, ShadowPage, ShadowCounts)
EXAMPLE = {
    "cluster": "production",
    "engine": "kueue",
    "ask": ASK["id"],
    "seen_at": "2026-11-22T12:00:00Z",
    "victims": [{"workload": "nobody"}],
    "requests": [{**SITUATION, "asks": [ASK]}],
}
_READ = (404, 422, 503)

router = APIRouter(prefix="/v1/shadow", tags=["shadow"])


async def _service(request: Request) -> Shadow:
    return service(request, Shadow)


Service = Annotated[Shadow, Depends(_service)]
Id = Annotated[UUID, Path(description="`id` of a comparison")]


def _period(
    since: Annotated[Moment | None, Query(description="Seen then or later; RFC 3339 with offset.")] = None,
    until: Annotated[Moment | None, Query(description="Seen before; RFC 3339 with offset.")] = None,
) -> tuple[datetime | None, datetime | None]:
    return since, until


def _stopped(
    workload: Annotated[str | None, Query(description="Who was evicted: the id of the workload.")] = None,
    job: Annotated[str | None, Query(description="Whose it was: the job that owns it, with its namespace.")] = None,
    queue: Annotated[str | None, Query(description="The queue that it ran in.")] = None,
) -> Filters:
    return Filters(workload=workload, job=job, queue=queue)


def _filters(
    stopped: Annotated[Filters, Depends(_stopped)],
    cluster: Annotated[str | None, Query(description="Where it happened.")] = None,
    engine: Annotated[EngineName | None, Query(description="Which scheduler it was.")] = None,
    outcome: Annotated[ShadowOutcome | None, Query(description="How the two relate.")] = None,
    ask: Annotated[str | None, Query(description="For whom others were evicted.")] = None,
    period: Annotated[tuple[datetime | None, datetime | None], Depends(_period)] = (None, None),
) -> Filters:
    since, until = period
    return replace(
        stopped, cluster=cluster, engine=engine, outcome=outcome, ask=ask, since=since, until=until
    )  # fmt: skip


@router.post(
    "",
    operation_id="report_preemption",
    summary="Compare a real preemption with Arbiter's",
    **operation(
        needs="decide",
        followers=True,
        request=ShadowReport,
        responses={200: ShadowRecord},
        errors=(404, 409, 429, 503, 504),
        example=EXAMPLE,
    ),
)
async def report_preemption(request: Request, body: Body, shadow: Service) -> Response:
    """Sent by `arbiter follow --shadow`. The question is answered, compared with what happened, and kept; it is no
    decision of the log."""
    of = service(request, Dispatcher).class_of(body)
    return json_response(encode(await service(request, Offload).run(of, shadow.report, body)))


@router.get(
    "",
    operation_id="list_preemptions",
    summary="Real preemptions, newest first",
    **operation(needs="read", responses={200: ShadowPage}, errors=(503,)),
)
def list_preemptions(
    shadow: Service,
    filters: Annotated[Filters, Depends(_filters)],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Each with what Arbiter would have done: `outcome=differs` lists those to look at."""
    return json_response(encode(shadow.page(filters, cursor, limit)))


@router.get(
    ":counts",
    operation_id="count_preemptions",
    summary="How often the two agreed",
    **operation(needs="read", responses={200: ShadowCounts}, errors=(503,)),
)
def count_preemptions(shadow: Service, filters: Annotated[Filters, Depends(_filters)]) -> Response:
    """Counted by the database, however many there are. Without `since` the week before `until`, without `until` up to
    now."""
    return json_response(encode(shadow.counts(filters)))


@router.get(
    "/{id}",
    operation_id="get_preemption",
    summary="One real preemption, compared",
    **operation(needs="read", responses={200: ShadowRecord}, errors=_READ),
)
def get_preemption(id: Id, shadow: Service) -> Response:  # noqa: A002
    """Who was evicted, whom Arbiter would have evicted, and how these differ."""
    return json_response(encode(shadow.get(id)))


@router.get(
    "/{id}/request",
    operation_id="get_preemption_request",
    summary="The question on which the two differ",
    **operation(needs="read", responses={200: DecisionRequest}, errors=_READ),
)
def get_preemption_request(id: Id, shadow: Service) -> Response:  # noqa: A002
    """Whole by itself: `arbiter explain -f FILE` reads it. 404 where the two agree."""
    return json_response(shadow.request(id))
