"""A situation in another engine's words, whole: what each field becomes, and what is told to be lost, by hand."""

from typing import Any

import msgspec

from app.answering.variants.translation import Told, told
from app.solver.model.configuration import Configuration
from app.solver.model.request import StateOrReference
from app.solver.model.state import Ask

Json = dict[str, Any]
FLAVORED = {"name": "A.x", "parent": "all", "weight": 2, "priority": 5, "resource_groups": [
    {"resources": ["cpu"], "flavors": [
        {"name": "f0", "quota": {"cpu": {"guaranteed": 4, "borrowing_limit": 2}}},
        {"name": "f1", "quota": {"cpu": {"guaranteed": "3500m", "borrowing_limit": 1, "lending_limit": 1}}},
    ]},
]}  # fmt: skip
KUEUE: Json = {
    "engine": "kueue", "settings": {"kueue": {"fair_sharing": True}}, "flavors": [{"name": "f0"}, {"name": "f1"}],
    "queues": [
        {"name": "all"}, FLAVORED, {"name": "lone", "quota": {"cpu": {}, "gpu": {"guaranteed": 2}}},
        {"name": "open", "parent": "all", "quota": {"cpu": {"guaranteed": 1}, "gpu": {"guaranteed": "unlimited"}}},
    ],
}  # fmt: skip
LENDS = "/configuration/queues/1/resource_groups/0/flavors/1/quota/cpu"


def two_pods(**more: Any) -> list[Json]:
    return [{"name": "t", "count": 2, "requests": {"cpu": 1}, **more}]


STATE: Json = {
    "nodes": [{"name": "n", "capacity": {"cpu": 3, "gpu": 2}, "occupied": {"cpu": 1}}],
    "workloads": [{"id": "w", "queue": "A.x", "tasks": two_pods(flavors={"cpu": "f0"})}],
}
KAI: Json = {
    "engine": "kai",
    "queues": [
        {"name": "top", "quota": {"gpu": {"guaranteed": 8}}},
        {"name": "q", "parent": "top", "priority": 3, "weight": 2, "quota": {
            "gpu": {"guaranteed": 2, "limit": 5, "weight": 3}, "cpu": {"guaranteed": "unlimited", "limit": "unlimited"},
            "memory": {"limit": 4},
        }},
        {"name": "r", "parent": "top", "quota": {"gpu": {"guaranteed": 6, "limit": 5}}},
    ],
}  # fmt: skip


def translated(configuration: Json, new: str, state: Json, *asks: Json) -> Told:
    return told(
        msgspec.convert(configuration, Configuration), msgspec.convert(state, StateOrReference),
        msgspec.convert(list(asks), list[Ask]), configuration["engine"], new,
    )  # fmt: skip


def queues(of: Told) -> list[Json]:
    return [_given(queue) for queue in msgspec.to_builtins(of.configuration.queues)]


def _given(of: Json) -> Json:
    return {name: value for name, value in of.items() if value is not None}


def lost(of: Told, prefix: str = "/configuration") -> list[tuple[str, str]]:
    return [(f.rule, f.pointer) for f in of.findings if f.pointer.startswith(prefix)]


def pods(of: Told) -> list[tuple[str, Any, Any]]:
    return [(task.name, task.node, task.requests) for work in of.state.workloads for task in work.tasks]


def test_quotas_by_flavor_are_added_up_for_yunikorn() -> None:
    """A limit is the guarantee and what may be borrowed; who has no cohort has no more than its own, who has one and no
    borrowing limit no limit."""
    found = translated(KUEUE, "yunikorn", STATE, {"id": "a", "queue": "open", "tasks": two_pods()})
    assert found.configuration.engine == "yunikorn"
    assert queues(found) == [
        {"name": "root", "yunikorn": {"parent": True}}, {"name": "root.all", "parent": "root"},
        {"name": "root.all.a-x", "parent": "root.all", "priority": 5, "quota": {
            "vcore": {"guaranteed": 7.5, "limit": 10.5},
        }, "yunikorn": {"properties": {"priority.offset": "5"}}},
        {"name": "root.lone", "parent": "root", "quota": {
            "vcore": {"limit": 0}, "gpu": {"guaranteed": 2, "limit": 2},
        }},
        {"name": "root.all.open", "parent": "root.all", "quota": {"vcore": {"guaranteed": 1}, "gpu": {}}},
    ]  # fmt: skip
    assert lost(found) == [
        ("flavors", "/configuration/queues/1/resource_groups"), ("no-word", LENDS),
        ("no-word", "/configuration/queues/1/weight"), ("no-word", "/configuration/queues/3/quota/gpu"),
        ("no-word", "/configuration/flavors"), ("no-word", "/configuration/settings/kueue"),
    ]  # fmt: skip
    (node,) = found.state.nodes
    assert (node.capacity, node.occupied) == ({"vcore": 3, "gpu": 2}, {"vcore": 1})
    assert pods(found) == [("t-0", "n", {"vcore": 1}), ("t-1", "n", {"vcore": 1})]
    assert found.state.workloads[0].queue == "root.all.a-x"
    (ask,) = found.asks
    assert (ask.queue, [(t.name, t.count, t.requests) for t in ask.tasks]) == (
        "root.all.open",
        [("t", 2, {"vcore": 1})],
    )


def test_kai_keeps_weights_priorities_and_guarantees_without_bound() -> None:
    found = translated(KUEUE, "kai", STATE, {"id": "a", "queue": "open", "tasks": two_pods()})
    assert queues(found) == [
        {"name": "all"},
        {"name": "A.x", "parent": "all", "weight": 2, "priority": 5, "quota": {
            "cpu": {"guaranteed": 7.5, "limit": 10.5},
        }},
        {"name": "lone", "quota": {"cpu": {"limit": 0}, "gpu": {"guaranteed": 2, "limit": 2}}},
        {"name": "open", "parent": "all", "quota": {"cpu": {"guaranteed": 1}, "gpu": {"guaranteed": "unlimited"}}},
    ]  # fmt: skip
    assert lost(found) == [
        ("flavors", "/configuration/queues/1/resource_groups"), ("no-word", LENDS),
        ("no-word", "/configuration/flavors"), ("no-word", "/configuration/settings/kueue"),
    ]  # fmt: skip
    assert [(task.name, task.count) for task in found.asks[0].tasks] == [("t-0", 1), ("t-1", 1)]
    assert lost(found, "/asks") == [("pods", "/asks/0")]


def test_limits_become_what_may_be_borrowed_under_kueue() -> None:
    """Of a limit below the guarantee nothing is left to borrow; without a guarantee all of it is."""
    running = [
        {"id": "w", "queue": "q", "tasks": [{"name": "t", "requests": {"gpu": 1}}]},
        {"id": "v", "queue": "q", "tasks": [{"name": "t", "requests": {"gpu": 1}, "flavors": {"gpu": "x"}}]},
    ]
    found = translated(KAI, "kueue", {"workloads": running})
    assert [queue["quota"] for queue in queues(found)] == [
        {"gpu": {"guaranteed": 8}},
        {"gpu": {"guaranteed": 2, "borrowing_limit": 3}, "cpu": {"guaranteed": 2**53 // 1000},
         "memory": {"borrowing_limit": 4}},
        {"gpu": {"guaranteed": 6, "borrowing_limit": 0}},
    ]  # fmt: skip
    assert [task.flavors for work in found.state.workloads for task in work.tasks] == [{"gpu": "default"}, {"gpu": "x"}]
    assert [finding for finding in lost(found) if "quota" in finding[1]] == [
        ("no-word", "/configuration/queues/1/quota/gpu"), ("no-word", "/configuration/queues/1/quota/cpu"),
    ]  # fmt: skip
    assert ("flavors", "/state/workloads") in lost(found, "/state")


def test_running_work_of_queues_with_flavors_is_taken_to_have_the_first_of_each_resource() -> None:
    groups = [
        {"resources": ["cpu"], "flavors": [{"name": name, "quota": {"cpu": {"guaranteed": 1}}} for name in ("a", "b")]},
        {"resources": ["gpu"], "flavors": [{"name": "c", "quota": {"gpu": {"guaranteed": 1}}}]},
    ]
    flavored = {"engine": "kai", "queues": [{"name": "q", "resource_groups": groups}, {"name": "bare"}]}
    running = [
        {"id": queue, "queue": queue, "tasks": [{"name": "t", "requests": {"gpu": 1, "cpu": 1, "memory": 1}}]}
        for queue in ("q", "bare")
    ]
    found = translated(flavored, "kueue", {"workloads": running})
    assert [task.flavors for work in found.state.workloads for task in work.tasks] == [{"gpu": "c", "cpu": "a"}, None]


def test_running_work_goes_to_the_first_node_with_room() -> None:
    """Two of the three cores are left on n, one of them for ``v``: its second pod has room nowhere."""
    running = [
        {"id": "w", "queue": "lone", "tasks": [{"name": "t", "node": "n", "requests": {"cpu": 1}}]},
        {"id": "v", "queue": "lone", "tasks": two_pods()},
    ]
    found = translated(KUEUE, "yunikorn", STATE | {"workloads": running})
    assert pods(found) == [("t", "n", {"vcore": 1}), ("t-0", "n", {"vcore": 1})]
    assert [f.detail for f in found.findings if f.rule == "left-out"] == ["'v': 1 of 't' fit on no node: left out"]
    assert ("left-out", "/state/workloads/1") in lost(found, "/state")
