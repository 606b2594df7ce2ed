"""Which system a cluster belongs to, and state without a configuration, which a stored one may complete."""

import json
from typing import Any

import pytest

from app.formats import import_configuration
from app.formats.reader import Imported
from tests.support.kubernetes import read


def pod(name: str, **spec: Any) -> dict[str, Any]:
    labels, annotations = spec.pop("labels", {}), spec.pop("annotations", {})
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "labels": labels, "annotations": annotations}, "spec": spec,
    }  # fmt: skip


def rules(found: Imported) -> set[str]:
    return {finding.rule for finding in found.findings}


WORKLOAD = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w", "namespace": "ns"}}
GROUP = {
    "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "ns"},
    "spec": {"queue": "anything"},
}  # fmt: skip


def test_the_system_is_that_of_most_objects() -> None:
    assert read(WORKLOAD).configuration.engine == "kueue"
    assert read(pod("p", schedulerName="yunikorn")).configuration.engine == "yunikorn"
    assert read(GROUP).configuration.engine == "kai"
    assert read(pod("p")).configuration.engine == "kube-scheduler"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert read(node).configuration.engine is None
    assert rules(read(node)) == {"no-engine"}
    both = read(WORKLOAD, pod("p", schedulerName="yunikorn"), pod("q", schedulerName="yunikorn"))
    assert both.configuration.engine == "yunikorn"
    assert {"several-engines", "other-engine"} <= rules(both)


def test_a_named_format_reads_its_own_objects_only() -> None:
    found = read(GROUP, WORKLOAD, format="kai")
    assert found.configuration.engine == "kai"
    assert "other-engine" in rules(found)


def test_state_alone_may_name_queues_that_are_elsewhere() -> None:
    running = pod("p", schedulerName="kai-scheduler", nodeName="n", annotations={"pod-group-name": "g"})
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    found = read(GROUP, running, node)
    assert [(w.id, w.queue, w.tasks[0].node) for w in found.state.workloads] == [("ns/g", "anything", "n")]
    asked = read(pod("p", schedulerName="yunikorn", labels={"applicationId": "a", "queue": "Team.X"}))
    assert [(a.id, a.queue) for a in asked.asks] == [("ns/p", "root.team.x")]
    assert asked.configuration.queues == []


def test_pods_without_an_application_share_one_of_their_namespace() -> None:
    found = read(pod("p", schedulerName="yunikorn"), pod("q", schedulerName="yunikorn"))
    assert [a.queue for a in found.asks] == ["root.default", "root.default"]
    held = read(pod("p", schedulerName="yunikorn", nodeName="n"), pod("q", schedulerName="yunikorn"))
    assert [w.id for w in held.state.workloads] == ["yunikorn-ns-autogen"]
    assert held.asks[0].workload == "yunikorn-ns-autogen"
    assert "no-node" in rules(held)


def test_priority_comes_from_the_pod_then_from_its_class_then_from_the_default_class() -> None:
    def priority_class(name: str, value: int, *, default: bool = False) -> dict[str, Any]:
        return {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            "globalDefault": default,
        }  # fmt: skip

    found = read(
        priority_class("high", 100), priority_class("usual", 5, default=True),
        pod("own", schedulerName="yunikorn", priority=7, priorityClassName="high"),
        pod("class", schedulerName="yunikorn", priorityClassName="high"),
        pod("default", schedulerName="yunikorn"),
        pod("system", schedulerName="yunikorn", priorityClassName="system-node-critical"),
    )  # fmt: skip
    assert [ask.priority for ask in found.asks] == [7, 100, 5, 2_000_001_000]


def test_one_object_twice_is_an_error() -> None:
    assert "duplicate" in rules(read(GROUP, GROUP))


def test_settings_twice_are_said_to_be_and_the_last_ones_hold() -> None:
    def shard(runtime: str) -> dict[str, Any]:
        made = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": runtime}}
        return {**made, "spec": {"minRuntime": {"reclaimMinRuntime": runtime}}}

    def manager(enable: bool) -> dict[str, Any]:
        made = {"apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration"}
        return {**made, "fairSharing": {"enable": enable}}

    found = read(shard("1m"), shard("2m"), format="kai")
    assert found.configuration.settings.kai is not None
    assert found.configuration.settings.kai.default_reclaim_min_runtime == "2m"
    assert [f.pointer for f in found.findings if f.rule == "several-settings"] == ["/items/1"]
    found = read(manager(False), manager(True), format="kueue")
    assert found.configuration.settings.kueue is not None
    assert found.configuration.settings.kueue.fair_sharing
    assert [f.pointer for f in found.findings if f.rule == "several-settings"] == ["/items/1"]
    assert "several-settings" not in rules(read(manager(True), format="kueue"))


@pytest.mark.parametrize(
    ("version", "fair", "on"),
    [
        ("v1beta1", {}, False),
        ("v1beta1", {"enable": True}, True),
        ("v1beta2", {}, True),
        ("v1beta2", {"preemptionStrategies": ["LessThanInitialShare"]}, True),
        ("v1beta2", None, False),
    ],
)
def test_fair_sharing_is_switched_on_as_each_version_does(version: str, fair: dict[str, Any] | None, on: bool) -> None:
    made = {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration", "fairSharing": fair}
    settings = read(made, format="kueue").configuration.settings.kueue
    assert (settings is not None and settings.fair_sharing) is on


def test_a_priority_class_twice_is_an_error() -> None:
    made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    waiting = pod("p", schedulerName="yunikorn", priorityClassName="high")
    found = read({**made, "value": 1}, {**made, "value": 2}, waiting)
    assert [ask.priority for ask in found.asks] == [2]
    assert [(f.rule, f.severity) for f in found.findings if f.pointer == "/items/1/metadata"] == [
        ("duplicate", "error")
    ]
    assert "duplicate" not in rules(read({**made, "value": 1}, waiting))


def test_a_typed_list_says_the_kind_of_its_items() -> None:
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueueList",
        "items": [{"metadata": {"name": "a"}, "spec": {}}, {"metadata": {"name": "b"}, "spec": {"cohort": "c"}}],
    }  # fmt: skip
    found = import_configuration(json.dumps(body).encode(), "kubernetes")
    assert [(q.name, q.parent) for q in found.configuration.queues] == [("a", None), ("b", "c")]


def test_a_node_under_pressure_takes_no_pods() -> None:
    def node(*conditions: tuple[str, str]) -> dict[str, Any]:
        listed = [{"type": kind, "status": status} for kind, status in conditions]
        return {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{len(conditions)}"},
            "status": {"capacity": {"cpu": "1"}, "conditions": listed},
        }  # fmt: skip

    found = read(
        GROUP, node(), node(("Ready", "True")), node(("Ready", "True"), ("DiskPressure", "True")),
        node(("Ready", "False"), ("MemoryPressure", "False"), ("Custom", "True")),
    )  # fmt: skip
    assert [n.schedulable for n in found.state.nodes] == [True, True, False, False]


@pytest.mark.parametrize(
    ("kueue", "kai", "yunikorn", "chosen"),
    [
        ((1, 1), (0, 0, 0), 1, "kueue"), ((0, 0), (1, 1, 0), 1, "kai"), ((0, 0), (0, 1, 1), 1, "kai"),
        ((1, 0), (0, 0, 0), 1, "kueue"), ((0, 1), (0, 0, 1), 0, "kueue"), ((0, 0), (1, 0, 0), 1, "kai"),
        ((1, 1), (1, 1, 1), 2, "kai"), ((1, 1), (0, 0, 0), 3, "yunikorn"), ((0, 1), (1, 0, 1), 2, "kai"),
    ],
)  # fmt: skip
def test_the_system_has_most_objects_and_pods_together(
    kueue: tuple[int, int], kai: tuple[int, int, int], yunikorn: int, chosen: str
) -> None:
    """Kueue: queues and Workloads; KAI: queues, groups and pods; YuniKorn: pods. Of as many the first of these."""
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue"}
    team = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}
    items = [queue | {"metadata": {"name": f"q{i}"}} for i in range(kueue[0])]
    items += [WORKLOAD | {"metadata": {"name": f"w{i}"}} for i in range(kueue[1])]
    items += [team | {"metadata": {"name": f"t{i}"}} for i in range(kai[0])]
    items += [GROUP | {"metadata": {"name": f"g{i}"}} for i in range(kai[1])]
    items += [pod(f"k{i}", schedulerName="kai-scheduler") for i in range(kai[2])]
    items += [pod(f"y{i}", schedulerName="yunikorn") for i in range(yunikorn)]
    found = read(*items)
    assert found.configuration.engine == chosen
    others = {
        name: count for name, count in (("kueue", sum(kueue)), ("kai", sum(kai)), ("yunikorn", yunikorn)) if count
    }
    del others[chosen]
    said = [one.detail for one in found.findings if one.rule == "several-engines"]
    shown = ", ".join(f"{name} ({count})" for name, count in others.items())
    assert said == [f"objects of {chosen} are read; there are also some of {shown}"] * bool(others)
