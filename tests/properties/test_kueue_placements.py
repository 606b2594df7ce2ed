"""Placement against the rules written a second time, and against what any placement must keep."""

from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kueue.topology import Forest
from app.solver.engines.kueue.topology.placement import Placement, PodSet, wanted_of
from app.solver.engines.kueue.topology.room import Misfit, Place, place_all, roles
from app.solver.kubernetes import HOSTNAME
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.configuration import Flavor
from app.solver.model.state import Node, Task
from tests.properties.kueue_placements import Amounts, Path, Wish, placed
from tests.support.profiles import examples

Json = dict[str, Any]


@st.composite
def layers(draw: st.DrawFn, levels: list[str], above: int) -> list[Json]:
    """Slices in layers below or at ``above``, sizes dividing one another."""
    found: list[Json] = []
    level, size = draw(st.integers(above, len(levels) - 1)), draw(st.sampled_from([1, 2, 2, 3, 4, 6]))
    while len(found) < 3:
        found.append({"level": levels[level], "size": size})
        if level == len(levels) - 1 or draw(st.booleans()):
            break
        level = draw(st.integers(level + 1, len(levels) - 1))
        size = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    return found


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[str], list[Json], list[Json]]:
    """Levels, nodes and one or two tasks."""
    depth = draw(st.integers(1, 3))
    levels = (
        [*["block", "rack"][2 - depth + 1 :], HOSTNAME] if draw(st.booleans()) else ["zone", "block", "rack"][:depth]
    )
    nodes: list[Json] = []
    for i in range(draw(st.integers(1, 9))):
        labels = {level: f"{level[0]}{draw(st.integers(0, 2))}" for level in levels[:-1]}
        labels[levels[-1]] = f"h{i}" if levels[-1] == HOSTNAME else f"r{draw(st.integers(0, 2))}"
        capacity = {"cpu": draw(st.integers(0, 9)), "gpu": draw(st.integers(0, 4)), "pods": draw(st.integers(1, 12))}
        nodes.append({"name": f"n{i}", "labels": labels, "capacity": capacity})
    request: Json = {}
    how = draw(st.sampled_from(["required", "preferred", "unconstrained", "slices", "nothing"]))
    at = draw(st.integers(0, len(levels) - 1))
    if how in ("required", "preferred"):
        request[how] = levels[at]
    elif how == "unconstrained":
        request["unconstrained"] = True
    if how == "slices" or (how in ("required", "preferred") and draw(st.booleans())):
        request["slice_layers"] = draw(layers(levels, 0 if how == "slices" else at))
    tasks = [{"name": "workers", "count": draw(st.integers(2, 14)), "requests": {"cpu": draw(st.integers(1, 3))},
              "topology_request": request}]  # fmt: skip
    if draw(st.booleans()):
        requests = {"cpu": draw(st.integers(1, 5)), "gpu": draw(st.integers(0, 2))}
        tasks.append({"name": "leader", "count": 1, "requests": requests, "topology_request": {**request}})
        for task in tasks:
            task["topology_request"] = {**task["topology_request"], "pod_set_group": "g"}
    return levels, nodes, tasks


def solved(levels: list[str], nodes: list[Json], tasks: list[Json]) -> tuple[Forest, dict[str, Place], Misfit | None]:
    forest = Forest(Flavor(name="f"), levels, [msgspec.convert(node, Node) for node in nodes])
    pod_sets = [PodSet.of(one, one.count) for one in (msgspec.convert(task, Task) for task in tasks)]
    return forest, *place_all({"f": forest}, [("f", of) for of in pod_sets], lambda _, leaf: forest.free[leaf])


def wish(levels: list[str], tasks: list[Json]) -> Wish:
    """What the tasks ask, as the second writing has it."""
    request = tasks[0]["topology_request"]
    given = request.get("slice_layers", [])
    named = request.get("required") or request.get("preferred")
    found = Wish(
        steps(tasks[0]["requests"]), tasks[0]["count"],
        level=levels.index(named) if named else 0 if given else len(levels) - 1,
        required="required" in request, least_free=not named, leader=steps(tasks[1]["requests"]) if tasks[1:] else None,
    )  # fmt: skip
    if given:
        found.size, found.slice_level = given[0]["size"], levels.index(given[0]["level"])
        for before, layer in pairwise(given):
            below = range(levels.index(before["level"]) + 1, levels.index(layer["level"]) + 1)
            found.inner |= dict.fromkeys(below, layer["size"])
    return found


def steps(requests: dict[str, int]) -> Amounts:
    return {name: parse_quantity(amount, scale_of(name)) for name, amount in requests.items() if amount} | {"pods": 1}


def free(levels: list[str], nodes: list[Json]) -> dict[Path, Amounts]:
    found: dict[Path, Amounts] = {}
    for node in nodes:
        leaf = found.setdefault(tuple(node["labels"][level] for level in levels), {})
        for name, amount in node["capacity"].items():
            leaf[name] = leaf.get(name, 0) + parse_quantity(amount, scale_of(name))
    return found


@given(situations())
@examples(1500)
def test_pods_go_where_the_rules_written_a_second_time_put_them(of: tuple[list[str], list[Json], list[Json]]) -> None:
    levels, nodes, tasks = of
    forest, found, misfit = solved(levels, nodes, tasks)
    expected = placed(len(levels), free(levels, nodes), wish(levels, tasks))
    if expected is None:
        assert misfit is not None
        return
    assert misfit is None
    for task, where in zip(tasks, expected, strict=False):
        assert {forest.leaves[leaf].values: n for leaf, n in found[task["name"]].pods.items()} == where


@given(situations())
@examples(300)
def test_every_placement_keeps_what_was_asked(of: tuple[list[str], list[Json], list[Json]]) -> None:
    """All pods, within what is free, whole slices each within one domain, and one domain of the level required."""
    levels, nodes, tasks = of
    forest, found, misfit = solved(levels, nodes, tasks)
    if misfit is not None:
        return
    room = free(levels, nodes)
    asked = wish(levels, tasks)
    used: Counter[tuple[Path, str]] = Counter()
    for task in tasks:
        for leaf, number in found[task["name"]].pods.items():
            for name, amount in steps(task["requests"]).items():
                used[forest.leaves[leaf].values, name] += amount * number
    assert all(amount <= room[leaf].get(name, 0) for (leaf, name), amount in used.items())
    pods = Counter({forest.leaves[leaf].values: n for leaf, n in found["workers"].pods.items()})
    assert pods.total() == asked.count // asked.size * asked.size
    assert not tasks[1:] or sum(found["leader"].pods.values()) == 1
    for level, size in {asked.slice_level: asked.size, **asked.inner}.items():
        within: Counter[Path] = Counter()
        for leaf, number in pods.items():
            within[leaf[: level + 1] if level >= 0 else leaf] += number
        assert all(number % size == 0 for number in within.values())
    if asked.required:
        assert len({leaf[: asked.level + 1] for leaf in pods}) <= 1


@given(situations(), st.lists(st.tuples(st.integers(0, 8), st.integers(-9, 9)), max_size=6))
@examples(300)
def test_counts_kept_up_to_date_leaf_by_leaf_are_those_counted_anew(
    of: tuple[list[str], list[Json], list[Json]], moves: list[tuple[int, int]]
) -> None:
    levels, nodes, tasks = of
    forest = Forest(Flavor(name="f"), levels, [msgspec.convert(node, Node) for node in nodes])
    sets = [PodSet.of(one, one.count) for one in (msgspec.convert(task, Task) for task in tasks)]
    workers, leader = roles(sets)
    wanted = wanted_of(forest, workers, leader)
    assert not isinstance(wanted, str)
    left = [dict(amounts) for amounts in forest.free]
    kept = Placement(forest, left.__getitem__, workers, leader, wanted)
    for leaf, amount in [(0, 0), *moves]:
        left[leaf % len(left)]["cpu"] += 1000 * amount
        kept.changed(leaf % len(left))
        anew = Placement(forest, left.__getitem__, workers, leader, wanted)
        assert kept.why_not() == anew.why_not()
        assert (kept.why_not() is None) is not isinstance(anew.places(), str)
