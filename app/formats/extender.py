"""kube-scheduler's extender protocol, the part about preemption: what it sends and reads, and whose pods those are.

Source: ``k8s.io/kube-scheduler/extender/v1``, in its own spelling. Fields that are not listed are left alone, as a
client in Go leaves them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha1
from typing import Any, Protocol

import msgspec

from app.formats import kube_scheduler as kube_scheduler_pods
from app.formats.kai import pods as kai_pods
from app.formats.objects import Classes, Object, objects
from app.formats.pods import Pod, PodSpec, quantities, read_pods
from app.formats.pods import read_pod as read_single
from app.formats.reader import Findings, Reader
from app.formats.yunikorn import pods as yunikorn_pods
from app.formats.yunikorn.pods import Placement
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
    made = Object(
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
    return Pod(made=made, spec=spec, phase="running", node=None, priority=0)


_SYSTEM_CRITICAL = 2_000_000_000
_JOB_SET = "jobset.sigs.k8s.io/jobset-"
_HASH = 5
_LONGEST_NAMES = (253, 63)


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
    made = [one for one in objects([((), {**document, "kind": "Pod", "apiVersion": "v1"})], Findings()) if one.name]
    found = read_pods(map(read_single, made), set(), Classes())
    return replace(found[0], phase="pending") if found else None


def is_system_critical(pod: Pod) -> bool:
    """Whether Kubernetes itself needs it: its priority is above all that users may define."""
    return pod.priority >= _SYSTEM_CRITICAL


def recogniser(engine: str, around: Around) -> Recogniser | None:
    """Of the system; None for one that has no pods."""
    kinds = {"kai": _Kai, "yunikorn": _YuniKorn, "kueue": _Kueue, "kube-scheduler": _KubeScheduler}
    return kinds[engine](around) if engine in kinds else None


def _asking(workload: Workload, id: str, task: Task) -> Ask:  # noqa: A002
    return Ask(
        id=id, queue=workload.queue, workload=workload.id, uid=workload.uid, priority=workload.priority,
        created_at=workload.created_at, preemptible=workload.preemptible, min_available=1, tasks=[task],
    )  # fmt: skip


class _Tasks:
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


class _Kai:
    """A pod is a task of a workload where the snapshot has its UID there."""

    predicts = False

    def __init__(self, around: Around) -> None:
        self._around, self._tasks = around, _Tasks()

    def place(self, pod: VictimPod) -> Eviction | None:
        light = light_pod(pod)
        if not kai_pods.belongs(light):
            return None
        group = kai_pods.group(light)
        return self._tasks.place(self._around.running.get(group), group, light.made.name, light.made.uid)

    def ask(self, pod: Pod) -> Ask | None:
        if not kai_pods.belongs(pod):
            return None
        group, name, uid = kai_pods.group(pod), pod.made.name, pod.made.uid
        requests, shares = kai_pods.asked_of(pod)
        task = Task(name=name, uid=uid, requests=quantities(requests), **shares)
        waiting, running = self._around.waiting.get(group), self._around.running.get(group)
        if running is not None and any(self._tasks.has(of, name, uid) for of in (running, waiting)):
            return _asking(running, group, task)
        if waiting is not None and self._tasks.has(waiting, name, uid):
            return msgspec.structs.replace(waiting, tasks=[task])
        alone = replace(pod, made=replace(pod.made, annotations={}))
        _, asks = kai_pods.read_groups([], [alone], set(), Classes(), datetime.now(UTC))
        if not asks or not self._around.has_queue(asks[0].queue):
            return None
        return msgspec.structs.replace(asks[0], id=pod.made.id, tasks=[task])


class _YuniKorn:
    """A pod is a task of a workload where the snapshot has its UID there."""

    predicts = False

    def __init__(self, around: Around) -> None:
        self._around, self._tasks = around, _Tasks()

    def place(self, pod: VictimPod) -> Eviction | None:
        light = light_pod(pod)
        if not yunikorn_pods.belongs(light):
            return None
        application = yunikorn_pods.application(light)
        return self._tasks.place(self._around.running.get(application), application, light.made.id, light.made.uid)

    def ask(self, pod: Pod) -> Ask | None:
        if not yunikorn_pods.belongs(pod):
            return None
        waiting = self._around.waiting.get(pod.made.id)
        if waiting is not None and waiting.uid in (None, pod.made.uid):
            return waiting
        placement = Placement(self._around.configuration)
        _, asks, _ = yunikorn_pods.read_applications([pod], placement, Classes(), Findings())
        if not asks:
            return None
        application = yunikorn_pods.application(pod)
        running = self._around.running.get(application)
        if running is not None and self._tasks.has(running, pod.made.id, pod.made.uid):
            return msgspec.structs.replace(asks[0], queue=running.queue, workload=running.id)
        return asks[0] if self._around.has_queue(asks[0].queue) else None


class _KubeScheduler:
    predicts = True

    def __init__(self, around: Around) -> None:
        self._around = around

    def place(self, pod: VictimPod) -> Eviction | None:
        del pod
        return None

    def ask(self, pod: Pod) -> Ask | None:
        waiting = self._around.waiting.get(pod.made.id)
        if waiting is not None and waiting.uid in (None, pod.made.uid):
            return waiting
        made = kube_scheduler_pods.ask_of(replace(pod, spec=kube_scheduler_pods.read_spec(pod.made.spec)), Classes())
        return made if self._around.has_queue(made.queue) else None


class _Kueue:
    """A pod is of the Workload that its owner, or itself, owns."""

    predicts = False

    def __init__(self, around: Around) -> None:
        self._around = around
        self._owned: dict[str, list[Workload | Ask]] | None = None

    def place(self, pod: VictimPod) -> Eviction | None:
        of = pod.metadata
        found = self._found(of.namespace, of.name, of.uid, of.labels or {}, of.owner_references or [])
        return next((Eviction(workload=one.id) for one in found if isinstance(one, Workload)), None)

    def ask(self, pod: Pod) -> Ask | None:
        made = pod.made
        owners = msgspec.convert(_owners(made.root.value), list[OwnerReference], strict=False)
        for one in self._found(made.namespace, made.name, made.uid or "", made.labels, owners):
            if isinstance(one, Ask):
                return one
            return _asking(one, one.id, one.tasks[0]) if one.tasks else None
        return None

    def _found(
        self, space: str, name: str, uid: str, labels: Mapping[str, str], owners: list[OwnerReference]
    ) -> Iterator[Workload | Ask]:
        """The Workloads that may be the pod's, what runs first: called after what owns it, or owned by the same."""
        around = self._around
        ids = [f"{space}/{made}" for made in workload_names(name, uid, labels, owners)]
        yield from (around.running[id] for id in ids if id in around.running)  # noqa: A001
        yield from (around.waiting[id] for id in ids if id in around.waiting)  # noqa: A001
        for owner in (uid, *(one.uid for one in _managing_first(owners))):
            for one in self._owned_by(owner) if owner else ():
                if one.id.startswith(f"{space}/"):
                    yield one

    def _owned_by(self, uid: str) -> list[Workload | Ask]:
        if self._owned is None:
            self._owned = {}
            for one in (*self._around.running.values(), *self._around.waiting.values()):
                for owner in one.kueue.owners if one.kueue is not None else ():
                    self._owned.setdefault(owner, []).append(one)
        return self._owned.get(uid, [])


def _owners(document: Mapping[str, Any]) -> list[Any]:
    metadata = document.get("metadata")
    found = metadata.get("ownerReferences") if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _managing_first(owners: list[OwnerReference]) -> list[OwnerReference]:
    return sorted(owners, key=lambda one: one.controller is not True)


def workload_names(name: str, uid: str, labels: Mapping[str, str], owners: list[OwnerReference]) -> list[str]:
    """The names that the Kueue Workload of a pod may have, the likeliest first: of the JobSet that made the Job that
    made the pod, of the controller that did, of the pod itself. A JobSet is one where the Job is called after it.

    Source: Kueue's ``pkg/controller/jobframework/workload_names.go``: kind and name of the object, cut to what a name
    may be long, and five digits of a SHA-1 over kind, group, name and UID."""
    found: list[str] = []
    job_set = labels.get(f"{_JOB_SET}name"), labels.get(f"{_JOB_SET}uid")
    for owner in _managing_first(owners):
        if job_set[0] and job_set[1] and owner.kind == "Job" and owner.name.startswith(f"{job_set[0]}-"):
            found += _named_after("JobSet", "jobset.x-k8s.io", job_set[0], job_set[1])
        found += _named_after(owner.kind, owner.api_version.rpartition("/")[0], owner.name, owner.uid)
    return [*found, *_named_after("Pod", "", name, uid)]


def _named_after(kind: str, group: str, name: str, uid: str) -> list[str]:
    digits = sha1("\n".join((kind, group, name, uid)).encode(), usedforsecurity=False).hexdigest()[:_HASH]
    whole = f"{kind.lower()}-{name}"
    return list(dict.fromkeys(f"{whole[: most - 1 - _HASH]}-{digits}" for most in _LONGEST_NAMES))
