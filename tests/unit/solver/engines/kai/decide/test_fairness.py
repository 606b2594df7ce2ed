"""Reclaim's fairness on dense tables, where every comparison decides: against the rules told a second time."""

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from app.solver.compiled import Tree
from app.solver.engines.kai.jobs import PIPELINED, RELEASING
from app.solver.engines.kai.queue_order import QueueOrder
from app.solver.engines.kai.validators import Fairness, may_reclaim
from tests.support.kai_oracle import reclaim_refusal

TREE = Tree([f"q{i}" for i in range(10)], [-1, 0, 1, 1, 0, 4, 4, -1, 7, 7])
"""Two trees; leaves are 2, 3, 5, 6, 8 and 9."""
LEAVES = [q for q in range(len(TREE)) if TREE.is_leaf(q)]
UNITS = (1, 1, 1000)


class World:
    """Up to seven victims of up to three pods in other leaves than the asking job's, which is number 0."""

    def __init__(self, random: Random) -> None:
        def amounts(*choices: int) -> Any:
            return tuple(random.choice(choices) * unit for unit in UNITS)

        def bounds(*choices: int) -> Any:
            return tuple(-1 if (one := random.choice((-1, *choices))) == -1 else one * unit for unit in UNITS)

        queues = range(len(TREE))
        self.before = QueueOrder.__new__(QueueOrder)
        tables = {
            "paths": [TREE.path(q) for q in queues],
            "allocated": [[random.choice((0, 1, 2, 2, 3, 4)) * unit for _ in queues] for unit in UNITS],
            "fixed": [[random.choice((0, 0, 1)) * unit for _ in queues] for unit in UNITS],
            "deserved": [bounds(0, 1, 2, 3) for _ in queues],
            "fair": [tuple(map(float, amounts(0, 1, 2, 3, 4))) for _ in queues],
            "allocatable": [bounds(0, 0, 1, 2) for _ in queues],
        }
        for name, table in tables.items():
            setattr(self.before, name, table)
        own = random.choice(LEAVES)
        victims = random.sample(range(1, 8), random.randint(1, 4))
        queue = [own, *(random.choice([q for q in LEAVES if q != own]) for _ in range(7))]
        tasks = {0: [0, 1], **{v: [3 * v + i for i in range(random.randint(1, 3))] for v in victims}}
        request = [amounts(0, 0, 1) if t < 3 else amounts(0, 1, 1, 2) for t in range(24)]
        self.overlay: Any = SimpleNamespace(
            jobs=SimpleNamespace(
                queue=queue, min_available=[random.choice((0, 1, 2, 3)) for _ in range(8)], tasks=tasks,
                preemptible=[random.random() < 0.6] * 8, gang=[None] * 8,
            ),
            state=SimpleNamespace(configuration=SimpleNamespace(tree=TREE)), parent_queue=TREE.parent,
            request=request, wants=request,
            status=[random.choice((RELEASING, RELEASING, PIPELINED)) for _ in range(24)],
        )  # fmt: skip
        listed = {v: tasks[v] for v in victims}
        self.scenario: Any = SimpleNamespace(job=0, part=[0, 1], listed=listed, taking=list(listed))


@pytest.mark.parametrize("ignore_moved", [True, False])
def test_dense_scenarios_are_judged_by_the_rules(ignore_moved: bool) -> None:
    said: Counter[str | None] = Counter()
    for seed in range(1500):
        world = World(Random(seed))
        refusal = Fairness(world.overlay, world.before, ignore_moved=ignore_moved)(world.scenario)
        expected = reclaim_refusal(world.overlay, world.before, world.scenario, ignore_moved=ignore_moved)
        assert (refusal and refusal.rule) == expected, seed
        said[expected] += 1
    assert min(said.values()) > 20
    assert len(said) == 4


def judged(**tables: Any) -> Any:
    """Job 0 asks for one step of CPU in leaf 2, and takes one from leaf 3 beside it."""
    world = World(Random(0))
    plain = {
        "allocated": [[4] * 10, [0] * 10, [0] * 10], "fixed": [[0] * 10, [0] * 10, [0] * 10],
        "deserved": [(-1, -1, -1)] * 10, "fair": [(9.0, 9.0, 9.0)] * 10, "allocatable": [(3, 3, 3)] * 10,
    }  # fmt: skip
    for name, table in (plain | tables).items():
        setattr(world.before, name, table)
    jobs = world.overlay.jobs
    jobs.queue[:2], jobs.preemptible[0] = [2, 3], tables.pop("preemptible", True)
    world.overlay.request[:] = [(1, 0, 0)] * 24
    world.overlay.status[:] = [RELEASING] * 24
    world.scenario.part, world.scenario.listed, world.scenario.taking = [0], {1: [3]}, [1]
    return Fairness(world.overlay, world.before, ignore_moved=True)(world.scenario)


def each(**of: Any) -> list[Any]:
    """A table of ten queues, those not named by number (``q3``) alike."""
    return [of.get(f"q{q}", of["rest"]) for q in range(10)]


def test_a_refusal_names_the_queue_and_what_it_was_held_against() -> None:
    assert judged() is None
    within = judged(allocatable=[(4, 4, 4)] * 10)
    assert (within.rule, within.detail, within.numbers) == (
        "within-allocatable-share", "q3 is within its share: nothing more can be reclaimed from it",
        {"queue": "q3", "reclaimer_within_quota": True},
    )  # fmt: skip
    over = judged(allocatable=[(4, 4, 4)] * 10, deserved=each(rest=(0, 0, 0)))
    assert over.numbers == {"queue": "q3", "reclaimer_within_quota": False}
    full = judged(fair=each(rest=(9.0, 9.0, 9.0), q2=(1.0, 9.0, 9.0)))
    assert (full.rule, full.detail, full.numbers) == (
        "saturation", "q2 would be over its fair share, and no less than q3", {"queue": "q2", "sibling": "q3"},
    )  # fmt: skip
    fixed = judged(preemptible=False, deserved=each(rest=(-1, -1, -1), q1=(0, 0, 0)))
    assert (fixed.rule, fixed.detail, fixed.numbers) == (
        "non-preemptible-over-quota", "q1 would pass its deserved quota with non-preemptible pods", {"queue": "q1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tables", "preemptible", "rule"),
    [
        ({}, True, None), ({}, False, None),
        ({"fair": (4.0, 0.0, 0.0)}, True, "over-fair-share"), ({"fair": (5.0, 0.0, 0.0)}, True, None),
        ({"deserved": (0, 0, 0)}, True, None), ({"deserved": (0, 0, 0)}, False, "non-preemptible-over-quota"),
        ({"deserved": (1, 0, 0)}, False, None),
    ],
)  # fmt: skip
def test_the_gate_asks_the_leaf_alone(tables: Any, preemptible: bool, rule: str | None) -> None:
    """Leaf 2 holds four steps of CPU, none by what is not preemptible, and the job wants one more."""
    world = World(Random(0))
    for name, plain in {"fair": (9.0, 9.0, 9.0), "deserved": (9, 9, 9)}.items():
        setattr(world.before, name, each(rest=(0, 0, 0), q2=tables.get(name, plain)))
    world.before.allocated, world.before.fixed = [[4] * 10, [0] * 10, [0] * 10], [[0] * 10 for _ in range(3)]
    world.overlay.jobs.queue[0], world.overlay.jobs.preemptible[0] = 2, preemptible
    world.overlay.wanted = lambda job: ([0], (1, 0, 0))  # pyright: ignore[reportUnknownLambdaType]
    refusal = may_reclaim(world.overlay, world.before, 0)
    assert (refusal and refusal.rule) == rule
    assert refusal is None or (refusal.detail.split()[0], refusal.numbers) == ("q2", {"queue": "q2"})
