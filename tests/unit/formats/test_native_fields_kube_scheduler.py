"""Each field that kube-scheduler decides by, of its configuration, of pods, nodes and budgets, with another value: the
import is another, or says why not."""

from typing import Any

import pytest

from tests.support.native_fields import ABSENT, fields, unused

Json = dict[str, Any]
TERM: Json = {
    "topologyKey": "zone", "namespaces": ["a"], "labelSelector": {"matchLabels": {"app": "x"}},
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}},
}  # fmt: skip
SELECTS: Json = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
SPREAD: Json = {
    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2,
    "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["app"],
}  # fmt: skip
CONTAINER: Json = {
    "name": "c", "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "10.0.0.1"}],
}  # fmt: skip


def source() -> list[Json]:
    """A cluster in which every field counts, with one pod that waits."""
    arguments = {"minCandidateNodesPercentage": 20, "minCandidateNodesAbsolute": 50}
    pod = {
        "containers": [CONTAINER], "overhead": {"cpu": 1}, "nodeSelector": {"pool": "a"}, "priorityClassName": "high",
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": 9}}, "restartPolicy": "Always"}],
        "tolerations": [{"key": "spot", "operator": "Equal", "value": "a", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SELECTS]}},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        },
        "topologySpreadConstraints": [SPREAD],
    }  # fmt: skip
    return [
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [
            {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]},
        ]},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"pool": "a"}},
         "spec": {"taints": [{"key": "spot", "value": "a", "effect": "NoSchedule"}], "unschedulable": True},
         "status": {"allocatable": {"cpu": 8}}},
        {"apiVersion": "v1", "kind": "Pod", "spec": pod, "status": {"phase": "Pending"}, "metadata": {
            "name": "p", "namespace": "a", "uid": "1", "labels": {"app": "x"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "a"},
         "spec": {"selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 1}},
    ]  # fmt: skip


_PROFILE = "profiles[].pluginConfig[]"
OTHER: Json = {
    "minCandidateNodesPercentage": 30, "minCandidateNodesAbsolute": 60, f"{_PROFILE}.name": "Other",
    f"{_PROFILE}.args": {"minCandidateNodesAbsolute": 70}, "profiles[].schedulerName": "mine",
    "spec.selector": {"matchLabels": {"app": "y"}}, "status.disruptionsAllowed": 0,
    "status.disruptedPods": {"p": "2026-01-01T00:00:00Z"},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), fields("kube-scheduler"))
def test_another_value_is_another_decision_or_a_finding(kind: str, path: str) -> None:
    arguments = kind == "DefaultPreemptionArgs"
    of = "KubeSchedulerConfiguration" if arguments else kind
    below = f"{_PROFILE}.args" if arguments else ""
    assert unused("kube-scheduler", source(), of, path, OTHER[path], below=below) is None


def below(path: str, of: Json) -> Json:
    return {f"{path}.{name}": value for name, value in of.items()}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OF_A_TERM: Json = {
    "topologyKey": "rack", "namespaces": ["b"], "labelSelector": {"matchLabels": {"app": "y"}},
    "namespaceSelector": ABSENT, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["app"],
}  # fmt: skip
OF_A_POD: Json = {
    "metadata.name": "q", "metadata.namespace": "b", "metadata.uid": "2", "metadata.labels": {"app": "y"},
    "metadata.creationTimestamp": "2026-01-02T00:00:00Z", "metadata.deletionTimestamp": "2026-01-02T00:00:00Z",
    "status.phase": "Succeeded", "status.nominatedNodeName": "n",
    **below("spec", {
        "nodeName": "n", "schedulerName": "mine", "priority": 7, "priorityClassName": "none",
        "preemptionPolicy": "Never", "hostNetwork": True, "overhead": {"cpu": 2}, "nodeSelector": {"pool": "b"},
        "schedulingGates": [{"name": "g"}], "resourceClaims": [{"name": "r"}], "schedulingGroup": {"podGroupName": "g"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "resources": {"requests": {"cpu": 20}}, "initContainers[].restartPolicy": ABSENT,
        "initContainers[].resources.requests": {"cpu": 8}, "topologySpreadConstraints": ABSENT, "affinity": ABSENT,
        "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
        f"affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[].matchExpressions": [SELECTS["matchExpressions"][0]
                                                                                  | {"values": ["b"]}],
        f"affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[].matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n"]},
        ],
        "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
        **below(f"affinity.podAffinity.{_REQUIRED}[]", OF_A_TERM),
        **below(f"affinity.podAntiAffinity.{_REQUIRED}[]", OF_A_TERM),
        **below("containers[].resources", {"requests": {"cpu": 2}, "limits": {"memory": "2Gi"}}),
        **below("containers[].ports[]", {"hostPort": 8081, "protocol": "UDP", "hostIP": "10.0.0.2"}),
        **below("tolerations[]", {"key": "k", "operator": "Exists", "value": "b", "effect": "NoExecute"}),
        **below("topologySpreadConstraints[]", {
            "maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 3,
            "labelSelector": {"matchLabels": {"app": "y"}}, "matchLabelKeys": [], "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        }),
    }),
}  # fmt: skip
OF_A_NODE: Json = {
    "metadata.name": "m", "metadata.labels": {"pool": "b"}, "spec.unschedulable": False,
    "spec.taints[].key": "k", "spec.taints[].value": "b", "spec.taints[].effect": "NoExecute",
    "status.allocatable": {"cpu": 9}, "status.capacity": {"cpu": 9},
}  # fmt: skip
OF_KIND: dict[str, Json] = {
    "Pod": OF_A_POD, "Node": OF_A_NODE, "PriorityClass": {"value": 11, "preemptionPolicy": "Never"},
}  # fmt: skip
EVERY = [(kind, path, value) for kind, of in OF_KIND.items() for path, value in of.items()]


@pytest.mark.parametrize(("kind", "path", "value"), EVERY, ids=[f"{kind}-{path}" for kind, path, _ in EVERY])
def test_another_value_of_a_pod_or_a_node_is_another_decision_or_a_finding(kind: str, path: str, value: Any) -> None:
    documents = source()
    if path == "status.capacity":  # it counts where a node does not say what of it pods may use
        del documents[2]["status"]["allocatable"]
    if path == "spec.hostNetwork":  # then the port of a container is the node's, whether it says so or not
        documents[3]["spec"] |= {"containers": [CONTAINER | {"ports": [{"containerPort": 80}]}]}
    assert unused("kube-scheduler", documents, kind, path, value) is None
