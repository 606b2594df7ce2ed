"""YuniKorn's recorded preemptions, as the objects that its Kubernetes shim would have made them of.

Each pod counts as one unit of ``pods`` there, and each node is asked whether it would do. Recordings of the core alone,
without these, are taken where neither changes anything: no more than two victims, all candidates share a resource with
the ask anyway; and no pod on a node is opted out or an originator, so that the score of a node is its place. Left out,
because no object says it: what earlier cycles left behind (reservations, marks on victims, when an ask last tried), and
preemptions whose outcome was not always the same.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import yaml

from tests.cluster.recorded.made import HOST, SPACE, Inexpressible, Item, Recorded, event, node, pod, queues

_NAMES = {"vcore": "cpu"}
_MOST_WITH_PODS = 2
_OLDEST = "2001-01-01T00:00:00Z"
_OF_A_TASK = {"name", "requests", "node", "priority", "created_at", "preemptible", "originator", "required_node",
              "placeholder"}  # fmt: skip
_OF_AN_ASK = {"id", "queue", "workload", "priority", "created_at", "tasks", "preemptible", "originator",
              "preemption_policy", "feasible_nodes"}  # fmt: skip


def recorded(vector: dict[str, Any], prefix: str) -> Recorded:
    """The objects of a decision, names of work behind ``prefix``. Raises Inexpressible."""
    request = vector["request"]
    victims = _victims(vector)
    (ask,), state = request["asks"], request["state"]
    running = [(of, task) for of in state["workloads"] for task in of["tasks"]]
    _check_memory(ask, state, [task for _, task in running])
    _check_pods(ask, [task for _, task in running], victims)
    _check_nodes(request, [task for _, task in running])
    pods = {task["name"]: _pod(prefix, of["id"], of["queue"], task) for of, task in running}
    waits = _waiting(prefix, ask)
    told = f"Preempted by {waits['metadata']['uid']} from application {prefix}{ask['workload']} in {ask['queue']}"
    said = {
        prefix + name: event(pods[name], "Informational", told, request["now"])
        for name in pods
    }  # fmt: skip
    gone = {prefix + name for name in victims}
    return Recorded(
        engine="yunikorn", name=vector["id"], ask=f"{SPACE}/{prefix}{ask['id']}", at=request["now"],
        settings=request["configuration"].get("settings", {}),
        objects=[
            _config_map(request), *_nodes(prefix, state["nodes"]), *_originators(prefix, ask, state["workloads"]),
            *pods.values(), waits,
        ],
        victims={name: one for name, one in said.items() if name in gone},
        others={name: one for name, one in said.items() if name not in gone},
    )  # fmt: skip


def _victims(vector: dict[str, Any]) -> list[str]:
    if "expect" not in vector:
        raise Inexpressible("the outcome was not always the same")
    (decision,) = vector["expect"]["decisions"]
    if not decision["victims"]:
        raise Inexpressible("nobody was preempted")
    return [one["task"] for one in decision["victims"]]


def _check_memory(ask: Item, state: Item, tasks: list[Item]) -> None:
    """What earlier cycles left behind is in no object."""
    if state.get("reservations"):
        raise Inexpressible("reservations")
    if any("state" in task for task in tasks):
        raise Inexpressible("marks on victims of earlier cycles")
    if ask.keys() - _OF_AN_ASK or any(task.keys() - _OF_A_TASK for task in tasks):
        raise Inexpressible("an ask that has tried before")


def _check_pods(ask: Item, tasks: list[Item], victims: list[str]) -> None:
    wanted = ask["tasks"][0]["requests"]
    given = [wanted, *(task["requests"] for task in tasks)]
    if all(one.get("pods") == 1 for one in given):
        return
    if any("pods" in one for one in given):
        raise Inexpressible("pods that count as none, or as several")
    if len(victims) > _MOST_WITH_PODS:
        raise Inexpressible("more victims than with pods counted")
    if any(not one.keys() & wanted.keys() for one in given):
        raise Inexpressible("candidates only if pods are counted")


def _check_nodes(request: Item, tasks: list[Item]) -> None:
    state, ask = request["state"], request["asks"][0]
    alone = request.get("options", {}).get("yunikorn", {}).get("node_choice") == "first"
    if alone and any(task.get("originator") or not task.get("preemptible", True) for task in tasks):
        raise Inexpressible("a choice of nodes without asking the shim")
    counted = "pods" in ask["tasks"][0]["requests"]
    if counted and any("pods" not in of["capacity"] for of in state["nodes"]):
        raise Inexpressible("nodes without room for any pod")
    for of in state["nodes"]:
        if of.keys() - {"name", "capacity", "occupied", "schedulable"}:
            raise Inexpressible("a node with more than a capacity")
        if counted and bool(of.get("occupied")) != bool(of.get("occupied", {}).get("pods")):
            raise Inexpressible("others on a node who are no pods")


def _amounts(of: Mapping[str, Any]) -> dict[str, str]:
    return {_NAMES.get(name, name): str(value) for name, value in of.items() if name != "pods"}


def _config_map(request: Item) -> Item:
    (document,) = queues(request, "yunikorn")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yunikorn-configs", "namespace": "yunikorn"},
            "data": {"queues.yaml": yaml.safe_dump(document)}}  # fmt: skip


def _nodes(prefix: str, nodes: list[Item]) -> list[Item]:
    """Nodes, and pods of other schedulers that take the room that is occupied."""
    made: list[Item] = []
    for of in nodes:
        pods = {"pods": str(of["capacity"]["pods"])} if "pods" in of["capacity"] else {}
        made.append(node(of, _amounts(of["capacity"]) | pods))
        occupied = of.get("occupied", {})
        for i in range(occupied.get("pods", 1 if occupied else 0)):
            requests = _amounts(occupied) if i == 0 else {}
            made.append(pod(f"{prefix}other-{of['name']}-{i}", "default-scheduler", requests, _OLDEST, of["name"]))
    return made


def _labels(prefix: str, application: str, queue: str) -> dict[str, str]:
    return {"applicationId": prefix + application, "queue": queue}


def _pod(prefix: str, application: str, queue: str, task: Item) -> Item:
    notes = {"yunikorn.apache.org/allow-preemption": "true" if task.get("preemptible", True) else "false"}
    if task.get("placeholder"):
        notes["yunikorn.apache.org/placeholder"] = "true"
    made = pod(
        prefix + task["name"], "yunikorn", _amounts(task["requests"]), task["created_at"], task.get("node"),
        priority=task.get("priority", 0), labels=_labels(prefix, application, queue), annotations=notes,
    )  # fmt: skip
    if (required := task.get("required_node")) is not None:
        made["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}]
        field = {"key": "metadata.name", "operator": "In", "values": [required]}
        made["spec"]["affinity"] = _affinity({"matchFields": [field]})
    return made


def _waiting(prefix: str, ask: Item) -> Item:
    (task,) = ask["tasks"]
    fields = {key: ask[key] for key in ("priority", "created_at", "preemptible") if key in ask}
    made = _pod(prefix, ask["workload"], ask["queue"], {"name": ask["id"], "requests": task["requests"], **fields})
    if ask.get("preemption_policy") == "Never":
        made["spec"]["preemptionPolicy"] = "Never"
    if (feasible := ask.get("feasible_nodes")) is not None:
        expression = {"key": HOST, "operator": "In", "values": feasible}
        made["spec"]["affinity"] = _affinity({"matchExpressions": [expression]})
    return made


def _affinity(term: Item) -> Item:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _originators(prefix: str, ask: Item, workloads: list[Item]) -> list[Item]:
    """First pods of applications that have none among those that run: they are done. Raises Inexpressible."""
    done: list[Item] = []
    for of in workloads:
        own = ask.get("workload") == of["id"]
        members = [*of["tasks"], *([ask] if own else [])]
        if not members:
            continue
        ages = [datetime.fromisoformat(one["created_at"]) for one in members]
        first = [i for i, one in enumerate(members) if one.get("originator")]
        if not first:
            done.append(pod(
                f"{prefix}first-{of['id']}", "yunikorn", {}, _OLDEST, "gone", phase="Succeeded",
                labels=_labels(prefix, of["id"], of["queue"]),
            ))  # fmt: skip
        elif len(first) > 1 or any(age <= ages[first[0]] for i, age in enumerate(ages) if i != first[0]):
            raise Inexpressible("an originator that is not the first pod of its application")
    return done
