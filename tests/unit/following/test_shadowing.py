"""What is reported of a preemption that was seen: the question before it, or why there is none."""

import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from app.clusters.schemas import SeenEviction, ShadowReport
from app.following import judging, shadowing
from app.following.history import Change, Eviction, Items, Met, Preemption, Rewind
from app.following.judging import Judgement, is_settled
from app.following.keeping import ApiError, ApiUnavailable, Arbiter, Reply
from app.following.mirror import Mirror
from app.following.shadowing import Shadowing
from app.formats.objects import Evidence
from app.solver.model import kueue as model
from app.solver.model.configuration import Configuration, EngineName, Settings
from tests.cluster import kueue, pods
from tests.support.bounds import Bounded

KEPT = UUID(int=7)
AT = datetime(2026, 11, 22, 9, tzinfo=UTC)
STORED = Configuration(engine="kueue", settings=Settings(kueue=model.Settings(fair_sharing=True)))


class Seen:
    """A mirror that knows of a cluster as it is, and of these preemptions. ``changes``: what changed."""

    def __init__(self, known: Items, *preemptions: Preemption, changes: tuple[Change, ...] = ()) -> None:
        self._known, self._changes = known, list(changes)
        self._preemptions = list(preemptions)
        self._forgotten = 0, 0

    def rewind(self) -> Rewind:
        """As it is."""
        met = {str(made["metadata"].get("uid")): Met(key, 0) for of in self._known.values() for key, made in of.items()}
        items = {kind: dict(of) for kind, of in self._known.items()}
        return Rewind(items, [], self._changes, len(self._changes), self._forgotten, [], met)

    def forget(self) -> None:
        """The past is not known any more."""
        self._forgotten = 9, 9

    def complete(self) -> bool:
        """All of it is known."""
        return True

    def evictions(self) -> list[Eviction]:
        """None but those."""
        return []

    def preemptions(self) -> list[Preemption]:
        """Each once."""
        found, self._preemptions = self._preemptions, []
        return found


class Service:
    """Answers each report by one of ``answers``: None takes it. ``taken``: what came; ``evicted``: evictions."""

    def __init__(self, *answers: Exception | None) -> None:
        self._answers = list(answers)
        self.taken: list[ShadowReport] = []
        self.evicted: list[SeenEviction] = []

    def ask(self, method: str, *path: str, body: Any = None) -> Reply:
        """As the real one does."""
        if method == "GET":
            assert path == ("configurations", "own")
            return Reply(msgspec.json.encode({"configuration": STORED}), None)
        assert method == "POST"
        if path == ("clusters", "prod", "evictions"):
            self.evicted += body.evictions
            return Reply(b"", None)
        assert path == ("shadow",)
        self.taken.append(body)
        if self._answers and (answer := self._answers.pop(0)) is not None:
            raise answer
        return Reply(msgspec.json.encode({"id": KEPT, "outcome": "agreed"}), None)


def preemption(by: str, *victims: tuple[str, str], at: int = 4) -> Preemption:
    seen = [Eviction((at, i), 0.0, Evidence(key, by, f"why-{key[1]}", AT)) for i, key in enumerate(victims)]
    return Preemption(by, 0.0, 0.0, AT, seen)


def report_of(one: Shadowing, seen: Preemption) -> ShadowReport:
    (judged,) = one.judge(seen, one._mirror.rewind())  # pyright: ignore
    return judged.report


def tell(one: Shadowing, seen: Preemption) -> None:
    one._report(seen.by, one._judged(seen))  # pyright: ignore


def items(*objects: dict[str, Any]) -> Items:
    found: Items = {kind: {} for kind in ("ConfigMap", "Pod", "Node", "PriorityClass", "Queue", "PodGroup")}
    found |= {kind: {} for kind in ("ClusterQueue", "LocalQueue", "ResourceFlavor", "Workload")}
    for made in objects:
        metadata = made["metadata"]
        found[made["kind"]][metadata.get("namespace", ""), metadata["name"]] = made
    return found


def uid(made: dict[str, Any], of: str) -> dict[str, Any]:
    made["metadata"]["uid"] = of
    return made


def shadow(engine: EngineName, mirror: Seen, service: Service | None = None, *, writes: bool = True) -> Shadowing:
    arbiter = cast(Arbiter, service or Service())
    return Shadowing(engine, "prod", "own", cast(Mirror, mirror), arbiter, lambda: writes)


KUEUE = items(
    kueue.cluster_queue("q", 5), kueue.local_queue("l", "q"), kueue.flavor(), kueue.workload("v", "l", 5, admitted="q"),
    uid(kueue.workload("other", "l", 1), "u-0"), uid(kueue.workload("ask", "l", 5, 9), "u-1"),
    uid(kueue.workload("runs", "l", 1, admitted="q"), "u-2"),
)  # fmt: skip


def test_kueue_is_asked_for_its_cycle_with_an_administrators_settings() -> None:
    report = report_of(shadow("kueue", Seen(KUEUE)), preemption("u-1", ("default", "v")))
    assert (report.cluster, report.engine, report.ask, report.seen_at) == ("prod", "kueue", "default/ask", AT)
    assert (report.unjudged, report.cause) == (None, None)
    assert [(of.workload, of.task, of.reason) for of in report.victims] == [("default/v", None, "why-v")]
    (request,) = report.requests
    assert isinstance(request.asks, list)
    assert [ask.id for ask in request.asks] == ["default/ask"]
    assert (request.mode, request.now, request.engine) == ("cycle", AT, "kueue")
    assert isinstance(request.configuration, Configuration)
    assert request.configuration.settings == STORED.settings, "an administrator's settings stay"
    assert [queue.name for queue in request.configuration.queues] == ["q"]
    state: Any = request.state
    assert sorted(workload.id for workload in state.workloads) == ["default/runs", "default/v"]


def test_kai_is_asked_for_all_that_waits_and_its_victims_are_tasks() -> None:
    known = items(
        pods.kai_queue("leaf", 4), *(pods.pod_group(name, "leaf") for name in ("g", "ask", "b")),
        pods.node("n"), pods.kai_pod("v-0", "g", 1, "n"), pods.kai_pod("a-0", "ask"), pods.kai_pod("b-0", "b"),
    )  # fmt: skip
    one = preemption("default/ask", ("default", "v-0"), ("default", "unknown"))
    report = report_of(shadow("kai", Seen(known)), one)
    assert [(of.workload, of.task) for of in report.victims] == [("default/g", "v-0"), ("default/unknown", None)]
    (request,) = report.requests
    assert isinstance(request.asks, list)
    assert (request.mode, {ask.id for ask in request.asks}) == ("cycle", {"default/ask", "default/b"})
    state: Any = request.state
    assert ([node.name for node in state.nodes], [of.id for of in state.workloads]) == (["n"], ["default/g"])


def test_yunikorn_names_its_pods_by_uid() -> None:
    known = items(
        pods.yunikorn_queues(4), pods.node("n"), pods.yunikorn_pod("v", "app", "root.prod", 1, "n"),
        uid(pods.yunikorn_pod("a", "b", "root.dev"), "u-9"), pods.yunikorn_pod("c", "b", "root.dev"),
    )  # fmt: skip
    report = report_of(shadow("yunikorn", Seen(known)), preemption("u-9", ("default", "v")))
    assert [(of.workload, of.task) for of in report.victims] == [("app", "default/v")]
    (request,) = report.requests
    assert isinstance(request.asks, list)
    assert [ask.id for ask in request.asks] == [report.ask] == ["default/a"]


LONG_AGO = "what the cluster was before is not known: it was listed anew meanwhile, or changed too much"


@pytest.mark.parametrize(
    ("by", "at", "ask", "why", "cause"),
    [
        ("", 4, "(nobody)", "the cluster does not say for whom", "not_named"),
        ("u-1", 0, "default/ask", LONG_AGO, "too_long_ago"),
        ("u-7", 4, "u-7", "u-7, for whom it was, is not known", "not_known"),
        ("u-2", 4, "default/runs", "default/runs did not wait at that moment", "not_waiting"),
    ],
)  # fmt: skip
def test_what_can_not_be_judged_says_why(by: str, at: int, ask: str, why: str, cause: str) -> None:
    one = preemption(by, ("default", "v"), ("", "alone"), at=at)
    report = report_of(shadow("kueue", Seen(KUEUE)), one)
    assert (report.ask, report.unjudged, report.cause, report.requests) == (ask, why, cause, [])
    assert [of.workload for of in report.victims] == ["default/v", "alone"]


BARE = preemption("", ("a", "b"))


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((), ["the cluster does not say for whom"]),
        ((ApiUnavailable("no"), None), ["the cluster does not say for whom"] * 2),
        ((ApiError(422, "", "no"), None), ["the cluster does not say for whom"] * 2),
        ((ApiUnavailable("no"),) * 9, ["the cluster does not say for whom"] * 5),
    ],
)
def test_a_report_is_tried_five_times(answers: tuple[Exception | None, ...], told: list[str], bounded: Bounded) -> None:
    bounded(shadowing, RETRY_SECONDS=0.0)
    service = Service(*answers)
    tell(shadow("kueue", Seen({}), service), BARE)
    assert [one.unjudged for one in service.taken] == told


def test_a_report_that_is_refused_is_told_without_its_question() -> None:
    service = Service(ApiError(422, "invalid", "y" * 3000), None)
    tell(shadow("kueue", Seen(KUEUE), service), preemption("u-1", ("default", "v")))
    first, second = service.taken
    assert (len(first.requests), first.unjudged) == (1, None)
    assert (second.requests, second.unjudged, second.cause) == ([], "y" * 2000, "refused")
    assert second.victims == first.victims


def test_who_is_stopped_does_not_try_again() -> None:
    service = Service(ApiUnavailable("no"), None)
    one = shadow("kueue", Seen({}), service)
    one.stop()
    tell(one, BARE)
    assert len(service.taken) == 1


def test_one_that_fails_like_none_before_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(KeyError("x"), None, None)
    one = shadow("kueue", Seen({}), service)
    tell(one, BARE)
    assert len(service.taken) == 1


@pytest.mark.parametrize("writes", [True, False])
def test_who_does_not_write_reports_nothing(writes: bool, bounded: Bounded) -> None:
    bounded(shadowing, LOOK_SECONDS=0.0)
    service, mirror = Service(), Seen({}, BARE, BARE)
    one = shadow("kueue", mirror, service, writes=writes)
    assert one.daemon
    one.start()
    while mirror._preemptions or (writes and len(service.taken) < 2):  # pyright: ignore
        assert one.is_alive()
    one.stop()
    one.join(60)
    assert len(service.taken) == (2 if writes else 0)


def test_evictions_are_told_with_what_came_of_the_comparison() -> None:
    service, known = Service(), {**KUEUE, "Workload": {**KUEUE["Workload"]}}
    owner = {"kind": "Job", "name": "train", "controller": True}
    victim = known["Workload"]["default", "v"]
    known["Workload"]["default", "v"] = {**victim, "metadata": {**victim["metadata"], "ownerReferences": [{}, owner]}}
    tell(shadow("kueue", Seen(known), service), preemption("u-1", ("default", "v")))
    (one,) = service.evicted
    assert (one.at, one.workload, one.task, one.queue, one.by) == (AT, "default/v", None, "q", "default/ask")
    assert (one.job, one.job_kind, one.reason, one.outcome, one.shadow) == (
        "default/train", "Job", "why-v", "agreed", KEPT,
    )  # fmt: skip


def test_what_is_not_compared_is_told_all_the_same() -> None:
    service = Service()
    one = shadow("kueue", Seen(KUEUE), service)
    other = Eviction((3, 0), 0.0, Evidence(("default", "v"), "", "PodsReadyTimeout", None, "too slow", preempted=False))
    one._report("", one._unjudged("u-1", [other]))  # pyright: ignore
    (said,) = service.evicted
    assert (said.workload, said.reason, said.message, said.queue, said.by, said.outcome) == (
        "default/v", "PodsReadyTimeout", "too slow", "q", "default/ask", None,
    )  # fmt: skip
    assert service.taken == []


def test_a_second_look_that_knows_less_takes_nothing_back(bounded: Bounded) -> None:
    """What differs is looked at again: by then the cluster may have been listed anew."""
    service, seen = Service(), Seen(KUEUE)
    one, differs = shadow("kueue", seen, service), preemption("u-1", ("default", "runs"))
    differs.last = time.monotonic()
    tell(one, differs)
    assert service.taken == [], "it may be explained late"
    ((again, before),) = one._again  # pyright: ignore
    assert [cycle.outcome for cycle in before] == ["differs"]
    seen.forget()
    bounded(judging, SETTLED_SECONDS=0.0)
    one._report(again.by, one._judged(again, before))  # pyright: ignore
    (report,) = service.taken
    assert (report.unjudged, [asked.asks[0].id for asked in report.requests]) == (None, ["default/ask"])


def test_what_differs_is_told_once_nothing_late_can_explain_it() -> None:
    one = Preemption("u", 0.0, 100.0, AT, [])
    differs = cast(Judgement, SimpleNamespace(outcome="differs", detail=""))
    agrees = cast(Judgement, SimpleNamespace(outcome="agreed", detail=""))
    assert is_settled([agrees], one, 100.0)
    assert not is_settled([agrees, differs], one, 109.9)
    assert is_settled([agrees, differs], one, 110.0)
