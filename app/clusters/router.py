"""``/v1/clusters``: what is followed, how old it is, and by whom; reports of followers, and what they say together."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from typing import Annotated, Any, NamedTuple

import msgspec
import zstandard
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from sqlalchemy import RowMapping

from app.answering.answers import encode
from app.auth import audit
from app.base.decoding import decode
from app.base.errors import NotFound
from app.base.identifiers import NAME, Identifiers
from app.clusters import repository
from app.clusters.repository import Evicted, Retention
from app.clusters.schemas import (
    USE_SECONDS,
    ClusterFollower,
    ClusterLease,
    ClusterReport,
    EvictionPage,
    EvictionRecord,
    EvictionReport,
    FollowedCluster,
    FollowedClusterList,
    QueueUse,
    UseLine,
    UseReport,
    UseSeries,
)
from app.db.database import Database
from app.decisions.repository import storable
from app.decisions.service import FollowedAges
from app.http.body import OwnBody
from app.http.openapi import Cursor, Limit, Moment, decode_id, encode_cursor, operation
from app.http.responses import json_response
from app.http.routing import provided, service
from app.search.service import Hit, Kind, Names
from app.solver.engines import FIRST
from app.solver.model.problems import Problem
from app.workers.dispatcher import Offload

LEASE_SECONDS = 15.0
_FORGET_AFTER = timedelta(hours=1)


class UseOf(NamedTuple):
    """Of which use."""

    queue: Annotated[str | None, Query(max_length=512, description="A queue. Absent: all together.")] = None
    resource: Annotated[str | None, Query(max_length=512, description="One resource. Absent: each.")] = None
    since: Annotated[Moment | None, Query(description="Then or later. Absent: a day before `until`.")] = None
    until: Annotated[Moment | None, Query(description="Before; RFC 3339 with offset. Absent: now.")] = None
    points: Annotated[int, Query(ge=1, le=300, description="How many moments at most.")] = 200


class Clusters:
    """The clusters that followers report about."""

    def __init__(
        self, database: Database, retention: Retention, ages: FollowedAges | None = None, names: Names | None = None
    ) -> None:
        """``retention``: of evictions, as of what shadow compares; ``ages``: is told how old snapshots are; ``names``:
        who was evicted, and for whom."""
        self._names = names
        self._ages = ages or FollowedAges()
        self._database = database
        self._retention = retention
        self._reports = audit.Frequent()

    def report(self, name: str, said: ClusterReport) -> ClusterLease:
        """Keep what a follower says. Raises Unavailable."""
        with self._database.session() as session:
            known = {str(row["follower"]) for row in repository.reports(session, name, _FORGET_AFTER)}
            repository.report(session, name, said.follower, msgspec.json.encode(said), _FORGET_AFTER)
            if said.follower not in known:  # of those that follow, which report every few seconds
                audit.record(session, "cluster.follow", name, {"follower": said.follower})
            writes = repository.lease(session, name, said.follower, LEASE_SECONDS)
        age = None if said.synced_at is None else (datetime.now(UTC) - said.synced_at).total_seconds()
        self._ages.heard(said.snapshot, name, None if age is None else max(0.0, age))
        return ClusterLease(writer=writes, seconds=LEASE_SECONDS)

    def get(self, name: str) -> FollowedCluster:
        """Raises NotFound, Unavailable."""
        with self._database.session() as session:
            rows = repository.reports(session, name, _FORGET_AFTER)
        if not rows:
            raise _unknown(name)
        return _cluster(name, rows)

    def every(self) -> list[FollowedCluster]:
        """All of them, by name. Raises Unavailable."""
        with self._database.session() as session:
            rows = repository.reports(session, None, _FORGET_AFTER)
        return [_cluster(name, list(of)) for name, of in groupby(rows, lambda row: str(row["cluster"]))]

    def find(self, part: str, limit: int) -> list[Hit]:
        """See ``app.search.service.Source``."""
        named = (cluster for cluster in self.every() if part in cluster.name.casefold())
        return [Hit(kind="cluster", name=cluster.name, snapshot=cluster.snapshot) for cluster in islice(named, limit)]

    def evict(self, name: str, said: EvictionReport) -> None:
        """Keep evictions that a follower saw. Raises Unavailable."""
        rows: list[dict[str, Any]] = []
        identifiers = Identifiers()  # of the times that are reported: the next report may be of earlier ones
        for eviction in said.evictions:
            identity = identifiers.new(eviction.at)
            fields = {field: getattr(eviction, field) for field in eviction.__struct_fields__}
            record = EvictionRecord(id=identity, cluster=name, engine=said.engine, **fields)
            body = zstandard.ZstdCompressor().compress(encode(record))
            rows.append(
                {"id": identity, "cluster": name, "at": eviction.at, "workload": storable(eviction.workload),
                 "task": storable(eviction.task or ""), "job": eviction.job and storable(eviction.job),
                 "shadow": eviction.shadow, "queue": eviction.queue and storable(eviction.queue),
                 "by": eviction.by and storable(eviction.by), "bytes": len(body), "record": body}
            )  # fmt: skip
        # Those who report have clocks of their own: what one of them takes for the future makes nothing old.
        newest = min(max(eviction.at for eviction in said.evictions), datetime.now(UTC))
        with self._database.session() as session:
            repository.save_evictions(session, rows)
            self._reports.record(session, "cluster.evictions", name)
            repository.prune_evictions(session, newest, self._retention)
        if self._names is not None:
            self._names.tell(_named(said))

    def evictions(self, name: str, of: Evicted, cursor: str | None, limit: int) -> EvictionPage:
        """A page, newest first. Raises BadRequest, Unavailable."""
        before = None if cursor is None else decode_id(cursor)
        with self._database.session() as session:
            rows = repository.evicted(session, name, of, before, limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        items = [
            msgspec.json.decode(zstandard.ZstdDecompressor().decompress(row["record"]), type=EvictionRecord)
            for row in rows[:limit]
        ]
        return EvictionPage(items=items, next_cursor=more)

    def use(self, name: str, said: UseReport) -> None:
        """Keep what queues use. Raises Unavailable."""
        body = zstandard.ZstdCompressor().compress(encode(said))
        row = {
            "id": Identifiers().new(said.at), "cluster": name, "interval": _interval(said.at), "bytes": len(body),
            "record": body,
        }  # fmt: skip
        with self._database.session() as session:
            repository.save_use(session, row)
            self._reports.record(session, "cluster.use", name)
            repository.prune_use(session, min(said.at, datetime.now(UTC)), self._retention)

    def used(self, name: str, of: UseOf) -> UseSeries:
        """What a queue used between two moments. Raises Unavailable."""
        until = of.until or datetime.now(UTC)
        since = of.since or until - _USED
        first, end = _interval(since), max(_interval(since), _interval(until)) + 1
        with self._database.session() as session:
            records = repository.used(session, name, first, end, of.points)
        moments = [use for record in records if since <= (use := _read(record, of.queue))[0] < until]
        return UseSeries(
            queue=of.queue, since=since, until=until, at=[moment for moment, _ in moments],
            usage=_lines([
                {(flavor, resource): v for flavor, held in use.usage.items() for resource, v in held.items()}
                for _, use in moments
            ], of.resource),
            waiting=_lines([
                {("", resource): v for resource, v in use.waiting.items()} for _, use in moments
            ], of.resource),
        )  # fmt: skip

    def forget(self, name: str) -> None:
        """Forget its reports, not its evictions; a follower that still runs brings it back. Raises NotFound,
        Unavailable."""
        with self._database.session() as session:
            if not repository.forget(session, name):
                raise _unknown(name)
            audit.record(session, "cluster.forget", name)
        self._ages.forget(name)


class _StoredReport(msgspec.Struct, gc=False):
    """A ``UseReport``, of which one queue is read."""

    at: datetime
    total: msgspec.Raw
    queues: dict[str, msgspec.Raw] = {}


_USED = timedelta(days=1)
_NOTHING = msgspec.Raw(b"{}")
_stored_report = msgspec.json.Decoder(_StoredReport).decode
_use = msgspec.json.Decoder(QueueUse).decode


def _read(record: bytes, queue: str | None) -> tuple[datetime, QueueUse]:
    """When it was, and what was used of a queue then."""
    report = _stored_report(zstandard.ZstdDecompressor().decompress(record))
    return report.at, _use(report.total if queue is None else report.queues.get(queue, _NOTHING))


def _interval(moment: datetime) -> int:
    return int(moment.timestamp() // USE_SECONDS)


def _lines(each: list[dict[tuple[str, str], float]], wanted: str | None) -> list[UseLine]:
    """By flavor and resource; what was not told at a moment was nothing then."""
    of = sorted({key for amounts in each for key in amounts if wanted in (None, key[1])})
    return [
        UseLine(
            resource=resource, flavor=flavor or None, values=[amounts.get((flavor, resource), 0) for amounts in each]
        )
        for flavor, resource in of
    ]


def _named(said: EvictionReport) -> Iterator[tuple[Kind, str]]:
    for eviction in said.evictions:
        yield "workload", storable(eviction.workload)
        if eviction.job:
            yield "workload", storable(eviction.job)
        if eviction.queue:
            yield "queue", storable(eviction.queue)
        if eviction.by:
            yield "ask", storable(eviction.by)


def _unknown(name: str) -> NotFound:
    detail = f"no follower reports about a cluster {name!r}"
    return NotFound(detail, problems=[Problem(pointer="/name", detail=detail)])


def _cluster(name: str, rows: Sequence[RowMapping]) -> FollowedCluster:
    followers = [_follower(row) for row in rows]
    latest = min(followers, key=lambda follower: (follower.age_seconds, follower.follower))
    ages = [age for follower in followers if (age := _age(follower)) is not None]
    return FollowedCluster(
        name=name, engine=latest.engine, snapshot=latest.snapshot, configuration=latest.configuration,
        age_seconds=min(ages, default=None), followers=followers,
    )  # fmt: skip


def _follower(row: RowMapping) -> ClusterFollower:
    said = msgspec.json.decode(row["report"], type=ClusterReport)
    return ClusterFollower(
        **{field: getattr(said, field) for field in said.__struct_fields__},
        reported_at=row["reported_at"],
        age_seconds=max(0.0, float(row["age"])),
        writer=row["writes"],
    )


def _age(follower: ClusterFollower) -> float | None:
    """By the follower's clock until it reported, by the database's since."""
    if follower.synced_at is None:
        return None
    return follower.age_seconds + max(0.0, (follower.reported_at - follower.synced_at).total_seconds())


DOCUMENTED = (
    FollowedCluster, ClusterLease, FollowedClusterList, ClusterReport, EvictionReport, EvictionPage, UseReport,
    UseSeries,
)  # fmt: skip
EXAMPLE = {
    "follower": "arbiter-0",
    "engine": FIRST,
    "snapshot": "production",
    "configuration": "production",
    "stage": "following",
    "kinds": [
        {"kind": "Workload", "api_version": "kueue.x-k8s.io/v1beta1", "objects": 200, "resource_version": "4711"}
    ],
    "generation": 12,
}
EVICTION = {
    "at": "2026-11-22T12:00:00Z", "workload": "ml/job-train-3f2a1", "job": "ml/train", "job_kind": "Job",
    "queue": "research", "by": "ml/job-serve-77ab0", "reason": "InCohortReclamation",
}  # fmt: skip
USE = {
    "at": "2026-11-22T12:00:00Z",
    "total": {"usage": {"a100": {"nvidia.com/gpu": 12}}, "waiting": {"nvidia.com/gpu": 4}},
    "queues": {"research": {"usage": {"a100": {"nvidia.com/gpu": 12}}}, "serving": {"waiting": {"nvidia.com/gpu": 4}}},
}  # fmt: skip

router = APIRouter(prefix="/v1/clusters", tags=["clusters"])


Service = Annotated[Clusters, provided(Clusters)]
Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, `.`, `_` and `-`", examples=["production"])]


@router.get(
    "",
    operation_id="list_clusters",
    summary="What is followed",
    **operation(needs="read", responses={200: FollowedClusterList}, errors=(503,)),
)
def list_clusters(clusters: Service) -> Response:
    """Every cluster that a follower has reported about within an hour."""
    return json_response(FollowedClusterList(items=clusters.every()))


@router.get(
    "/{name}",
    operation_id="get_cluster",
    summary="What is followed of one cluster, and how old it is",
    **operation(needs="read", responses={200: FollowedCluster}, errors=(404, 503)),
)
def get_cluster(name: Name, clusters: Service) -> Response:
    """Each follower's last report: kinds, counts, lag, how often it had to list again, what it could not carry over."""
    return json_response(clusters.get(name))


@router.put(
    "/{name}",
    operation_id="report_cluster",
    summary="What a follower has to say",
    **operation(
        needs="decide",
        followers=True,
        request=ClusterReport,
        responses={200: ClusterLease},
        errors=(503, 504),
        example=EXAMPLE,
    ),
)
def report_cluster(name: Name, body: OwnBody, clusters: Service) -> Response:
    """Sent every few seconds. The answer says whether this follower is the one that writes the configuration."""
    return json_response(clusters.report(name, decode(body, ClusterReport)))


@router.delete(
    "/{name}",
    operation_id="delete_cluster",
    summary="Forget a cluster",
    **operation(needs="decide", responses={204: None}, errors=(404, 503)),
)
def delete_cluster(name: Name, clusters: Service) -> Response:
    """Its snapshot and configuration stay. A follower that still runs brings it back."""
    clusters.forget(name)
    return Response(status_code=204)


def _evicted(
    workload: Annotated[str | None, Query(description="The id of a workload, or the name of one of its tasks.")] = None,
    job: Annotated[str | None, Query(description="`namespace/name` of the object that owns it.")] = None,
    queue: Annotated[str | None, Query(description="The queue that it ran in.")] = None,
    by: Annotated[str | None, Query(description="The id of the ask that it was for.")] = None,
    since: Annotated[Moment | None, Query(description="Then or later; RFC 3339 with offset.")] = None,
    until: Annotated[Moment | None, Query(description="Before; RFC 3339 with offset.")] = None,
) -> Evicted:
    return Evicted(workload=workload, job=job, queue=queue, by=by, since=since, until=until)


@router.post(
    "/{name}/evictions",
    operation_id="report_evictions",
    summary="Evictions that a follower saw",
    **operation(
        needs="decide", followers=True, request=EvictionReport, responses={204: None}, errors=(503, 504),
        example={"engine": FIRST, "evictions": [EVICTION]},
    ),
)  # fmt: skip
def report_evictions(name: Name, body: OwnBody, clusters: Service) -> Response:
    """Sent by `arbiter follow`. What is known already is not kept again."""
    clusters.evict(name, decode(body, EvictionReport))
    return Response(status_code=204)


@router.get(
    "/{name}/evictions",
    operation_id="list_evictions",
    summary="Why was it evicted? Newest first",
    **operation(needs="read", responses={200: EvictionPage}, errors=(503,)),
)
def list_evictions(
    name: Name, clusters: Service, of: Annotated[Evicted, Depends(_evicted)], cursor: Cursor = None, limit: Limit = 50
) -> Response:
    """Every eviction that a follower saw: of whom, for whom, when, by which rule, and whether Arbiter would have done
    the same. Kept as long as what shadow compares (`ARBITER_SHADOW_RETENTION_*`)."""
    return json_response(encode(clusters.evictions(name, of, cursor, limit)))


@router.post(
    "/{name}/use",
    operation_id="report_use",
    summary="What queues use now",
    **operation(
        needs="decide", followers=True, request=UseReport, responses={204: None}, errors=(503, 504), example=USE
    ),
)  # fmt: skip
def report_use(name: Name, body: OwnBody, clusters: Service) -> Response:
    """Sent by `arbiter follow`. Of each five minutes, which begin with 1970, the last word is kept."""
    clusters.use(name, decode(body, UseReport))
    return Response(status_code=204)


@router.get(
    "/{name}/use",
    operation_id="get_cluster_use",
    summary="What a queue used over time",
    **operation(needs="read", responses={200: UseSeries}, errors=(429, 503, 504)),
)
async def get_use(name: Name, request: Request, clusters: Service, of: Annotated[UseOf, Depends()]) -> Response:
    """What ran in it and below it held, and what waited there, as a follower saw it every five minutes. Kept as long as
    what shadow compares (`ARBITER_SHADOW_RETENTION_DAYS` and `_BYTES`)."""
    return json_response(encode(await service(request, Offload).run("large", clusters.used, name, of)))
