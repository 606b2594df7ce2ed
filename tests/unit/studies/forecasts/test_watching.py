"""What a run tells of an ask, event by event and round by round; by hand, without a run."""

from types import SimpleNamespace
from typing import Any

from app.base.decoding import convert
from app.simulations.core.sink import FIRST, time_of
from app.simulations.schemas import Event, EventKind, Job
from app.studies.forecasting import MOST, Watcher
from tests.unit.simulations.running import job

S = 10**6


class Bench:
    """A watcher of jobs named by single letters, of queue ``q`` unless they say otherwise; instants in seconds."""

    def __init__(self, *names: str, **queues: str) -> None:
        self.of = Watcher(convert(job(name, queues.get(name, "q"), 1, 0, 1), Job) for name in names)
        self._n = 0

    def happens(self, at: float, kind: EventKind, name: str, by: str | None = None) -> None:
        self.of.event(Event(at=time_of(FIRST + round(at * S)), kind=kind, job=name, by=by))

    def submitted(self, at: float, *names: str) -> None:
        for name in names:
            self.happens(at, "submitted", name)

    def round(self, at: float, *asks: tuple[str, str], queue: str = "q") -> None:
        """``asks``: each with its outcome, of which the condition says the same in capitals."""
        self._n += 1
        question = SimpleNamespace(
            now=FIRST + round(at * S), asks=[SimpleNamespace(id=name, queue=queue) for name, _ in asks]
        )
        decisions = [
            SimpleNamespace(
                ask=name, outcome=outcome, conditions=[SimpleNamespace(reason=outcome.upper(), message=f"{name} waits")]
            )
            for name, outcome in asks
        ]
        asked: Any = SimpleNamespace(n=self._n, question=question, result=SimpleNamespace(decisions=decisions))
        self.of.look(asked)

    def waits(self, name: str) -> list[tuple[float, str | None, str, str]]:
        found = self.of.awaited[name].waits
        return [((w.since - time_of(FIRST)).total_seconds(), w.outcome, w.reason, w.message) for w in found]


def test_an_ask_waits_for_what_its_rounds_decide_and_each_reason_is_told_once() -> None:
    of = Bench("a", "b")
    of.submitted(1, "a", "b")
    of.round(1, ("a", "wait"))
    of.round(2, ("a", "wait"))
    of.round(3, ("a", "preempt"))
    of.round(4, ("b", "wait"))
    of.round(5, ("a", "admit"), ("b", "wait"))
    assert of.waits("a") == [
        (1, "wait", "WAIT", "a waits"), (3, "preempt", "PREEMPT", "a waits"),
    ]  # fmt: skip
    assert of.waits("b") == [(1, None, "Queued", "'a' is before it in 'q'"), (4, "wait", "WAIT", "b waits")]
    assert (of.of.rounds, of.of.ready) == (5, False)
    of.happens(5, "started", "a")
    assert of.of.ready is False
    of.happens(6, "started", "b")
    assert of.of.ready is True
    found = of.of.awaited
    assert [(found[n].asked_at, found[n].starts_at) for n in "ab"] == [
        (FIRST + S, FIRST + 5 * S), (FIRST + S, FIRST + 6 * S)
    ]  # fmt: skip


def test_nobody_is_queued_behind_one_of_another_queue_or_before_it_came() -> None:
    of = Bench("a", "b", "c", b="other")
    of.submitted(1, "a", "b")
    of.round(1, ("a", "wait"))
    of.round(2, ("x", "wait"), ("y", "wait"))
    of.round(3, ("z", "wait"))
    assert (of.waits("b"), of.waits("c")) == ([], [])
    of.submitted(4, "c")
    of.round(4, ("x", "wait"), ("y", "wait"))
    of.round(5, ("y", "wait"))
    assert of.waits("c") == [
        (4, None, "Queued", "'x' is before it in 'q'"),
        (5, None, "Queued", "'y' is before it in 'q'"),
    ]


def test_tasks_that_are_asked_for_one_by_one_are_their_job() -> None:
    of = Bench("a", "b")
    of.submitted(1, "a", "b")
    of.round(1, ("a/x", "wait"), ("a/y", "preempt"), ("b/x", "wait"), ("b/y", "admit"))
    assert of.waits("a") == [(1, "wait", "WAIT", "a/x waits")]
    assert of.waits("b") == [], "some of it starts"


def test_room_is_made_by_those_that_went_since_the_round_before_it_starts() -> None:
    of = Bench("a", "b", "now")
    of.submitted(1, "a", "b", "now")
    of.happens(1, "finished", "long-ago")
    of.round(1, ("a", "wait"), ("b", "wait"), ("now", "admit"))
    of.happens(1, "started", "now")
    of.happens(3, "finished", "early")
    of.round(3, ("a", "wait"), ("b", "wait"))
    for kind, name in (("evicted", "x"), ("released", "x"), ("cancelled", "y"), ("finished", "z"), ("moved", "m"),
                       ("submitted", "s"), ("started", "r")):  # fmt: skip
        of.happens(4, kind, name)  # pyright: ignore[reportArgumentType]
    of.round(4, ("a", "wait"), ("b", "admit"))
    of.happens(4, "started", "b")
    of.happens(4, "finished", "later")
    of.happens(4, "started", "a")
    found = of.of.awaited
    assert (found["b"].freed_by, found["a"].freed_by) == (["x", "y", "z"], ["x", "y", "z", "later"])
    assert found["now"].freed_by == [], "it did not wait for anybody"
    of.happens(9, "started", "b")
    assert found["b"].starts_at == FIRST + 4 * S, "the first start counts"


def test_whom_it_evicts_while_it_waits_is_told_once_each() -> None:
    of = Bench("a", "b")
    of.happens(0, "evicted", "before", by="a")
    of.submitted(1, "a", "b")
    for name, by in (("x", "a"), ("y", "a"), ("x", "a"), ("z", "b"), ("n", None), ("o", "other")):
        of.happens(2, "evicted", name, by=by)
    of.happens(3, "started", "a")
    of.happens(4, "evicted", "after", by="a")
    found = of.of.awaited
    assert (list(found["a"].evicts), list(found["b"].evicts)) == (["x", "y"], ["z"])


def test_twenty_are_told_of_each_and_of_waits_the_last() -> None:
    of = Bench("a")
    of.submitted(0, "a")
    for i in range(30):
        of.round(i, ("a", "wait" if i % 2 else "preempt"))
        of.happens(i, "evicted", f"v{i}", by="a")
    waits = of.waits("a")
    assert [at for at, *_ in waits] == [*range(MOST - 1), 29]
    assert list(of.of.awaited["a"].evicts) == [f"v{i}" for i in range(20)]
    of.round(50, ("a", "wait"))
    for i in range(30):
        of.happens(51, "finished", f"f{i}")
    of.round(51, ("a", "admit"))
    of.happens(51, "started", "a")
    assert of.of.awaited["a"].freed_by == [f"f{i}" for i in range(10, 30)]
