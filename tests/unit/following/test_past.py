"""How long what was is kept, and when a preemption has been seen whole."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.following import history as module
from app.following.history import Past

AT = "2026-11-22T09:00:00Z"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def evicts(past: Past, victim: str, by: str, **more: Any) -> None:
    event = {"reason": "Evict", "message": f"Pod a/{victim} was preempted by workload b/{by}.", **more}
    past.changed("Event", ("a", f"e-{victim}"), None, event)


def ends(past: Past, name: str) -> None:
    running: dict[str, Any] = {"metadata": {"namespace": "a", "name": name}}
    past.changed("Pod", ("a", name), running, {"metadata": {**running["metadata"], "deletionTimestamp": AT}})


def test_a_preemption_is_whole_when_it_was_quiet_for_long_enough(clock: list[float]) -> None:
    past = Past("kai", quiet=3.0)
    evicts(past, "p-0", "pg", eventTime=AT)
    clock[0] += 2.0
    evicts(past, "p-1", "pg")
    evicts(past, "p-2", "other")
    clock[0] += 2.9375
    assert past.ripe() == []
    clock[0] += 0.0625
    first, second = past.ripe()
    assert (first.by, [name for _, name in first.victims], first.number) == ("b/pg", ["p-0", "p-1"], 0)
    assert (second.by, [name for _, name in second.victims], second.number) == ("b/other", ["p-2"], 2)
    assert first.seen_at.isoformat() == "2026-11-22T09:00:00+00:00"
    assert second.seen_at.tzinfo is not None
    assert past.ripe() == []
    assert (Past("kai")._quiet) == 2.0  # pyright: ignore


def test_one_that_never_gets_quiet_is_told_after_twenty_seconds(clock: list[float]) -> None:
    past = Past("kai", quiet=2.0)
    for number in range(20):
        evicts(past, f"p-{number}", "pg")
        clock[0] += 1.0
        if number < 19:
            assert past.ripe() == [], number
    (one,) = past.ripe()
    assert len(one.victims) == 20


def test_evictions_of_one_look_of_the_scheduler_may_be_decided_before_the_first(clock: list[float]) -> None:
    past = Past("kai", quiet=0.0)
    evicts(past, "p-0", "early")
    clock[0] += 1.0
    past.changed("Pod", ("a", "x"), None, {})
    evicts(past, "p-1", "near")
    clock[0] += 0.5
    evicts(past, "p-2", "late")
    found = {one.by: (one.number, one.moments) for one in past.ripe()}
    assert found == {"b/early": (0, [0]), "b/near": (2, [2, 0]), "b/late": (3, [3, 2])}


def test_the_end_of_a_victim_is_the_first_sign_of_its_eviction(clock: list[float]) -> None:
    past = Past("kai", quiet=0.0)
    ends(past, "p-1")
    ends(past, "p-0")
    ends(past, "other")
    evicts(past, "p-0", "pg")
    evicts(past, "p-1", "pg")
    (one,) = past.ripe()
    assert (one.number, one.moments) == (3, [0])
    past.cleared()
    evicts(past, "p-0", "again")
    assert past.ripe()[0].moments == [5, 3], "after a list nobody knows when it ended"


def test_the_past_is_two_minutes_long(clock: list[float]) -> None:
    past, items = Past("kai", quiet=0.0), {"Pod": {("a", "x"): {"v": 3}}}
    past.changed("Pod", ("a", "x"), {"v": 0}, {"v": 1})
    ends(past, "p-0")
    clock[0] += 60.0
    past.changed("Pod", ("a", "x"), {"v": 1}, {"v": 2})
    clock[0] += 60.0
    past.changed("Pod", ("a", "x"), {"v": 2}, {"v": 3})
    assert past.before(0, items) is not None
    clock[0] += 0.0625
    past.changed("Node", ("", "n"), None, {})
    assert past.before(0, items | {"Node": {}}) is None
    assert past.before(1, items | {"Node": {}}) is None
    assert past.before(2, items | {"Node": {}}) == {"Pod": {("a", "x"): {"v": 1}}, "Node": {}}
    evicts(past, "p-0", "pg")
    assert past.ripe()[0].moments == [5], "when it ended is forgotten too"


def test_the_past_has_a_bound(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_CHANGES", 3)
    past, items = Past("kai"), {"Pod": {("a", "x"): {"v": 4}}}
    assert past.before(0, items) == items
    for value in range(3):
        past.changed("Pod", ("a", "x"), {"v": value}, {"v": value + 1})
    assert past.before(0, items) == {"Pod": {("a", "x"): {"v": 0}}}
    past.changed("Pod", ("a", "x"), {"v": 3}, {"v": 4})
    assert past.before(0, items) is None
    assert past.before(1, items) == {"Pod": {("a", "x"): {"v": 1}}}
    assert past.before(4, items) == items
    past.cleared()
    assert past.before(3, items) is None
    assert past.before(4, items) == items


def test_no_more_preemptions_are_open_than_there_is_room_for(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAITING", 2)
    past = Past("kai", quiet=0.0)
    for by in ("one", "two", "three", "two"):
        evicts(past, f"p-{by}", by)
    assert [one.by for one in past.ripe()] == ["b/one", "b/two"]
    evicts(past, "p", "three")
    assert [one.by for one in past.ripe()] == ["b/three"]


def test_where_nothing_was_known_before_nothing_is_undone(clock: list[float]) -> None:
    past = Past("kueue")
    past.changed("Pod", ("a", "x"), None, {"v": 1})
    past.changed("Pod", ("a", "x"), {"v": 1}, None)
    assert past.before(0, {"Pod": {}}) == {"Pod": {}}
    assert past.before(1, {"Pod": {}}) == {"Pod": {("a", "x"): {"v": 1}}}
