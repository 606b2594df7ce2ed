"""KAI's recorded cycles in which what was evicted made room for one job.

Left out, because objects or Events don't say it: cycles whose outcome was not always the same; consolidations, whose
Events name nobody; evictions for several jobs, of which no recording says which was for whom.
"""

from collections.abc import Mapping
from typing import Any

from tests.cluster.recorded.made import SPACE, Inexpressible, Item, Recorded, event, node, pod, queues

_GROUP = "scheduling.run.ai"
_STARTED = "kai.scheduler/last-start-timestamp"
_NAMES = {"gpu": "nvidia.com/gpu"}
_FIELDS = ("queue", "priority", "preemptible", "min_available", "created_at")


def recorded(vector: dict[str, Any], prefix: str) -> Recorded:
    """The objects of a decision, names of work behind ``prefix``. Raises Inexpressible."""
    request = vector["request"]
    asked = _for_whom(vector)
    groups, pods = _groups(request)
    made = [_group(prefix, name, of) for name, of in groups.items()]
    there = [_pod(prefix, group, task) for group, tasks in pods.items() for task in tasks]
    nodes = [node(of, _amounts(of["capacity"])) for of in request["state"]["nodes"]]
    if any(of.keys() - {"name", "capacity"} for of in request["state"]["nodes"]):
        raise Inexpressible("a node with more than a capacity")
    reasons = {(one["workload"], one["task"]): one["reason"] for one in vector["expect"]["plan"]["evictions"]}
    told = {
        (group, task["name"]): _told(prefix, group, task["name"], asked, reasons.get((group, task["name"]), "reclaim"),
                                     request["now"])
        for group, tasks in pods.items() for task in tasks if "node" in task and "state" not in task
    }  # fmt: skip
    return Recorded(
        engine="kai", name=vector["id"], ask=f"{SPACE}/{prefix}{asked}", at=request["now"],
        settings=request["configuration"].get("settings", {}),
        objects=[*queues(request, "kai"), *_classes(groups.values()), *nodes, *made, *there],
        victims={prefix + task: told[group, task] for group, task in reasons},
        others={prefix + task: one for (group, task), one in told.items() if (group, task) not in reasons},
    )  # fmt: skip


def _for_whom(vector: dict[str, Any]) -> str:
    if "expect" not in vector:
        raise Inexpressible("the outcome was not always the same")
    plan = vector["expect"]["plan"]
    if not plan["evictions"]:
        raise Inexpressible("nobody was evicted")
    if any(one["reason"] == "consolidation" for one in plan["evictions"]):
        raise Inexpressible("an Event of a consolidation names nobody")
    victims = {one["workload"] for one in plan["evictions"]}
    asks = {one["ask"] for one in plan["placements"] if one.get("ask") and one["pipelined"]} - victims
    if len(asks) != 1:
        raise Inexpressible("evictions for several jobs")
    return asks.pop()


def _groups(request: dict[str, Any]) -> tuple[dict[str, Item], dict[str, list[Item]]]:
    """PodGroups, and the pods of each: those of a workload, and of an ask of the same group."""
    groups = {one["id"]: one for one in request["state"]["workloads"]}
    pods = {name: list(one["tasks"]) for name, one in groups.items()}
    for ask in request["asks"]:
        name = ask.get("workload", ask["id"])
        if name != ask["id"]:
            raise Inexpressible("an ask that is called otherwise than its group")
        whole = groups.setdefault(name, ask)
        if any(whole.get(field) != ask.get(field) for field in _FIELDS):
            raise Inexpressible("a group whose pending pods are of another kind")
        pods.setdefault(name, []).extend(ask["tasks"])
    return groups, pods


def _amounts(of: Mapping[str, Any]) -> dict[str, str]:
    return {_NAMES.get(name, name): str(value) for name, value in of.items()}


def _class(priority: int) -> str:
    return f"p-{priority}"


def _classes(groups: Any) -> list[Item]:
    values = sorted({of["priority"] for of in groups})
    return [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": _class(value)},
         "value": value} for value in values
    ]  # fmt: skip


def _group(prefix: str, name: str, of: Mapping[str, Any]) -> Item:
    metadata: Item = {"name": prefix + name, "namespace": SPACE, "uid": of.get("uid", prefix + name),
                      "creationTimestamp": of["created_at"]}  # fmt: skip
    if "started_at" in of:
        metadata["annotations"] = {_STARTED: of["started_at"]}
    spec = {
        "queue": of["queue"], "minMember": of["min_available"], "priorityClassName": _class(of["priority"]),
        "preemptibility": "preemptible" if of.get("preemptible", True) else "non-preemptible",
    }  # fmt: skip
    return {"apiVersion": f"{_GROUP}/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def _pod(prefix: str, group: str, task: Mapping[str, Any]) -> Item:
    if task.keys() - {"name", "requests", "node", "state"} or task.get("state", "releasing") != "releasing":
        raise Inexpressible("a pod with more than a place")
    return pod(
        prefix + task["name"], "kai-scheduler", _amounts(task["requests"]), "2026-11-22T08:00:00Z", task.get("node"),
        ending="state" in task, annotations={"pod-group-name": prefix + group},
    )  # fmt: skip


def _told(prefix: str, group: str, task: str, asked: str, reason: str, at: str) -> Item:
    """KAI's Event about the PodGroup of a pod that it evicts (pkg/scheduler/api)."""
    by = f"{'higher priority ' if reason == 'preempt' else ''}workload {SPACE}/{prefix}{asked}"
    message = f"Pod {SPACE}/{prefix}{task} was preempted by {by}." if reason == "reclaim" else (
        f"Pod {SPACE}/{prefix}{task} was preempted by {by}"
    )  # fmt: skip
    about = {"apiVersion": f"{_GROUP}/v2alpha2", "kind": "PodGroup", "metadata": {"name": prefix + group}}
    made = event(about, "Evict", message, at)
    made["metadata"]["name"] = f"{prefix}{task}.evicted"
    return made
