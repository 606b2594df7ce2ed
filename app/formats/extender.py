"""kube-scheduler's extender protocol, the part about preemption: what it sends, in its own spelling, and what it reads.

Source: ``k8s.io/kube-scheduler/extender/v1``. Fields that are not listed are left alone, as a client in Go leaves them.

Pods of kube-scheduler's proposals as the workloads and asks that a snapshot has, by the rules that imports name them
by: ``place`` for a victim, ``ask`` for the pod that finds no room.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Any, Protocol

import msgspec

from app.formats.kai import pods as kai_pods
from app.formats.objects import Classes, Object, objects
from app.formats.pods import Pod, PodSpec, quantities, read_pods
from app.formats.pods import read_pod as read_single
from app.formats.reader import Findings, Reader
from app.formats.work.kueue import QUEUE, leaf_names
from app.formats.work.read import as_counted, resource_names
from app.formats.yunikorn import pods as yunikorn_pods
from app.formats.yunikorn.placement import Placement
from app.solver.model.base import Total
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


class VictimPod(msgspec.Struct, frozen=True):
    """A running pod."""

    metadata: Metadata
    """What tells it apart."""
    spec: VictimSpec = VictimSpec()
    """Who schedules it."""


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
        owners=tuple(owner.kind for owner in owners),
        root=Reader({"metadata": {"ownerReferences": listed}}, (), Findings()),
    )  # fmt: skip
    spec = PodSpec(
        requests={}, node_name=None, priority=None, priority_class=pod.spec.priority_class_name, never_preempts=False,
        scheduler=pod.spec.scheduler_name, gated=False, node_selector=None, tolerations=None, node_affinity=None,
        pinned_node=None,
    )  # fmt: skip
    return Pod(made=made, spec=spec, phase="running", node=None, priority=0)


_SYSTEM_CRITICAL = 2_000_000_000
_GROUP = "kueue.x-k8s.io"
_WORKLOAD = (f"{_GROUP}/workload", f"{_GROUP}/prebuilt-workload-name", f"{_GROUP}/pod-group-name")
_MANAGED = (f"{_GROUP}/podset", f"{_GROUP}/managed", QUEUE)
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
    """How one system's pods are told."""

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
    kinds = {"kai": _Kai, "yunikorn": _YuniKorn, "kueue": _Kueue}
    return kinds[engine](around) if engine in kinds else None


def _asking(workload: Workload, id: str, task: Task) -> Ask:  # noqa: A002
    return Ask(
        id=id, queue=workload.queue, workload=workload.id, uid=workload.uid, priority=workload.priority,
        created_at=workload.created_at, preemptible=workload.preemptible, min_available=1, tasks=[task],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Kai:
    around: Around

    def place(self, pod: VictimPod) -> Eviction | None:
        light = light_pod(pod)
        return Eviction(workload=kai_pods.group(light), task=light.made.name) if kai_pods.belongs(light) else None

    def ask(self, pod: Pod) -> Ask | None:
        if not kai_pods.belongs(pod):
            return None
        group = kai_pods.group(pod)
        task = Task(name=pod.made.name, requests=quantities(kai_pods.requests_of(pod, {})))
        if (running := self.around.running.get(group)) is not None:
            return _asking(running, group, task)
        if (waiting := self.around.waiting.get(group)) is not None:
            return msgspec.structs.replace(waiting, tasks=[task])
        alone = replace(pod, made=replace(pod.made, annotations={}))
        _, asks = kai_pods.read_groups([], [alone], set(), Classes(), {})
        if not asks or not self.around.has_queue(asks[0].queue):
            return None
        return msgspec.structs.replace(asks[0], id=group, tasks=[task])


@dataclass(frozen=True, slots=True)
class _YuniKorn:
    around: Around

    def place(self, pod: VictimPod) -> Eviction | None:
        light = light_pod(pod)
        if not yunikorn_pods.belongs(light):
            return None
        return Eviction(workload=yunikorn_pods.application(light), task=light.made.id)

    def ask(self, pod: Pod) -> Ask | None:
        if not yunikorn_pods.belongs(pod):
            return None
        if (waiting := self.around.waiting.get(pod.made.id)) is not None:
            return waiting
        placement = Placement(self.around.configuration)
        _, asks, _ = yunikorn_pods.read_applications([pod], placement, Classes(), Findings())
        if not asks:
            return None
        running = self.around.running.get(yunikorn_pods.application(pod))
        if running is not None:
            return msgspec.structs.replace(asks[0], queue=running.queue, workload=running.id)
        return asks[0] if self.around.has_queue(asks[0].queue) else None


@dataclass(frozen=True, slots=True)
class _Kueue:
    around: Around

    def place(self, pod: VictimPod) -> Eviction | None:
        of = pod.metadata
        words = {**(of.labels or {}), **(of.annotations or {})}
        names = workload_names(of.name, of.uid, words, of.owner_references or [])
        for name in names:
            if f"{of.namespace}/{name}" in self.around.running:
                return Eviction(workload=f"{of.namespace}/{name}")
        return Eviction(workload=f"{of.namespace}/{names[0]}") if any(key in words for key in _MANAGED) else None

    def ask(self, pod: Pod) -> Ask | None:
        made = pod.made
        owners = msgspec.convert(_owners(made.root.value), list[OwnerReference], strict=False)
        words = {**made.labels, **made.annotations}
        for name in workload_names(made.name, made.uid or "", words, owners):
            id = f"{made.namespace}/{name}"  # noqa: A001
            if (running := self.around.running.get(id)) is not None:
                return _asking(running, id, running.tasks[0]) if running.tasks else None
            if (waiting := self.around.waiting.get(id)) is not None:
                return waiting
        queue = words.get(QUEUE)
        if queue not in leaf_names(self.around.configuration):
            return None
        counted = resource_names(self.around.configuration)
        requests = as_counted({**pod.spec.requests, **({"pods": 1} if "pods" in counted else {})}, counted)
        task = Task(name="main", requests=quantities(requests), tolerations=pod.spec.tolerations)
        return Ask(id=made.id, queue=queue, priority=pod.priority, created_at=made.created_at, tasks=[task])


def _owners(document: Mapping[str, Any]) -> list[Any]:
    metadata = document.get("metadata")
    found = metadata.get("ownerReferences") if isinstance(metadata, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def workload_names(name: str, uid: str, words: Mapping[str, str], owners: list[OwnerReference]) -> list[str]:
    """The names that the Kueue Workload of a pod may have, the likeliest first: as labels and annotations say, of the
    JobSet or the controller that made the pod, of the pod itself.

    Source: Kueue's ``pkg/controller/jobframework/workload_names.go``: kind and name of the object, cut to what a name
    may be long, and five digits of a SHA-1 over kind, group, name and UID."""
    found = [words[key] for key in _WORKLOAD if words.get(key)]
    job_set = words.get(f"{_JOB_SET}name"), words.get(f"{_JOB_SET}uid")
    if job_set[0] and job_set[1]:
        found += _named_after("JobSet", "jobset.x-k8s.io", job_set[0], job_set[1])
    for owner in sorted(owners, key=lambda one: one.controller is not True):
        found += _named_after(owner.kind, owner.api_version.rpartition("/")[0], owner.name, owner.uid)
    return [*found, *_named_after("Pod", "", name, uid)]


def _named_after(kind: str, group: str, name: str, uid: str) -> list[str]:
    digits = sha1("\n".join((kind, group, name, uid)).encode(), usedforsecurity=False).hexdigest()[:_HASH]
    whole = f"{kind.lower()}-{name}"
    return list(dict.fromkeys(f"{whole[: most - 1 - _HASH]}-{digits}" for most in _LONGEST_NAMES))
