"""The examples and rules of KAI's minimum-runtime design, and where released code differs."""

import pytest

from app.solver.compiled import Tree
from app.solver.engines.kai.configuration import (
    NODE_POOL,
    Method,
    MinRuntimes,
    keeps_gang,
    may_evict,
    protected,
    protected_until,
    unprotected_from,
)
from app.solver.engines.kai.rule_sets import RULE_SETS, RuleSet

DOCUMENTED, SHIPPED = RULE_SETS["documented"], RULE_SETS["shipped"]

#   a ─ b(600) ─ c ─ leaf1(0), leaf2(180)
#              └ d(60) ─ leaf3            other ─ far(50)
NAMES = ["a", "b", "c", "d", "leaf1", "leaf2", "leaf3", "other", "far"]
PARENT = [-1, 0, 1, 1, 2, 2, 3, -1, 7]
OWN: list[int | None] = [None, 600, None, 60, 0, 180, None, None, 50]
TREE = Tree(NAMES, PARENT)
Q = TREE.index


def runtimes(method: Method = "lca", default: int = 7) -> MinRuntimes:
    return MinRuntimes(TREE, OWN, OWN, default_reclaim=default, default_preempt=default, method=method)


@pytest.mark.parametrize(
    ("preemptor", "victim", "expected", "set_by"),
    [
        ("leaf1", "leaf3", 60, "d"),
        ("leaf1", "leaf2", 180, "leaf2"),
        ("leaf3", "leaf1", 600, "b"),
        ("leaf2", "leaf1", 0, "leaf1"),
        ("far", "leaf1", 7, None),
        ("leaf1", "far", 7, None),
        ("leaf1", "c", 600, "b"),
        ("leaf1", "leaf1", 0, "leaf1"),
    ],
)
def test_reclaim_takes_the_value_of_the_branch_below_the_common_ancestor(
    preemptor: str, victim: str, expected: int, set_by: str | None
) -> None:
    found = runtimes().for_reclaim(Q[preemptor], Q[victim])
    assert (found.micros, found.set_by) == (expected, NODE_POOL if set_by is None else Q[set_by])


def test_a_root_of_another_tree_protects_with_its_own_value() -> None:
    own: list[int | None] = [None] * len(NAMES)
    own[Q["a"]] = 90
    own[Q["leaf1"]] = 1
    found = MinRuntimes(TREE, own, own, default_reclaim=7, default_preempt=7, method="lca")
    assert found.for_reclaim(Q["far"], Q["leaf1"]).micros == 90


@pytest.mark.parametrize(("victim", "expected"), [("leaf1", 0), ("leaf2", 180), ("leaf3", 60), ("other", 7)])
def test_preempt_and_the_leaf_method_walk_up_from_the_leaf(victim: str, expected: int) -> None:
    assert runtimes().for_preempt(Q[victim]).micros == expected
    assert runtimes("queue").for_reclaim(Q["far"], Q[victim]).micros == expected
    assert runtimes().reclaim_at(Q[victim]).micros == expected


@pytest.mark.parametrize(
    ("now", "started", "minimum", "shipped", "documented"),
    [
        (159, 100, 60, True, True),
        (160, 100, 60, False, True),
        (161, 100, 60, False, False),
        (100, 100, 0, False, False),
        (99, 100, 0, True, False),
        (0, None, 10**9, False, False),
        (50, 100, -60, False, False),
    ],
)
def test_protection_in_time(now: int, started: int | None, minimum: int, shipped: bool, documented: bool) -> None:
    assert protected(now, started, minimum, SHIPPED) is shipped
    assert protected(now, started, minimum, DOCUMENTED) is documented


def test_protected_until() -> None:
    assert protected_until(100, 60, DOCUMENTED) == 160
    assert protected_until(100, 0, DOCUMENTED) is None
    assert protected_until(100, 0, SHIPPED) == 100
    assert protected_until(None, 60, SHIPPED) is None


@pytest.mark.parametrize("minimum", [-60, -1, 0, 1, 60])
@pytest.mark.parametrize("rules", RULE_SETS.values())
def test_the_first_instant_without_protection_is_the_first(minimum: int, rules: RuleSet) -> None:
    free = [now for now in range(100, 200) if not protected(now, 100, minimum, rules)]
    assert unprotected_from(100, minimum, rules) == free[0]


@pytest.mark.parametrize(
    ("queue", "method", "lengths"),
    [
        ("leaf1", "lca", {7, 0, 600}), ("leaf2", "lca", {7, 180, 600}), ("leaf3", "lca", {7, 60, 600}),
        ("far", "lca", {7, 50}), ("a", "lca", {7}), ("other", "lca", {7}),
    ],
)  # fmt: skip
def test_every_length_that_may_protect_a_queue_from_somebody(queue: str, method: Method, lengths: set[int]) -> None:
    assert runtimes(method).lengths(Q[queue]) == lengths


def test_elastic_workloads_pass_the_filter_and_keep_their_gang() -> None:
    assert may_evict(protected=True, elastic=True)
    assert may_evict(protected=False, elastic=False)
    assert not may_evict(protected=True, elastic=False)
    assert keeps_gang(running=3, evicted=1, min_available=2)
    assert not keeps_gang(running=3, evicted=2, min_available=2)
    assert keeps_gang(running=3, evicted=3, min_available=0)
