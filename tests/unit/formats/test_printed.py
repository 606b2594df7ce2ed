"""What systems print about what runs there, in parts and with holes: state dumps, orchids, Workloads."""

import json
from typing import Any

import pytest

from app.formats import import_configuration
from tests.support.left_out import QUEUE, Json, imported, of, said


def test_a_dump_lists_nodes_with_or_without_partitions() -> None:
    plain = {"nodeID": "a", "capacity": {"vcore": 1000}}
    listed = {"partitionName": "[mycluster]default", "nodesInfo": [{"nodeID": "b"}, {"nodeID": "c"}]}
    foreign = {"partitionName": "gpu", "nodesInfo": [{"nodeID": "d"}]}
    tree = {"queuename": "root", "partition": "default", "children": [{"queuename": ""}, {"queuename": "q"}]}
    found = imported("yunikorn", {"queues": [tree], "applications": [], "nodes": [plain, foreign, listed]})
    assert [node.name for node in found.state.nodes] == ["a", "b", "c"]
    assert [queue.name for queue in found.configuration.queues] == ["root", "root.q"]
    assert said(found) == [
        ("warning", "not-carried", "/nodes/1/partitionName", "partition 'gpu' is a cluster of its own: left out")
    ]


def test_queues_that_only_the_tree_has_are_added() -> None:
    config = {"Partitions": [{"Name": "default", "Queues": [{"Name": "root", "Queues": [{"Name": "q"}]}]}]}
    children = [
        {"queuename": "q", "isManaged": True},
        {"queuename": "old", "isManaged": True},
        {"queuename": "made", "isManaged": False},
    ]
    tree = {"queuename": "root", "isManaged": True, "children": children}
    found = imported("yunikorn", {"config": config, "queues": [tree], "applications": [], "nodes": []})
    assert [queue.name for queue in found.configuration.queues] == ["root", "root.q", "root.old", "root.made"]
    assert said(found) == [
        ("info", "dynamic-queue", "/queues", "queue 'root.old' is in the tree and not configured: added as it is there")
    ]


@pytest.mark.parametrize(
    ("amount", "fine"), [(2, True), (2.0, True), (0, True), (-1, False), (0.5, False), ("x", False)]
)
def test_a_dump_has_whole_amounts(amount: Any, fine: bool) -> None:
    queue = {"queuename": "q", "maxResource": {"memory": amount, "vcore": 3000}}
    tree = {"queuename": "root", "maxResource": {"memory": 9}, "guaranteedResource": {"memory": 9}, "children": [queue]}
    found = imported("yunikorn", {"queues": [tree], "applications": [], "nodes": []})
    assert found.configuration.queues[0].quota is None
    quota = found.configuration.queues[1].quota
    assert quota is not None
    assert {name: one.limit for name, one in quota.items()} == {"vcore": "3000m"} | (
        {"memory": int(amount)} if fine else {}
    )
    at = "/queues/0/children/0/maxResource/memory"
    assert [one[:3] for one in said(found)] == (
        [] if fine else [("error", "wrong-type" if amount == "x" else "bad-value", at)]
    )


def orchid(**operation: Any) -> Json:
    pools = {"<Root>": {}, "a": {"parent": "<Root>"}}
    told: Json = {
        "pool": "a",
        "resource_usage": operation.pop("usage", {}),
        "resource_demand": operation.pop("demand", {}),
    }
    info = {"pools": pools, "operations": {"op": told}}
    tree = {"fair_share_info": info, "node_addresses": ["n1"]}
    nodes = {name: {"resource_limits": {"cpu": 4, "user_slots": 4}} for name in ("n1", "n2")}
    return {
        "default_pool_tree": "main", "scheduling_info_per_pool_tree": {"main": tree, "other": {}}, "nodes": nodes,
        "operations": {"op": {"start_time": "2026-11-22T00:00:00Z", **operation}},
    }  # fmt: skip


def test_an_orchid_is_the_default_trees_and_another_one_another_cluster() -> None:
    found = imported("ytsaurus", orchid(demand={"cpu": 2, "user_slots": 2}), orchid())
    assert [node.name for node in found.state.nodes] == ["n1"]
    assert [one[1:] for one in said(found)] == [
        ("not-carried", "/1", "a second orchid is another cluster's: import it by itself"),
        (
            "not-carried",
            "/0/scheduling_info_per_pool_tree/other",
            "pool tree 'other' is a cluster of its own: left out",
        ),
        (
            "assumed-size",
            "/0/operations",
            "what each job asks for is not told: an operation's usage by its jobs, else its demand by its slots",
        ),
    ]
    (ask,) = found.asks
    assert (ask.id, ask.queue, [(t.count, dict(t.requests)) for t in ask.tasks]) == (
        "op",
        "a",
        [(2, {"cpu": 1, "user_slots": 1})],
    )


def test_without_a_default_tree_that_with_most_operations_counts() -> None:
    document = orchid()
    trees = document["scheduling_info_per_pool_tree"]
    del document["default_pool_tree"]
    trees["zzz"] = trees.pop("other") | {"fair_share_info": {"operations": {"x": {}, "y": {}}}}
    assert said(imported("ytsaurus", document))[0][2] == "/scheduling_info_per_pool_tree/main"
    document["default_pool_tree"] = "gone"
    assert said(imported("ytsaurus", document))[0][2] == "/scheduling_info_per_pool_tree/main"


def test_jobs_that_an_orchid_does_not_list_hold_nothing() -> None:
    found = imported("ytsaurus", orchid(usage={"cpu": 2}, demand={"cpu": 2}))
    assert (found.state.workloads, found.asks) == ([], [])
    assert said(found)[-1] == (
        "warning", "not-carried", "/operations/op",
        "operation 'op' runs jobs that the source does not list: they hold nothing here",
    )  # fmt: skip


def test_a_tree_beside_an_orchid_takes_its_place_and_a_given_configuration_either() -> None:
    text = "\n---\n".join(json.dumps(one) for one in ({"pools": {"b": {}}}, orchid()))
    found = import_configuration(text.encode(), "ytsaurus")
    assert [queue.name for queue in found.configuration.queues] == ["b", "a"]
    known = import_configuration(b'{"pools": {"c": {}}}', "ytsaurus").configuration
    given = import_configuration(text.encode(), "ytsaurus", known)
    assert [queue.name for queue in given.configuration.queues] == ["c", "a"]
    assert said(given)[0] == (
        "info", "replaced", "", "1 pools of the source: the configuration that is given takes their place",
    )  # fmt: skip


def test_workloads_of_kueue_that_are_done_or_in_no_queue() -> None:
    def work(name: str, queue: str, **status: Any) -> Json:
        spec = {"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]}
        made = of("kueue.x-k8s.io/v1beta1", "Workload", name, spec=spec, status=status)
        made["metadata"]["namespace"] = "ns"
        return made

    local = of("kueue.x-k8s.io/v1beta1", "LocalQueue", "l", spec={"clusterQueue": "gone"})
    local["metadata"]["namespace"] = "ns"
    done = {"conditions": [{"type": "Finished", "status": "True"}]}
    found = imported("kueue", of(*QUEUE), local, work("a", "l", **done), work("b", "l"), work("c", "none"))
    assert (found.state.workloads, found.asks) == ([], [])
    assert [one for one in said(found) if one[1] == "no-queue"] == [
        ("error", "no-queue", "/3/spec", "no ClusterQueue 'gone' in the source: workload 'ns/b' is left out"),
        ("error", "no-queue", "/4/spec", "no LocalQueue 'ns/none' in the source: workload 'ns/c' is left out"),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"nodes"=#;"operations"={};"pool_trees"={}}', "nodes"),
        ('{"nodes"={"n"=#};"operations"={};"pool_trees"={}}', "nodes/n"),
        ('{"nodes"={};"operations"=#;"pool_trees"={}}', "operations"),
        ('{"nodes"={};"operations"={"a"={"running_jobs"=#}};"pool_trees"={}}', "operations/a/running_jobs"),
        ('{"nodes"={};"pool_trees"={"t"={"pools"=#}}}', "pool_trees/t/pools"),
        ('{"nodes"={};"scheduling_info_per_pool_tree"={"t"={"fair_share_info"=#}}}',
         "scheduling_info_per_pool_tree/t/fair_share_info"),
    ],
)  # fmt: skip
def test_a_part_that_was_not_printed_is_an_error_with_the_command_that_prints_it(text: str, where: str) -> None:
    found = [one for one in import_configuration(text.encode(), "kubernetes").findings if one.severity == "error"]
    assert [(one.rule, one.pointer) for one in found] == [("opaque", f"/{where}")]
    assert f"`yt get //sys/scheduler/orchid/scheduler/{where}` shows it" in found[0].detail


@pytest.mark.parametrize(
    ("tree", "pointer", "command"),
    [
        ({"$attributes": {"config": None}, "$value": {}}, "/$attributes/config", "//sys/pool_trees/TREE/@config"),
        ({"$attributes": {"path": "//a/b"}, "$value": {"p": None}}, "/$value/p", "//a/b/p"),
        ({"$attributes": {}, "$value": {"p": {"$attributes": {"weight": 2}, "$value": None}}}, "/$value/p",
         "//sys/pool_trees/TREE/p"),
        ({"$value": {"p": {"$value": {"q": {"$attributes": {"resource_limits": None}, "$value": {}}}}}},
         "/$value/p/$value/q/$attributes/resource_limits", "//sys/pool_trees/TREE/p/q/@resource_limits"),
        ({"$attributes": {"config": {"$attributes": {"opaque": True}, "$value": None}}, "$value": {}},
         "/$attributes/config", "//sys/pool_trees/TREE/@config"),
        ({"$attributes": {"path": "//a"}, "$value": None}, "", "//a"),
    ],
)  # fmt: skip
def test_what_yt_get_does_not_descend_into_is_an_error_with_the_command_that_shows_it(
    tree: Any, pointer: str, command: str
) -> None:
    found = import_configuration(json.dumps(tree).encode(), "ytsaurus").findings
    opaque = [(one.severity, one.pointer, one.detail) for one in found if one.rule == "opaque"]
    assert [one[:2] for one in opaque] == [("error", pointer)]
    assert f"`yt get {command}` shows it" in opaque[0][2]


def test_a_preset_that_the_source_does_not_have_is_an_error() -> None:
    tree = {"pools": {"a": {"config_preset": "large"}}}
    found = import_configuration(json.dumps(tree).encode(), "ytsaurus").findings
    assert [(one.severity, one.pointer) for one in found] == [("error", "/pools/a/config_preset")]
