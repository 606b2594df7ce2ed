"""KAI's PodGroups with their pods, those included that its pod grouper would make for pods that have none yet.

Pods that run are state, pending pods are asks.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from msgspec import structs

from app.base.documents import Path, as_list, as_mapping
from app.formats.kai.configuration import GPU_GROUP, POOL_LABEL
from app.formats.objects import Classes, Object, named
from app.formats.pods import Pod, SinglePod, Steps, as_task
from app.formats.reader import Reader, instant
from app.solver.model import kai
from app.solver.model.state import Ask, Node, PendingReason, Task, TaskState, Workload

_ALL_PODS = ("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "MPIJob", "PaddleJob", "LeaderWorkerSet")
_TEMPLATE_HASH = "pod-template-hash"
_DEFAULT_QUEUE = "default-queue"
_PROJECT = "project"


def groups_of(pods: Iterable[Pod], queue_labels: tuple[str, ...]) -> list[tuple[Object, list[Pod]]]:
    """Each group as the object that the pod grouper would write, with its pods, in the order of the source.

    Source: ``pkg/podgrouper``, which groups by owner: each pod of a Job or a Deployment is a group by itself, as is a
    pod without an owner; what another owner has is one group. Training jobs need all their pods, of which the source
    may show only those that exist.
    """
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
    namespace = pod.manifest.namespace
    if kind == "ReplicaSet" and _TEMPLATE_HASH in pod.manifest.labels:
        return "Deployment", namespace, pod.manifest.name
    if kind in ("", "Job"):
        return kind, namespace, pod.manifest.name
    return kind, namespace, name


def _owner(pod: SinglePod) -> tuple[str, str]:
    """The first owner, empty where there is none."""
    owners = as_list(as_mapping(pod.manifest.root.value.get("metadata")).get("ownerReferences"))
    first = next((as_mapping(owner) for owner in owners if isinstance(owner, dict)), dict[str, Any]())
    return str(first.get("kind") or ""), str(first.get("name") or "")


def _object(key: tuple[str, str, str], pods: list[Pod], queue_labels: tuple[str, ...]) -> Object:
    kind, _, name = key
    first = pods[0]
    labels = first.manifest.labels
    queue = next((labels[label] for label in (*queue_labels, _PROJECT) if labels.get(label)), _DEFAULT_QUEUE)
    usual = "inference" if kind == "Deployment" else "train"
    spec = {
        "queue": queue,
        "priorityClassName": first.spec.priority_class or labels.get("priorityClassName") or usual,
        "minMember": sum(pod.phase != "done" for pod in pods) if kind in _ALL_PODS else 1,
        **{
            field: text
            for field, key in (("stalenessGracePeriod", _GRACE), ("preemptionDelay", DELAY))
            if (text := first.manifest.annotations.get(key))
        },
    }
    created = [pod.manifest.created_at for pod in pods if pod.manifest.created_at is not None]
    return replace(
        first.manifest,
        kind="PodGroup",
        name=_group(name),
        uid=None,
        created_at=min(created) if created else None,
        annotations={},
        root=Reader({"spec": spec}, first.manifest.root.path, first.manifest.root.findings),
    )


POD_GROUP = "pod-group-name"
SCHEDULER = "kai-scheduler"
QUEUE_LABELS = ("kai.scheduler/queue", "runai/queue")
_STARTED = "kai.scheduler/last-start-timestamp"
_STALE = "kai.scheduler/stale-podgroup-timestamp"
_EVICTED = "kai.scheduler/last-eviction-timestamp"
_GRACE, DELAY = "kai.scheduler/staleness-grace-period", "kai.scheduler/preemption-delay"
_ENDED: dict[str, TaskState] = {"Succeeded": "succeeded", "Failed": "failed"}
_FRACTION = "gpu-fraction"
_GPU_MEMORY = "gpu-memory"
_DEVICES = "gpu-fraction-num-devices"
_GPU_GROUPS = f"{GPU_GROUP}/"
_MOST_DEVICES = 1024
_STUCK_AFTER = timedelta(minutes=2)
_REQUIRED = "kai.scheduler/topology-required-placement"
_TOPOLOGY = (_REQUIRED, "kai.scheduler/topology-preferred-placement")
_SUB_GROUP = "kai.scheduler/subgroup-name"
_GPU = "nvidia.com/gpu"
_NO_BACKOFF = -1
_DEFAULT_POOL = "default"
_MEMORY_LABEL = "nvidia.com/gpu.memory"
_MEBIBYTE = _TEBIBYTE = 1 << 20
"""Bytes, and MiB."""

# The classes that KAI installs, and what a workload gets that names none.
OWN_CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
_DEFAULT_CLASS = 50
NON_PREEMPTIBLE_FROM = 100


def belongs(pod: SinglePod) -> bool:
    """Whether KAI schedules this pod."""
    return pod.spec.scheduler == SCHEDULER or names_group(pod)


def names_group(pod: SinglePod) -> bool:
    """Whether it says itself which PodGroup it is in."""
    return POD_GROUP in pod.manifest.annotations


def group(pod: SinglePod) -> str:
    """The id of its PodGroup: the one that it names, else the one that the pod grouper would make."""
    name = pod.manifest.annotations.get(POD_GROUP)
    if name is None:
        return group_of(pod)
    return f"{pod.manifest.namespace}/{name}" if pod.manifest.namespace else name


def stuck_from(pod: SinglePod) -> datetime | None:
    """When one that was told to end counts as stuck, where it runs that long: two minutes after its grace is over.

    Source: ``getTaskStatus`` (pkg/scheduler/api/pod_info), ``--stuck-in-releasing-threshold`` as it is by default.
    """
    if pod.phase != "releasing" or pod.manifest.status.text("phase") != "Running":
        return None
    end = pod.manifest.root.child("metadata").time("deletionTimestamp")
    return None if end is None else end + _STUCK_AFTER


def read_groups(
    groups: Iterable[Object], pods: Iterable[Pod], queues: set[str], classes: Classes, now: datetime
) -> tuple[list[Workload], list[Ask]]:
    """Workloads with pods on nodes, and asks for pending pods: of the same id where they belong to one. ``queues``:
    those of the source; where it has none, groups may name any. ``now``: when all of this is so."""
    members: dict[str, list[Pod]] = {}
    without: list[Pod] = []
    for pod in pods:
        if not names_group(pod):
            without.append(pod)
            path = (*pod.manifest.root.path, "metadata", "annotations")
            warn_of_topology(pod.manifest.annotations, pod.manifest.root, path, waits=pod.phase == "pending")
        else:
            members.setdefault(group(pod), []).append(pod)
    reading = _Reading(queues, classes, now)
    for manifest in groups:
        if named(manifest):
            reading.group(manifest, members.pop(manifest.id, []))
    for name, orphans in members.items():
        detail = f"no PodGroup {name!r} in the source: its {len(orphans)} pods are left out"
        orphans[0].manifest.root.findings.add("no-group", "warning", orphans[0].manifest.root.path, detail)
    for manifest, of in groups_of(without, QUEUE_LABELS):
        path = (*of[0].manifest.root.path, "metadata", "annotations")
        detail = f"in no pod group: grouped by owner as {manifest.id!r}, as KAI's pod grouper would"
        manifest.root.findings.add("grouped", "info", path, detail)
        reading.group(manifest, of)
    return reading.running, reading.asks


def with_gpu_memory(nodes: Iterable[Node]) -> list[Node]:
    """``nodes`` with the memory of their GPUs, as their labels have it: in MiB, or in bytes by mistake.

    Source: ``getNodeGpuMemory`` (pkg/scheduler/api/node_info).
    """
    return [
        structs.replace(node, gpu_memory=int(text) if int(text) < _TEBIBYTE else int(text) // _MEBIBYTE)
        if re.fullmatch(r"[1-9][0-9]{0,14}", text := node.labels.get(_MEMORY_LABEL, ""))
        else node
        for node in nodes
    ]


def _warn_of_left_out(pods: Iterable[Pod]) -> None:
    for pod in pods:
        if pod.phase == "gated":
            pod.manifest.root.warn("spec", "a gated pod is not ready to be scheduled: left out", "info", "gated")
        elif pod.phase in ("running", "releasing") and pod.node is None:
            pod.manifest.root.warn("spec", "KAI counts pods on nodes only: left out", rule="left-out")


class _Reading:
    def __init__(self, queues: set[str], classes: Classes, now: datetime) -> None:
        self.running: list[Workload] = []
        self.asks: list[Ask] = []
        self._queues = queues
        self._classes = classes
        self._now = now

    def group(self, manifest: Object, pods: list[Pod]) -> None:
        """Read one group and its pods."""
        spec = manifest.spec
        queue = spec.text("queue") or next(
            (manifest.labels[key] for key in QUEUE_LABELS if key in manifest.labels), None
        )
        priority = _priority(manifest, spec.text("priorityClassName"), self._classes)
        preemptibility = spec.text("preemptibility")
        preemptible = priority < NON_PREEMPTIBLE_FROM if not preemptibility else preemptibility != "non-preemptible"
        min_available = spec.count("minMember")
        waits = any(pod.phase == "pending" for pod in pods)
        parts = _sub_groups(spec, pods, waits=waits)
        delay = spec.duration("preemptionDelay")
        grace = spec.duration("stalenessGracePeriod")
        _warn_of_constraint(spec, waits=waits)
        spec.ignore("markUnschedulable", "backoffLimit", "parentUID", "parentName")
        backs_off = spec.integer("schedulingBackoff") not in (None, _NO_BACKOFF)
        spec.close()
        if queue is None or (self._queues and queue not in self._queues):
            manifest.root.warn(
                "spec", f"no queue {queue!r} for pod group {manifest.id!r}: left out", "error", "no-queue"
            )
            return
        placed = [pod for pod in pods if pod.phase == "done" or (pod.node and pod.phase in ("running", "releasing"))]
        pending = [pod for pod in pods if pod.phase == "pending"]
        _warn_of_left_out(pods)
        common: dict[str, Any] = {
            "priority": priority,
            "preemptible": preemptible,
            "min_available": max(1, min_available or 1),
            "preemption_delay": delay,
            "last_evicted_at": _told_at(manifest, _EVICTED),
            **parts,
        }
        held = any(pod.phase != "done" for pod in placed)
        if held:
            self.running.append(
                Workload(
                    id=manifest.id, queue=queue, uid=manifest.uid, created_at=manifest.created_at,
                    started_at=_told_at(manifest, _STARTED), stale_since=_told_at(manifest, _STALE),
                    staleness_grace_period=grace, tasks=[self._task(pod, parts) for pod in placed], **common,
                )
            )  # fmt: skip
        if pending:
            self.asks.append(
                Ask(
                    id=manifest.id, queue=queue, workload=manifest.id if held else None, uid=manifest.uid,
                    created_at=manifest.created_at, tasks=[self._task(pod, parts) for pod in pending],
                    pending_reason=_pending_reason(manifest, backs_off=backs_off), **common,
                )
            )  # fmt: skip

    def _task(self, pod: Pod, parts: Mapping[str, Any]) -> Task:
        def make() -> Task:
            requests, shares = asked_of(pod)
            if sub_group is not None:
                shares["sub_group"] = sub_group
            if not whole and pod.phase != "pending" and (groups := _gpu_groups(pod.manifest.labels)):
                shares["gpu_group"] = ",".join(groups)
            task = as_task(pod, pod.manifest.name, requests, **shares)
            state = _ENDED.get(pod.manifest.status.text("phase") or "", "stuck_in_releasing" if stuck else task.state)
            return task if state == task.state else structs.replace(task, state=state)

        stuck = (end := stuck_from(pod)) is not None and end < self._now
        sub_group = pod.manifest.labels.get(_SUB_GROUP) if parts else None
        whole = _GPU_MEMORY not in pod.manifest.annotations and _FRACTION not in pod.manifest.annotations
        plain = whole and not parts  # shares of GPUs may be findings; parts are the group's
        return pod.once((pod.node, stuck), make) if plain else make()


def _sub_groups(spec: Reader, pods: Iterable[Pod], *, waits: bool) -> dict[str, Any]:
    """The parts of the gang, as fields of a workload; none, and an error, where they are not sound."""
    listed = spec.children("subGroups") if "subGroups" in spec else []
    needed = spec.count("minSubGroup")
    groups: list[kai.SubGroup] = []
    for sub_group in listed:
        _warn_of_constraint(sub_group, waits=waits)
        name = sub_group.text("name")
        groups.append(
            kai.SubGroup(
                name=name or "", parent=sub_group.text("parent") or None, min_available=sub_group.count("minMember"),
                min_sub_group=sub_group.count("minSubGroup"),
            )
        )  # fmt: skip
        sub_group.close()
    counted = [pod for pod in pods if pod.phase != "gated"]
    places: list[tuple[Path, str | None]] = [
        ((pod.manifest.id,), pod.manifest.labels.get(_SUB_GROUP)) for pod in counted
    ]
    from app.solver.engines.kai.gangs import gang_problems  # the command line loads no engine before it must

    problem = next(iter(gang_problems(groups, places, ())), None) if groups else None
    if problem is not None:
        detail = f"only the gang as a whole has a minimum here: {problem.pointer}: {problem.detail}"
        spec.warn("subGroups", detail, "error")
        return {}
    if not groups:
        if needed is not None:
            spec.warn("minSubGroup", "there are no sub groups", "info")
        return {}
    return {"sub_groups": groups, "min_sub_group": needed}


def _warn_of_constraint(spec: Reader, *, waits: bool) -> None:
    """Where a pod group or a part of it must be is not decided; what runs already may only not be moved rightly."""
    constraint = spec.child("topologyConstraint")
    if waits and "requiredTopologyLevel" in constraint:
        constraint.warn("requiredTopologyLevel", "topology is not decided here", "error")
    elif constraint.value:
        spec.warn("topologyConstraint", "topology is not decided here")
    constraint.ignore("topology", "preferredTopologyLevel", "requiredTopologyLevel")
    constraint.close()


def _priority(manifest: Object, name: str | None, classes: Classes) -> int:
    known = classes.find(name) if name else None
    if known is not None:
        return known.value
    if name and name not in OWN_CLASSES:
        manifest.root.warn("spec", f"no priority class {name!r} in the source: KAI's default, 50", rule="unknown-name")
    return OWN_CLASSES.get(name or "", _DEFAULT_CLASS)


def _pending_reason(manifest: Object, *, backs_off: bool) -> PendingReason | None:
    """What KAI says last of why the group waits. One that backs off is left out of a node pool's cycles from the first
    failure there until somebody gives it another pool or takes the condition away.

    Source: ``isPodGroupUpForScheduler`` (pkg/scheduler/cache/cluster_info), ``GetLastSchedulingCondition``.
    """
    said_last: list[tuple[int, str, PendingReason]] = []
    for condition in manifest.status.children("schedulingConditions"):
        number, pool = condition.text("transitionID") or "", condition.text("nodePool") or ""
        reasons = [(each.text("reason"), each.text("message")) for each in condition.children("reasons")]
        reason = next((word for word, _ in reasons if word), None) or condition.text("reason") or "Unschedulable"
        message = (
            "; ".join(text for _, text in reasons if text) or condition.text("message") or "KAI could not schedule it"
        )
        said = PendingReason(reason=reason, message=message, since=condition.time("lastTransitionTime"))
        said_last.append((int(number) if number.isascii() and number.isdigit() else 0, pool, said))
    if not said_last:
        return None
    _, pool, said = max(said_last, key=itemgetter(0))
    own = manifest.labels.get(POOL_LABEL) or _DEFAULT_POOL
    return structs.replace(said, tried_again=False) if backs_off and pool == own else said


def _told_at(manifest: Object, annotation: str) -> datetime | None:
    """What the scheduler itself writes down; an empty one says nothing."""
    text = manifest.annotations.get(annotation)
    return (
        instant(text, (*manifest.root.path, "metadata", "annotations", annotation), manifest.root.findings)
        if text
        else None
    )


def asked_of(pod: Pod) -> tuple[Steps, dict[str, Any]]:
    """Requests with the share of a GPU that an annotation wants; and memory of GPUs in its place, and of how many, as
    fields of a task.

    Source: ``updatePodAdditionalFields`` (pkg/scheduler/api/pod_info): annotations go before containers, and a share
    before memory.
    """
    requests, annotations = pod.spec.requests, pod.manifest.annotations
    share, memory = annotations.get(_FRACTION), annotations.get(_GPU_MEMORY)
    if share is not None:
        if not re.fullmatch(r"0?\.[0-9]{1,3}0*|1(\.0*)?", share):
            _bad_value(pod, _FRACTION, "a share of one GPU in thousandths is expected")
            return requests, {}
        part, devices = round(float(share) * 1000), _devices(pod)
        if part == 1000:
            return {**requests, _GPU: part * devices}, {}
        return {**requests, _GPU: part}, {} if devices == 1 else {"gpu_devices": devices}
    if memory is not None:
        if not re.fullmatch(r"[1-9][0-9]{0,8}", memory):
            _bad_value(pod, _GPU_MEMORY, "a whole number of MiB is expected")
            return requests, {}
        devices = _devices(pod)
        wanted = {"gpu_memory": int(memory), **({} if devices == 1 else {"gpu_devices": devices})}
        return {name: value for name, value in requests.items() if name != _GPU}, wanted
    return requests, {}


def _bad_value(pod: Pod, annotation: str, detail: str) -> None:
    path = (*pod.manifest.root.path, "metadata", "annotations", annotation)
    pod.manifest.root.findings.add("bad-value", "error", path, detail)


def _devices(pod: Pod) -> int:
    text = pod.manifest.annotations.get(_DEVICES, "1")
    if re.fullmatch(r"[1-9][0-9]{0,3}", text) and int(text) <= _MOST_DEVICES:
        return int(text)
    _bad_value(pod, _DEVICES, "a whole number of GPUs is expected")
    return 1


def _gpu_groups(labels: Mapping[str, str]) -> list[str]:
    """The shared GPUs that a pod is on: of several each has a label of its own."""
    several = (value for key, value in sorted(labels.items()) if key.startswith(_GPU_GROUPS))
    return [*([labels[GPU_GROUP]] if GPU_GROUP in labels else []), *several]


def warn_of_topology(annotations: Mapping[str, str], root: Reader, path: Path, *, waits: bool) -> None:
    """What the pod grouper would make a topology constraint of. ``waits``: whether there is a place to be found."""
    for key in _TOPOLOGY:
        if annotations.get(key):
            severity = "error" if waits and key == _REQUIRED else "warning"
            root.findings.add("not-carried", severity, (*path, key), "topology is not decided here")
