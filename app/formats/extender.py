"""kube-scheduler's extender protocol, the part about preemption: what it sends, in its own spelling, and what it reads.

Source: ``k8s.io/kube-scheduler/extender/v1``. Fields that are not listed are left alone, as a client in Go leaves them.
"""

from typing import Any

import msgspec

from app.formats.documents.reader import Findings, Reader
from app.formats.kubernetes.cluster import Pod
from app.formats.kubernetes.objects import Object
from app.formats.kubernetes.pod_spec import PodSpec
from app.solver.model.base import Total


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
