"""Pod groups of pods that have none yet, as KAI's pod grouper would make them: by owner.

Source: ``pkg/podgrouper``: each pod of a Job or a Deployment is a group by itself, as is a pod without an owner; what
another owner has is one group. Training jobs need all their pods, of which the source may show only those that exist.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from app.formats.documents.reader import Reader
from app.formats.kubernetes.cluster import Pod, SinglePod
from app.formats.kubernetes.objects import Object

_ALL_PODS = ("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "MPIJob", "PaddleJob", "LeaderWorkerSet")
_TEMPLATE_HASH = "pod-template-hash"
_DEFAULT_QUEUE = "default-queue"
_PROJECT = "project"


def groups_of(pods: Iterable[Pod], queue_labels: tuple[str, ...]) -> list[tuple[Object, list[Pod]]]:
    """Each group as the object that the pod grouper would write, with its pods, in the order of the source."""
    members: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        members.setdefault(key_of(pod), []).append(pod)
    return [(_object(key, of, queue_labels), of) for key, of in members.items()]


def group_of(pod: SinglePod) -> str:
    """The id of the group that the pod grouper would put the pod in."""
    _, namespace, name = key_of(pod)
    return f"{namespace}/{_group(name)}" if namespace else _group(name)


def _group(name: str) -> str:
    return f"pg-{name}"


def key_of(pod: SinglePod) -> tuple[str, str, str]:
    """Kind of the owner, namespace, and what the group is called after."""
    kind, name = _owner(pod)
    namespace = pod.made.namespace
    if kind == "ReplicaSet" and _TEMPLATE_HASH in pod.made.labels:
        return "Deployment", namespace, pod.made.name
    if kind in ("", "Job"):
        return kind, namespace, pod.made.name
    return kind, namespace, name


def _owner(pod: SinglePod) -> tuple[str, str]:
    """The first owner, empty where there is none."""
    metadata = pod.made.root.value.get("metadata")
    owners = cast(dict[str, Any], metadata).get("ownerReferences") if isinstance(metadata, dict) else None
    for owner in cast(list[Any], owners) if isinstance(owners, list) else []:
        if isinstance(owner, dict):
            of = cast(dict[str, Any], owner)
            return str(of.get("kind") or ""), str(of.get("name") or "")
    return "", ""


def _object(key: tuple[str, str, str], pods: list[Pod], queue_labels: tuple[str, ...]) -> Object:
    kind, _, name = key
    first = pods[0]
    labels = first.made.labels
    queue = next((labels[label] for label in (*queue_labels, _PROJECT) if labels.get(label)), _DEFAULT_QUEUE)
    usual = "inference" if kind == "Deployment" else "train"
    spec = {
        "queue": queue,
        "priorityClassName": first.spec.priority_class or labels.get("priorityClassName") or usual,
        "minMember": sum(pod.phase != "done" for pod in pods) if kind in _ALL_PODS else 1,
    }
    created = [pod.made.created_at for pod in pods if pod.made.created_at is not None]
    return replace(
        first.made,
        kind="PodGroup",
        name=_group(name),
        uid=None,
        created_at=min(created) if created else None,
        annotations={},
        root=Reader({"spec": spec}, first.made.root.at, first.made.root.findings),
    )
