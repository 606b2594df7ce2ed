"""The loop of a follower: on a cluster and a service that answer at once."""

import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, Queue
from typing import Any

import msgspec

from app.answering.snapshots import Counts, SnapshotStatus
from app.clusters.schemas import ClusterLease, ClusterReport, QueueUse, UseReport
from app.following import follower as module
from app.following.follower import Follower, Task
from app.following.grouped import Translated
from app.following.keeping import ApiError, Arbiter, Reply
from app.following.mirror import View
from app.following.objects import Event, Listed
from app.following.reading import Reader
from app.following.translator import Translator
from app.formats.objects import Kind
from app.solver.model.decision import ConfigurationUsed
from tests.cluster import pods
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead


class Cluster(Reader):
    """What is in it when it is listed, and what comes later."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self._items = items
        self.changes: Queue[Event] = Queue()

    def version(self, kind: Kind) -> str:
        return kind.versions[0]

    def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed:
        del version
        return Listed([item for item in self._items if item["kind"] == kind.name], "1")

    def watch(self, kind: Kind, version: str, since: str) -> Iterator[Event]:
        del version
        while True:
            try:
                yield self.changes.get(timeout=0.02) if kind.name == "Pod" else Event(False, None, since)
            except Empty:
                yield Event(False, None, since)


class Service(Arbiter):
    """Takes everything; ``taken``: methods and paths, but for reports and looks."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.used: list[UseReport] = []

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        del headers
        if path[-1] == "use":
            self.used.append(body)
            raise ApiError(404, "not_found", "an older service")
        if path[0] == "clusters":
            return Reply(msgspec.json.encode(ClusterLease(writer=True, seconds=10)), None)
        if method == "GET" and path[0] == "configurations":
            raise ApiError(404, "not_found", "there is none")
        self.taken.append(f"{method} {'/'.join(path)}")
        status = SnapshotStatus(
            name="s", generation=1, engine="yunikorn", configuration=ConfigurationUsed(digest=""),
            counts=Counts(nodes=1, workloads=0, tasks=0, reservations=0), age_seconds=0, idle_seconds=0, bytes=0,
        )  # fmt: skip
        return Reply(msgspec.json.encode(status), None)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_waits_for_nothing_is_not_behind() -> None:
    cluster, service = Cluster(pods.node("node-0"), pods.yunikorn_queues(8)), Service()
    follower = Follower(Task("yunikorn", "c", "s", "c"), cluster, service)
    thread = threading.Thread(target=follower.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: service.taken == ["PUT configurations/c", "PUT snapshots/s"])
        eventually(lambda: follower.pulse().lag == 0)
        cluster.changes.put(Event(False, pods.yunikorn_pod("p", "app", "root.prod", 1, "node-0"), "2"))
        eventually(lambda: service.taken[2:] == ["POST snapshots/s/deltas"])
        eventually(lambda: follower.pulse().lag == 0)
    finally:
        follower.stop()
        thread.join(60)


def test_what_queues_use_is_told_once_in_an_interval(clock: Clock) -> None:
    clock.now = 1_000_000.0
    clock.drives("app.following.follower")
    cluster, service = Cluster(pods.node("node-0"), pods.yunikorn_queues(8)), Service()
    follower = Follower(Task("yunikorn", "c", "s", "c"), cluster, service)
    thread = threading.Thread(target=follower.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: len(service.used) == 1)
        cluster.changes.put(Event(False, pods.yunikorn_pod("p", "app", "root.prod", 1, "node-0"), "2"))
        eventually(lambda: service.taken[2:] == ["POST snapshots/s/deltas"])
        eventually(lambda: follower.pulse().lag == 0)
        assert len(service.used) == 1
        clock.now += 300
        eventually(lambda: len(service.used) == 2)
        assert service.used[1].queues["root.prod"] == service.used[1].queues["root"] != QueueUse()
    finally:
        follower.stop()
        thread.join(60)


class Mute(Cluster):
    """Answers nothing until the test is over."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def version(self, kind: Kind) -> str:
        self.over.wait()
        return super().version(kind)


def test_once_ends_where_no_answer_is_ever_whole(bounded: Bounded) -> None:
    bounded(module, SILENT_SECONDS=1.5)
    cluster = Mute()
    try:
        why = Follower(Task("yunikorn", "c", "s", "c"), cluster, Service()).run(once=True)
    finally:
        cluster.over.set()
    assert why == "the API server has answered nothing whole for 1.5 s"


class Strict(Service):
    """Refuses a report with classes in it."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[ClusterReport] = []

    def ask(self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        if path[0] == "clusters" and isinstance(body, ClusterReport):
            self.reports.append(body)
            if body.priority_classes:
                raise ApiError(422, "", "too many\0")
        return super().ask(method, *path, body=body, headers=headers)


def test_a_report_that_is_refused_keeps_nobody_from_writing() -> None:
    own = {"kind": "PriorityClass", "metadata": {"name": "own"}, "value": 7}
    service = Strict()
    large = {**own, "metadata": {"name": "large"}, "value": 2**40}
    cluster = Cluster(pods.node("node-0"), pods.yunikorn_queues(8), own, large)
    assert Follower(Task("yunikorn", "c", "s", "c"), cluster, service).run(once=True) is None
    assert service.taken[:2] == ["PUT configurations/c", "PUT snapshots/s"]
    whole, short = service.reports[-2:]
    assert (whole.priority_classes, short.priority_classes) == ({"own": 7}, {})
    assert [one.detail for one in short.findings] == ["what objects say can not be told: too many\ufffd"]


def test_an_object_like_none_before_does_not_end_the_follower(instead: Instead) -> None:
    calls: list[int] = []
    translate = Translator.translate

    def once_wrong(of: Translator, view: View) -> Translated:
        calls.append(1)
        if len(calls) == 1:
            raise TypeError("unhashable")
        return translate(of, view)

    instead(Translator, translate=once_wrong)
    service = Service()
    follower = Follower(Task("yunikorn", "c", "s", "c"), Cluster(pods.node("n"), pods.yunikorn_queues(8)), service)
    assert follower.run(once=True) is None
    assert service.taken[:2] == ["PUT configurations/c", "PUT snapshots/s"]
