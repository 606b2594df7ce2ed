"""A situation in another engine's words, whole: what each field becomes, and what is told to be lost, by hand."""

from typing import Any

import msgspec
import pytest

from app.answering.translation import Translation, translate
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


def translated(configuration: Json, new: str, state: Json, *asks: Json) -> Translation:
    return translate(
        msgspec.convert(configuration, Configuration), msgspec.convert(state, StateOrReference),
        msgspec.convert(list(asks), list[Ask]), configuration["engine"], new,
    )  # fmt: skip


def queues(of: Translation) -> list[Json]:
    return [_given(queue) for queue in msgspec.to_builtins(of.configuration.queues)]


def _given(of: Json) -> Json:
    return {name: value for name, value in of.items() if value is not None}


def lost(of: Translation, prefix: str = "/configuration") -> list[tuple[str, str]]:
    return [(f.rule, f.pointer) for f in of.findings if f.pointer.startswith(prefix)]


def pods(of: Translation) -> list[tuple[str, Any, Any]]:
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


@pytest.mark.parametrize("new", ["kai", "yunikorn"])
def test_pods_that_a_topology_placed_stay_there_and_what_it_asks_is_told_to_be_lost(new: str) -> None:
    host = "kubernetes.io/hostname"
    nodes = [{"name": name, "labels": {host: f"host-{name}"}, "capacity": {"cpu": 2}} for name in "mno"]
    assigned = {"levels": [host], "domains": [{"values": [f"host-{name}"], "count": 1} for name in "on"]}
    where = {"topology_request": {"required": host}, "topology_assignment": assigned}
    state = {"nodes": nodes, "workloads": [{"id": "w", "queue": "lone", "tasks": two_pods(**where)}]}
    topologies = {"topologies": [{"name": "t", "levels": [host]}]}
    found = translated(KUEUE | topologies, new, state)
    assert [(name, node) for name, node, _ in pods(found)] == [("t-0", "o"), ("t-1", "n")]
    told_lost = {(f.severity, f.detail) for f in found.findings}
    assert ("warning", f"{new} does not read topology request of tasks") in told_lost
    assert ("warning", f"{new} does not read topologies of a configuration") in told_lost
    assert ("no-nodes", "/state/workloads") in lost(found, "/state")
    # A domain of several nodes: the first with room; where there is none, the pod is left out and told.
    rack = {"levels": ["rack"], "domains": [{"values": ["r"], "count": 2}]}
    labelled = [{**node, "labels": {"rack": "r" if node["name"] == "n" else "s"}} for node in nodes]
    big = {"id": "w", "queue": "lone", "tasks": two_pods(topology_assignment=rack, requests={"cpu": 2})}
    found = translated(KUEUE, new, {"nodes": labelled, "workloads": [big]})
    assert [node for _, node, _ in pods(found)] == ["n"]
    assert ("left-out", "/state/workloads/0") in lost(found, "/state")


YUNIKORN: Json = {
    "engine": "yunikorn",
    "queues": [
        {"name": "root", "yunikorn": {"parent": True}},
        {"name": "root.a", "parent": "root", "quota": {"vcore": {"guaranteed": 2, "limit": 4}, "gpu": {"limit": 1}}},
    ],
}  # fmt: skip


def test_vcore_is_cpu_to_everybody_else_in_quotas_requests_usage_and_nodes() -> None:
    task = {"name": "t", "requests": {"vcore": 1}, "usage": {"vcore": 2}, "node": "n"}
    node = {"name": "n", "capacity": {"vcore": 8}, "occupied": {"vcore": 1}}
    found = translated(
        YUNIKORN, "kai", {"nodes": [node], "workloads": [{"id": "w", "queue": "root.a", "tasks": [task]}]},
        {"id": "a", "queue": "root.a", "tasks": [{"name": "t", "requests": {"vcore": 1, "gpu": 1}}]},
    )  # fmt: skip
    assert [(queue["name"], queue.get("quota")) for queue in queues(found)] == [
        ("root", None), ("root.a", {"cpu": {"guaranteed": 2, "limit": 4}, "gpu": {"limit": 1}}),
    ]  # fmt: skip
    assert [(f.rule, f.severity, f.pointer, f.detail) for f in found.findings] == [
        ("no-word", "warning", "/configuration/queues/0/yunikorn", "kai does not read yunikorn of queues")
    ]
    ((work,), (kept,)) = found.state.workloads, found.state.nodes
    assert (kept.capacity, kept.occupied) == ({"cpu": 8}, {"cpu": 1})
    assert (work.tasks[0].requests, work.tasks[0].usage) == ({"cpu": 1}, {"cpu": 2})
    assert found.asks[0].tasks[0].requests == {"cpu": 1, "gpu": 1}
    assert found.asks[0].queue == "root.a"


def test_a_root_that_is_there_stays_the_root_of_yunikorn() -> None:
    rooted = {"engine": "kai", "queues": [
        {"name": "root", "quota": {"cpu": {"guaranteed": 8}}},
        {"name": "root.a", "parent": "root", "priority": 4, "yunikorn": {"properties": {"x": "y"}}},
        {"name": "root.b", "parent": "root", "weight": 1},
    ]}  # fmt: skip
    found = translated(rooted, "yunikorn", {})
    assert queues(found) == [
        {"name": "root", "quota": {"vcore": {}}},
        {"name": "root.a", "parent": "root", "priority": 4, "yunikorn": {"properties": {"x": "y"}}},
        {"name": "root.b", "parent": "root", "weight": 1},
    ]  # fmt: skip
    assert lost(found) == []


def test_queues_that_are_above_one_another_have_names_all_the_same() -> None:
    circle = {"engine": "kai", "queues": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}
    assert [queue["name"] for queue in queues(translated(circle, "yunikorn", {}))] == [
        "root", "root.a.b.a", "root.b.a.b",
    ]  # fmt: skip


def test_a_snapshot_is_decided_on_as_it_is() -> None:
    found = translated(KAI, "yunikorn", {"snapshot": "s"}, {"id": "a", "queue": "q", "tasks": two_pods()})
    assert (found.state.snapshot, found.state.nodes, found.asks[0].queue) == ("s", [], "root.top.q")
    assert [(f.pointer, f.severity) for f in found.findings if f.rule == "kept-as-is"] == [
        ("/state/snapshot", "warning")
    ]
    assert lost(found, "/state/") == [("kept-as-is", "/state/snapshot")]


def test_without_nodes_there_is_one_with_all_quotas_and_what_stands_stays() -> None:
    stands = [{"id": "w", "queue": "lone", "tasks": two_pods(node="m")}]
    found = translated(KUEUE, "kai", {"workloads": stands})
    (node,) = found.state.nodes
    assert (node.capacity["cpu"], node.capacity["gpu"]) == (8.5, 2)
    assert lost(found, "/state/") == [("no-nodes", "/state/nodes"), ("pods", "/state/workloads/0")]
    assert [(f.severity, f.pointer) for f in found.findings if f.rule == "pods"] == [("info", "/state/workloads/0")]
    assert [name for name, _, _ in pods(found)] == ["t-0", "t-1"]
    assert translated(KUEUE, "kueue", {"workloads": stands}).state.nodes == [], "nobody places there"


@pytest.mark.parametrize(("count", "pods_of_it"), [(20_000, 20_000), (20_001, 1)])
def test_a_task_of_very_many_pods_stays_one(count: int, pods_of_it: int) -> None:
    many = {"id": "a", "queue": "lone", "tasks": [{"name": "t", "count": count, "requests": {}}]}
    found = translated(KUEUE, "kai", STATE | {"workloads": [many]}, many)
    assert len(found.asks[0].tasks) == len(found.state.workloads[0].tasks) == pods_of_it
    assert sum(task.count for task in found.asks[0].tasks) == count


def test_what_the_other_has_no_word_for_is_told_once_a_kind_where_it_is_first() -> None:
    weighted = {"engine": "kai", "queues": [
        {"name": "a", "priority": 0, "quota": {"cpu": {"limit": 1}}},
        {"name": "b", "priority": 2, "weight": 3, "quota": {"cpu": {"guaranteed": 1}, "gpu": {"weight": 2}}},
        {"name": "c", "priority": 2, "weight": 3, "quota": {"gpu": {"weight": 2}, "cpu": {"guaranteed": "unlimited"}}},
    ]}  # fmt: skip
    task = {"name": "t", "requests": {}, "node": "n"}
    running = [
        {"id": "v", "queue": "a", "tasks": [task]},
        {
            "id": "w",
            "queue": "a",
            "min_available": 1,
            "tasks": [task, task | {"name": "u", "started_at": "2026-01-01T00:00:00Z"}],
        },
    ]
    state = {"nodes": [{"name": "n", "capacity": {}}], "workloads": running}
    for new, expected in (
        ("kueue", [("no-word", "/configuration/queues/1/priority"), ("no-word", "/configuration/queues/1/quota/gpu"),
                   ("no-word", "/configuration/queues/2/quota/cpu"), ("no-word", "/state/nodes"),
                   ("no-word", "/state/nodes/0/capacity"),
                   ("no-word", "/state/workloads/0/tasks/0/node"), ("no-word", "/state/workloads/1/min_available"),
                   ("no-word", "/state/workloads/1/tasks/1/started_at"), ("flavors", "/state/workloads")]),
        ("yunikorn", [("no-word", "/configuration/queues/1/quota/gpu"), ("no-word", "/configuration/queues/1/weight"),
                      ("no-word", "/configuration/queues/2/quota/cpu"),
                      ("no-word", "/state/workloads/1/min_available"),
                      ("no-word", "/state/workloads/1/tasks/1/started_at")]),
        ("ytsaurus", [("no-word", "/configuration/queues/1/quota/gpu"), ("no-word", "/configuration/queues/1/priority"),
                      ("no-word", "/configuration/queues/2/quota/cpu"),
                      ("no-word", "/state/workloads/1/min_available")]),
    ):  # fmt: skip
        found = translated(weighted, new, state)
        assert sorted(lost(found, "")) == sorted(expected), new
    (first, second, third) = translated(weighted, "ytsaurus", state).configuration.queues
    assert (first.weight, second.weight) == (1, 3)
    assert second.quota is not None
    assert third.quota is not None
    assert (second.quota["gpu"].weight, third.quota["cpu"].guaranteed) == (None, None)


@pytest.mark.parametrize(
    ("quotas", "summed"),
    [
        ([{"guaranteed": 1}, {}], {"guaranteed": 1}), ([{}, {}], {}),
        ([{"guaranteed": 1}, {"guaranteed": "unlimited"}], {"guaranteed": "unlimited"}),
        ([{"guaranteed": "much"}, {"guaranteed": 2}], {"guaranteed": "much"}),
        ([{"limit": 1}, {"limit": 2}], {"limit": 3}), ([{"limit": 1}, {}], {}),
        ([{"weight": 5}, {"weight": 6}], {"weight": 5}), ([{}, {"weight": 6}], {"weight": 6}),
    ],
)  # fmt: skip
def test_what_flavors_have_together(quotas: list[Json], summed: Json) -> None:
    flavors = [{"name": f"f{i}", "quota": {"cpu": quota}} for i, quota in enumerate(quotas)]
    given = {"engine": "ytsaurus", "queues": [{"name": "q", "resource_groups": [
        {"resources": ["cpu"], "flavors": flavors}
    ]}]}  # fmt: skip
    assert queues(translated(given, "kai", {}))[0]["quota"] == {"cpu": summed}


@pytest.mark.parametrize(
    ("quota", "nominal"),
    [
        ({"guaranteed": 1, "limit": "much"}, {"guaranteed": 1, "limit": "much"}),
        ({"guaranteed": 1, "limit": "unlimited"}, {"guaranteed": 1}),
        ({"guaranteed": "1500m", "limit": 2}, {"guaranteed": "1500m", "borrowing_limit": 0.5}),
    ],
)
def test_what_no_limit_is_left_of_is_not_borrowed(quota: Json, nominal: Json) -> None:
    given = {"engine": "kai", "queues": [{"name": "q", "quota": {"cpu": quota}}]}
    assert queues(translated(given, "kueue", {}))[0]["quota"] == {"cpu": nominal}


def test_only_who_has_no_cohort_at_all_can_not_borrow() -> None:
    quota = {"cpu": {"guaranteed": 1, "borrowing_limit": 2, "limit": 9}}
    given = {"engine": "kueue", "queues": [
        {"name": "top", "quota": quota}, {"name": "below", "parent": "top", "quota": quota},
        {"name": "lone", "quota": quota},
    ]}  # fmt: skip
    limits = [queue["quota"]["cpu"]["limit"] for queue in queues(translated(given, "kai", {}))]
    assert limits == [9, 3, 1]


NAMESPACES: Json = {"engine": "kube-scheduler", "queues": [{"name": "web"}, {"name": "all-nodes"}]}
PODS: Json = {
    "nodes": [
        {"name": "n", "capacity": {"cpu": 4, "pods": 10}, "occupied": {"cpu": "500m"}},
        {"name": "m", "capacity": {"cpu": 2, "gpu": 1}, "occupied": {"gpu": 2}},
    ],
    "workloads": [
        {"id": "w", "queue": "web", "priority": 3, "tasks": [{"name": "t", "node": "n", "requests": {"cpu": 1}}]},
    ],
    "disruption_budgets": [{"name": "b", "queue": "web"}],
}  # fmt: skip


def test_namespaces_borrow_what_all_nodes_have_under_kueue() -> None:
    """Nothing is theirs, so that whoever has less priority anywhere may have to go."""
    found = translated(NAMESPACES, "kueue", PODS, {"id": "a", "queue": "web", "tasks": two_pods()})
    none = {name: {"guaranteed": 0} for name in ("cpu", "pods", "gpu")}
    by_priority = {
        "within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "LowerPriority",
        "borrow_within_cohort": {"policy": "LowerPriority"},
    }  # fmt: skip
    assert queues(found) == [
        {"name": "all-nodes-",
         "quota": {name: {"guaranteed": of} for name, of in (("cpu", 5.5), ("pods", 10), ("gpu", 0))}},
        *({"name": name, "parent": "all-nodes-", "quota": none, "kueue": {"preemption": by_priority}}
          for name in ("web", "all-nodes")),
    ]  # fmt: skip
    assert lost(found) == [("no-quotas", "/configuration/queues")]
    assert ("no-word", "/state/disruption_budgets") in lost(found, "/state")
    assert lost(found, "/asks") == [("pod-by-pod", "/asks/0")]
    assert [(one.id, one.priority) for one in found.state.workloads] == [("w", 3)]


@pytest.mark.parametrize("new", ["kai", "yunikorn"])
def test_namespaces_are_guaranteed_nothing_elsewhere(new: str) -> None:
    found = translated(NAMESPACES, new, PODS)
    assert [queue["quota"] for queue in queues(found) if "quota" in queue] == []
    assert lost(found) == [("no-quotas", "/configuration/queues")]


def test_the_nodes_of_a_snapshot_are_nobodys_quota() -> None:
    found = translated(NAMESPACES, "kueue", {"snapshot": "s"})
    assert queues(found) == [{"name": "web"}, {"name": "all-nodes"}]
    assert lost(found) == [("no-quotas", "/configuration/queues")]


def test_quotas_of_kueue_are_told_to_be_lost_where_priority_alone_decides() -> None:
    found = translated(KUEUE, "kube-scheduler", STATE, {"id": "a", "queue": "open", "tasks": two_pods()})
    assert [queue["name"] for queue in queues(found)] == ["all", "A.x", "lone", "open"]
    assert all(queue.keys() <= {"name", "priority"} for queue in queues(found))
    assert lost(found, "/configuration/queues") == [
        ("no-word", "/configuration/queues/1/parent"), ("no-word", "/configuration/queues/1/resource_groups"),
        ("no-word", "/configuration/queues/1/weight"), ("no-word", "/configuration/queues/1/priority"),
    ]  # fmt: skip
    assert pods(found) == [("t-0", "n", {"cpu": 1}), ("t-1", "n", {"cpu": 1})]
    assert lost(found, "/asks") == [("pods", "/asks/0"), ("pod-by-pod", "/asks/0")]


def test_memory_and_shares_of_gpus_are_counted_together_in_gpus_elsewhere() -> None:
    nodes = [
        {"name": name, "capacity": {"gpu": 2}, "gpu_memory": size} for name, size in (("n", 40_000), ("m", 20_000))
    ]
    running: list[Json] = [{"name": "a", "node": "n", "gpu_memory": 10_000, "gpu_group": "g"},
                           {"name": "b", "node": "n", "requests": {"gpu": "250m"}, "gpu_devices": 2}]  # fmt: skip
    state = {"nodes": nodes, "workloads": [{"id": "w", "queue": "q", "tasks": running}]}
    waits = {"id": "x", "queue": "q", "tasks": [{"name": "c", "gpu_memory": 10_001, "gpu_devices": 2}]}
    found = translated(KAI, "yunikorn", state, waits)
    tasks = [task for one in (*found.state.workloads, *found.asks) for task in one.tasks]
    assert [task.requests.get("gpu", task.requests.get("nvidia.com/gpu")) for task in tasks] == [0.25, 0.5, 1.002], (
        "of the node that it is on, or the smallest"
    )
    said = [pointer.rpartition("/")[2] for _, pointer in lost(found, "/state/workloads")]
    assert said == ["gpu_memory", "gpu_group", "gpu_devices"]
    without = translated(KAI, "yunikorn", {"nodes": [{"name": "n", "capacity": {"nvidia.com/gpu": 1}}]}, waits)
    assert without.asks[0].tasks[0].requests == {"nvidia.com/gpu": 2}, "whole ones"
