"""kube-scheduler's extender protocol, the part about preemption: what it sends and reads, and whose pods those are.

Source: ``k8s.io/kube-scheduler/extender/v1``, in its own spelling. Fields that are not listed are left alone, as a
client in Go leaves them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from app.formats.objects import Classes, Object, objects
from app.formats.pods import Pod, PodSpec, read_pods
from app.formats.pods import read_pod as read_single
from app.formats.reader import Findings, Reader
from app.solver.model.base import Priority, Time, Total
from app.solver.model.configuration import Configuration
from app.solver.model.request import Eviction
from app.solver.model.state import Ask, Task, Workload


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """Who made a pod."""

    kind: str = ""
    """The owner's kind, as `Job`."""
    name: str = ""
    """The owner's name."""
    uid: str = ""
    """The owner's UID."""
    api_version: str = ""
    """Group and version of the kind, as `batch/v1`."""
    controller: bool | None = None
    """Whether it manages the pod: one owner at most does."""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What tells a pod apart, and which work it belongs to."""

    name: str = ""
    """The pod's name."""
    namespace: str = ""
    """The pod's namespace."""
    uid: str = ""
    """The pod's UID."""
    labels: dict[str, str] | None = None
    """Its labels: the system's own say whose work it is."""
    annotations: dict[str, str] | None = None
    """Its annotations, read as its labels are."""
    owner_references: list[OwnerReference] | None = None
    """What made it."""


class VictimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Who schedules a pod."""

    scheduler_name: str | None = None
    """Which scheduler places the pod."""
    priority_class_name: str | None = None
    """Its priority class."""
    priority: Priority | None = None
    """Its priority."""


class VictimStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Since when a pod runs."""

    start_time: Time | None = None
    """When it was taken up by its node."""


class VictimPod(msgspec.Struct, frozen=True):
    """A running pod."""

    metadata: Metadata
    """What tells it apart."""
    spec: VictimSpec = VictimSpec()
    """Who schedules it."""
    status: VictimStatus = VictimStatus()
    """Since when it runs."""


class Victims(msgspec.Struct, frozen=True, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    """Pods that kube-scheduler would evict from one node."""

    pods: list[VictimPod] | None = None
    """The pods."""
    violations: Total = 0
    """How many PodDisruptionBudgets that would break."""


class MetaPod(msgspec.Struct, frozen=True, rename={"uid": "UID"}):
    """A pod by its UID."""

    uid: str
    """The UID."""


class MetaVictims(msgspec.Struct, frozen=True, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    """Pods of one node by UID."""

    pods: list[MetaPod] | None = None
    """The pods."""
    violations: Total = 0
    """How many PodDisruptionBudgets that breaks."""


_ARGUMENTS = {"pod": "Pod", "victims": "NodeNameToVictims", "meta_victims": "NodeNameToMetaVictims"}


class ExtenderPreemptionArgs(msgspec.Struct, frozen=True, rename=_ARGUMENTS):
    """What kube-scheduler asks: the pod that finds no room, and by node whom it would evict for it."""

    pod: dict[str, Any]
    """The pod that finds no room."""
    victims: dict[str, Victims] | None = None
    """By node, where the extender has `nodeCacheCapable: false`."""
    meta_victims: dict[str, MetaVictims] | None = None
    """By node, where it has `nodeCacheCapable: true`: UIDs alone."""


class ExtenderPreemptionResult(msgspec.Struct, frozen=True, rename={"meta_victims": "NodeNameToMetaVictims"}):
    """What kube-scheduler reads: the nodes that stay, each with all of its victims."""

    meta_victims: dict[str, MetaVictims]
    """By node."""


def light_pod(pod: VictimPod) -> Pod:
    """A victim as importers take a pod, with what names it and its owner and nothing that it asks for."""
    of = pod.metadata
    owners = of.owner_references or []
    listed = [{"kind": owner.kind, "name": owner.name} for owner in owners]
    manifest = Object(
        kind="Pod", group="", version="v1", name=of.name, namespace=of.namespace, uid=of.uid or None, created_at=None,
        deleted=False, labels=of.labels or {}, annotations=of.annotations or {},
        owners=tuple(owner.kind for owner in owners), owner_uids=tuple(owner.uid for owner in owners),
        root=Reader({"metadata": {"ownerReferences": listed}}, (), Findings()),
    )  # fmt: skip
    spec = PodSpec(
        requests={}, node_name=None, priority=None, priority_class=pod.spec.priority_class_name, never_preempts=False,
        scheduler=pod.spec.scheduler_name, gated=False, node_selector=None, tolerations=None, node_affinity=None,
        pinned_node=None,
    )  # fmt: skip
    return Pod(manifest=manifest, spec=spec, phase="running", node=None, priority=0)


_SYSTEM_CRITICAL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Around:
    """What the snapshot has: running workloads and waiting asks by id, and the queues that there are."""

    configuration: Configuration
    running: Mapping[str, Workload]
    waiting: Mapping[str, Ask]

    def has_queue(self, name: str) -> bool:
        """Whether it is one of the configuration."""
        return any(queue.name == name for queue in self.configuration.queues)


class Recogniser(Protocol):
    """How one system's pods are told: as the workloads and asks that a snapshot has. What they say of themselves is not
    believed: it says where to look."""

    @property
    def predicts(self) -> bool:
        """Whether the system is kube-scheduler itself: it is told nothing, and what it will do is foretold."""
        ...

    def place(self, pod: VictimPod) -> Eviction | None:
        """What evicting the pod would be; None for a pod that the system has no say in."""
        ...

    def ask(self, pod: Pod) -> Ask | None:
        """The pod as pending work; None where it is in no queue."""
        ...


def read_pod(document: dict[str, Any]) -> Pod | None:
    """The pod that finds no room; None where it is none."""
    manifests = [
        manifest
        for manifest in objects([((), {**document, "kind": "Pod", "apiVersion": "v1"})], Findings())
        if manifest.name
    ]
    pods = read_pods(map(read_single, manifests), set(), Classes())
    return replace(pods[0], phase="pending") if pods else None


def is_system_critical(pod: Pod) -> bool:
    """Whether Kubernetes itself needs it: its priority is above all that users may define."""
    return pod.priority >= _SYSTEM_CRITICAL


def asking(workload: Workload, id: str, task: Task) -> Ask:  # noqa: A002
    """A pod of running work that asks again, as ``task``."""
    return Ask(
        id=id, queue=workload.queue, workload=workload.id, uid=workload.uid, priority=workload.priority,
        created_at=workload.created_at, preemptible=workload.preemptible, min_available=1, tasks=[task],
    )  # fmt: skip


class Tasks:
    """The pods of workloads and asks, which tasks stand for: by name, and by the UID, which nobody can choose."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Task]] = {}

    def named(self, work: Workload | Ask, name: str) -> Task | None:
        """The task of that name; None: there is none."""
        known = self._of.setdefault(f"{type(work).__name__} {work.id}", {})
        if not known:
            known.update((task.name, task) for task in work.tasks)
        return known.get(name)

    def place(self, work: Workload | None, id: str, name: str, uid: str | None) -> Eviction:  # noqa: A002
        """Evicting the pod as a task of ``work``, which is called ``id``. One that was made anew since the snapshot is
        a workload that there is not: its eviction is refused."""
        known = None if work is None else self.named(work, name)
        if known is not None and uid and known.uid not in (None, uid):
            return Eviction(workload=uid)
        return Eviction(workload=id, task=name)

    def has(self, work: Workload | Ask | None, name: str, uid: str | None) -> bool:
        """Whether the pod is a task of ``work``."""
        known = None if work is None else self.named(work, name)
        return known is not None and known.uid in (None, uid)


class ByTask:
    """The base of recognisers where a pod is a task of a workload: it is one where the snapshot has its UID there."""

    predicts = False

    def __init__(self, around: Around) -> None:
        self._around, self._tasks = around, Tasks()

    def _place(self, pod: Pod, work: str, name: str) -> Eviction:
        """Evicting ``pod``, which is task ``name`` of the workload ``work``."""
        return self._tasks.place(self._around.running.get(work), work, name, pod.manifest.uid)
