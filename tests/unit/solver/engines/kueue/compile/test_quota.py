"""Quota arithmetic on a tree: what is lent, what is kept, where usage shows, what is still available."""

import random

import pytest

from app.solver.compiled import ROOTLESS, Tree
from app.solver.engines.kueue.configuration import Limits, Quotas
from app.solver.engines.kueue.overlay import Usage

CPU = 0
FRS = [("default", "cpu")]


def tree(**parents: str | None) -> Tree:
    names = list(parents)
    return Tree(names, [ROOTLESS if p is None else names.index(p) for p in parents.values()])


def build(of: Tree, **limits: tuple[int, int | None, int | None]) -> Usage:
    """``limits``: nominal, borrowing limit, lending limit by node."""
    quotas = Quotas(of, FRS, [{CPU: Limits(*limits[n])} if n in limits else {} for n in of.names])
    return Usage(quotas, [0] * len(quotas.node))


def available(usage: Usage, name: str) -> int:
    return usage.available(usage.quotas.tree.index[name], CPU)


def add(usage: Usage, name: str, amount: int) -> None:
    usage.add(usage.quotas.tree.index[name], [(CPU, amount)])


def used(usage: Usage, name: str) -> int:
    return usage.used[usage.quotas.cells[usage.quotas.tree.index[name]][CPU]]


@pytest.fixture
def lending() -> Usage:
    """a keeps 6 of its 10 to itself, b lends all of its 5."""
    return build(tree(c=None, a="c", b="c"), a=(10, None, 4), b=(5, None, None))


def test_a_lending_limit_keeps_the_rest_local(lending: Usage) -> None:
    assert [available(lending, n) for n in "ab"] == [6 + 4 + 5, 4 + 5]


def test_usage_reaches_the_cohort_only_beyond_the_local_part(lending: Usage) -> None:
    add(lending, "a", 6)
    assert used(lending, "c") == 0
    assert available(lending, "b") == 9
    add(lending, "a", 2)
    assert used(lending, "c") == 2
    assert available(lending, "b") == 7


def test_removing_gives_the_cohort_back_what_it_held(lending: Usage) -> None:
    add(lending, "a", 8)
    lending.remove(lending.quotas.tree.index["a"], [(CPU, 5)])
    assert (used(lending, "a"), used(lending, "c")) == (3, 0)


def test_any_order_of_adding_and_removing_ends_where_it_began(lending: Usage) -> None:
    shuffle = random.Random(7)
    booked = [(shuffle.choice("ab"), shuffle.randint(0, 6)) for _ in range(40)]
    for name, amount in booked:
        add(lending, name, amount)
    shuffle.shuffle(booked)
    for name, amount in booked:
        lending.remove(lending.quotas.tree.index[name], [(CPU, amount)])
    assert lending.used == [0] * len(lending.used)


def test_the_borrowing_limit_of_every_ancestor_binds() -> None:
    usage = build(
        tree(root=None, team="root", a="team", other="root"),
        root=(100, None, None), team=(0, 3, None), a=(2, 50, None), other=(10, None, None),
    )  # fmt: skip
    assert available(usage, "a") == 2 + 3
    add(usage, "a", 4)
    assert available(usage, "a") == 1
    assert available(usage, "other") == 112 - 4


def test_a_lending_limit_of_a_cohort_is_measured_against_its_subtree() -> None:
    usage = build(tree(root=None, team="root", a="team", b="root"), a=(10, None, None), team=(0, None, 3))
    assert usage.quotas.local[usage.quotas.cells[1][CPU]] == 7
    assert usage.quotas.subtree[usage.quotas.cells[0][CPU]] == 3
    assert available(usage, "a") == 10


def test_more_used_than_there_is_leaves_nothing_available() -> None:
    usage = build(tree(c=None, a="c", b="c"), a=(4, None, None), b=(4, None, None))
    add(usage, "a", 11)
    assert available(usage, "b") == 0
    assert usage.available_cell(usage.quotas.cells[2][CPU]) == -3


def test_fitting_without_borrowing_stays_within_nominal() -> None:
    usage = build(tree(c=None, a="c", b="c"), a=(4, None, None), b=(4, None, None))
    assert usage.fits(1, [(CPU, 5)])
    assert not usage.fits(1, [(CPU, 5)], borrow=False)
    assert usage.fits(1, [(CPU, 4)], borrow=False)
    assert usage.fits(1, [(CPU, 0)], borrow=False)


def test_potential_is_what_an_empty_cluster_would_give(lending: Usage) -> None:
    before = available(lending, "a")
    add(lending, "b", 9)
    assert lending.quotas.potential_available(1, CPU) == before
    assert lending.quotas.potential_available(0, CPU) == 9


def test_fit_by_level_uses_up_the_local_part_first() -> None:
    """a wants 6: more than its own 5; team can cover the 6 - 2 that a does not keep to itself (a lends 3, b 1)."""
    usage = build(tree(root=None, team="root", a="team", b="team"), a=(5, None, 3), b=(1, None, None))
    assert usage.fits_by_level(usage.quotas.tree.path(2), {CPU: 6}) == [False, True, True]
    assert usage.fits_by_level(usage.quotas.tree.path(2), {CPU: 7}) == [False, False, False]


def test_a_cell_that_nobody_has_quota_for_can_be_added_later(lending: Usage) -> None:
    quotas = lending.quotas
    grown = quotas.extended([*FRS, ("other", "cpu")], [(1, 1)])
    assert grown.cells[1][1] >= len(quotas.node)
    assert grown.potential[grown.cells[1][1]] == 0
    assert grown.nominal[: len(quotas.node)] == quotas.nominal
    assert 1 not in quotas.cells[1]


@pytest.mark.parametrize("field", ["nominal", "borrowing", "lending"])
@pytest.mark.parametrize("name", ["a", "team", "b"])
def test_thinking_a_change_through_gives_what_building_anew_gives(field: str, name: str) -> None:
    of = tree(root=None, team="root", a="team", b="root")
    limits = {"a": [5, 2, 3], "team": [1, 4, 2], "b": [7, None, 6], "root": [2, None, None]}
    old = build(of, **{n: (v[0], v[1], v[2]) for n, v in limits.items()})  # pyright: ignore[reportArgumentType]
    for node, amount in (("a", 6), ("b", 3), ("a", 1)):
        add(old, node, amount)
    limits[name][["nominal", "borrowing", "lending"].index(field)] = 8
    new = build(of, **{n: (v[0], v[1], v[2]) for n, v in limits.items()})  # pyright: ignore[reportArgumentType]
    for node, amount in (("a", 6), ("b", 3), ("a", 1)):
        add(new, node, amount)
    thought = old.under(old.quotas.changed(of.index[name], CPU, field, 8), CPU)  # pyright: ignore[reportArgumentType]
    for table in ("nominal", "borrowing", "lending", "subtree", "local", "potential"):
        assert getattr(thought.quotas, table) == getattr(new.quotas, table), table
    assert thought.used == new.used


def test_thinking_a_change_through_leaves_what_it_came_from() -> None:
    """A flavor-resource that a has no quota for gets one: its own and that of the cohort, in the copy only."""
    frs = [*FRS, ("other", "cpu")]
    of = tree(c=None, a="c", b="c")
    quotas = Quotas(of, frs, [{}, {0: Limits(1, None, None)}, {1: Limits(2, None, None), 0: Limits(3, None, None)}])
    assert quotas.own == [(0, 1), (0,), (0, 1)]
    changed = quotas.changed(1, 1, "nominal", 5)
    assert changed.own == [(0, 1), (0, 1), (0, 1)]
    assert quotas.own == [(0, 1), (0,), (0, 1)]
    assert [changed.potential_available(node, 1) for node in range(3)] == [7, 7, 7]
    assert [quotas.potential_available(node, 1) for node in range(3)] == [2, 2, 2]
