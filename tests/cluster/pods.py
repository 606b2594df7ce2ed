"""Objects of KAI Scheduler and YuniKorn for tests, and the nodes and pods that both read."""

from typing import Any

SPACE = "default"


def _resources(cpu: int) -> dict[str, Any]:
    return {"name": "c", "image": "none", "resources": {"requests": {"cpu": str(cpu)}, "limits": {"cpu": str(cpu)}}}


def node(name: str, cpu: int = 16) -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, scheduler: str, cpu: int = 1, on: str | None = None, **metadata: dict[str, str]) -> dict[str, Any]:
    """A pod that waits, or runs ``on`` a node."""
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "containers": [_resources(cpu)],
        "terminationGracePeriodSeconds": 0,
    }
    spec |= {"automountServiceAccountToken": False} | ({"nodeName": on} if on else {})
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SPACE, **metadata}, "spec": spec,
            "status": status}  # fmt: skip


def kai_queue(name: str, cpu: int, parent: str | None = None) -> dict[str, Any]:
    shares = {kind: {"quota": cpu * 1000 if kind == "cpu" else -1, "limit": -1, "overQuotaWeight": 1}
              for kind in ("cpu", "memory", "gpu")}  # fmt: skip
    spec = {"resources": shares, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pod_group(name: str, queue: str, priority_class: str = "train") -> dict[str, Any]:
    spec = {"queue": queue, "minMember": 1, "priorityClassName": priority_class}
    return {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": SPACE}, "spec": spec}  # fmt: skip


def kai_pod(name: str, group: str, cpu: int = 1, on: str | None = None) -> dict[str, Any]:
    return pod(name, "kai-scheduler", cpu, on, annotations={"pod-group-name": group})


def yunikorn_pod(name: str, application: str, queue: str, cpu: int = 1, on: str | None = None) -> dict[str, Any]:
    return pod(name, "yunikorn", cpu, on, labels={"applicationId": application, "queue": queue})


def yunikorn_queues(guaranteed: int, name: str = "yunikorn-configs") -> dict[str, Any]:
    queues = (
        "partitions:\n  - name: default\n    queues:\n"
        f"      - {{name: prod, resources: {{guaranteed: {{vcore: {guaranteed}}}}}}}\n      - {{name: dev}}\n"
    )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "yunikorn"},
            "data": {"queues.yaml": queues}}  # fmt: skip
