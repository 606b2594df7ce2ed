"""Objects of Kueue for tests."""

from typing import Any

GROUP = "kueue.x-k8s.io/v1beta1"
SPACE = "default"
RACK = "example.com/rack"
START = "2026-11-22T08:00:00Z"


def _made(kind: str, name: str, spec: dict[str, Any], space: str | None = None) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": space} if space else {})}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}


def flavor(name: str = "default") -> dict[str, Any]:
    return _made("ResourceFlavor", name, {})


def topology(name: str) -> dict[str, Any]:
    """Hosts in racks."""
    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    return _made("Topology", name, {"levels": levels})


def cluster_queue(name: str, cpu: int, cohort: str | None = None, **preemption: str) -> dict[str, Any]:
    quota = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    spec: dict[str, Any] = {
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quota}],
        "preemption": preemption,
        "namespaceSelector": {},
    }
    return _made("ClusterQueue", name, spec | ({"cohort": cohort} if cohort else {}))


def local_queue(name: str, of: str) -> dict[str, Any]:
    return _made("LocalQueue", name, {"clusterQueue": of}, SPACE)


def priority_class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": GROUP, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def workload(name: str, queue: str, cpu: int, priority: int = 0, *, admitted: str | None = None) -> dict[str, Any]:
    """One that waits in LocalQueue ``queue``, or is admitted to ClusterQueue ``admitted``."""
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    made = _made("Workload", name, {"queueName": queue, "priority": priority, "podSets": [pods]}, SPACE)
    if admitted is not None:
        made["status"] = admission(admitted, cpu)
    return made


def admission(queue: str, cpu: int) -> dict[str, Any]:
    """The status of an admitted workload."""
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": str(cpu)}}
    condition = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
                 "lastTransitionTime": START}  # fmt: skip
    return {"admission": {"clusterQueue": queue, "podSetAssignments": [assigned]}, "conditions": [condition]}
