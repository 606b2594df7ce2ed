"""What an import can't take over: each place that says so, with its place in the source and its words."""

from typing import Any

import pytest

from app.formats import import_configuration
from app.formats.reader import unkeepable
from app.solver.check import MAX_DEPTH
from tests.support.left_out import FLAVOR, QUEUE, Json, imported, of, said


def deep(levels: int = MAX_DEPTH + 1) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


KAI_QUEUE = ("scheduling.run.ai/v2", "Queue")
KEPT_DEEP = "can't be kept: nested deeper than"


def quotas(*resources: Json, **flavor: Any) -> Json:
    flavors = [{"name": "f", "resources": list(resources)} | flavor]
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}


def pod(name: str | None = "p", *, scheduler: str = "kai-scheduler", containers: Any = None, **rest: Any) -> Json:
    metadata = {"name": name, "namespace": "ns", "labels": rest.pop("labels", {})} if name else {"namespace": "ns"}
    metadata["annotations"] = rest.pop("annotations", {})
    requests = rest.pop("requests", {"cpu": 1})
    spec: Json = {"schedulerName": scheduler, "containers": [{"name": "m", "resources": {"requests": requests}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | rest}


GROUP = of("scheduling.run.ai/v2alpha2", "PodGroup", "g", spec={"queue": "q"})
GROUP["metadata"]["namespace"] = "ns"
IN_GROUP: Json = {"annotations": {"pod-group-name": "g"}}
PARTITION = {"partitions": [{"queues": [{"name": "a"}]}]}
RULED = {"partitions": [{"queues": [{"name": "a"}], "placementrules": [{"name": "provided", "create": True}]}]}
SHARED = {"pod-group-name": "g", "gpu-fraction": "0.5"}
NAMELESS = ("error", "bad-value", "/1/metadata", "an object without a name")


@pytest.mark.parametrize(
    ("system", "documents", "expected"),
    [
        ("kueue", [of(*QUEUE), of(*FLAVOR, name=None)], NAMELESS),
        ("kai", [of(*KAI_QUEUE), of(*KAI_QUEUE, name=None)], NAMELESS),
        ("kueue", [of(*QUEUE), of("kueue.x-k8s.io/v1beta1", "Workload", None)], NAMELESS),
        ("kai", [of(*KAI_QUEUE), of("v1", "Node", None)], NAMELESS), ("kai", [GROUP, pod(None)], NAMELESS),
        ("kueue", [of(*QUEUE, spec=quotas({"nominalQuota": 1}))],
         ("error", "bad-value", "/spec/resourceGroups/0/flavors/0/resources/0/name",
          "resource '' has no name, or a quota already")),
        ("kueue", [of(*QUEUE, spec=quotas({"name": "cpu", "nominalQuota": 1}, {"name": "cpu", "nominalQuota": 2}))],
         ("error", "bad-value", "/spec/resourceGroups/0/flavors/0/resources/1/name",
          "resource 'cpu' has no name, or a quota already")),
        ("kueue", [of(*QUEUE, spec=quotas(name=None))],
         ("error", "bad-value", "/spec/resourceGroups/0/flavors/0/name", "quotas of a flavor without a name")),
        ("kueue", [of(*FLAVOR, spec={"tolerations": [{"key": "a"}]})],
         ("info", "not-decided", "/spec/tolerations",
          "a toleration that matches no taint of the flavor changes no decision; kept for an export")),
        ("kueue", [of(*FLAVOR, spec={"nodeTaints": [{"key": "a"}]})],
         ("error", "bad-value", "/spec/nodeTaints/0", "a taint has a key and an effect")),
        ("kueue", [of(*FLAVOR, spec={"nodeTaints": [{"effect": "NoSchedule"}]})],
         ("error", "bad-value", "/spec/nodeTaints/0", "a taint has a key and an effect")),
        ("kueue", [of("kueue.x-k8s.io/v1beta1", "LocalQueue", spec={"clusterQueue": "q"}, more=deep())],
         ("error", "not-carried", "", KEPT_DEEP)),
        ("kueue", [of(*QUEUE), of("scheduling.k8s.io/v1", "PriorityClass")],
         ("error", "bad-value", "/1/value", "a priority class without a value counts as 0")),
        ("kueue", [of(*QUEUE), pod()],
         ("info", "not-carried", "", "Kueue decides on Workloads: 1 pods are left out")),
        ("kueue", [{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueueList", "items": {}}],
         ("error", "wrong-type", "/items", "a list is expected")),
        ("kueue", [of("v1", "ConfigMap", data={"a.yaml": "{a: [}"})],
         ("error", "unreadable", "/data/a.yaml", "neither JSON nor YAML at line 1, column 6:")),
        ("kueue", [of("v1", "ConfigMap", data={}, binaryData={"a": "YQ=="})],
         ("info", "not-carried", "/binaryData", "binary data of a ConfigMap is not read")),
        ("kai", [GROUP | {"spec": {"queue": "q", "minSubGroup": 2}}],
         ("info", "not-carried", "/spec/minSubGroup", "there are no sub groups")),
        ("kai", [GROUP, pod("p", **IN_GROUP, schedulingGates=[{"name": "x"}])],
         ("info", "gated", "/1/spec", "a gated pod is not ready to be scheduled: left out")),
        ("yunikorn", [pod("p", scheduler="yunikorn", schedulingGates=[{"name": "x"}])],
         ("info", "gated", "/spec", "a gated pod is not ready to be scheduled: left out")),
        ("kai", [GROUP, pod("p", annotations={**SHARED, "gpu-fraction-num-devices": "0"})],
         ("error", "bad-value", "/1/metadata/annotations/gpu-fraction-num-devices",
          "a whole number of GPUs is expected")),
        ("kai", [GROUP, pod("p", annotations={"pod-group-name": "g", "gpu-memory": "1Gi"})],
         ("error", "bad-value", "/1/metadata/annotations/gpu-memory", "a whole number of MiB is expected")),
        ("yunikorn", [{"partitions": [{"queues": [{"name": "root", "queues": [{"name": "a"}]}]}]},
                      of("scheduling.k8s.io/v1", "PriorityClass", value=3)],
         ("info", "not-carried", "", "priority classes are no part of queues.yaml: an export leaves them out")),
        ("yunikorn", [{"partitions": [{"queues": [{"name": "a"}]}, {"name": "p", "x": deep()}]}],
         ("error", "not-carried", "/partitions/1", "partition 'p' can't be kept: nested deeper than")),
        ("yunikorn", [{"partitions": [{"queues": [{"queues": [{"name": "a"}]}]}]}],
         ("error", "bad-value", "/partitions/0/queues/0", "a queue without a name: left out with all below it")),
        ("yunikorn", [{"partitions": [{"queues": [{"name": "a.b"}]}]}],
         ("error", "bad-value", "/partitions/0/queues/0/name", "'a.b': a dot separates queues in a path")),
        ("yunikorn", [RULED, pod(scheduler="yunikorn", labels={"queue": "root.x.y"})],
         ("info", "dynamic-queue", "/1/metadata/labels", "queue 'root.x.y' is not configured: added as a dynamic one")),
        ("yunikorn", [PARTITION, pod(scheduler="yunikorn", labels={"queue": "x.y"})],
         ("error", "no-queue", "/1/metadata/labels", "application 'yunikorn-ns-autogen' is rejected: it names queue")),
        ("ytsaurus", [{"pools": {"a": {"enable_aggressive_starvation": "x"}}}],
         ("error", "wrong-type", "/pools/a/enable_aggressive_starvation", "Expected `bool | null`, got `str`")),
        ("ytsaurus", [{"pools": {"a": {}}}, {"pools": {"b": {}}}],
         ("warning", "not-carried", "/1", "a second pool tree is a cluster of its own: import it by itself")),
        ("ytsaurus", [{"pools": {"a": {"pools": {"a": {}}}}}],
         ("error", "duplicate", "/pools/a/pools/a", "a second pool 'a' in one tree: left out")),
        ("kubernetes", [{"kind": "List", "items": [{"items": []}]}],
         ("error", "unknown-kind", "/items/0", "no kind: cut short, or no Kubernetes object")),
    ],
)  # fmt: skip
def test_what_is_not_carried_over_is_said(
    system: str, documents: list[Json], expected: tuple[str, str, str, str]
) -> None:
    found = said(imported(system, *documents))
    assert any(one[:3] == expected[:3] and one[3].startswith(expected[3]) for one in found), found


def test_who_has_no_name_is_left_out_and_the_others_stay() -> None:
    found = imported("kueue", of(*FLAVOR, name=None), of(*FLAVOR, name="b"), of(*FLAVOR, name="c"))
    assert [flavor.name for flavor in found.configuration.flavors] == ["b", "c"]
    nodes = imported("kai", of("v1", "Node", None), of("v1", "Node", "n"), of(*KAI_QUEUE))
    assert [node.name for node in nodes.state.nodes] == ["n"]
    pods = imported("kai", GROUP, pod(None, **IN_GROUP), pod("p", **IN_GROUP))
    assert [[task.name for task in ask.tasks] for ask in pods.asks] == [["p"]]
    queues = imported("kai", of(*KAI_QUEUE, name=None), of(*KAI_QUEUE, name="b"))
    assert [queue.name for queue in queues.configuration.queues] == ["b"]
    work = of("kueue.x-k8s.io/v1beta1", "Workload", None)
    assert imported("kueue", of(*QUEUE), work, work).asks == []


def test_pool_trees_are_mappings() -> None:
    found = import_configuration(b'[{"pools": {"a": {}}}, 3]', "ytsaurus")
    assert said(found) == [("error", "wrong-type", "/1", "a mapping is expected: a pool tree")]
    assert [queue.name for queue in found.configuration.queues] == ["a"]


def test_pools_below_the_deepest_level_are_left_out() -> None:
    tree: Json = {}
    for i in range(202, 0, -1):
        tree = {"pools": {f"p{i}": tree}}
    found = imported("ytsaurus", tree)
    (one,) = said(found)
    depth = len(found.configuration.queues)
    assert one[:2] == ("error", "bad-value")
    assert one[2] == "/pools/p1" + "".join(f"/pools/p{i}" for i in range(2, depth + 2))
    assert one[3] == f"pools nested deeper than {depth} levels: left out"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (2**63 - 1, None), (2**63, "an integer past 64 bits"), (-(2**63), None),
        (-(2**63) - 1, "an integer past 64 bits"), (0.5, None), (float("inf"), "a number that is not finite"),
        ([1, {"a": [float("nan")]}], "a number that is not finite"), ({"a": None, "b": True, "c": "x"}, None),
        (deep(MAX_DEPTH - 1), None), (deep(MAX_DEPTH), f"nested deeper than {MAX_DEPTH} levels"),
        ([[deep(MAX_DEPTH - 2)]], f"nested deeper than {MAX_DEPTH} levels"), ([deep(MAX_DEPTH - 2)], None),
    ],
)  # fmt: skip
def test_what_a_configuration_may_keep(value: Any, why: str | None) -> None:
    assert unkeepable(value) == why


def test_a_dump_keeps_lists_of_anything_as_they_are() -> None:
    mixed = [{"Name": "a"}, "b"]
    partitions = [{"Name": "default", "Queues": [{"Name": "root", "Odd": mixed, "Queues": [{"Name": "q"}]}]}]
    dump = {"config": {"Partitions": partitions}, "queues": [], "applications": [], "nodes": []}
    found = imported("yunikorn", dump)
    assert [queue.name for queue in found.configuration.queues] == ["root", "root.q"]
    native = found.configuration.queues[0].native
    assert native is not None
    assert native.yunikorn == {"odd": mixed}
