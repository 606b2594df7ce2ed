"""Placements: each pod set goes where Kueue's own placement puts it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.solver.engines.kueue.topology import Amounts, Forest
from app.solver.engines.kueue.topology.placement import PodSet
from app.solver.engines.kueue.topology.room import place_all, shown
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.configuration import Flavor
from app.solver.model.kueue import Topology
from app.solver.model.state import Node, Task
from tests.vectors.files import lines, recorded

FILES = recorded("kueue-placement")


def placed(request: dict[str, Any]) -> dict[str, Any]:
    """The assignment of each pod set as the wire has it, up to the first that does not fit."""
    topology = msgspec.convert(request["topology"], Topology)
    labels = request["flavor"].get("node_labels") or {}
    flavor = msgspec.convert({"name": "f", **request["flavor"], "node_labels": labels}, Flavor)
    forest = Forest(flavor, topology.levels, [msgspec.convert(node, Node) for node in request["nodes"]])
    free = [dict(of) for of in forest.free]
    for used in () if request.get("simulate_empty") else (*_used(request, "usage"), *_others(request, forest)):
        leaf = forest.index.get(tuple(used["values"]))
        if leaf is not None:
            _take(free[leaf], used)
    # Pod sets of the origin's own tables may have no name; here they are told apart.
    named = [{**task, "name": task["name"] or "-"} for task in request["tasks"]]
    sets = [PodSet.of(task, task.count) for task in (msgspec.convert(task, Task) for task in named)]
    found, _ = place_all({"f": forest}, [("f", of) for of in sets], lambda _, leaf: free[leaf])
    return {"" if name == "-" else name: msgspec.to_builtins(shown(forest, of.pods)) for name, of in found.items()}


def _used(request: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return request.get(key) or []


def _others(request: dict[str, Any], forest: Forest) -> list[dict[str, Any]]:
    return _used(request, "usage_of_other_flavors") if forest.hosts else []


def _take(free: Amounts, used: dict[str, Any]) -> None:
    for resource, value in {"pods": 1, **used["requests"]}.items():
        free[resource] = free.get(resource, 0) - parse_quantity(value, scale_of(resource)) * used["count"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_every_placement_agrees(path: Path) -> None:
    wrong: list[str] = []
    for line in lines(path):
        vector = json.loads(line)
        if placed(vector["request"]) != vector["expect"]["topology_assignment"]:
            wrong.append(vector["id"])
    assert wrong == []
