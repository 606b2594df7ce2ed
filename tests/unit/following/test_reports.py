"""What a follower reports, when, and what it does with what goes wrong: on scripted services, by a clock of its own."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from app.answering.snapshots import Counts, SnapshotStatus
from app.clusters.schemas import ClusterLease, ClusterReport
from app.following import follower as module
from app.following.follower import Follower, Task
from app.following.keeping import ApiError, ApiUnavailable, Arbiter, Reply
from app.following.objects import FOLLOWED, Absent, Broken, Event, Listed
from app.following.reading import Reader
from app.formats.objects import Kind
from app.solver.model.configuration import Configuration
from app.solver.model.decision import ConfigurationUsed
from tests.cluster import kueue
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead

TASK = Task("kueue", "prod", "snap", "conf", follower="me")
OBJECTS = [
    kueue.cluster_queue("q", 5), kueue.local_queue("l", "q"), kueue.flavor(), kueue.priority_class("high", 7),
    kueue.workload("v", "l", 5, admitted="q"), kueue.workload("w", "nowhere", 5),
]  # fmt: skip


class Cluster(Reader):
    """Has ``OBJECTS``, and no cohorts; ``broken``: why Workloads can't be listed."""

    def __init__(self, broken: str | None = None) -> None:
        self.broken = broken

    def version(self, kind: Kind) -> str:
        if kind.name == "Cohort":
            raise Absent("no cohorts")
        return "v1beta1"

    def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed:
        if kind.name == "Workload" and self.broken:
            raise Broken(self.broken)
        return Listed([dict(one) for one in OBJECTS if one["kind"] == kind.name], "5")

    def watch(self, kind: Kind, version: str, since: str) -> Iterator[Event]:
        return iter(())


class Service(Arbiter):
    """Takes everything, but what ``refuse`` says of paths. ``reports``: those that came; ``uses``: what queues use;
    ``taken``: what else."""

    def __init__(self, *, writer: bool = True, generation: int = 1) -> None:
        self.writer = writer
        self.generation = generation
        self.refuse: dict[str, ApiUnavailable | ApiError] = {}
        self.reports: list[ClusterReport] = []
        self.uses: list[Any] = []
        self.taken: list[str] = []

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        told = f"{method} {'/'.join(path)}"
        if told == "POST clusters/prod/use":
            self.uses.append(body)
        elif path[0] == "clusters":
            assert told == "PUT clusters/prod"
            self.reports.append(body)
        else:
            self.taken.append(told)
        if (why := self.refuse.get(told)) is not None:
            raise why
        if path[0] == "clusters":
            return Reply(msgspec.json.encode(ClusterLease(writer=self.writer, seconds=10)), None)
        if told == "GET configurations/conf":
            return Reply(msgspec.json.encode({"configuration": Configuration()}), '"1"')
        counts = Counts(nodes=0, workloads=1, tasks=1, reservations=0)
        return Reply(msgspec.json.encode(SnapshotStatus(
            name="s", generation=self.generation, engine="kueue", configuration=ConfigurationUsed(digest=""),
            counts=counts, age_seconds=0, idle_seconds=0, bytes=0,
        )), None)  # fmt: skip


class Paused:
    """An event whose waits are told, and are over at once; ``then``: what is done meanwhile."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.then: Callable[[], None] = lambda: None
        self._set = False

    def wait(self, seconds: float) -> bool:
        """Told."""
        self.waits.append(seconds)
        self.then()
        return self._set

    def set(self) -> None:
        """As it is."""
        self._set = True

    def is_set(self) -> bool:
        """As it is."""
        return self._set


class Standing:
    """A follower whose watchers have listed once and stand still; the clock moves where the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, service: Service, task: Task = TASK, **cluster: Any) -> None:
        self.clock = Clock(monkeypatch)
        self.clock.drives(module, "app.following.mirror")
        self.clock.now = 1000.0
        self.paused = Paused()
        Instead(monkeypatch)(module.threading, Event=lambda: self.paused)
        self.service = service
        self.follower: Any = Follower(task, Cluster(**cluster), service)
        self.mirror = self.follower._mirror
        reader = Cluster(**cluster)
        for kind in self.follower._kinds:
            try:
                version = reader.version(kind)
                self.mirror.listed(kind, kind.api_version(version), reader.list(kind, version), "start")
            except Absent:
                self.mirror.absent(kind)
            except Broken as error:
                self.mirror.broken(kind, str(error), whole=False)

    def heard(self, name: str, cpu: int = 1) -> None:
        """A Workload."""
        self.mirror.apply(self.follower._kinds[4], Event(False, kueue.workload(name, "l", cpu), "6"))

    def report(self) -> ClusterReport:
        """The next one."""
        self.follower._report(now=True)
        return self.service.reports[-1]


def test_a_report_tells_what_is_followed_and_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(monkeypatch, Service(generation=4))
    first = standing.report()
    assert (first.stage, first.counts, first.generation, first.synced_at, first.error) == ("listing",) + (None,) * 4
    assert (first.findings, first.local_queues, first.priority_classes) == ([], {}, {})
    standing.clock.now += 0.5
    standing.follower._step()
    said = standing.report()
    assert (said.follower, said.engine, said.snapshot, said.configuration) == ("me", "kueue", "snap", "conf")
    assert (said.stage, said.generation, said.error, said.lag_seconds) == ("following", 4, None, 0.5)
    assert said.counts is not None
    assert said.counts.workloads == 1
    assert said.synced_at is not None
    followed = [(of.kind, of.api_version, of.objects, of.resource_version) for of in said.kinds if of.objects]
    group = "kueue.x-k8s.io/v1beta1"
    assert followed == [
        ("ClusterQueue", group, 1, "5"), ("LocalQueue", group, 1, "5"), ("ResourceFlavor", group, 1, "5"),
        ("Workload", group, 2, "5"), ("WorkloadPriorityClass", group, 1, "5"),
    ]  # fmt: skip
    assert all(of.heard_at is not None for of in said.kinds)
    assert said.local_queues == {"default/l": "q"}
    assert (said.priority_classes, said.workload_priority_classes) == ({}, {"high": 7})
    assert said.lists == {"start": 14, "configuration": 1}
    assert [one.pointer for one in said.findings] == ["/Workload/default/w/spec"]
    msgspec.convert(msgspec.to_builtins(said), ClusterReport)


def test_a_kind_that_was_never_read_has_its_best_version(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(monkeypatch, Service(), broken="no route")
    said = standing.report()
    assert (said.stage, said.error) == ("broken", "no route")
    workloads = next(of for of in said.kinds if of.kind == "Workload")
    assert (workloads.api_version, workloads.heard_at) == ("kueue.x-k8s.io/v1beta2", None)
    standing.follower._step()
    assert standing.service.taken == []
    assert standing.paused.waits == [0.2]


def test_what_is_whole_but_not_written_is_still_being_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(monkeypatch, Service())
    standing.follower._step()
    kind = standing.follower._kinds[4]
    standing.mirror.broken(kind, "", whole=False)
    assert standing.report().stage == "listing"


def test_all_errors_are_told_and_no_more_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    standing = Standing(monkeypatch, service, broken="no route")
    service.refuse["PUT clusters/prod"] = ApiUnavailable("the service is away")
    standing.report()
    assert standing.report().error == "no route; the service is away"
    service.refuse["PUT clusters/prod"] = ApiUnavailable("x" * 3000)
    standing.report()
    error = standing.report().error
    assert error == ("no route; " + "x" * 3000)[:2000]


def test_findings_of_a_refused_configuration_come_first_and_are_bounded(
    monkeypatch: pytest.MonkeyPatch, bounded: Bounded
) -> None:
    service = Service()
    service.refuse["PUT configurations/conf"] = ApiError(422, "invalid", "no such parent")
    standing = Standing(monkeypatch, service)
    standing.follower._step()
    found = standing.report().findings
    assert [one.rule for one in found[:1]] == ["refused"]
    assert "workloads of queues that the stored configuration lacks are left out" in found[1].detail
    assert len(found) == 3
    assert standing.follower.pulse().findings == {"error": 2, "warning": 1}
    bounded(module, MOST_FINDINGS=1)
    assert [one.rule for one in standing.report().findings] == ["refused"]


def test_it_reports_every_two_seconds_and_writes_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(writer=False)
    standing = Standing(monkeypatch, service)
    report = standing.follower._report
    for step, count in ((0.0, 1), (1.9375, 1), (0.0625, 2), (1.0, 2), (1.0, 3)):
        standing.clock.now += step
        report()
        assert len(service.reports) == count
    assert not standing.follower.pulse().writer
    service.writer = True
    report(now=True)
    assert standing.follower.pulse().writer
    service.refuse["PUT clusters/prod"] = ApiError(403, "forbidden", "no")
    report(now=True)
    assert not standing.follower.pulse().writer, "nobody said that it may"


def test_who_may_not_write_asks_again_before_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(writer=False)
    standing = Standing(monkeypatch, service)
    standing.follower._step()
    assert len(service.reports) == 1
    assert service.taken == ["GET configurations/conf"]
    assert "another follower" in str(standing.report().error)
    assert standing.paused.waits == [1.0]
    service.writer = True
    standing.follower._step()
    assert service.taken[1:] == ["GET configurations/conf", "PUT configurations/conf", "PUT snapshots/snap"]
    reports = len(service.reports)
    standing.heard("x")
    standing.follower._step()
    assert len(service.reports) == reports
    assert standing.report().stage == "following"


def test_what_did_not_arrive_is_tried_again_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    standing = Standing(monkeypatch, service)
    standing.follower._step()
    standing.heard("x")
    service.refuse["POST snapshots/snap/deltas"] = ApiUnavailable("no answer")
    standing.follower._step()
    assert (standing.paused.waits[1:], standing.report().stage) == ([1.0], "broken")
    service.refuse.clear()
    service.taken.clear()
    standing.clock.now += 3.0
    standing.follower._step()
    assert service.taken == ["POST snapshots/snap/deltas"]
    assert (standing.report().stage, standing.follower.pulse().lag) == ("following", 3.0)
    service.taken.clear()
    standing.follower._step()
    assert (service.taken, standing.follower.pulse().lag) == ([], 0.0)


def test_an_error_of_a_report_is_over_with_the_next_batch_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    standing = Standing(monkeypatch, service)
    standing.follower._step()
    service.refuse["PUT clusters/prod"] = ApiUnavailable("no answer")
    standing.report()
    assert standing.follower._error == "no answer"
    service.refuse.clear()
    service.taken.clear()
    standing.follower._step()  # nothing changed, but nobody knows whether it is still there
    assert service.taken == ["GET snapshots/snap", "POST snapshots/snap/deltas"]
    assert standing.report().stage == "following"


def test_a_snapshot_that_is_gone_is_put_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    standing = Standing(monkeypatch, service)
    standing.follower._step()
    service.refuse["GET snapshots/snap"] = ApiError(404, "snapshot_lost", "gone")
    standing.report()
    service.refuse.clear()
    service.taken.clear()
    standing.follower._step()
    assert service.taken == ["PUT snapshots/snap"]
    assert standing.report().lists == {"start": 14, "configuration": 1, "snapshot_lost": 1}


def test_a_snapshot_of_somebody_else_is_left_alone(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    standing = Standing(monkeypatch, Service())
    instead(standing.follower._keeper, left=lambda: "it is somebody else's")
    standing.follower._step()
    assert (standing.service.taken, standing.paused.waits) == ([], [1.0])
    assert standing.report().error == "it is somebody else's"


def test_batches_are_a_fifth_of_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    standing = Standing(monkeypatch, service)
    asked = service.ask

    def slowly(method: str, *path: str, **more: Any) -> Reply:
        standing.clock.now += 0.0625
        return asked(method, *path, **more)

    service.ask = slowly
    standing.report()
    standing.follower._step()  # three questions
    assert standing.paused.waits == [pytest.approx(0.0125)]
    for name in "xyz":
        standing.heard(name)
    standing.follower._step()  # one
    assert standing.paused.waits[1:] == [pytest.approx(0.1375)]
    standing.heard("last")
    standing.clock.now += 0.25
    standing.follower._step()
    assert standing.follower.pulse().lag == pytest.approx(0.3125)


def test_a_pulse_has_an_age_once_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(monkeypatch, Service())
    before = standing.follower.pulse()
    assert (before.age, before.lag, before.writer, before.findings) == (None, 0.0, False, {})
    standing.follower._step()
    after = standing.follower.pulse()
    assert 0.0 <= after.age < 600.0
    assert (after.writer, after.findings, after.lists) == (True, {"warning": 1}, {"start": 14, "configuration": 1})


def test_once_follows_until_everything_is_written_and_stops_its_watchers(instead: Instead) -> None:
    started: list[Any] = []
    real = module.Watcher

    def watcher(*of: Any) -> Any:
        started.append(real(*of))
        return started[-1]

    instead(module, Watcher=watcher)
    service, tidied = Service(), list[int]()
    follower = Follower(TASK, Cluster(), service, lambda: tidied.append(1))
    follower.run(once=True)
    assert service.taken[:3] == ["GET configurations/conf", "PUT configurations/conf", "PUT snapshots/snap"]
    assert (service.reports[-1].stage, service.reports[-1].generation) == ("following", 1)
    assert len(service.uses) == 1
    assert tidied
    assert len(started) == len(FOLLOWED["kueue"])
    for one in started:
        one.join(60)
        assert not one.is_alive()


@pytest.mark.parametrize("shadow", [False, True])
def test_evictions_are_told_and_compared_where_that_is_wanted(instead: Instead, shadow: bool) -> None:
    begun: list[Any] = []

    class Shadowing:
        def __init__(self, *of: Any, shadow: bool) -> None:
            self.of = (*of, shadow)

        def start(self) -> None:
            begun.append(self.of)

        def stop(self) -> None:
            begun.append("stopped")

    instead(module, Shadowing=Shadowing)
    task = msgspec.convert(msgspec.to_builtins(TASK) | {"shadow": shadow}, Task)
    follower: Any = Follower(task, Cluster(), Service(), lambda: follower.stop() if follower._synced_at else None)
    follower.run()
    engine, cluster, configuration, *_, writes, compared = begun[0]
    assert (engine, cluster, configuration, writes()) == ("kueue", "prod", "conf", True)
    assert (compared, begun[1]) == (shadow, "stopped")
    begun.clear()
    follower.run(once=True)
    assert begun == [], "what is listed once has no history"


def test_a_stop_ends_it_at_once() -> None:
    service = Service()
    follower = Follower(TASK, Cluster(broken="no route"), service)
    follower.stop()
    follower.run()
    assert service.reports == []


def test_a_task_has_the_bounds_that_it_usually_has() -> None:
    made = Task("kai", "c", "s", "c")
    assert (made.shadow, made.namespace, made.quiet) == (False, None, 2.0)
    assert made.follower


def test_once_ends_with_what_is_wrong_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(monkeypatch, Service(), broken="forbidden")
    follower = standing.follower
    assert follower._hopeless() is None
    standing.clock.now += 19.9375
    assert follower._hopeless() is None
    standing.clock.now += 0.0625
    assert follower._hopeless() == "forbidden"
    for kind in follower._kinds:
        standing.mirror.listed(kind, "v1", Listed([], "5"), "again")
    assert follower._hopeless() is None
    standing.mirror.broken(follower._kinds[0], "no route", whole=False)
    assert follower._hopeless() is None, "that has only begun"


def test_an_age_counts_from_when_every_kind_was_heard_last(monkeypatch: pytest.MonkeyPatch) -> None:
    standing = Standing(monkeypatch, Service())
    standing.follower._step()
    first = standing.report().synced_at
    kinds = {of.kind.name: of for of in standing.mirror.kinds()}
    assert first == min(of.heard_at for of in kinds.values())
    kinds["Workload"].heard_at -= timedelta(seconds=300)
    standing.follower._step()
    assert standing.report().synced_at == kinds["Workload"].heard_at, "nobody knows what happened since"
    assert standing.follower.pulse().age > 299
    standing.mirror.apply(kinds["Workload"].kind, Event(False, None, "9"))
    standing.follower._step()
    assert standing.follower.pulse().age < 299
