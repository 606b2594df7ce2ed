"""What a cluster was, taken back change by change, and when a preemption has been seen whole."""

from random import Random
from typing import Any

import pytest

from app.following import history as module
from app.following.history import History, Items, Rewind
from app.formats.objects import Item, Key
from app.solver.model.configuration import EngineName
from tests.support.bounds import Bounded

AT = "2026-11-22T09:00:00Z"


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def evicts(history: History, victim: str, by: str, version: str = "", **more: Any) -> None:
    event = {"reason": "Evict", "message": f"Pod a/{victim} was preempted by workload b/{by}.", **more}
    history.changed("Event", ("a", f"e-{victim}"), None, event, version, state=False)


def pods(history: History, name: str, old: int | None, new: int | None, version: str = "") -> None:
    was, now = ({"v": value} if value is not None else None for value in (old, new))
    history.changed("Pod", ("a", name), was, now, version, state=True)


def ends(history: History, name: str, version: str = "") -> None:
    running: dict[str, Any] = {"metadata": {"namespace": "a", "name": name}}
    ending = {"metadata": {**running["metadata"], "deletionTimestamp": AT}}
    history.changed("Pod", ("a", name), running, ending, version, state=True)


def known(rewind: Rewind) -> Any:
    return {name: item["v"] for (_, name), item in rewind.items["Pod"].items()}


def test_a_preemption_is_whole_when_it_was_quiet_for_long_enough(clock: Clock) -> None:
    history = History("kai", quiet=3.0, clock=clock)
    evicts(history, "p-0", "pg", eventTime=AT)
    clock.now += 2.0
    evicts(history, "p-1", "pg")
    evicts(history, "p-2", "other")
    clock.now += 2.9375
    assert history.ripe() == []
    clock.now += 0.0625
    first, second = history.ripe()
    assert (first.by, [one.seen.victim[1] for one in first.evictions]) == ("b/pg", ["p-0", "p-1"])
    assert (second.by, [one.seen.victim[1] for one in second.evictions]) == ("b/other", ["p-2"])
    assert first.seen_at.isoformat() == "2026-11-22T09:00:00+00:00"
    assert second.seen_at.tzinfo is not None
    assert history.ripe() == []


def test_one_that_never_gets_quiet_is_told_after_twenty_seconds(clock: Clock) -> None:
    history = History("kai", quiet=2.0, clock=clock)
    for number in range(20):
        evicts(history, f"p-{number}", "pg")
        clock.now += 1.0
        if number < 19:
            assert history.ripe() == [], number
    (one,) = history.ripe()
    assert len(one.evictions) == 20


def back(rewind: Rewind) -> tuple[str, Key] | None:
    """The object that the change is of which is undone."""
    change = rewind.back()
    return None if change is None else (change.kind, change.key)


def test_a_cluster_goes_back_change_by_change(clock: Clock) -> None:
    history, items = History("kai", clock=clock), {"Pod": {("a", "x"): {"v": 3}, ("a", "z"): {"v": 0}}}
    for value, version in ((0, "10"), (1, "20"), (2, "30")):
        pods(history, "x", value, value + 1, version)
        clock.now += 1
    pods(history, "z", None, 0, "40")
    pods(history, "y", 7, None, "50")
    rewind = history.rewind(items)
    assert known(rewind) == {"x": 3, "z": 0}
    assert (back(rewind), known(rewind)) == (("Pod", ("a", "y")), {"x": 3, "y": 7, "z": 0})
    assert rewind.to((20, 0))
    assert known(rewind) == {"x": 1, "y": 7}
    assert rewind.since == 1001.0
    other = rewind.copy()
    assert (back(other), known(other), known(rewind)) == (("Pod", ("a", "x")), {"x": 0, "y": 7}, {"x": 1, "y": 7})
    assert other.back() is None
    assert [change.new for change in rewind.undone(1.0)] == [{"v": 2}, {"v": 3}]
    assert known(history.rewind(items)) == {"x": 3, "z": 0}, "what is kept stays as it is"


def test_what_was_written_first_is_undone_last_in_whatever_order_it_was_heard(clock: Clock) -> None:
    history, items = History("kai", clock=clock), {"Pod": {("a", "x"): {"v": 2}}, "Node": {("", "n"): {"v": 1}}}
    pods(history, "x", 0, 1, "10")
    pods(history, "x", 1, 2, "30")
    history.changed("Node", ("", "n"), {"v": 0}, {"v": 1}, "20", state=True)
    rewind = history.rewind(items)
    assert [back(rewind), back(rewind), back(rewind)] == [
        ("Pod", ("a", "x")), ("Node", ("", "n")), ("Pod", ("a", "x")),
    ]  # fmt: skip


def test_versions_that_are_no_numbers_leave_the_order_of_hearing(clock: Clock) -> None:
    history, items = History("kai", clock=clock), {"Pod": {("a", "x"): {"v": 2}, ("a", "y"): {"v": 1}}}
    pods(history, "x", 0, 1, "10")
    pods(history, "x", 1, 2, "b")
    pods(history, "y", 0, 1)
    rewind = history.rewind(items)
    assert [back(rewind), back(rewind), back(rewind), back(rewind)] == [
        ("Pod", ("a", "y")), ("Pod", ("a", "x")), ("Pod", ("a", "x")), None,
    ]  # fmt: skip


@pytest.mark.parametrize("first", ["end", "event"])
def test_the_end_of_a_victim_is_the_first_sign_of_its_eviction(first: str, clock: Clock) -> None:
    history = History("kai", quiet=0.0, clock=clock)
    pods(history, "x", None, 1, "10")
    if first == "end":
        ends(history, "p-0", "20")
        evicts(history, "p-0", "pg", "25")
    else:
        evicts(history, "p-0", "pg", "25")
        ends(history, "p-0", "20")
    (one,) = history.ripe()
    assert [eviction.position[0] for eviction in one.evictions] == [20]
    clock.now += 25
    evicts(history, "p-0", "pg", "90")
    assert [eviction.position[0] for one in history.ripe() for eviction in one.evictions] == [90], (
        "another pod of that name"
    )


def test_an_event_of_a_store_of_its_own_stands_where_it_was_heard(clock: Clock) -> None:
    history = History("kai", quiet=0.0, clock=clock)
    pods(history, "x", None, 1, "1000")
    evicts(history, "p-0", "pg", "3")
    evicts(history, "p-1", "pg", "9999")
    pods(history, "x", 1, 2, "1001")
    (one,) = history.ripe()
    assert [eviction.position[0] for eviction in one.evictions] == [1000, 9999]
    rewind = history.rewind({"Pod": {("a", "x"): {"v": 2}}})
    assert rewind.to(one.evictions[0].position)
    assert known(rewind) == {"x": 1}


def test_the_past_is_three_minutes_long(clock: Clock) -> None:
    history = History("kai", quiet=0.0, clock=clock)
    items: Items = {"Pod": {("a", "x"): {"v": 3}}}
    pods(history, "x", 0, 1, "10")
    ends(history, "p-0", "11")
    clock.now += 100.0
    pods(history, "x", 1, 2, "20")
    clock.now += 80.0
    pods(history, "x", 2, 3, "30")
    assert history.rewind(items).to((10, 0))
    assert history.rewind(items).to((3, 0)), "nothing changed before the first change that is known"
    clock.now += 0.0625
    pods(history, "z", None, None, "40")
    assert not history.rewind(items).to((11, 0))
    rewind = history.rewind(items)
    assert rewind.to((20, 0))
    assert known(rewind) == {"x": 1}


def test_the_past_has_a_bound_and_what_is_open_too(clock: Clock, bounded: Bounded) -> None:
    bounded(module, MOST_CHANGES=3, MOST_WAITING=2)
    history, items = History("kai", quiet=0.0, clock=clock), {"Pod": {("a", "x"): {"v": 5}}}
    for value in range(5):
        pods(history, "x", value, value + 1, str(10 * value))
    rewind = history.rewind(items)
    assert not rewind.to((10, 0))
    assert rewind.to((20, 0))
    assert known(rewind) == {"x": 2}
    for by in ("one", "two", "three", "two"):
        evicts(history, f"p-{by}", by)
    assert [one.by for one in history.ripe()] == ["b/one", "b/two"]
    history.cleared()
    assert history.rewind(items).back() is None
    assert not history.rewind(items).to((40, 5)), "what was before a first list is not known"


def test_who_keeps_no_past_sees_evictions_all_the_same(clock: Clock) -> None:
    history = History("kueue", quiet=0.0, window=0, clock=clock)
    condition = {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "lastTransitionTime": AT}
    old: dict[str, Any] = {"metadata": {"namespace": "ml", "name": "train"}}
    history.changed("Workload", ("ml", "train"), old, {**old, "status": {"conditions": [condition]}}, "9", state=True)
    assert history.rewind({}).back() is None
    assert [(one.seen.victim, one.seen.reason) for one in history.others()] == [(("ml", "train"), "PodsReadyTimeout")]
    assert history.others() == []
    assert history.ripe() == []


def test_a_server_that_was_restored_is_noticed(clock: Clock) -> None:
    history = History("kai", clock=clock)
    pods(history, "x", None, 1, "100")
    assert not history.restored("Node", "99"), "more was heard of pods while nodes were listed"
    versions = ("99", "99", "101", "x", "")
    assert [history.restored("Pod", version) for version in versions] == [True, *[False] * 4]
    pods(history, "x", 1, 2, "100")
    assert history.rewind({"Pod": {("a", "x"): {"v": 2}}}).to((200, 0))


@pytest.mark.parametrize("kept", [180.0, 0.0])
@pytest.mark.parametrize("engine", ["kai", "kueue", "yunikorn"])
def test_who_is_there_or_was_of_late_is_known(clock: Clock, engine: EngineName, kept: float) -> None:
    """Whatever happens to those who preempt: an index says the same as a look at each."""
    kind = {"kai": "PodGroup", "kueue": "Workload"}.get(engine, "Pod")
    random, history = Random(7), History(engine, window=kept, clock=clock)
    items: dict[Key, Item] = {}
    gone: list[tuple[float, Key, Item]] = []
    history.there(kind, items)
    for number in range(600):
        clock.now += random.choice((0.0, 1.0, 20.0))
        key = "s", random.choice("abcd")
        old, new = items.get(key), None if key in items else item(*key, uid=f"{key[1]}-{number}")
        history.changed(kind, key, old, new, str(number), state=True)
        items = {name: one for name, one in {**items, key: new}.items() if one is not None}
        gone += [(clock.now, key, old)] if old is not None and kept else []
        if random.random() < 0.02:
            history.cleared()
            history.there(kind, items)
        late = [(name, one) for at, name, one in gone if at >= clock.now - kept]
        names = {"/".join(name) if engine == "kai" else one["metadata"]["uid"] for name, one in [*items.items(), *late]}
        every = {
            f"s/{name}" if engine == "kai" else f"{name}-{before}" for name in "abcd" for before in range(number + 1)
        }
        assert {name for name in every if history.knows(name)} == names
        assert history.knows(""), "nobody is named"


def item(space: str, name: str, uid: str) -> Item:
    return {"metadata": {"namespace": space, "name": name, "uid": uid}}
