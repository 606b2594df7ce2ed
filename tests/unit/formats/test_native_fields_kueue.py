"""Each field of Kueue's objects that decisions depend on, with another value: the import is another, or says why
not."""

import json
from typing import Any

import pytest

from tests.support.native_fields import ABSENT, fields, unused

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
NOON, ONE = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"
POD: Json = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1, "odd.com/a": 1}}}]}


def made(kind: str, name: str, spec: Json, api: str = KUEUE, **more: Any) -> Json:
    metadata = {"name": name, **({"namespace": "ns"} if kind in ("LocalQueue", "Workload") else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, **more}


def group() -> list[Json]:
    quota = {"name": "cpu", "nominalQuota": 10, "borrowingLimit": 5, "lendingLimit": 5}
    return [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}]


def condition(kind: str, status: str, **more: str) -> Json:
    return {"type": kind, "status": status, "lastTransitionTime": NOON, "reason": "r", "message": "m", **more}


WAITS: Json = {
    "queueName": "lq", "priority": 3, "priorityClassRef": {"group": "kueue.x-k8s.io", "name": "low", "kind": "x"},
    "podSets": [
        {"name": "main", "count": 4, "minCount": 2, "template": {"spec": POD}, "topologyRequest": {"required": "rack"}},
    ],
}  # fmt: skip
ASSIGNED: Json = {"name": "main", "count": 4, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 4}}
SLICE: Json = {
    "domainCount": 2, "podCounts": {"individual": [1, 3]},
    "valuesPerLevel": [{"individual": {"prefix": "h", "roots": ["1", "2"], "suffix": "x"}}],
}  # fmt: skip
PLACED: Json = {"topologyAssignment": {"levels": ["kubernetes.io/hostname"], "slices": [SLICE]}}
RUNS: Json = {
    "admission": {"clusterQueue": "q", "podSetAssignments": [ASSIGNED | PLACED]},
    "conditions": [condition("QuotaReserved", "True"), condition("Admitted", "True")],
}  # fmt: skip
ALIKE: Json = {"slices": [SLICE | {"podCounts": {"universal": 2}, "valuesPerLevel": [{"universal": "h"}]}]}


def source(status: Json | None = None, spec: Json | None = None) -> list[Json]:
    """A cluster in which every field counts, with one Workload."""
    toleration = {"key": "spot", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    taint = {"key": "other", "value": "a", "effect": "NoSchedule"}
    sharing = {"usageHalfLifeTime": "1h", "usageSamplingInterval": "5m"}
    return [
        {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "admissionFairSharing": sharing},
        made("ResourceFlavor", "f", {"topologyName": "racks", "nodeLabels": {"pool": "a"}, "nodeTaints": [taint],
                                     "tolerations": [toleration]}),
        made("Topology", "racks", {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}),
        made("AdmissionCheck", "there", {"controllerName": "x"}),
        made("Cohort", "all", {"resourceGroups": group(), "parentName": "top"}),
        made("ClusterQueue", "q", {
            "cohortName": "all", "resourceGroups": group(),
            "preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}},
            "namespaceSelector": {"matchLabels": {"team": "a"},
                                  "matchExpressions": [{"key": "size", "operator": "In", "values": ["s"]}]},
            "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        }),
        made("ClusterQueue", "other", {"resourceGroups": group(), "namespaceSelector": {}}),
        made("LocalQueue", "lq", {"clusterQueue": "q", "fairSharing": {"weight": "2"}}),
        made("LocalQueue", "lq2", {"clusterQueue": "other"}),
        made("WorkloadPriorityClass", "low", {}) | {"value": 5},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": "a", "size": "s"}}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "h1x", "labels": {"rack": "r", "pool": "a"}},
         "status": {"allocatable": {"cpu": 9}}},
        made("Workload", "w", WAITS | (spec or {}), status=status or {}),
    ]  # fmt: skip


def request(**asked: Any) -> Json:
    return {"podSets": [WAITS["podSets"][0] | {"topologyRequest": asked}]}


SLICED = request(podSetSliceRequiredTopology="rack", podSetSliceSize=2)
LAYERED = request(podsetSliceRequiredTopologyConstraints=[{"topology": "rack", "size": 2}])
EVICTED = [condition("Evicted", "True", reason="PodsReadyTimeout")]
_QUOTA, _POD_SET, _ADMISSION = "spec.resourceGroups[]", "spec.podSets[]", "status.admission.podSetAssignments[]"
_TOPOLOGY, _SLICE = f"{_POD_SET}.topologyRequest", f"{_ADMISSION}.topologyAssignment.slices[]"
OTHER: Json = {
    "spec.admissionChecksStrategy.admissionChecks[].name": "missing", "spec.admissionScope.admissionMode": ABSENT,
    "spec.cohortName": "another", "spec.fairSharing.weight": 3, "spec.flavorFungibility.preference":
    "PreemptionOverBorrowing", "spec.flavorFungibility.whenCanBorrow": "TryNextFlavor",
    "spec.flavorFungibility.whenCanPreempt": "MayStopSearch", "spec.namespaceSelector.matchExpressions[].key": "team",
    "spec.namespaceSelector.matchExpressions[].operator": "NotIn",
    "spec.namespaceSelector.matchExpressions[].values": ["l"], "spec.namespaceSelector.matchLabels": {"team": "b"},
    "spec.preemption.borrowWithinCohort.maxPriorityThreshold": 5,
    "spec.preemption.borrowWithinCohort.policy": "Never", "spec.preemption.reclaimWithinCohort": "Any",
    "spec.preemption.withinClusterQueue": "LowerPriority", "spec.queueingStrategy": "StrictFIFO",
    f"{_QUOTA}.coveredResources": ["cpu", "memory"], f"{_QUOTA}.flavors[].name": "g",
    f"{_QUOTA}.flavors[].resources[].borrowingLimit": 6, f"{_QUOTA}.flavors[].resources[].lendingLimit": 6,
    f"{_QUOTA}.flavors[].resources[].name": "memory", f"{_QUOTA}.flavors[].resources[].nominalQuota": 11,
    "spec.stopPolicy": "Hold", "spec.parentName": "above", "spec.clusterQueue": "other",
    "admissionFairSharing": ABSENT, "fairSharing.preemptionStrategies": ["LessThanInitialShare"],
    "resources.excludeResourcePrefixes": ["odd.com"], "resources.quotaCheckStrategy": "IgnoreUndeclared",
    "resources.transformations": [{"input": "odd.com/a", "strategy": "Replace", "outputs": {"cpu": 2}}],
    "spec.nodeLabels": {"pool": "b"}, "spec.nodeTaints[].effect": "NoExecute", "spec.nodeTaints[].key": "spot",
    "spec.nodeTaints[].value": "b", "spec.tolerations[].effect": "NoExecute", "spec.tolerations[].key": "k",
    "spec.tolerations[].operator": "Exists", "spec.tolerations[].value": "b",
    "spec.topologyName": "none", "spec.levels[].nodeLabel": "block", "spec.active": False, f"{_POD_SET}.count": 5,
    f"{_POD_SET}.minCount": 3, f"{_POD_SET}.name": "b", f"{_TOPOLOGY}.podSetGroupName": "g",
    f"{_TOPOLOGY}.preferred": "rack", f"{_TOPOLOGY}.required": "kubernetes.io/hostname",
    f"{_TOPOLOGY}.unconstrained": True, "spec.priority": 4, "spec.queueName": "lq2",
    "status.admissionChecks[].state": "Rejected",
}  # fmt: skip
UNIVERSAL = json.loads(json.dumps(RUNS))
UNIVERSAL["admission"]["podSetAssignments"][0]["topologyAssignment"] |= ALIKE
ELSEWHERE: dict[str, tuple[list[Json], Any]] = {
    f"{_TOPOLOGY}.podSetSliceRequiredTopology": (source(spec=SLICED), "kubernetes.io/hostname"),
    f"{_TOPOLOGY}.podSetSliceSize": (source(spec=SLICED), 4),
    f"{_TOPOLOGY}.podsetSliceRequiredTopologyConstraints[].size": (source(spec=LAYERED), 4),
    f"{_TOPOLOGY}.podsetSliceRequiredTopologyConstraints[].topology": (source(spec=LAYERED), "kubernetes.io/hostname"),
    "spec.priorityClassRef.name": (source(spec={"priority": None}), "unknown"),
    "spec.priorityClassRef.group": (source(spec={"priority": None}), "scheduling.k8s.io"),
    "status.admission.clusterQueue": (source(RUNS), "other"),
    f"{_ADMISSION}.count": (source(RUNS), 2), f"{_ADMISSION}.flavors": (source(RUNS), {"cpu": "g"}),
    f"{_ADMISSION}.name": (source(RUNS), "b"), f"{_ADMISSION}.resourceUsage": (source(RUNS), {"cpu": 8}),
    f"{_ADMISSION}.topologyAssignment.levels": (source(RUNS), ["rack"]),
    f"{_SLICE}.domainCount": (source(RUNS), 1), f"{_SLICE}.podCounts.individual": (source(RUNS), [2, 2]),
    f"{_SLICE}.valuesPerLevel[].individual.prefix": (source(RUNS), "i"),
    f"{_SLICE}.valuesPerLevel[].individual.roots": (source(RUNS), ["3", "4"]),
    f"{_SLICE}.valuesPerLevel[].individual.suffix": (source(RUNS), "y"),
    f"{_SLICE}.podCounts.universal": (source(UNIVERSAL), 1),
    f"{_SLICE}.valuesPerLevel[].universal": (source(UNIVERSAL), "i"),
    "status.admissionChecks[].name": (source({"admissionChecks": [{"name": "a", "state": "Retry"}]}), "b"),
    "status.conditions[].lastTransitionTime": (source({"conditions": EVICTED}), ONE),
    "status.conditions[].status": (source({"conditions": EVICTED}), "False"),
    "status.conditions[].reason": (source({"conditions": EVICTED}), "Preempted"),
    "status.conditions[].type": (source({"conditions": EVICTED}), "Requeued"),
    "status.conditions[].message": (
        source({"conditions": [condition("QuotaReserved", "False")]}), "Pending the preemption of 2 workload(s)",
    ),
    "status.reclaimablePods[].count": (source({"reclaimablePods": [{"name": "main", "count": 1}]}), 2),
    "status.reclaimablePods[].name": (source({"reclaimablePods": [{"name": "main", "count": 1}]}), "b"),
    "status.requeueState.requeueAt": (source({"requeueState": {"requeueAt": NOON}}), ONE),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), fields("kueue"))
def test_another_value_is_another_decision_or_a_finding(kind: str, path: str) -> None:
    documents, value = ELSEWHERE[path] if path in ELSEWHERE else (source(), OTHER[path])
    assert unused("kueue", documents, kind, path, value) is None
