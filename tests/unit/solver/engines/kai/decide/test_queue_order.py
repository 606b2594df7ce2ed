"""The order of queues on dense tables, where every step decides: by hand, and against the rules told a second time."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from app.solver.engines.kai.jobs import KAI_UNLIMITED, Share
from app.solver.engines.kai.queue_order import NOTHING, QueueOrder, Standing, holds_within, within
from tests.support.kai_oracle import queue_first

TOTAL: Share = (8, 8, 8000)
A, B = 0, 1


def order(**tables: Any) -> QueueOrder:
    """Two queues that hold and deserve nothing and are alike but for their age: A is older."""
    plain: dict[str, Any] = {
        "allocated": [[0, 0], [0, 0], [0, 0]], "fixed": [[0, 0], [0, 0], [0, 0]], "deserved": [(0, 0, 0)] * 2,
        "fair": [(8.0, 8.0, 8000.0)] * 2, "allocatable": [(8.0, 8.0, 8000.0)] * 2, "limit": [(-1, -1, -1)] * 2,
        "_created": [1, 2], "_priority": [0, 0], "paths": [[A], [B]], "_known": {},
    }  # fmt: skip
    found = QueueOrder.__new__(QueueOrder)
    for name, table in (plain | tables).items():
        setattr(found, name, table)
    found._measure = [  # pyright: ignore[reportPrivateUsage]
        tuple(float(TOTAL[r]) if v[r] == KAI_UNLIMITED else v[r] for r in range(3)) for v in found.allocatable
    ]
    return found


def first(tables: QueueOrder, want_a: Share = NOTHING, want_b: Share = NOTHING, taken_a: Share = NOTHING) -> bool:
    return tables.first(A, B, want_a, want_b, taken_a, NOTHING)


CPU: Share = (1, 0, 0)
GPU: Share = (0, 0, 1000)


def test_each_step_decides_before_those_after_it() -> None:
    assert first(order()), "the older one"
    wide = order(allocatable=[(8.0, 8.0, 8000.0), (8.0, 8.0, 7000.0)])
    assert not first(wide), "7: the smaller allocatable share"
    held = [[2, 1], [0, 0], [0, 0]]
    assert not first(order(allocated=held)), "6: the smaller dominant share without the job"
    assert first(order(allocated=held), NOTHING, (4, 0, 0)), "5: and before that with it"
    assert not first(order(allocated=[[4, 3], [0, 0], [0, 0]]), NOTHING, NOTHING)
    assert first(order(allocated=[[4, 3], [0, 0], [0, 0]]), NOTHING, NOTHING, (2, 0, 0)), "less what was taken"
    none = order(allocatable=[(8.0, 8.0, 0.0), (8.0, 8.0, 8000.0)])
    assert not first(none, GPU, (7, 0, 0)), "4: a GPU where it is entitled to none"
    assert first(none, CPU, (7, 0, 0)), "nothing of it is wanted"
    some = order(allocatable=[(1.0, 8.0, 8000.0), (8.0, 8.0, 8000.0)], allocated=[[1, 1], [0, 0], [0, 0]])
    assert first(some, NOTHING, (7, 7, 7000)) is False, "one step is not none: the whole of its share is held"
    higher = order(_priority=[0, 1], deserved=[(-1, -1, -1)] * 2)
    assert not first(higher, NOTHING, (7, 7, 7000)), "3: the higher priority"
    deserving = order(deserved=[(0, 0, 0), (1, 0, 0)], _priority=[1, 0])
    assert first(deserving, CPU, CPU) is False, "2: within what it deserves"
    over = order(fair=[(0.0, 0.0, 0.0), (8.0, 8.0, 8000.0)], allocated=[[1, 1], [1, 1], [1, 1]], _priority=[1, 0])
    assert not first(over), "1: over its fair share in everything"
    assert first(order(fair=[(0.0, 1.0, 0.0), (8.0, 8.0, 8000.0)], allocated=over.allocated, _priority=[1, 0]))


def test_what_is_held_without_a_share_weighs_a_thousandfold() -> None:
    """Of CPU and memory by their smallest step, of GPUs by the device (docs/engines/kai.md, Order of queues)."""
    none = order(allocatable=[(0.0, 0.0, 0.0)] * 2)
    assert none.dominant(A, (2, 0, 0), NOTHING) == 2000.0
    assert none.dominant(A, (0, 2, 0), NOTHING) == 2000.0
    assert none.dominant(A, (0, 0, 2000), NOTHING) == 2000.0
    assert order().dominant(A, (2, 4, 1000), (1, 1, 0)) == 3 / 8
    assert order().dominant(A, NOTHING, (3, 0, 0)) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_dense_tables_are_ordered_by_the_rules(seed: int) -> None:
    random = Random(seed)

    def share(*choices: float) -> Any:
        return tuple(random.choice(choices) * (1000 if r == 2 else 1) for r in range(3))

    def entitled(*choices: float) -> Any:
        return tuple(random.choice((-1, *(c * (1000 if r == 2 else 1) for c in choices))) for r in range(3))

    decided = 0
    for _ in range(1500):
        tables = order(
            allocated=[[random.choice((-1, 0, 0, 1, 1, 2)) * (1000 if r == 2 else 1) for _ in "ab"] for r in range(3)],
            deserved=[entitled(0, 1, 1, 2) for _ in "ab"], fair=[share(0, 1, 2) for _ in "ab"],
            allocatable=[entitled(0, 0, 1, 2) for _ in "ab"], _priority=[random.choice((0, 0, 0, 1)) for _ in "ab"],
        )  # fmt: skip
        wants, taken = (share(0, 0, 0, 1), share(0, 0, 1)), (share(0, 0, 1), share(0, 0, 0, 1))
        said = tables.first(A, B, *wants, *taken)
        assert said == queue_first(tables, TOTAL, A, B, wants, taken)
        decided += not said
        still = tables.first(A, B, NOTHING, NOTHING, *taken)
        standing = Standing(tables)
        assert standing.first(A, B, *taken) == still
        assert standing.first(A, B, NOTHING, NOTHING) == tables.first(A, B, *[NOTHING] * 4), "as more is taken"
    assert 300 < decided < 1200


def test_a_share_within_another() -> None:
    assert within((1, 1, 1), (1, 1, 1))
    assert not within((1, 2, 1), (1, 1, 1))
    assert within((9, 9, 9), (-1, -1, -1))
    assert within((-1, 0, 0), (-1, 0, 0))
    assert not within((-1, 0, 0), (1, 0, 0))


@pytest.mark.parametrize("r", range(3))
def test_a_bound_holds_up_to_itself_and_minus_one_unit_is_beyond_any(r: int) -> None:
    unit = 1000 if r == 2 else 1

    def at(amount: int) -> Share:
        held = [0, 0, 0]
        held[r] = amount
        return held[0], held[1], held[2]

    for amount, holds in ((unit, True), (unit + 1, False), (-unit, False), (-unit - 1, True), (-unit + 1, True)):
        assert holds_within(at(amount), (unit, unit, unit)) is holds
        unlimited = [5.0, 5.0, 5.0]
        unlimited[r] = KAI_UNLIMITED
        assert holds_within(at(amount), (unlimited[0], unlimited[1], unlimited[2]))


@pytest.mark.parametrize(
    ("limit", "deserved", "preemptible", "want", "rule", "queue", "held"),
    [
        ((2, -1, -1), (-1, -1, -1), True, (1, 0, 0), None, None, None),
        ((1, -1, -1), (-1, -1, -1), True, (1, 0, 0), "over-limit", B, 1),
        ((0, -1, -1), (-1, -1, -1), True, (0, 1, 0), None, None, None),
        ((-1, -1, -1), (1, -1, -1), False, (1, 0, 0), None, None, None),
        ((-1, -1, -1), (0, -1, -1), False, (1, 0, 0), "non-preemptible-over-quota", B, 0),
        ((-1, -1, -1), (0, -1, -1), False, (0, 0, 1), None, None, None),
        ((-1, -1, -1), (0, -1, -1), True, (1, 0, 0), None, None, None),
        ((1, -1, -1), (0, -1, -1), False, (1, 0, 0), "over-limit", B, 1),
    ],
)  # fmt: skip
def test_bounds_count_only_what_is_wanted_from_the_leaf_upwards(
    limit: Any, deserved: Any, preemptible: bool, want: Share, rule: str | None, queue: int | None, held: int | None
) -> None:
    """Job 0 asks in leaf A below B. B holds one step of CPU, none of it by pods that are not preemptible."""
    tables = order(
        limit=[(-1, -1, -1), limit], deserved=[(-1, -1, -1), deserved], allocated=[[0, 1], [0, 0], [0, 0]],
        paths=[[A, B], [B]], _jobs=SimpleNamespace(queue=[A], preemptible=[preemptible]),
    )  # fmt: skip
    found = tables.over_bounds(0, want)
    assert (found and found.rule, found and found.queue, found and found.held) == (rule, queue, held)
