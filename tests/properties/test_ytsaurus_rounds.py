"""Preemption ends: played over rounds, loaded clusters come to rest, but for what docs/engines/ytsaurus.md names."""

import random
from typing import Any

import pytest

from tests.properties.ytsaurus_rounds import Rounds, loaded
from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, node, operation, pool, request

SEEDS = range(30)
BOTH = ("cpu", "memory")
BACK_AND_FORTH = [[(("x", "n"), ("y", "n"))], [(("y", "n"), ("x", "n"))]]


def circles(*resources: str, **settings: Any) -> tuple[dict[int, list[Any]], int]:
    """Evictions that come again and again, by seed, and in how many clusters anything was evicted."""
    found: dict[int, list[Any]] = {}
    evicting = 0
    for seed in SEEDS:
        rounds = Rounds(loaded(random.Random(seed), resources=resources, **settings))
        again = rounds.play()
        evicting += any(rounds.history)
        if again:
            found[seed] = again
    return found, evicting


@pytest.mark.slow
@pytest.mark.parametrize("resources", [("cpu",), BOTH])
def test_as_released_nothing_but_a_trade_of_ones_own_comes_again(resources: tuple[str, ...]) -> None:
    found, evicting = circles(*resources, rules="shipped")
    assert evicting > len(SEEDS) / 4
    for again in found.values():
        assert all(victim == for_whom for evictions in again for victim, for_whom in evictions)


@pytest.mark.slow
def test_by_the_page_everything_comes_to_rest_once_the_crossing_allocation_is_safe() -> None:
    found, evicting = circles(*BOTH, rules="documented", consider_allocation_on_fair_share_bound_preemptible=False)
    assert evicting > len(SEEDS) / 4
    assert found == {}


def test_a_threshold_at_the_tolerance_is_high_enough() -> None:
    found, evicting = circles("cpu", rules="shipped", preemption_satisfaction_threshold=0.8)
    assert evicting > len(SEEDS) / 4
    assert found == {}


def thirds(**settings: Any) -> Rounds:
    """Three cpus for two equal operations, each of which wants all of them: one has two, the other one."""
    tasks = [alloc("y0", 1), alloc("y1", 2)]
    operations = [operation("x", "a", [alloc("x0", 0)]), operation("y", "b", tasks)]
    return Rounds(
        request([pool("a"), pool("b")], [node(cpu=3)], operations, [ask("x", "a", 2), ask("y", "b")], settings)
    )


def test_the_smallest_circle_of_the_literal_reading() -> None:
    """One cpu for two: whoever has it exceeds its half."""

    def rounds(rules: str) -> Rounds:
        operations = [operation("x", "a"), operation("y", "b", [alloc("y0")])]
        asks = [ask("x", "a"), ask("y", "b", 0)]
        return Rounds(request([pool("a"), pool("b")], [node(cpu=1)], operations, asks, {"rules": rules}))

    assert sorted(rounds("documented").play()) == BACK_AND_FORTH
    assert rounds("shipped").play() == []


def test_the_smallest_circles_of_settings_that_take_what_is_within_a_fair_share() -> None:
    assert thirds().play() == []
    assert sorted(thirds(enable_aggressive_starvation=True).play()) == BACK_AND_FORTH
    assert sorted(thirds(preemption_satisfaction_threshold=0.5).play()) == BACK_AND_FORTH


def test_the_smallest_trade_of_ones_own() -> None:
    """Pool a starves as z may run nowhere; x has more than its share, and nobody else has anything to give."""

    def rounds(**settings: Any) -> Rounds:
        xs = [alloc(f"x{i}", 10 + i) for i in range(3)]
        ys = [alloc(f"y{i}", i, 2.5) for i in range(2)]
        operations = [operation("x", "a", xs), operation("z", "a"), operation("y", "b", ys)]
        asks = [ask("x", "a"), ask("z", "a", 5, feasible_nodes=[]), ask("y", "b", 0)]
        return Rounds(request([pool("a"), pool("b")], [node(cpu=8)], operations, asks, settings))

    assert rounds().play() == [[(("x", "n"), ("x", "n"))]]
    assert rounds(scheduling_preemption_priority_scope="operation_only").play() == []
    literal = {"rules": "documented", "consider_allocation_on_fair_share_bound_preemptible": False}
    assert rounds(**literal).play() == []
