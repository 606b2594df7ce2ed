"""Nodes, and pods as every scheduler's importer needs them: where they are, how they are, what they ask for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from app.formats.kubernetes.amounts import Steps, quantities, steps, total
from app.formats.kubernetes.objects import Object, named
from app.formats.kubernetes.pod_spec import PodSpec, read_pod_spec, read_taints
from app.formats.kubernetes.priority_classes import Classes
from app.solver.model.state import Node, Task

Phase = Literal["pending", "running", "releasing", "done", "gated"]
_PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. ``phase``: gated ones are not ready to be scheduled, done ones hold nothing. ``node``: where it is, if
    the source has that node."""

    made: Object
    spec: PodSpec
    phase: Phase
    node: str | None
    priority: int


def read_pods(found: Iterable[Object], nodes: set[str], classes: Classes) -> list[Pod]:
    """Every pod of the source. ``nodes``: the names of its nodes."""
    pods: list[Pod] = []
    for made in found:
        if named(made):
            spec = read_pod_spec(made.spec)
            phase = _phase(made, spec, made.status.text("phase"))
            if spec.node_name is not None and spec.node_name not in nodes and phase != "done":
                detail = f"node {spec.node_name!r} is not in the source: the pod is on no node"
                made.root.warn("spec", detail, rule="no-node")
            node = spec.node_name if spec.node_name in nodes else None
            pods.append(Pod(made, spec, phase, node, _priority(spec, classes)))
    return pods


def _phase(made: Object, spec: PodSpec, phase: str | None) -> Phase:
    if phase in ("Succeeded", "Failed"):
        return "done"
    if made.deleted:
        return "releasing" if spec.node_name else "done"
    if spec.node_name:
        return "running"
    return "gated" if spec.gated else "pending"


def _priority(spec: PodSpec, classes: Classes) -> int:
    """The API server writes the number into every pod; a manifest may name the class only."""
    if spec.priority is not None:
        return spec.priority
    found = classes.find(spec.priority_class)
    return found.value if found else 0


def read_nodes(found: Iterable[Object], strangers: Iterable[Pod], *, rename: dict[str, str]) -> list[Node]:
    """Nodes with what ``strangers``, pods of other schedulers, occupy there. ``rename``: resources by another name."""
    occupied: dict[str, list[Steps]] = {}
    for pod in strangers:
        if pod.phase in ("running", "releasing") and pod.spec.node_name:
            occupied.setdefault(pod.spec.node_name, []).append({**pod.spec.requests, "pods": 1})
    nodes: list[Node] = []
    for made in found:
        if not named(made):
            continue
        status, spec = made.status, made.spec
        capacity = steps(status, "allocatable") or steps(status, "capacity")
        taken = {name: value for name, value in total(occupied.get(made.name, [])).items() if name in capacity}
        nodes.append(
            Node(
                name=made.name,
                capacity=quantities(renamed(capacity, rename)),
                occupied=quantities(renamed(taken, rename)),
                labels=made.labels,
                taints=read_taints(spec, "taints"),
                schedulable=spec.boolean("unschedulable") is not True and _ready(made),
            )
        )
    return nodes


def _ready(made: Object) -> bool:
    """Ready, and under no pressure that makes schedulers leave a node alone. A manifest without conditions is ready."""
    for condition in made.status.children("conditions"):
        kind, holds = condition.text("type"), condition.take("status")
        if (kind == "Ready" and holds != "True") or (kind in _PRESSURE and holds not in ("False", None)):
            return False
    return True


def renamed(amounts: Steps, rename: dict[str, str]) -> Steps:
    """``amounts`` under other names."""
    return {rename.get(name, name): value for name, value in amounts.items()}


def as_task(pod: Pod, name: str, requests: Steps, **fields: Any) -> Task:
    """``pod`` as a task of a workload, or of an ask while it is pending: then it has no node and no state."""
    if pod.phase != "pending":
        fields["node"] = pod.node
        fields["uid"] = pod.made.uid
        fields["state"] = {"releasing": "releasing", "done": "released"}.get(pod.phase, "running")
    return Task(
        name=name,
        requests=quantities(requests),
        node_selector=pod.spec.node_selector,
        tolerations=pod.spec.tolerations,
        node_affinity=pod.spec.node_affinity,
        **fields,
    )
