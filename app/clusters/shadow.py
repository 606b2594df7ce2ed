"""``/v1/shadow``: real preemptions are compared with what Arbiter would have evicted; comparisons are kept and
counted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast
from uuid import UUID

import msgspec
import zstandard
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from sqlalchemy import RowMapping

from app.answering.answers import encode
from app.answering.operations import Inquiry, Operation
from app.auth import audit
from app.base.decoding import decode
from app.base.errors import NotFound
from app.base.identifiers import Identifiers
from app.clusters.repository import (
    Filters,
    Retention,
    agreements,
    comparison,
    comparisons,
    prune_comparisons,
    save_comparison,
)
from app.clusters.schemas import (
    Answer,
    Cause,
    Compared,
    ShadowCount,
    ShadowCounts,
    ShadowOutcome,
    ShadowPage,
    ShadowRecord,
    ShadowReport,
    compare,
    is_tied,
)
from app.db.database import Database, Intervals
from app.decisions.repository import storable
from app.decisions.schemas import ASK, SITUATION
from app.http.body import Body
from app.http.openapi import Cursor, Limit, Moment, decode_id, encode_cursor, operation
from app.http.responses import json_response
from app.http.routing import provided, service
from app.search.service import Kind, Names
from app.solver.engines import FIRST
from app.solver.model.configuration import EngineName
from app.solver.model.problems import InvalidInput, Problem, pointing
from app.solver.model.request import DecisionRequest
from app.workers.dispatcher import Dispatcher, Offload

_COUNTED = timedelta(days=7)


class Shadow:
    """Comparisons of real preemptions with Arbiter's."""

    def __init__(
        self, database: Database, dispatcher: Dispatcher, retention: Retention,
        count: Callable[[str, str, str], None], names: Names | None = None,
    ) -> None:  # fmt: skip
        """``count`` is told engine, outcome and cause of each; ``names``: who was stopped, and for whom."""
        self._names = names
        self._database = database
        self._dispatcher = dispatcher
        self._retention = retention
        self._count = count
        self._identifiers = Identifiers()
        self._reports = audit.Frequent()

    def report(self, body: bytes) -> ShadowRecord:
        """Compare, keep, count. Raises InvalidInput, Unavailable and what deciding does; then nothing is kept."""
        said = decode(body, ShadowReport)
        _check(said)
        now = datetime.now(UTC)
        outcome, compared = self._judged(said, now)
        tied = outcome == "differs" and self._tied(said, compared, now)
        cause = "tie" if tied else _cause(said, outcome, compared)
        request = said.requests[0] if outcome == "differs" else None
        record = ShadowRecord(
            id=self._identifiers.new(now), created_at=now, cluster=said.cluster, engine=said.engine, ask=said.ask,
            seen_at=said.seen_at, outcome=outcome, detail=compared.detail, observed=said.victims,
            expected=compared.expected, not_expected=compared.not_expected, not_observed=compared.not_observed,
            has_request=request is not None, seconds=said.seconds, changes=said.changes, assumed=said.assumed,
            cause=cause,
        )  # fmt: skip
        self._keep(record, request)
        self._count(record.engine, record.outcome, cause)
        if self._names is not None:
            victims: list[tuple[Kind, str]] = [("workload", storable(victim.workload)) for victim in said.victims]
            self._names.tell([("ask", storable(said.ask)), *victims])
        return record

    def page(self, filters: Filters, cursor: str | None, limit: int) -> ShadowPage:
        """A page, newest first. Raises BadRequest, Unavailable."""
        before = None if cursor is None else decode_id(cursor)
        with self._database.session() as session:
            rows = comparisons(session, filters, before, limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        items = [_record(row["record"]) for row in rows[:limit]]
        return ShadowPage(items=items, next_cursor=more)

    def counts(self, filters: Filters) -> ShadowCounts:
        """How often the two agreed, over the newest week of what ``filters`` name unless they say since when. Raises
        Unavailable."""
        end = filters.until or datetime.now(UTC)
        begin = filters.since or end - _COUNTED
        intervals = Intervals(begin, end)
        with self._database.session() as session:
            rows = agreements(session, replace(filters, since=begin, until=end), intervals)
        counted = intervals.counted((number, cast(ShadowOutcome, outcome), times) for number, outcome, _, times in rows)
        listed = [ShadowCount(at=begins, outcomes=outcomes) for begins, outcomes in counted]
        causes = defaultdict[ShadowOutcome, Counter[Cause]](Counter)
        for _, outcome, cause, times in rows:
            causes[cast(ShadowOutcome, outcome)][cast(Cause, cause)] += times
        return ShadowCounts(
            since=begin, until=end, intervals=listed, causes=dict[ShadowOutcome, dict[Cause, int]](causes)
        )

    def get(self, identity: UUID) -> ShadowRecord:
        """One comparison. Raises NotFound, Unavailable."""
        return _record(self._row(identity)["record"])

    def request(self, identity: UUID) -> bytes:
        """The question on which the two differ, whole. Raises NotFound, Unavailable."""
        packed = self._row(identity)["request"]
        if packed is None:
            raise NotFound(f"preemption {identity} has no request: one is kept where Arbiter differs")
        return zstandard.ZstdDecompressor().decompress(packed)

    def _judged(self, said: ShadowReport, now: datetime) -> tuple[ShadowOutcome, Compared]:
        if said.unjudged is not None:
            return "unjudged", Compared([], [], [], said.unjudged)
        first: Compared | None = None
        for i, request in enumerate(said.requests):
            with pointing(lambda place, i=i: f"/requests/{i}{place}"):
                answer = self._dispatcher.run(Inquiry(Operation.DECISION, now), msgspec.json.encode(request)).body
            gone = [workload.id for workload in request.state.workloads if workload.evicted]
            compared = compare(said.ask, said.victims, answer, gone)
            if not compared.detail:
                return "agreed_earlier" if said.changes else "agreed", compared
            first = first or compared
        assert first is not None
        return "differs", first

    def _tied(self, said: ShadowReport, differing: Compared, now: datetime) -> bool:
        request = msgspec.structs.replace(said.requests[0], explain="summary")
        answer = self._dispatcher.run(Inquiry(Operation.DECISION, now), msgspec.json.encode(request)).body
        return is_tied(said.ask, msgspec.json.decode(answer, type=Answer).decisions, request, differing)

    def _keep(self, record: ShadowRecord, request: DecisionRequest | None) -> None:
        packed = None
        if request is not None:
            packed = zstandard.ZstdCompressor().compress(msgspec.json.encode(request))
        body = zstandard.ZstdCompressor().compress(encode(record))
        row = {
            "id": record.id, "cluster": storable(record.cluster), "engine": record.engine, "outcome": record.outcome,
            "cause": record.cause, "ask": storable(record.ask), "seen_at": record.seen_at,
            "bytes": len(body) + len(packed or b""), "record": body, "request": packed,
            "victims": list(dict.fromkeys(storable(victim.workload) for victim in record.observed)),
        }  # fmt: skip
        with self._database.session() as session:
            save_comparison(session, row)
            self._reports.record(session, "shadow.report", record.cluster)
            prune_comparisons(session, record.created_at, self._retention)

    def _row(self, identity: UUID) -> RowMapping:
        with self._database.session() as session:
            row = comparison(session, identity)
        if row is None:
            raise NotFound(f"no preemption {identity} was compared")
        return row


def _cause(said: ShadowReport, outcome: ShadowOutcome, compared: Compared) -> Cause:
    """In one word, for rates."""
    if outcome == "unjudged":
        return said.cause or "unknown"
    if outcome == "differs":
        if not compared.expected:
            return "nobody"
        same = {(v.workload, v.task) for v in compared.not_expected} == {
            (v.workload, v.task) for v in compared.not_observed
        }
        return "reasons" if same else "victims"
    return said.assumed[0] if said.assumed else "earlier" if said.changes else "same"


def _check(said: ShadowReport) -> None:
    """Raises InvalidInput where the report is not whole by itself."""
    problems: list[Problem] = []
    if bool(said.requests) == (said.unjudged is not None):
        problems.append(Problem(pointer="/requests", detail="give either requests or `unjudged`, and not both"))
    for i, request in enumerate(said.requests):
        where = f"/requests/{i}"
        if request.state.snapshot is not None:
            problems.append(Problem(pointer=f"{where}/state/snapshot", detail="the state must be written out"))
        if request.configuration is None or isinstance(request.configuration, str):
            problems.append(Problem(pointer=f"{where}/configuration", detail="the configuration must be written out"))
        if request.proposals is not None:
            problems.append(Problem(pointer=f"{where}/proposals", detail="victims are compared, not proposals"))
        if isinstance(request.asks, str) or all(ask.id != said.ask for ask in request.asks):
            problems.append(Problem(pointer=f"{where}/asks", detail=f"there is no ask {said.ask[:200]!r}"))
    if problems:
        raise InvalidInput(problems)


def _record(packed: bytes) -> ShadowRecord:
    return msgspec.json.decode(zstandard.ZstdDecompressor().decompress(packed), type=ShadowRecord)


DOCUMENTED = (ShadowReport, ShadowRecord, ShadowPage, ShadowCounts)
EXAMPLE = {
    "cluster": "production",
    "engine": FIRST,
    "ask": ASK["id"],
    "seen_at": "2026-11-22T12:00:00Z",
    "victims": [{"workload": "nobody"}],
    "requests": [{**SITUATION, "asks": [ASK]}],
}
_READ = (404, 422, 503)

router = APIRouter(prefix="/v1/shadow", tags=["shadow"])


Service = Annotated[Shadow, provided(Shadow)]
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
    cause: Annotated[Cause | None, Query(description="The outcome in one more word.")] = None,
    ask: Annotated[str | None, Query(description="For whom others were evicted.")] = None,
    period: Annotated[tuple[datetime | None, datetime | None], Depends(_period)] = (None, None),
) -> Filters:
    since, until = period
    return replace(
        stopped, cluster=cluster, engine=engine, outcome=outcome, cause=cause, ask=ask, since=since, until=until
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
    of = service(request, Dispatcher).class_of(Operation.DECISION, body)
    return json_response(encode(await service(request, Offload).run(of, shadow.report, body)))


@router.get(
    "",
    operation_id="list_preemptions",
    summary="Real preemptions, newest first",
    **operation(needs="read", responses={200: ShadowPage}, errors=(503,)),
)
def list_preemptions(
    shadow: Service, filters: Annotated[Filters, Depends(_filters)], cursor: Cursor = None, limit: Limit = 50
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
