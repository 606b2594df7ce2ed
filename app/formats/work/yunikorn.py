"""Work under YuniKorn: each pod is an ask of its application. Task groups ask for placeholders first.

Labels and annotations are those of the pods: an object's own reach them only where its controller hands them on, as
Ray's does. Of a task group (the annotation ``yunikorn.apache.org/task-groups``) YuniKorn starts ``minMember``
placeholders of ``minResource``; the group's pods take their places, so that only those beyond ask for more.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import msgspec

from app.formats.documents.reader import Reader
from app.formats.kubernetes.amounts import steps
from app.formats.kubernetes.cluster import Pod
from app.formats.kubernetes.pod_spec import read_nodes
from app.formats.work.asking import Cluster, Planned, near
from app.formats.work.pod_sets import Work
from app.formats.work.pods import MOST_PODS, pods_of, report_unknown_classes, too_many
from app.formats.yunikorn.pods import QUEUE, application, read_applications
from app.solver.model.configuration import Queue
from app.solver.model.state import Ask

_GROUPS = "yunikorn.apache.org/task-groups"
_GROUP = "yunikorn.apache.org/task-group-name"
_HANDED_ON = ("ray.io",)
_PREFIXES = ("yunikorn.apache.org/", "applicationId", "queue")


def plan_work(works: list[Work], cluster: Cluster) -> list[Planned]:
    """The asks of ``works``; queues that placement would make are added to ``cluster.dynamic``."""
    if works and too_many(works, cluster):
        return []
    return [Planned(work.title, list(_asks(work, cluster))) for work in works]


def _asks(work: Work, cluster: Cluster) -> Iterator[Ask]:
    pods = [_labelled(pod, work, cluster) for _, _, pod in pods_of(work, cluster)]
    report_unknown_classes(work, cluster)
    members = _with_placeholders(pods, work)
    queues = [*cluster.configuration.queues, *cluster.dynamic]
    _, asks, dynamic = read_applications(members, queues, cluster.beside.classes, cluster.findings)
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
    own = work.made.labels
    if work.kind.group in _HANDED_ON:
        pod = replace(pod, made=replace(pod.made, labels={**own, **pod.made.labels}))
    elif work.kind.full != "Pod" and not _says(pod.made.labels) and not _says(pod.made.annotations) and _says(own):
        detail = "labels of the object do not reach its pods: put YuniKorn's labels into the pod template"
        cluster.findings.add("not-handed-on", "warning", (*work.made.root.at, "metadata", "labels"), detail)
    if cluster.queue is not None:
        pod = replace(pod, made=replace(pod.made, labels={**pod.made.labels, QUEUE: cluster.queue}))
    return pod


def _says(words: dict[str, str]) -> bool:
    return any(word.startswith(_PREFIXES) for word in words)


def _leaf(name: str, queues: list[Queue]) -> bool:
    return not any(queue.parent == name or (queue.name == name and _parent(queue)) for queue in queues)


def _parent(queue: Queue) -> bool:
    return queue.yunikorn is not None and bool(queue.yunikorn.parent)


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
    definition = next((text for pod in pods if (text := pod.made.annotations.get(_GROUPS))), None)
    if definition is None:
        return pods
    groups = _groups(definition, work)
    left = {name: count for name, count, _ in groups}
    kept: list[Pod] = []
    for pod in pods:
        group = pod.made.annotations.get(_GROUP, "")
        if left.get(group, 0) > 0:
            left[group] -= 1
        else:
            kept.append(pod)
    return [*chain.from_iterable(_placeholders(pods[0], work, *group) for group in groups), *kept]


def _groups(definition: str, work: Work) -> list[tuple[str, int, Reader]]:
    root = work.made.root
    at = (*root.at, "metadata", "annotations", _GROUPS)
    try:
        listed = json.loads(definition)
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        root.findings.add("bad-value", "error", at, "a list of task groups in JSON is expected")
        return []
    found: list[tuple[str, int, Reader]] = []
    for i, one in enumerate(cast(list[Any], listed)):
        group = Reader(one, (*at, i), root.findings)
        count, name = group.count("minMember"), group.text("name")
        total = sum(known for _, known, _ in found) + (count or 0)
        if not name or count is None or total > MOST_PODS:
            detail = f"a task group has a name and a minMember, all groups together up to {MOST_PODS}"
            root.findings.add("bad-value", "error", (*at, i), detail)
            continue
        found.append((name, count, group))
    return found


def _placeholders(first: Pod, work: Work, name: str, count: int, group: Reader) -> list[Pod]:
    """As YuniKorn makes them (the shim's ``newPlaceholder``): of the application, in the queue and with the priority of
    the first pod; size, and the nodes that suit, are the group's own."""
    spec = replace(first.spec, requests=steps(group, "minResource"), **read_nodes(group))
    group.ignore("labels", "annotations")
    group.close()
    annotations = {**first.made.annotations, "yunikorn.apache.org/placeholder": "true"}
    made = [replace(first.made, name=f"tg-{work.name}-{name}-{i}", annotations=annotations) for i in range(count)]
    return [replace(first, made=one, spec=spec) for one in made]
