"""KAI's PodGroups with their pods: those that run are state, pending pods are asks."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from app.formats.documents.reader import Findings, instant
from app.formats.kubernetes.amounts import Steps
from app.formats.kubernetes.cluster import Pod, as_task
from app.formats.kubernetes.objects import Object, named
from app.formats.kubernetes.priority_classes import Classes
from app.solver.model.state import Ask, Workload

POD_GROUP = "pod-group-name"
SCHEDULER = "kai-scheduler"
_QUEUE_LABELS = ("kai.scheduler/queue", "runai/queue")
_STARTED = "kai.scheduler/last-start-timestamp"
_FRACTION = "gpu-fraction"
_GPU_MEMORY = "gpu-memory"
_GPU = "nvidia.com/gpu"

# The classes that KAI installs, and what a workload gets that names none.
_OWN_CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
_DEFAULT_CLASS = 50
_NON_PREEMPTIBLE_FROM = 100


def belongs(pod: Pod) -> bool:
    """Whether KAI schedules this pod."""
    return pod.spec.scheduler == SCHEDULER or POD_GROUP in pod.made.annotations


def read_groups(
    groups: Iterable[Object], pods: Iterable[Pod], queues: set[str], classes: Classes, findings: Findings
) -> tuple[list[Workload], list[Ask]]:
    """Workloads with pods on nodes, and asks for pending pods: of the same id where they belong to one. ``queues``:
    those of the source; where it has none, groups may name any."""
    members: dict[str, list[Pod]] = {}
    for pod in pods:
        name = pod.made.annotations.get(POD_GROUP)
        if name is None:
            at = (*pod.made.root.at, "metadata", "annotations")
            findings.add("no-group", "warning", at, f"pod {pod.made.id!r} is in no pod group: left out")
        else:
            members.setdefault(f"{pod.made.namespace}/{name}" if pod.made.namespace else name, []).append(pod)
    running: list[Workload] = []
    asks: list[Ask] = []
    for made in groups:
        if named(made):
            _group(made, members.pop(made.id, []), queues, classes, running, asks)
    for name, orphans in members.items():
        at = orphans[0].made.root.at
        findings.add(
            "no-group", "warning", at, f"no PodGroup {name!r} in the source: its {len(orphans)} pods are left out"
        )
    return running, asks


def _warn_of_left_out(pods: Iterable[Pod]) -> None:
    for pod in pods:
        if pod.phase == "gated":
            pod.made.root.warn("spec", "a gated pod is not ready to be scheduled: left out", "info", "gated")
        elif pod.phase in ("running", "releasing") and pod.node is None:
            pod.made.root.warn("spec", "KAI counts pods on nodes only: left out", rule="left-out")


def _group(
    made: Object, pods: list[Pod], queues: set[str], classes: Classes, running: list[Workload], asks: list[Ask]
) -> None:
    spec = made.spec
    queue = spec.text("queue") or next((made.labels[key] for key in _QUEUE_LABELS if key in made.labels), None)
    priority = _priority(made, spec.text("priorityClassName"), classes)
    preemptibility = spec.text("preemptibility")
    preemptible = priority < _NON_PREEMPTIBLE_FROM if not preemptibility else preemptibility != "non-preemptible"
    min_available = spec.count("minMember")
    spec.not_carried("subGroups", "only the gang as a whole has a minimum here")
    spec.not_carried("minSubGroup", "only the gang as a whole has a minimum here")
    spec.not_carried("topologyConstraint", "topology is not decided here")
    spec.ignore("markUnschedulable", "schedulingBackoff", "backoffLimit", "parentUID", "parentName")
    spec.close()
    if queue is None or (queues and queue not in queues):
        made.root.warn("spec", f"no queue {queue!r} for pod group {made.id!r}: left out", "error", "no-queue")
        return
    placed = [pod for pod in pods if pod.phase == "done" or (pod.node and pod.phase in ("running", "releasing"))]
    pending = [pod for pod in pods if pod.phase == "pending"]
    _warn_of_left_out(pods)
    common: dict[str, Any] = {
        "priority": priority,
        "preemptible": preemptible,
        "min_available": max(1, min_available or 1),
    }
    held = any(pod.phase != "done" for pod in placed)
    if held:
        running.append(
            Workload(
                id=made.id, queue=queue, uid=made.uid, created_at=made.created_at, started_at=_started(made),
                tasks=[as_task(pod, pod.made.name, _requests(pod)) for pod in placed], **common,
            )
        )  # fmt: skip
    if pending:
        asks.append(
            Ask(
                id=made.id, queue=queue, workload=made.id if held else None, uid=made.uid, created_at=made.created_at,
                tasks=[as_task(pod, pod.made.name, _requests(pod)) for pod in pending], **common,
            )
        )  # fmt: skip


def _priority(made: Object, name: str | None, classes: Classes) -> int:
    found = classes.find(name) if name else None
    if found is not None:
        return found.value
    if name and name not in _OWN_CLASSES:
        made.root.warn("spec", f"no priority class {name!r} in the source: KAI's default, 50", rule="unknown-name")
    return _OWN_CLASSES.get(name or "", _DEFAULT_CLASS)


def _started(made: Object) -> datetime | None:
    text = made.annotations.get(_STARTED)
    at = (*made.root.at, "metadata", "annotations", _STARTED)
    return None if text is None else instant(text, at, made.root.findings)


def _requests(pod: Pod) -> Steps:
    """Requests with a share of a GPU, which KAI takes from an annotation."""
    annotations: Mapping[str, str] = pod.made.annotations
    where = (*pod.made.root.at, "metadata", "annotations")
    if _GPU_MEMORY in annotations:
        detail = "a slice of GPU memory can't be carried over: the pod counts as one that needs no GPU"
        pod.made.root.findings.add("not-carried", "error", (*where, _GPU_MEMORY), detail)
    share = annotations.get(_FRACTION)
    if share is None:
        return pod.spec.requests
    if not re.fullmatch(r"0?\.[0-9]{1,3}0*|1(\.0*)?", share):
        detail = "a share of one GPU in thousandths is expected"
        pod.made.root.findings.add("bad-value", "error", (*where, _FRACTION), detail)
        return pod.spec.requests
    return {**pod.spec.requests, _GPU: round(float(share) * 1000)}
