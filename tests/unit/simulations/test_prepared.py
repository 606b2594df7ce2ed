"""What an administrator does during a run, before it starts: in which order, onto what, and what is wrong with it."""

from typing import Any

import pytest

from app.answering.sources import Compiled
from app.simulations.core.scenario import Scenario, every_node, scenario_of
from app.simulations.core.sink import FIRST
from app.solver.model.problems import InvalidInput
from tests.support.kueue_run import two_queues
from tests.support.placed_runs import NODES, configuration
from tests.unit.simulations.running import request_for

S = 10**6


def of(*changes: dict[str, Any], own: Any = None, **more: Any) -> Scenario:
    return scenario_of(request_for(own or two_queues(), [], changes, **more), Compiled(None))


def refused(*changes: dict[str, Any], **more: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as found:
        of(*changes, **more)
    return {problem.pointer: problem.detail for problem in found.value.problems}


def test_changes_are_in_order_of_time_else_of_the_list_and_none_is_before_the_start() -> None:
    found = of({"at": 9, "nodes": {}}, {"at": 4, "nodes": {}}, {"at": -5, "nodes": {"remove": ["n0"]}},
               {"at": 4, "queues": {"b": {"weight": 2}, "a": {"weight": 3}}},
               own=configuration("kai"), state=NODES).changes  # fmt: skip
    assert [(change.instant - FIRST) // S for change in found] == [0, 4, 4, 9]
    assert [change.nodes.remove if change.nodes else None for change in found] == [["n0"], [], None, []]
    assert [change.queues for change in found] == [[], [], ["a", "b"], []]
    assert [change.configured is not None for change in found] == [False, False, True, False]


def test_each_change_is_made_to_what_the_one_before_left() -> None:
    other = two_queues()
    other["queues"][0]["weight"] = 9
    found = of(
        {"at": 1, "queues": {"a": {"weight": 2}}}, {"at": 2, "queues": {"b": {"weight": 3}}},
        {"at": 3, "configuration": other}, {"at": 4, "configuration": other, "queues": {"a": {"parent": "b"}}},
    ).changes  # fmt: skip
    queues = [change.configured.configuration.queues for change in found if change.configured is not None]
    assert [[queue.weight for queue in some] for some in queues] == [[1, 2, 1], [1, 2, 3], [9, 1, 1], [9, 1, 1]]
    assert [some[1].parent for some in queues] == ["all", "all", "all", "b"]
    assert [some[1].quota is not None for some in queues] == [True] * 4


def test_a_quota_takes_the_place_of_resource_groups_and_they_of_it() -> None:
    groups = [{"resources": ["cpu"], "flavors": [{"name": "spot", "quota": {"cpu": {"guaranteed": 9}}}]}]
    found = of(
        {"at": 1, "queues": {"a": {"resource_groups": groups}}},
        {"at": 2, "queues": {"a": {"quota": {"cpu": {"guaranteed": 5}}}}},
        {"at": 3, "queues": {"a": {"weight": 2}}},
    ).changes  # fmt: skip
    queues = [change.configured.configuration.queues[1] for change in found if change.configured is not None]
    assert [(queue.quota is None, queue.resource_groups is None) for queue in queues] == [
        (True, False), (False, True), (False, True),
    ]  # fmt: skip


NEW = {"name": "new", "capacity": {"cpu": 1}}


def test_names_of_nodes_and_queues_are_those_of_the_time() -> None:
    own: dict[str, Any] = {"own": configuration("kai"), "state": NODES}
    steps: list[Any] = [{"add": [NEW]}, {"change": [NEW]}, {"remove": ["new"]}, {"add": [NEW]}]
    steps.append({"remove": ["new"], "add": [NEW]})
    of(*({"at": i, "nodes": step} for i, step in enumerate(steps)), **own)
    at = "/trace/changes"
    assert refused({"at": 2, "nodes": {"remove": ["n0", "x"]}}, {"at": 3, "nodes": {"remove": ["n0"]}},
                   {"at": 1, "nodes": {"change": [NODES["nodes"][0], NEW]}}, **own) == {
        f"{at}/0/nodes/remove/1": "no node 'x' at that time", f"{at}/1/nodes/remove/0": "no node 'n0' at that time",
        f"{at}/2/nodes/change/1": "no node 'new' at that time",
    }  # fmt: skip
    twice = {"at": 2, "nodes": {"add": [NEW, NEW]}}, {"at": 3, "nodes": {"add": [NODES["nodes"][0]]}}
    assert refused(*twice, **own) == {
        f"{at}/0/nodes/add/1": "a second node 'new'", f"{at}/1/nodes/add/0": "a second node 'n0'",
    }  # fmt: skip
    found = refused({"at": 1, "queues": {"y": {}, "x": {}, "a": {}}}, {"at": "z"})
    assert list(found.items()) == [
        (f"{at}/1/at", "'z' is not a duration"), (f"{at}/0/queues/x", "no queue 'x'"),
        (f"{at}/0/queues/y", "no queue 'y'"),
    ]  # fmt: skip


def test_of_a_node_that_changes_the_last_is_known_and_what_comes_later_too() -> None:
    wide = {"name": "n0", "capacity": {"cpu": 64}}
    changes = of({"at": 2, "nodes": {"change": [wide]}}, {"at": 1, "nodes": {"add": [NEW], "remove": ["n1"]}},
                 {"at": 3, "queues": {"a": {"weight": 2}}}, own=configuration("kai"), state=NODES)  # fmt: skip
    found = every_node(changes.request.state.nodes, changes.changes)
    assert {node.name: node.capacity["cpu"] for node in found} == {"n0": 64, "n1": 4, "new": 1}
