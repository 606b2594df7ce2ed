"""Nodes, and pods as every scheduler's importer needs them: where they are, how they are, what they ask for."""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from app.formats.documents.reader import Reader
from app.formats.kubernetes.amounts import Steps, quantities, steps, total
from app.formats.kubernetes.objects import Object, named
from app.formats.kubernetes.pod_spec import PodSpec, read_pod_spec, read_taints
from app.formats.kubernetes.priority_classes import Classes
from app.solver.model.state import Node, Task

Phase = Literal["pending", "running", "releasing", "done", "gated"]
_PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class SinglePod:
    """A pod by itself, whatever else there is. ``phase``: gated ones are not ready to be scheduled, done ones hold
    nothing."""

    made: Object
    spec: PodSpec
    phase: Phase
    tasks: dict[Hashable, Task] | None = field(default=None, compare=False, kw_only=True)
    """Tasks that were made of it, where they are kept, by what else they hang on."""

    def once(self, on: Hashable, make: Callable[[], Task]) -> Task:
        """What ``make`` gives, which hangs on the pod and on ``on`` alone."""
        if self.tasks is None:
            return make()
        if (made := self.tasks.get(on)) is None:
            self.tasks.clear()
            made = self.tasks[on] = make()
        return made


@dataclass(frozen=True, slots=True)
class Pod(SinglePod):
    """A pod among others. ``node``: where it is, if the source has that node."""

    node: str | None
    priority: int


def read_pod(made: Object, read: Callable[[Reader], PodSpec] = read_pod_spec) -> SinglePod | None:
    """None for one without a name. ``read``: reads its spec."""
    if not named(made):
        return None
    spec = read(made.spec)
    return SinglePod(made, spec, _phase(made, spec, made.status.text("phase")))


def read_pods(found: Iterable[SinglePod | None], nodes: Collection[str], classes: Classes) -> list[Pod]:
    """Every pod of the source. ``nodes``: the names of its nodes."""
    pods: list[Pod] = []
    for one in found:
        if one is None:
            continue
        made, spec, node = one.made, one.spec, one.spec.node_name
        if node is not None and node not in nodes:
            if one.phase != "done":
                made.root.warn("spec", f"node {node!r} is not in the source: the pod is on no node", rule="no-node")
            node = None
        pods.append(Pod(made, spec, one.phase, node, _priority(spec, classes), tasks=one.tasks))
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
