"""Bringing a queue back under a limit that was lowered."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

ONE = {"vcore": 1}


def evicted(of: World, name: str) -> list[str]:
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": name}})
    assert answer["decisions"] == []
    return [eviction["task"] for eviction in answer["plan"]["evictions"]]


def world(queues: list[Json], **tasks: list[Json]) -> World:
    """Applications by leaf: ``p_a`` runs in root.p.a."""
    apps = [app(leaf, "root." + leaf.replace("_", "."), *of) for leaf, of in tasks.items()]
    return World(queues=[queue("root"), *queues], nodes=[node("n1", {"vcore": 50, "memory": 50})], workloads=apps)


def several(name: str, count: int, **more: Any) -> list[Json]:
    return [task(f"{name}{i}", "n1", ONE, 60 + 3600 * i, **more) for i in range(count)]


def test_newest_hours_first_never_more_than_the_amount() -> None:
    of = world([queue("root.a", {"vcore": (None, 3)})], a=several("t", 5))
    assert evicted(of, "root.a") == ["t0", "t1"]
    of.workloads[0]["tasks"] = [task("big", "n1", {"vcore": 4}, 1), task("small", "n1", ONE, 9000)]
    assert evicted(of, "root.a") == ["small"]


@pytest.mark.parametrize(("limit", "gone"), [(1, 2), (2, 1), (3, 0)])
def test_every_unit_above_the_limit_goes(limit: int, gone: int) -> None:
    """Memory is counted in whole units."""
    tasks = [task(f"t{i}", "n1", {"memory": 1}, 60 + 3600 * i) for i in range(3)]
    of = world([queue("root.a", {"memory": (None, limit)})], a=tasks)
    assert evicted(of, "root.a") == [f"t{i}" for i in range(gone)]
    parents = [queue("root.p", {"memory": (None, limit)}), queue("root.p.a", {"memory": 1})]
    of = world(parents, p_a=tasks)
    assert evicted(of, "root.p") == [f"t{i}" for i in range(gone)]


def test_nothing_within_the_limit_or_without_one() -> None:
    of = world([queue("root.a", {"vcore": (None, 5)}), queue("root.b")], a=several("t", 5), b=several("u", 3))
    assert evicted(of, "root.a") == []
    assert evicted(of, "root.b") == []
    of.workloads[0]["tasks"] = [*several("t", 5), task("gone", "n1", ONE, state="preempted")]
    assert evicted(of, "root.a") == []


def test_opted_out_tasks_and_originators_go_first_as_shipped_and_last_as_documented() -> None:
    tasks = [
        task("plain", "n1", ONE, 60), task("driver", "n1", ONE, 60, originator=True),
        task("out", "n1", ONE, 60, preemptible=False),
    ]  # fmt: skip
    of = world([queue("root.a", {"vcore": (None, 2)})], a=tasks)
    assert evicted(of, "root.a") == ["plain"]
    of.rules = "shipped"
    assert evicted(of, "root.a") == ["out"]
    of.queues[1] = queue("root.a", {"vcore": (None, 1)})
    assert evicted(of, "root.a") == ["out", "driver"]


def test_a_parent_spreads_by_overuse() -> None:
    queues = [queue("root.p", {"vcore": (None, 6)}), queue("root.p.a", {"vcore": 2}), queue("root.p.b")]
    of = world(queues, p_a=several("a", 4), p_b=several("b", 6))
    assert evicted(of, "root.p") == ["a0", "b0", "b1", "b2"]


def test_children_give_in_the_order_of_their_paths_wherever_they_stand_in_the_document() -> None:
    leaves = [queue(f"root.p.{name}") for name in "cadb"]
    tasks = {f"p_{name}": [task(name, "n1", ONE)] for name in "dbac"}
    of = world([*leaves[:2], queue("root.p", {"vcore": (None, 0), "memory": (None, 1)}), *leaves[2:]], **tasks)
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": "root.p"}})
    assert [(e["queue"], e["task"], e["reason"]) for e in answer["plan"]["evictions"]] == [
        (f"root.p.{name}", name, "QuotaChanged") for name in "abcd"
    ]  # fmt: skip
    assert list(answer["notes"]["enforced"]["parts"]) == [f"root.p.{name}" for name in "abcd"]
    assert answer["notes"]["enforced"]["above_limit"] == {"vcore": 4}


def test_no_more_than_the_overuse_of_a_guarantee_on_the_path() -> None:
    of = world([queue("root.p", {"vcore": 4}), queue("root.p.a", {"vcore": (None, 1)})], p_a=several("a", 6))
    assert evicted(of, "root.p.a") == ["a0", "a1"]


def test_documented_leaves_no_queue_below_its_guarantee() -> None:
    queues = [queue("root.p", {"vcore": (None, 4), "memory": 6}), queue("root.p.a")]
    of = world(queues, p_a=[task(f"a{i}", "n1", {"vcore": 1, "memory": 1}, 3600 * i + 1) for i in range(6)])
    assert evicted(of, "root.p") == []
    of.rules = "shipped"
    assert evicted(of, "root.p") == ["a0", "a1"]


def test_what_has_been_taken_counts_where_a_guarantee_keeps_the_rest() -> None:
    """Two cores are to go, and Memory is one above its guarantee."""
    tasks = [task(f"a{i}", "n1", {"vcore": 1, "memory": 1}, 3600 * i + 1) for i in range(3)]
    of = world([queue("root.a", {"vcore": (None, 1), "memory": 2})], a=tasks)
    assert evicted(of, "root.a") == ["a0"]
    of.rules = "shipped"
    assert evicted(of, "root.a") == ["a0", "a1"]


@pytest.mark.parametrize(
    ("above", "own", "gone"), [(None, None, 2), (2, None, 1), (2, 1, 2), (1, None, 2), (3, None, 2), (9, None, 2)]
)
def test_the_largest_overuse_of_a_guarantee_bounds_what_goes(above: int | None, own: int | None, gone: int) -> None:
    """Three of memory are used, two above the limit; where no guarantee is overused, nothing bounds it."""
    tasks = [task(f"t{i}", "n1", {"memory": 1}, 60 + 3600 * i) for i in range(3)]
    of = world([queue("root.p", {"memory": (above, None)}), queue("root.p.a", {"memory": (own, 1)})], p_a=tasks)
    of.rules = "shipped"
    assert evicted(of, "root.p.a") == ["t0", "t1"][:gone]


def test_parts_name_resources_in_one_order_whatever_the_tasks() -> None:
    types = [f"r{i}" for i in range(9)]
    of = world([queue("root.p", dict.fromkeys(types, (None, 1))), queue("root.p.a")],
               p_a=[task("x", "n1", {"r8": 3}), task("y", "n1", {"r0": 3})])  # fmt: skip
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": "root.p"}})
    assert list(answer["notes"]["enforced"]["parts"]["root.p.a"]) == ["r0", "r8"]


def pair(x: Json, y: Json, filler: Json | None = None) -> list[Json]:
    """Two tasks that differ in what they request, and one that fits no part."""
    others = [task("filler", "n1", filler)] if filler else []
    return [task("x", "n1", x), task("y", "n1", y), *others]


def test_shares_are_of_the_leafs_own_limit_where_it_has_one() -> None:
    """x is a smaller part of what the path allows; of its own limits the leaf has one for vcore only, so that memory
    counts as it is, and there x is larger."""
    queues = [queue("root.p", {"vcore": (None, 1), "memory": (None, 1009)}), queue("root.p.a", {"vcore": (None, 1)})]
    tasks = pair({"vcore": 1, "memory": 10}, {"vcore": 2, "memory": 9}, {"memory": 1000})
    assert evicted(world(queues, p_a=tasks), "root.p") == ["y"]


def test_shares_are_of_the_types_in_the_amount_only() -> None:
    tasks = pair({"vcore": 1, "disk": 9}, {"vcore": 2, "disk": 1})
    assert evicted(world([queue("root.a", {"vcore": (None, 1)})], a=tasks), "root.a") == ["x"]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ({"vcore": 1, "memory": 500}, {"vcore": "300m", "memory": 600}),
        ({"nvidia.com/gpu": 1, "memory": 5}, {"nvidia.com/gpu": 2, "memory": 4}),
        ({"vcore": 1, "memory": 2000, "disk": 1}, {"vcore": 1, "memory": 2000, "disk": 0}),
    ],
    ids=["vcore in thousandths", "everything else in units", "nothing counts as missing"],
)
def test_without_a_limit_of_the_leaf_raw_quantities_are_compared(x: Json, y: Json) -> None:
    """The parent takes back what x has and y has not, and as much of everything else as either needs."""
    limit = {r: (None, "300m" if r == "vcore" else 4 if r == "nvidia.com/gpu" else 1000) for r in x}
    filler = {r: {"vcore": 2, "nvidia.com/gpu": 3, "memory": 2000, "disk": 1000}[r] for r in x}
    of = world([queue("root.p", limit), queue("root.p.a")], p_a=pair(x, y, filler))
    assert evicted(of, "root.p")[0] == "y"


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_whoever_holds_little_else_than_what_is_above_the_limit_goes_first(rules: str) -> None:
    """A third, a half and all of their types are in the amount; the newer hour comes after that."""
    tasks = [
        task("half", "n1", ONE | {"memory": 1}, 60), task("whole", "n1", ONE, 9000),
        task("third", "n1", ONE | {"memory": 1, "disk": 1}, 50),
    ]  # fmt: skip
    of = world([queue("root.a", {"vcore": (None, 2)})], a=tasks)
    of.rules = rules
    assert evicted(of, "root.a") == ["whole"]
    of.queues[1] = queue("root.a", {"vcore": (None, 1)})
    assert evicted(of, "root.a") == ["whole", "half"]


def test_matching_types_are_a_whole_percentage() -> None:
    """9 of 10 and 10 of 11 types are 90 % both, so that the smaller one goes first."""
    types = [f"r{i}" for i in range(10)]
    x = dict.fromkeys(types, 2) | {"other": 1}
    y = dict.fromkeys(types[:9], 1) | {"other": 1}
    limit: Json = dict.fromkeys(types[:9], (None, 1)) | {"r9": (None, 0)}
    of = world([queue("root.a", limit)], a=pair(x, y))
    assert evicted(of, "root.a") == ["y"]


def test_a_type_that_no_child_overuses_leaves_no_room_for_who_uses_it() -> None:
    """Memory is two above the limit of p, and each child uses just the two that it is guaranteed."""
    queues = [
        queue("root.p", {"vcore": (None, 2), "memory": (None, 2)}), queue("root.p.a", {"vcore": 1, "memory": 2}),
        queue("root.p.b", {"memory": 2}),
    ]  # fmt: skip
    both = [task(f"both{i}", "n1", {"vcore": 2, "memory": 1}, 60) for i in range(2)]
    of = world(queues, p_a=both, p_b=[task("b", "n1", {"memory": 2})])
    of.rules = "shipped"
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": "root.p"}})
    assert answer["plan"]["evictions"] == []
    assert answer["notes"]["enforced"]["parts"] == {"root.p.a": {"vcore": 2, "memory": 0}}
    of.workloads[0]["tasks"].append(task("one", "n1", ONE, 7200))
    assert evicted(of, "root.p") == ["one"]


def test_a_part_of_nothing_takes_nobody() -> None:
    """Each child has half of the one that is to go, rounded down."""
    queues = [queue("root.p", {"memory": (None, 5)}), queue("root.p.a"), queue("root.p.b")]
    zero = [task("zero", "n1", {"vcore": 1, "memory": 0})]
    of = world(queues, p_a=[*zero, task("a", "n1", {"memory": 3})], p_b=[task("b", "n1", {"memory": 3})])
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": "root.p"}})
    assert answer["plan"]["evictions"] == []
    assert answer["notes"]["enforced"]["parts"] == {"root.p.a": {"memory": 0}, "root.p.b": {"memory": 0}}


def test_a_child_without_a_guarantee_has_a_part_of_what_its_tasks_name() -> None:
    """b names memory with 0, so its part says 0; a does not name it, and has no bound."""
    queues = [
        queue("root.p", {"vcore": (None, 2), "memory": (None, 1)}),
        *map(queue, ("root.p.a", "root.p.b", "root.p.c")),
    ]
    of = world(
        queues, p_a=[task("a", "n1", {"vcore": 2})], p_b=[task("b", "n1", {"vcore": 2, "memory": 0})],
        p_c=[task("c", "n1", {"memory": 4})],
    )  # fmt: skip
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": "root.p"}})
    assert answer["notes"]["enforced"]["parts"] == {
        "root.p.a": {"vcore": 1}, "root.p.b": {"vcore": 1, "memory": 0}, "root.p.c": {"memory": 3},
    }  # fmt: skip


def test_bad_requests() -> None:
    of = world([queue("root.a")], a=several("t", 1))
    with pytest.raises(InvalidInput) as refused:
        of.decide(
            ask("x", "root.a", ONE), mode="cycle", options={"yunikorn": {"enforce_quota": "root.nowhere"}}
        )  # fmt: skip
    assert [p.pointer for p in refused.value.problems] == ["/options/yunikorn/enforce_quota", "/asks"]
