"""Fields set by path: where each kind of path leads, and what is said of one that leads nowhere; the room on nodes."""

import copy
from typing import Any

import msgspec
import pytest

from app.answering.overrides import with_fields
from app.answering.translation import Room, one_node
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Node, Task, Workload

Json = dict[str, Any]


def flavor(name: str, *resources: str) -> Json:
    return {"name": name, "quota": {resource: {"guaranteed": 1} for resource in resources}}


DOCUMENT: Json = {
    "engine": "kueue",
    "queues": [
        {"name": "root"},
        {"name": "root.a", "parent": "root", "quota": {"cpu": {"guaranteed": 4}, "nvidia.com/gpu": {"guaranteed": 1}}},
        {"name": "two", "quota": {"amd.com/gpu": {}, "nvidia.com/gpu": {}}},
        {"name": "flavored", "resource_groups": [
            {"resources": ["cpu"], "flavors": [flavor("f0", "cpu"), flavor("f1", "cpu")]},
            {"resources": ["nvidia.com/gpu"], "flavors": [flavor("f2", "nvidia.com/gpu")]},
        ]},
    ],
}  # fmt: skip


def changed(path: str, value: Any) -> Json:
    """What of the document is not as it was."""
    before = msgspec.to_builtins(msgspec.convert(DOCUMENT, Configuration))
    after = msgspec.to_builtins(with_fields(msgspec.convert(DOCUMENT, Configuration), {path: value}))
    return dict(_differing(before, after, ""))


def _differing(one: Any, other: Any, at: str) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from _differing(one.get(key), other.get(key), f"{at}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differing(left, right, f"{at}/{i}")
    elif one != other:
        yield at, other


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("engine", "kai", {"/engine": "kai"}),
        ("queues.root.weight", 3, {"/queues/0/weight": 3}),
        # The longest name that there is: root.a, not a field of root.
        ("queues.root.a.weight", 3, {"/queues/1/weight": 3}),
        ('queues."root.a".weight', 3, {"/queues/1/weight": 3}),
        ("queues.root.a.quota.gpu.limit", 5, {"/queues/1/quota/nvidia.com/gpu/limit": 5}),
        ("queues.root.a.quota.nvidia.com/gpu.limit", 5, {"/queues/1/quota/nvidia.com/gpu/limit": 5}),
        # Two kinds of GPU: neither is meant, so it is a resource of that name.
        ("queues.two.quota.gpu.guaranteed", 5, {"/queues/2/quota/gpu": {"guaranteed": 5}}),
        ("queues.root.a.quota.example.com/x.limit", 5, {"/queues/1/quota/example.com/x": {"limit": 5}}),
        ("queues.root.quota.cpu.limit", 5, {"/queues/0/quota": {"cpu": {"limit": 5}}}),
        ("queues.flavored.quota.gpu.guaranteed", 7,
         {"/queues/3/resource_groups/1/flavors/0/quota/nvidia.com/gpu/guaranteed": 7}),
        ("queues.flavored.quota.nvidia.com/gpu.guaranteed", 7,
         {"/queues/3/resource_groups/1/flavors/0/quota/nvidia.com/gpu/guaranteed": 7}),
        ("settings.kueue.fair_sharing", True, {"/settings": {"kueue": {"fair_sharing": True}}}),
        ("queues.root.yunikorn.properties.a.b.c", "x", {"/queues/0/yunikorn": {"properties": {"a.b.c": "x"}}}),
        ("queues.root.kueue.preemption.within_cluster_queue", "LowerPriority",
         {"/queues/0/kueue": {"preemption": {"within_cluster_queue": "LowerPriority"}}}),
    ],
)  # fmt: skip
def test_where_a_path_leads(path: str, value: Any, expected: Json) -> None:
    assert changed(path, value) == expected


KNOWN = "'root', 'root.a', 'two', 'flavored'"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("queues.nobody.weight", f"queues has no 'nobody': there are {KNOWN}"),
        ("queues.flavoured.weight", f"queues has no 'flavoured': there are {KNOWN}; did you mean 'flavored'?"),
        ("queues.root", f"queues has no field 'root': name one of {KNOWN} and its field"),
        ("queues.flavored.quota.cpu.guaranteed", "queues.flavored has quotas by flavor, and 2 flavors have 'cpu':"
         " 'f0', 'f1'"),
        ("queues.flavored.quota.memory.guaranteed", "queues.flavored has quotas by flavor, and no flavor has 'memory':"
         " 'f0', 'f1', 'f2'"),
        ("queues.root.quota.cpu", "queues.root.quota.cpu is a quota: say guaranteed, limit, borrowing_limit,"
         " lending_limit, weight of it"),
        ("flavors.spot.name", "the configuration has no 'flavors': there are 'engine', 'queues'"),
        ('queues."root.a"x.weight', "'queues.\"root.a\"x.weight' is no path: names with dots between them are"
         " expected"),
        ("queues.root.", "'queues.root.' is no path: names with dots between them are expected"),
        (".".join("x" * 34), "'" + ".".join("x" * 34) + "' is no path: names with dots between them are expected"),
        ("engine.x.y", "engine is a value: there is nothing below it"),
        ("y" * 200 + ".", "'" + "y" * 100 + "' is no path: names with dots between them are expected"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_path_that_leads_nowhere(path: str, detail: str) -> None:
    document = msgspec.convert(DOCUMENT, Configuration)
    before = copy.deepcopy(document)
    with pytest.raises(InvalidInput) as refused:
        with_fields(document, {"queues.root.weight": 9, path: 1})
    (problem,) = refused.value.problems
    assert problem.detail == detail
    assert problem.pointer == "/set/" + path.replace("/", "~1")
    assert document == before


def test_all_that_are_wrong_are_named_and_of_many_names_ten() -> None:
    queues = [{"name": f"q{i}"} for i in range(12)]
    with pytest.raises(InvalidInput) as refused:
        with_fields(msgspec.convert({"queues": queues}, Configuration), {"queues.zzz.weight": 1, "": 1})
    listed = ", ".join(f"'q{i}'" for i in range(10))
    assert [problem.detail for problem in refused.value.problems] == [
        f"queues has no 'zzz': there are {listed} and 2 more",
        "'' is no path: names with dots between them are expected",
    ]
    longest = ".".join("x" * 33)
    with pytest.raises(InvalidInput) as refused:
        with_fields(Configuration(), {longest: 1})
    assert refused.value.problems[0].detail.startswith("the configuration has no 'x'"), "33 names are a path"


def test_one_node_has_what_all_queues_are_guaranteed() -> None:
    queues = [
        {"name": "a", "quota": {"cpu": {"guaranteed": "1500m"}, "gpu": {"guaranteed": "unlimited"}}},
        {"name": "b", "quota": {"cpu": {"guaranteed": 2}, "memory": {"limit": 5}, "x": {"guaranteed": "much"}}},
    ]
    node = one_node(msgspec.convert({"queues": queues}, Configuration))
    assert (node.name, node.capacity) == (
        "all-quota", {"pods": 100_000, "user_slots": 100_000, "cpu": 3.5, "gpu": 0, "memory": 0},
    )  # fmt: skip


def test_room_is_what_is_left_of_nodes() -> None:
    def task(cpu: Any, node: str | None = None, count: int = 1, **more: Any) -> Task:
        return Task(name="t", requests={"cpu": cpu, **more}, node=node, count=count)

    nodes = [
        Node(name="n0", capacity={"cpu": 8, "gpu": 1}, occupied={"cpu": 1}), Node(name="n1", capacity={"cpu": 2}),
    ]  # fmt: skip
    there = Workload(id="w", queue="q", tasks=[task(1, "n0", 3), task(9, "elsewhere"), task(9)])
    room = Room(nodes, [there])
    # 8 less 1 occupied less 3 of 1: four cores on n0.
    found = [room.placed(one) for one in (task(3), task(2), task(1), task(1, gpu=1), task(1, tpu=0), task("half"))]
    assert [None if one is None else one.node for one in found] == ["n0", "n1", "n0", None, None, "n0"]
    assert room.placed(task(0, gpu=1)) == task(0, "n0", gpu=1)
    assert room.placed(task(0, gpu=1)) is None
    assert room.placed(task(0, tpu=0)) == task(0, "n0", tpu=0)
    assert room.placed(task(0, tpu=1)) is None, "of what a node has not got there is nothing"
