"""A watcher lists, watches from there, and says what went wrong, whatever goes wrong."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.following import mirror
from app.following.mirror import Followed, Mirror, Watcher
from app.following.objects import Absent, Broken, Event, Gone, Listed
from app.following.reading import Reader
from app.formats.objects import Kind
from tests.support.instead import Clock, Instead

POD = Kind("Pod", "", "pods", ("v1",))
COHORT = Kind("Cohort", "g", "cohorts", ("v1",), needed=False)


def item(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


class Script(Reader):
    """Does what it is told, request by request; at the end it stops the watcher. ``asked``: what it was asked."""

    def __init__(self, *steps: tuple[str, Any]) -> None:
        self._steps = list(steps)
        self.watcher: Watcher | None = None
        self.asked: list[str] = []

    def _next(self, what: str, told: str) -> Any:
        self.asked.append(told)
        if not self._steps:
            assert self.watcher is not None
            self.watcher.stop()
            raise Broken("over")
        expected, answer = self._steps.pop(0)
        assert expected == what, told
        if isinstance(answer, Exception):
            raise answer
        return answer

    def version(self, kind: Kind) -> str:
        return kind.versions[0]

    def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed:
        return self._next("list", "list")

    def watch(self, kind: Kind, version: str, since: str) -> Iterator[Event]:
        for one in self._next("watch", f"watch {since}"):
            if isinstance(one, Exception):
                raise one
            yield one


class Pauses(list[float]):
    """``meanwhile``: what happens in each."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None


def _drawn(low: float, high: float) -> float:
    return 1.0 if (low, high) == (0.8, 1.2) else high


@pytest.fixture
def pauses(instead: Instead) -> Pauses:
    """How long was waited, without waiting; what is drawn of a range is its upper bound, or 1."""
    found = Pauses()

    class NoWait(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            found.append(timeout or 0.0)
            found.meanwhile()
            return self.is_set()

    instead(mirror.threading, Event=NoWait)
    instead(mirror.random, uniform=_drawn)
    return found


def watched(*steps: tuple[str, Any], kind: Kind = POD) -> tuple[Script, Mirror, Followed]:
    script, mirror = Script(*steps), Mirror((kind,))
    watcher = script.watcher = Watcher(kind, script, mirror)
    assert watcher.daemon, "the process may end while it reads"
    watcher.run()
    return script, mirror, mirror.kinds()[0]


def listed(*names: str, version: str = "5") -> tuple[str, Listed]:
    return "list", Listed([item(name) for name in names], version)


def test_a_watch_goes_on_from_the_last_version_that_was_heard(pauses: list[float]) -> None:
    script, mirror, pod = watched(
        listed("a"),
        ("watch", [Event(False, item("b"), "6"), Event(False, None, "9"), Event(True, item("a"), "")]),
        ("watch", []),
        ("watch", [Event(False, item("c"), "11"), Broken("reset")]),
    )
    assert script.asked == ["list", "watch 5", "watch 9", "watch 9", "watch 11"]
    assert (list(pod.items), mirror.lists) == ([("", "b"), ("", "c")], {"start": 1})
    assert (pod.error, pod.breaks) == ("over", 2)
    assert pauses == [0.5, 1.0, 1.0, 2.0], "one that ends at once, one that told nothing at all, and one that breaks"
    assert pod.whole, "its history may still be there"


def test_it_waits_longer_after_each_failure_until_something_is_heard(pauses: list[float]) -> None:
    broken = ("watch", Broken("reset"))
    watched(listed(), *[broken] * 8, ("watch", [Event(False, None, "6"), Broken("reset")]), broken)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("why", [Gone("compacted"), Broken("no route"), Absent("no pods"), KeyError("items")])
def test_what_fails_before_a_watch_is_listed_again(pauses: list[float], why: Exception) -> None:
    script, mirror, pod = watched(("list", why), ("list", why), listed("a"))
    assert script.asked == ["list", "list", "list", "watch 5"]
    reasons: dict[type[Exception], str] = {Gone: "gone", Broken: "broken", Absent: "absent"}
    reason = reasons.get(type(why), "failed")
    assert mirror.lists == {reason: 1}
    assert pauses == [1.0, 2.0, 4.0]
    assert (pod.breaks, pod.whole, pod.absent) == (3, True, False)


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (Gone("compacted"), "the history is gone: everything is listed again"),
        (Absent("no pods"), "no pods"),
        (Broken("no route"), "no route"),
        (KeyError("items"), "KeyError: 'items'"),
    ],
)
def test_what_can_not_be_listed_says_why(pauses: list[float], why: Exception, said: str) -> None:
    class Once(Script):
        def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed:
            if self.asked:
                assert self.watcher is not None
                self.watcher.stop()
            return super().list(kind, version, stopped)

    script, mirror = Once(listed("a"), ("list", why)), Mirror((POD,))
    script.watcher = Watcher(POD, script, mirror)
    script._steps.insert(1, ("watch", Gone("")))  # pyright: ignore
    script.watcher.run()
    pod = mirror.kinds()[0]
    assert (pod.error, pod.whole) == (said, False)


def test_a_kind_that_went_while_it_was_watched_is_listed_again(pauses: list[float]) -> None:
    script, mirror, _ = watched(listed("a"), ("watch", Absent("no pods")), listed("b"))
    assert script.asked == ["list", "watch 5", "list", "watch 5"]
    assert mirror.lists == {"start": 1, "absent": 1}
    assert pauses == [1.0, 2.0]


def test_a_server_that_lists_and_has_no_history_is_listed_ever_more_rarely(pauses: list[float]) -> None:
    round_ = (listed("a"), ("watch", [Event(False, None, "5"), Gone("compacted")]))
    _, mirror, _ = watched(*round_ * 7)
    assert mirror.lists == {"start": 1, "gone": 6}
    assert pauses[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], "that a watch is connected proves nothing"


def test_a_kind_that_is_not_needed_is_looked_for_once_a_minute(pauses: list[float]) -> None:
    script, mirror, cohort = watched(("list", Absent("no cohorts")), ("list", Absent("no")), kind=COHORT)
    assert (cohort.absent, cohort.whole, cohort.breaks) == (True, False, 1)
    assert script.asked == ["list", "list", "list"]
    assert pauses == [60.0, 60.0, 1.0]
    assert mirror.lists == {}


def test_what_comes_after_it_was_stopped_is_not_taken(pauses: list[float]) -> None:
    script, mirror = Script(listed("a")), Mirror((POD,))
    watcher = Watcher(POD, script, mirror)

    def coming() -> Iterator[Event]:
        yield Event(False, item("b"), "6")
        watcher.stop()
        yield Event(False, item("c"), "7")
        raise AssertionError("it goes on reading")

    script._steps.append(("watch", coming()))  # pyright: ignore
    watcher.run()
    assert list(mirror.kinds()[0].items) == [("", "a"), ("", "b")]
    assert pauses == []


def test_a_watch_that_lasted_is_asked_for_again_at_once(pauses: list[float], clock: Clock) -> None:
    clock.drives(mirror)

    def lasting(seconds: float) -> Iterator[Event]:
        clock.sleep(seconds)
        yield Event(False, None, "6")

    watched(listed(), ("watch", lasting(1.0)), ("watch", lasting(0.9375)))
    assert pauses == [1.0, 2.0], "the second one told nothing new"


def test_watches_that_end_at_once_are_asked_for_ever_more_rarely(pauses: list[float]) -> None:
    watched(listed(), *[("watch", [Event(False, None, "5")])] * 7)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


@pytest.mark.parametrize("heard", [Event(False, None, "6"), Event(False, item("b"), "6")])
def test_a_list_that_served_for_a_moment_is_made_again_ever_more_rarely(
    pauses: list[float], clock: Clock, heard: Event
) -> None:
    """Whatever a watch tells before the history is gone: it is the list that costs. One that served for a minute is no
    repetition, and after the second one in a row it is waited at least as long as it took, and five minutes at most."""
    clock.drives(mirror)

    cost = [0.0]

    class Slow(Script):
        def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed:
            clock.sleep(cost[0])
            return super().list(kind, version, stopped)

    def lasting(seconds: float) -> Iterator[Any]:
        yield heard
        clock.sleep(seconds)
        yield Gone("compacted")

    for cost[0], expected in (
        (0.0, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 1.0, 2.0]),
        (20.0, [1.0, 20.0, 20.0, 20.0, 20.0, 30.0, 1.0, 20.0]),
        (900.0, [1.0, 300.0, 300.0, 300.0, 300.0, 300.0, 1.0, 300.0]),
    ):
        pauses.clear()
        served = (0, 59, 59, 59, 59, 59, 60, 0)
        script = Slow(*(step for seconds in served for step in (listed("a"), ("watch", lasting(seconds)))))
        script.watcher = Watcher(POD, script, Mirror((POD,)))
        script.watcher.run()
        assert pauses[:8] == expected


def test_who_is_told_when_to_ask_again_waits_for_as_long(pauses: list[float]) -> None:
    busy = Broken("429", 7.0)
    watched(("list", busy), listed(), ("watch", busy), ("watch", busy), ("watch", busy), ("watch", busy))
    assert pauses[:5] == [7.0, 7.0, 7.0, 8.0, 16.0]


def test_that_a_watch_is_connected_says_nothing_where_the_last_ones_told_nothing(pauses: Pauses) -> None:
    """The first may have been bad luck; from the second on it stays broken, and as old as it is, until something comes
    or one ends as it should."""
    seen = list[tuple[str | None, bool]]()
    script, mirror_of = Script(listed("a")), Mirror((POD,))
    watcher = script.watcher = Watcher(POD, script, mirror_of)

    def drips(*news: Event) -> Iterator[Any]:
        yield Event(False, None, "5")
        pod = mirror_of.kinds()[0]
        seen.append((pod.error, pod.heard_at == heard_at[0]))
        heard_at[0] = pod.heard_at
        yield from news
        yield Broken("it drips")

    heard_at: list[Any] = [None]
    script._steps += [("watch", drips()) for _ in range(4)]  # pyright: ignore
    script._steps += [("watch", drips(Event(False, None, "6"))), ("watch", drips())]  # pyright: ignore
    watcher.run()
    good, bad = (None, False), ("it drips", True)
    assert seen == [good, good, bad, bad, bad, good]


def test_it_waits_between_half_and_all_of_that() -> None:
    watcher = Watcher(POD, Script(), Mirror((POD,)))
    drawn: list[float] = []
    for _ in range(50):
        watcher._failures = 2  # pyright: ignore
        drawn.append(watcher._backoff())  # pyright: ignore
    assert 2.0 <= min(drawn) < 2.5
    assert 3.5 < max(drawn) <= 4.0


FLAVOR = Kind("ResourceFlavor", "g", "resourceflavors", ("v1",))
PLACED = Kind("Node", "", "nodes", ("v1",), needed=False, placed=True)


def flavors(*topologies: str | None) -> Listed:
    return Listed(
        [{"metadata": {"name": f"f{i}"}, "spec": {"topologyName": of}} for i, of in enumerate(topologies)], "1"
    )


def test_nodes_are_read_only_while_a_flavor_has_a_topology(pauses: Pauses) -> None:
    script, mirror = Script(listed("n"), ("watch", [])), Mirror((FLAVOR, PLACED))
    watcher = script.watcher = Watcher(PLACED, script, mirror)
    seen = list[tuple[int, bool]]()

    def pause() -> None:
        """The flavors are listed, then one gets a topology, and loses it again."""
        node = mirror.kinds()[1]
        seen.append((len(node.items), node.whole))
        if len(seen) == 4:
            watcher.stop()
        elif len(seen) < 4:
            mirror.listed(FLAVOR, "g/v1", flavors(None, "racks" if len(seen) == 2 else None), "test")

    pauses.meanwhile = pause
    watcher.run()
    assert seen == [(0, False), (0, True), (1, True), (0, True)]
    assert script.asked == ["list", "watch 5"]
