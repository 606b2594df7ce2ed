"""What followers say together of a cluster, and which of them writes: on a database of its own."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
import sqlalchemy as sa

from app.base.errors import NotFound
from app.clusters import repository, router
from app.clusters.repository import Evicted, followers, writers
from app.clusters.router import EXAMPLE, Clusters
from app.clusters.schemas import ClusterReport, EvictionReport, FollowedCluster, SeenEviction
from app.clusters.shadow import Retention
from app.db.database import Database
from app.decisions.service import FollowedAges
from app.solver.model.problems import InvalidInput


class Kept:
    """Clusters in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clusters = Clusters(database, Retention(days=0, entries=0, bytes=0))

    def report(self, follower: str, cluster: str = "prod", **fields: Any) -> bool:
        said = msgspec.convert({**EXAMPLE, "follower": follower, **fields}, ClusterReport)
        lease = self.clusters.report(cluster, said)
        assert lease.seconds == 15.0
        return lease.writer

    def earlier(self, column: Any, follower: str, seconds: float) -> None:
        """As if that had been so much earlier."""
        table = column.table
        changed = {column.name: column - timedelta(seconds=seconds)}
        with self.database.session() as session:
            session.execute(sa.update(table).where(table.c.follower == follower).values(changed))

    def prod(self) -> FollowedCluster:
        return self.clusters.get("prod")


@pytest.fixture
def kept(database: Database) -> Kept:
    return Kept(database)


def test_the_first_writes_until_its_lease_is_over(kept: Kept) -> None:
    assert [kept.report(name) for name in "abab"] == [True, False, True, False]
    assert kept.report("b", "other"), "of another cluster"
    kept.earlier(writers.c.until, "a", 1.0)
    assert not kept.report("b")
    kept.earlier(writers.c.until, "a", 15.0)
    assert [(one.follower, one.writer) for one in kept.prod().followers] == [("a", False), ("b", False)]
    assert [kept.report(name) for name in "ba"] == [True, False]
    assert [(one.follower, one.writer) for one in kept.prod().followers] == [("a", False), ("b", True)]
    assert kept.report("b"), "who has it keeps it"
    kept.earlier(writers.c.until, "b", 1.0)
    assert not kept.report("a")


def test_the_last_report_counts_and_the_freshest_speaks_for_the_cluster(kept: Kept) -> None:
    kept.report("b", snapshot="old", configuration="c1", engine="kai")
    kept.report("a", snapshot="s2", configuration="c2")
    kept.report("b", snapshot="s1", configuration="c3", generation=7)
    kept.earlier(followers.c.reported_at, "a", 5.0)
    found = kept.prod()
    assert (found.name, found.engine, found.snapshot, found.configuration) == ("prod", "kueue", "s1", "c3")
    assert [(one.follower, one.generation) for one in found.followers] == [("a", 12), ("b", 7)]
    assert 5.0 <= found.followers[0].age_seconds < 100.0
    assert 0.0 <= found.followers[1].age_seconds < 100.0
    assert found.age_seconds is None
    kept.earlier(followers.c.reported_at, "b", 100.0)
    assert kept.prod().snapshot == "s2"
    kept.report("z", "early")
    assert [(one.name, len(one.followers)) for one in kept.clusters.every()] == [("early", 1), ("prod", 2)]


def test_the_age_is_the_followers_until_it_reported_and_ours_since(kept: Kept) -> None:
    now = datetime.now(UTC)
    kept.report("a", synced_at=(now - timedelta(seconds=300)).isoformat())
    kept.earlier(followers.c.reported_at, "a", 100.0)
    found = kept.prod()
    assert found.age_seconds is not None
    assert 300.0 <= found.age_seconds < 360.0
    assert found.followers[0].reported_at < now
    kept.report("b", synced_at=(now + timedelta(days=1)).isoformat())  # its clock is ahead of ours
    kept.earlier(followers.c.reported_at, "b", 7.0)
    found = kept.prod()
    assert found.age_seconds is not None
    assert 7.0 <= found.age_seconds < 100.0
    kept.earlier(followers.c.reported_at, "b", -1000.0)
    assert kept.prod().followers[1].age_seconds == 0.0
    assert kept.prod().age_seconds == 0.0


def test_a_moment_that_is_now_is_not_over(kept: Kept) -> None:
    with kept.database.session() as session:  # one transaction, in which the database's time stands still
        repository.report(session, "prod", "a", b"{}", timedelta(0))
        assert repository.lease(session, "prod", "a", 0.0)
        assert not repository.lease(session, "prod", "b", 15.0)
        (row,) = repository.reports(session, "prod", timedelta(hours=1))
        assert (row["writes"], float(row["age"])) == (False, 0.0)
        assert repository.lease(session, "prod", "a", 15.0)
        repository.report(session, "prod", "b", b"{}", timedelta(0))
        assert [one["writes"] for one in repository.reports(session, None, timedelta(hours=1))] == [True, False]


def test_operations_on_clusters(kept: Kept) -> None:
    body = msgspec.json.encode({**EXAMPLE, "follower": "a"})
    said = [
        router.report_cluster("prod", body, kept.clusters), router.get_cluster("prod", kept.clusters),
        router.list_clusters(kept.clusters), router.delete_cluster("prod", kept.clusters),
    ]  # fmt: skip
    assert [one.status_code for one in said] == [200, 200, 200, 204]
    lease, found, listed = (msgspec.json.decode(bytes(one.body)) for one in said[:3])
    assert lease == {"writer": True, "seconds": 15.0}
    assert [one["name"] for one in listed["items"]] == [found["name"]] == ["prod"]
    assert kept.clusters.every() == []
    with pytest.raises(InvalidInput):
        router.report_cluster("prod", b"{}", kept.clusters)


def test_who_is_silent_for_an_hour_is_forgotten(kept: Kept) -> None:
    kept.report("a")
    kept.report("c", "other")
    for name in "ac":
        kept.earlier(followers.c.reported_at, name, 3000.0)
    kept.report("b")
    assert len(kept.prod().followers) == 2
    for name in "ac":
        kept.earlier(followers.c.reported_at, name, 601.0)
    assert [one.name for one in kept.clusters.every()] == ["prod"], "also before anybody reports again"
    kept.report("b")
    assert [one.follower for one in kept.prod().followers] == ["b"]
    with kept.database.session() as session:
        assert session.execute(sa.select(followers.c.follower)).scalars().all() == ["b"]


def test_a_cluster_is_forgotten_with_its_writer(kept: Kept) -> None:
    kept.report("a")
    kept.report("a", "other")
    kept.clusters.forget("prod")
    assert kept.report("b"), "nobody writes any more"
    assert len(kept.clusters.every()) == 2
    for act in (kept.clusters.get, kept.clusters.forget):
        with pytest.raises(NotFound) as caught:
            act("none")
        assert caught.value.detail == "no follower reports about a cluster 'none'"
        assert [(one.pointer, one.detail) for one in caught.value.problems] == [("/name", caught.value.detail)]


def seen(at: datetime, workload: str, **fields: Any) -> SeenEviction:
    return SeenEviction(at=at, workload=workload, **fields)


def test_evictions_are_found_by_whom_whose_where_and_for_whom(kept: Kept) -> None:
    at = datetime(2026, 11, 22, 9, tzinfo=UTC)
    first = seen(at, "ml/w", job="ml/train", job_kind="Job", queue="q", by="ml/p", reason="r", shadow=UUID(int=7))
    second = seen(at + timedelta(seconds=1), "app", task="ml/pod-0", queue="other\0")
    kept.clusters.evict("prod", EvictionReport(engine="kueue", evictions=[first, second]))
    kept.clusters.evict("prod", EvictionReport(engine="kueue", evictions=[first]))
    kept.clusters.evict("west", EvictionReport(engine="kueue", evictions=[first]))

    def found(cursor: str | None = None, limit: int = 50, **of: Any) -> list[str]:
        return [one.workload for one in kept.clusters.evictions("prod", Evicted(**of), cursor, limit).items]

    assert found() == ["app", "ml/w"]
    for of in ({"workload": "ml/w"}, {"job": "ml/train"}, {"queue": "q"}, {"by": "ml/p"}, {"until": second.at}):
        assert found(**of) == ["ml/w"], of
    assert found(workload="ml/pod-0") == found(since=second.at) == ["app"]
    page = kept.clusters.evictions("prod", Evicted(), None, 1)
    assert found(page.next_cursor) == ["ml/w"]
    (whole,) = kept.clusters.evictions("prod", Evicted(job="ml/train"), None, 1).items
    assert (whole.cluster, whole.engine, whole.reason, whole.job_kind) == ("prod", "kueue", "r", "Job")


def test_evictions_are_kept_as_long_as_comparisons(database: Database) -> None:
    clusters = Clusters(database, Retention(days=1, entries=2, bytes=0))
    at = datetime(2026, 11, 22, 9, tzinfo=UTC)

    def evict(days: float, name: str) -> list[str]:
        one = seen(at + timedelta(days=days), name)
        clusters.evict("prod", EvictionReport(engine="kueue", evictions=[one]))
        return [one.workload for one in clusters.evictions("prod", Evicted(), None, 9).items]

    assert [evict(0, "a"), evict(0.5, "b"), evict(0.6, "c")] == [["a"], ["b", "a"], ["c", "b"]]
    assert evict(3, "d") == ["d"]


def test_how_old_a_snapshot_is_is_known_where_its_follower_reports(kept: Kept) -> None:
    ages = FollowedAges()
    clusters = Clusters(kept.database, Retention(days=0, entries=0, bytes=0), ages)

    def report(**fields: Any) -> None:
        clusters.report("prod", msgspec.convert({**EXAMPLE, **fields}, ClusterReport))

    report()
    assert ages.of("production") is None, "there is none yet"
    report(synced_at=(datetime.now(UTC) - timedelta(seconds=30)).isoformat())
    fresh = ages.of("production")
    assert fresh is not None
    assert (fresh.cluster, 30 <= fresh.age_seconds < 90, fresh.warning) == ("prod", True, None)
    assert (ages.of("other"), ages.of(None)) == (None, None)
    report(synced_at=(datetime.now(UTC) - timedelta(seconds=600)).isoformat())
    old = ages.of("production")
    assert old is not None
    assert "cluster prod was last known 60" in str(old.warning)
    report(synced_at=(datetime.now(UTC) + timedelta(seconds=600)).isoformat())
    assert (ages.of("production") or old).age_seconds < 60, "another clock"
    report()
    assert ages.of("production") is not None, "one that begins anew has kept nothing yet, and makes nothing young"
    clusters.forget("prod")
    assert ages.of("production") is None
