"""Asks of work for systems that schedule pods and not objects: kube-scheduler, KAI Scheduler and YuniKorn."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import msgspec

from app.formats.kai.pods import (
    DELAY,
    NON_PREEMPTIBLE_FROM,
    OWN_CLASSES,
    POD_GROUP,
    QUEUE_LABELS,
    asked_of,
    group,
    read_groups,
    warn_of_topology,
)
from app.formats.kube_scheduler.pods import ask_of
from app.formats.objects import Object
from app.formats.pods import Pod, priority_of, quantities, read_nodes, steps
from app.formats.reader import Reader
from app.formats.work.kinds import PodSet, Work
from app.formats.work.read import Cluster, Planned, near
from app.formats.yunikorn.pods import QUEUE, Placement, application, read_applications
from app.solver.model.base import Duration
from app.solver.model.configuration import Queue
from app.solver.model.state import Ask, Task

MOST_PODS = 4000
"""Of one plan."""


def pods_of(work: Work, cluster: Cluster) -> Iterator[tuple[int, PodSet, Pod]]:
    """The pods of work, as they would be made: replica, pod set and pod, in order. ``first`` of each pod set goes by
    the name ``<object>-<set>-0``."""
    for replica in range(work.replicas):
        for pod_set in work.pod_sets:
            for i in range(pod_set.count):
                yield replica, pod_set, _pod(work, pod_set, cluster, _name(work, pod_set, replica, i))


def report_unknown_classes(work: Work, cluster: Cluster) -> None:
    """Where the pods' own priority counts: a finding for each pod set whose class nobody knows here."""
    for pod_set in work.pod_sets:
        name = pod_set.pod.priority_class
        if pod_set.pod.priority is None and name is not None and cluster.beside.classes.find(name) is None:
            detail = f"priority class {name!r} is not known here: planned with priority 0"
            cluster.findings.add("unknown-name", "warning", (*pod_set.path, "spec", "priorityClassName"), detail)


def too_many(works: list[Work], cluster: Cluster) -> bool:
    """Whether there are more pods than one plan takes; a finding where there are."""
    total = sum(work.pods for work in works)
    if total > MOST_PODS:
        most = max(works, key=lambda work: work.pods)
        detail = f"{total} pods in all are more than the {MOST_PODS} of one plan"
        cluster.left_out(most, detail, *_counting(most), rule="too-many")
    return total > MOST_PODS


def _counting(work: Work) -> list[str]:
    """The field that says how many pods there are, where one does."""
    sets = work.kind.sets[0] if len(work.kind.sets) == 1 else None
    if sets is None or not sets.count or sets.path.endswith(("[]", "{}")):
        return []
    return [name for path in (sets.path, sets.count[0].path) for name in path.split(".") if name]


def _name(work: Work, pod_set: PodSet, replica: int, i: int) -> str:
    parts = [work.name]
    if work.replicas > 1:
        parts.append(str(replica))
    if len(work.pod_sets) > 1:
        parts.append(pod_set.name)
    if work.kind.full != "Pod":
        parts.append(str(i))
    return "-".join(parts)


def _pod(work: Work, pod_set: PodSet, cluster: Cluster, name: str) -> Pod:
    bare = work.kind.full == "Pod"
    manifest = replace(
        work.manifest,
        kind="Pod",
        group="",
        name=name,
        uid=None,
        created_at=cluster.created_at,
        labels=work.manifest.labels if bare else pod_set.labels,
        annotations=work.manifest.annotations if bare else pod_set.annotations,
        owners=() if bare else (work.kind.name,),
        owner_uids=(),
    )
    priority = priority_of(pod_set.pod, cluster.beside.classes)
    return Pod(manifest=manifest, spec=pod_set.pod, phase="pending", node=None, priority=priority)


def plan_kube_scheduler(works: list[Work], cluster: Cluster) -> list[Planned]:
    """The asks of ``works``: one for each pod, in its namespace. Namespaces that nobody has named yet are added to
    ``cluster.dynamic``."""
    if works and too_many(works, cluster):
        return []
    return [Planned(work.title, list(_pods_alone(work, cluster))) for work in works]


def _pods_alone(work: Work, cluster: Cluster) -> Iterator[Ask]:
    report_unknown_classes(work, cluster)
    for _, _, pod in pods_of(work, cluster):
        ask = ask_of(pod, cluster.beside.classes)
        space = cluster.queue or ask.queue
        if space not in cluster.queues and all(space != queue.name for queue in cluster.dynamic):
            cluster.dynamic.append(Queue(name=space))
        yield msgspec.structs.replace(ask, id=cluster.free(ask.id), queue=space)


_DEFAULT_QUEUE = "default-queue"
_PROJECT = ("project", "kai.scheduler/project")
_PRIORITY = "priorityClassName"
_PREEMPTIBILITY = "kai.scheduler/preemptibility"

_Member = tuple[PodSet, Pod]


def plan_kai(works: list[Work], cluster: Cluster) -> list[Planned]:
    """The asks of ``works``: one for each pod group, as KAI's pod grouper makes them.

    A group is an object, one pod of it (Job, Deployment), one replica (LeaderWorkerSet), or one replicated job of a
    JobSet that starts them in order. Training jobs and JobSets need all their pods at once, Ray its head and the fewest
    workers, the others one pod. The queue is in the label ``kai.scheduler/queue`` of the object, else of its pods; the
    priority is that of the class in the label ``priorityClassName`` of either, else of the pods' own, else ``train``,
    and ``inference`` for a Deployment. Pods that name a PodGroup beside them are its pods, and nothing is made for
    them.
    """
    if works and too_many(works, cluster):
        return []
    grouped = [work for work in works if work.kind.full == "Pod" and POD_GROUP in work.manifest.annotations]
    others = [work for work in works if work not in grouped]
    return [*_of_groups(grouped, cluster), *(Planned(work.title, list(_kai_asks(work, cluster))) for work in others)]


def _of_groups(works: list[Work], cluster: Cluster) -> Iterator[Planned]:
    """The PodGroups of the manifest, each with its pods."""
    pods = [pod for work in works for _, _, pod in pods_of(work, cluster)]
    named = {group(pod) for pod in pods}
    groups = [manifest for manifest in cluster.beside.groups if manifest.id in named]
    known = {manifest.id for manifest in groups}
    for pod in pods:
        if (name := group(pod)) not in known:
            detail = f"there is no PodGroup {name!r} beside it, and KAI makes none for a pod that names one"
            place = (*pod.manifest.root.path, "metadata", "annotations", POD_GROUP)
            cluster.findings.add("no-group", "error", place, f"Pod {pod.manifest.id}: {detail}")
    there = [pod for pod in pods if group(pod) in known]
    moved = (
        [replace(manifest, root=_in_queue(manifest, cluster.queue)) for manifest in groups] if cluster.queue else groups
    )
    _, asks = read_groups(moved, there, set(cluster.queues), cluster.beside.classes, cluster.created_at)
    for ask in asks:
        parent = next((q.name for q in cluster.configuration.queues if q.parent == ask.queue), None)
        if parent is not None:
            place = next(manifest.root.path for manifest in groups if manifest.id == ask.id)
            detail = f"PodGroup {ask.id}: {ask.queue!r} is a parent queue"
            cluster.findings.add("no-queue", "error", (*place, "spec", "queue"), detail)
            continue
        running = ask.id if ask.id in cluster.running else None
        manifest = msgspec.structs.replace(
            ask, id=cluster.free(ask.id), created_at=cluster.created_at, workload=running
        )
        yield Planned(f"PodGroup {ask.id}", [manifest])


def _in_queue(manifest: Object, queue: str) -> Reader:
    spec = {**manifest.spec.value, "queue": queue}
    return Reader({**manifest.root.value, "spec": spec}, manifest.root.path, manifest.root.findings)


def _kai_asks(work: Work, cluster: Cluster) -> Iterator[Ask]:
    queue = _queue(work, cluster)
    if queue is None:
        return
    warn_of_topology(work.manifest.annotations, work.manifest.root, (*work.metadata, "annotations"), waits=True)
    priority = _priority(work, cluster)
    for name, members in _kai_groups(work, cluster):
        yield Ask(
            id=cluster.free(name), queue=queue, priority=priority, created_at=cluster.created_at,
            preemptible=_preemptible(work, priority), min_available=_minimum(work, members),
            preemption_delay=_delay(work),
            tasks=[_task(pod) for _, pod in members],
        )  # fmt: skip


def _kai_groups(work: Work, cluster: Cluster) -> Iterator[tuple[str, list[_Member]]]:
    grouped: dict[str, list[_Member]] = {}
    for replica, pod_set, pod in pods_of(work, cluster):
        grouping = work.kind.kai
        key = work.id
        if grouping == "pod":
            key = pod.manifest.id
        elif grouping == "replica" and work.replicas > 1:
            key = f"{work.id}-{replica}"
        elif grouping == "set" and work.in_order and len(work.pod_sets) > 1:
            key = f"{work.id}-{pod_set.name}"
        grouped.setdefault(key, []).append((pod_set, pod))
    yield from grouped.items()


def _minimum(work: Work, members: list[_Member]) -> int:
    if work.kind.minimum == "one":
        return 1
    if work.kind.minimum == "all":
        return min(len(members), max(1, work.least)) if work.least is not None else len(members)
    fewest = 0
    for pod_set in work.pod_sets:
        if pod_set.name != "submitter":
            fewest += pod_set.least or pod_set.count
    return max(1, min(fewest, len(members)))


def _label(work: Work, *keys: str) -> str | None:
    """The first of these labels that the object has, else its pods."""
    words = [work.manifest.labels, *(pod_set.labels for pod_set in work.pod_sets)]
    return next((of[key] for of in words for key in keys if of.get(key)), None)


def _queue(work: Work, cluster: Cluster) -> str | None:
    known = cluster.queues
    given = _label(work, *QUEUE_LABELS, *_PROJECT)
    name = cluster.queue or given or _DEFAULT_QUEUE
    parents = {queue.parent for queue in known.values()}
    leaves = near(each for each in known if each not in parents)
    if name not in known:
        why = "" if cluster.queue or given else f"no label {QUEUE_LABELS[0]!r}, and "
        cluster.left_out(work, f"{why}there is no queue {name!r}; there are {leaves}", "metadata", "labels")
        return None
    if name in parents:
        cluster.left_out(work, f"{name!r} is a parent queue; leaf queues are {leaves}", "metadata", "labels")
        return None
    return name


def _priority(work: Work, cluster: Cluster) -> int:
    own = next((pod_set.pod.priority_class for pod_set in work.pod_sets if pod_set.pod.priority_class), None)
    name = _label(work, _PRIORITY) or own or work.kind.kai_class
    priority_class = cluster.beside.classes.find(name)
    if priority_class is not None:
        return priority_class.value
    if name not in OWN_CLASSES:
        detail = f"priority class {name!r} is not known here: planned as {work.kind.kai_class!r}"
        cluster.findings.add("unknown-name", "warning", (*work.manifest.root.path, "spec"), detail)
    return OWN_CLASSES.get(name, OWN_CLASSES[work.kind.kai_class])


def _delay(work: Work) -> Duration | None:
    annotations = Reader(work.manifest.annotations, (*work.metadata, "annotations"), work.manifest.root.findings)
    return annotations.duration(DELAY)


def _preemptible(work: Work, priority: int) -> bool:
    said = _label(work, _PREEMPTIBILITY)
    return said != "non-preemptible" if said else priority < NON_PREEMPTIBLE_FROM


def _task(pod: Pod) -> Task:
    requests, shares = asked_of(pod)
    return Task(
        name=pod.manifest.name,
        requests=quantities(requests),
        **shares,
        node_selector=pod.spec.node_selector,
        tolerations=pod.spec.tolerations,
        node_affinity=pod.spec.node_affinity,
    )


_GROUPS = "yunikorn.apache.org/task-groups"
_GROUP = "yunikorn.apache.org/task-group-name"
_HANDED_ON = ("ray.io",)
_PREFIXES = ("yunikorn.apache.org/", "applicationId", "queue")


def plan_yunikorn(works: list[Work], cluster: Cluster) -> list[Planned]:
    """The asks of ``works``, one for each pod, of its application; queues that placement would make are added to
    ``cluster.dynamic``.

    Labels and annotations are those of the pods: an object's own reach them only where its controller hands them on, as
    Ray's does. Task groups ask for placeholders first: of one (the annotation ``yunikorn.apache.org/task-groups``)
    YuniKorn starts ``minMember`` placeholders of ``minResource``; the group's pods take their places, so that only
    those beyond ask for more.
    """
    if works and too_many(works, cluster):
        return []
    return [Planned(work.title, list(_asks(work, cluster))) for work in works]


def _asks(work: Work, cluster: Cluster) -> Iterator[Ask]:
    pods = [_labelled(pod, work, cluster) for _, _, pod in pods_of(work, cluster)]
    report_unknown_classes(work, cluster)
    members = _with_placeholders(pods, work)
    queues = [*cluster.configuration.queues, *cluster.dynamic]
    placement = Placement(msgspec.structs.replace(cluster.configuration, queues=queues))
    _, asks, dynamic = read_applications(members, placement, cluster.beside.classes, cluster.findings)
    cluster.dynamic += dynamic
    if asks and not _leaf(asks[0].queue, [*queues, *dynamic]):
        there = near(q.name for q in queues if _leaf(q.name, queues))
        cluster.left_out(work, f"{asks[0].queue!r} is a parent queue; leaf queues are {there}")
        return
    name = application(members[0])
    running = name if name in cluster.running else None
    for ask in asks:
        tasks = [_counted(task, cluster) for task in ask.tasks]
        yield msgspec.structs.replace(ask, id=cluster.free(ask.id), workload=running, tasks=tasks)


def _labelled(pod: Pod, work: Work, cluster: Cluster) -> Pod:
    """With the labels that reach it, and in the queue that the request says."""
    own = work.manifest.labels
    if work.kind.group in _HANDED_ON:
        pod = replace(pod, manifest=replace(pod.manifest, labels={**own, **pod.manifest.labels}))
    elif (
        work.kind.full != "Pod"
        and not _says(pod.manifest.labels)
        and not _says(pod.manifest.annotations)
        and _says(own)
    ):
        detail = "labels of the object do not reach its pods: put YuniKorn's labels into the pod template"
        cluster.findings.add("not-handed-on", "warning", (*work.metadata, "labels"), detail)
    if cluster.queue is not None:
        pod = replace(pod, manifest=replace(pod.manifest, labels={**pod.manifest.labels, QUEUE: cluster.queue}))
    return pod


def _says(words: dict[str, str]) -> bool:
    return any(word.startswith(_PREFIXES) for word in words)


def _leaf(name: str, queues: list[Queue]) -> bool:
    parents = (queue.name for queue in queues if queue.yunikorn is not None and queue.yunikorn.parent)
    return name not in parents and all(queue.parent != name for queue in queues)


def _counted(task: Any, cluster: Cluster) -> Any:
    """Without the pod count that no node of the cluster has, and with cpu by the cluster's name."""
    requests = dict(task.requests)
    if "pods" not in cluster.counted:
        requests.pop("pods", None)
    if "vcore" in requests and "vcore" not in cluster.counted and "cpu" in cluster.counted:
        requests["cpu"] = requests.pop("vcore")
    if "gpu" in cluster.counted:
        for name in [name for name in requests if name.endswith("/gpu") and name not in cluster.counted]:
            requests["gpu"] = requests.pop(name)
    return msgspec.structs.replace(task, requests=requests)


def _with_placeholders(pods: list[Pod], work: Work) -> list[Pod]:
    """``pods``, of each task group only those beyond its placeholders, and before them the placeholders."""
    definition = next((text for pod in pods if (text := pod.manifest.annotations.get(_GROUPS))), None)
    if definition is None:
        return pods
    groups = _groups(definition, work)
    left = {name: count for name, count, _ in groups}
    beyond: list[Pod] = []
    for pod in pods:
        group = pod.manifest.annotations.get(_GROUP, "")
        if left.get(group, 0) > 0:
            left[group] -= 1
        else:
            beyond.append(pod)
    return [*chain.from_iterable(_placeholders(pods[0], work, *group) for group in groups), *beyond]


def _groups(definition: str, work: Work) -> list[tuple[str, int, Reader]]:
    root = work.manifest.root
    place = (*root.path, "metadata", "annotations", _GROUPS)
    try:
        listed = json.loads(definition)
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        root.findings.add("bad-value", "error", place, "a list of task groups in JSON is expected")
        return []
    groups: list[tuple[str, int, Reader]] = []
    for i, item in enumerate(cast(list[Any], listed)):
        group = Reader(item, (*place, i), root.findings)
        count, name = group.count("minMember"), group.text("name")
        total = sum(known for _, known, _ in groups) + (count or 0)
        if not name or count is None or total > MOST_PODS:
            detail = f"a task group has a name and a minMember, all groups together up to {MOST_PODS}"
            root.findings.add("bad-value", "error", (*place, i), detail)
            continue
        groups.append((name, count, group))
    return groups


def _placeholders(first: Pod, work: Work, name: str, count: int, group: Reader) -> list[Pod]:
    """As YuniKorn makes them (the shim's ``newPlaceholder``): of the application, in the queue and with the priority of
    the first pod; size, and the nodes that suit, are the group's own."""
    spec = replace(first.spec, requests=steps(group, "minResource"), **read_nodes(group))
    group.ignore("labels", "annotations")
    group.close()
    annotations = {**first.manifest.annotations, "yunikorn.apache.org/placeholder": "true"}
    manifests = [
        replace(first.manifest, name=f"tg-{work.name}-{name}-{i}", annotations=annotations) for i in range(count)
    ]
    return [replace(first, manifest=manifest, spec=spec) for manifest in manifests]
