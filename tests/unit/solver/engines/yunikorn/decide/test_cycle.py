"""Who goes first in a cycle: priorities as the root sees them (queue.go: GetCurrentPriority), then age, then id."""

import random

import pytest

from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

ONE = {"vcore": 1}
FENCE = {"priority_policy": "fence"}


def first(above: Json, own: Json, a: int, b: int, age: float = 60) -> str:
    """Which of two gets the place: ``b``, 60 seconds old, or ``a``, ``age`` seconds old, whose queue has ``own``
    settings below one with those of ``above``."""
    queues = [queue("root"), queue("root.p", **above), queue("root.p.a", **own), queue("root.b")]
    of = World(queues, [node("n", ONE)], [])
    pending = [ask("b", "root.b", ONE, priority=b), ask("a", "root.p.a", ONE, age, priority=a)]
    answer = of.decide(*pending, mode="cycle")
    (admitted,) = (one["ask"] for one in answer["decisions"] if one["outcome"] == "admit")
    return admitted


@pytest.mark.parametrize(
    ("above", "own", "a", "b", "expected"),
    [
        ({}, {}, 1, 2, "b"),
        ({}, {}, 2, 1, "a"),
        ({}, {"priority_offset": "2"}, 1, 2, "a"),
        ({}, {"priority_offset": "-2"}, 3, 2, "b"),
        ({"priority_offset": "1"}, {"priority_offset": "1"}, 1, 2, "a"),
        ({}, FENCE, 9, 1, "b"),
        ({}, FENCE | {"priority_offset": "3"}, -9, 2, "a"),
        (FENCE | {"priority_offset": "-1"}, {"priority_offset": "9"}, 9, 0, "b"),
        (FENCE | {"priority_offset": "1"}, {"priority_offset": "-9"}, -9, 0, "a"),
    ],
)
def test_offsets_add_up_on_the_way_to_the_root_and_a_fence_hides_what_is_below(
    above: Json, own: Json, a: int, b: int, expected: str
) -> None:
    assert first(above, own, a, b) == expected


def test_of_equals_the_older_then_the_first_by_id() -> None:
    assert [first({}, {}, 0, 0, age) for age in (61, 60, 59)] == ["a", "a", "b"]


def test_what_waited_in_vain_is_tried_again_once_another_has_started() -> None:
    """Nobody may go for the first ask: root.b is within its guarantee, until the second ask runs there too."""
    of = World(
        queues=[queue("root"), queue("root.a", {"vcore": 4}), queue("root.b", {"vcore": 2})],
        nodes=[node("n1", {"vcore": 2}), node("n2", {"vcore": 1})],
        workloads=[app("b", "root.b", task("b1", "n1", {"vcore": 1}), task("b2", "n1", {"vcore": 1}))],
    )
    early, late = (ask(f"{age}", "root.a", {"vcore": 1}, age, feasible_nodes=["n1"]) for age in (90, 60))
    between = ask("c", "root.b", {"vcore": 1}, 80, feasible_nodes=["n2"])
    decisions = of.decide(early, between, late, mode="cycle")["decisions"]
    assert [decision["outcome"] for decision in decisions] == ["wait", "admit", "preempt"]


def test_whoever_asks_for_the_same_as_the_one_before_gets_whom_a_search_finds() -> None:
    """Alike or nearly so, in one cycle, on full nodes: explaining searches for each anew."""
    evicted = 0
    for seed in range(150):
        rng = random.Random(seed)
        kept, due = {"vcore": rng.choice((6, 12, 16, 18, 20))}, {"vcore": rng.choice((6, 8, 12))}
        few = {"vcore": rng.choice((2, 3, 4))}  # once these are coming, nobody below root.p has to go for more
        inner = [queue("root.p", {"vcore": 26}), queue("root.p.b", few), queue("root.p.c", few)]
        queues = [queue("root"), queue("root.a", kept), queue("root.b", due), queue("root.c", due), *inner]
        tenants, asking = rng.choice((("aab", "bc"), (("a", "p.c", "p.c"), ("p.b",))))
        running = [
            task(f"t{i}", f"n{i // 4}", {"vcore": rng.choice((1, 1, 2))}, rng.randint(1, 9) * 900)
            | {"priority": rng.randint(0, 2), "preemptible": rng.random() < 0.9}
            for i in range(24)
        ]
        rng.shuffle(running)
        apps = [app(f"w{i}", f"root.{tenants[i % 3]}", *running[i::6]) for i in range(6)]
        of = World(queues, [node(f"n{i}", {"vcore": rng.choice((4, 5, 6))}) for i in range(6)], apps)
        sizes, ranks = rng.choice(((1,), (1, 2))), rng.choice(((1,), (0, 1, 2)))
        asks = [
            ask(f"a{i}", f"root.{rng.choice(asking)}", {"vcore": rng.choice(sizes)}, priority=rng.choice(ranks))
            for i in range(8)
        ]
        plain, full = (of.decide(*asks, mode="cycle", explain=level) for level in ("none", "full"))
        assert plain["plan"] == full["plan"], (seed, plain["plan"], full["plan"])
        assert plain["notes"] == full["notes"], seed
        evicted += sum(len(one["victims"]) > 0 for one in plain["decisions"])
    assert evicted > 50, evicted
