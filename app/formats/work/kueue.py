"""Asks of work for Kueue: what its job integrations make of objects, one Workload each."""

import re
from collections.abc import Iterator
from dataclasses import replace

from app.base.documents import Path
from app.formats.kueue.considered import (
    ANNOTATIONS,
    UNDECIDED,
    Counting,
    LocalQueue,
    Selectors,
    counting_of,
    request_of,
    usage_based,
)
from app.formats.pods import quantities
from app.formats.work.kinds import PodSet, Work
from app.formats.work.read import Cluster, Planned, as_counted, near, resource_names
from app.solver.kubernetes import PODS
from app.solver.model import kueue
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, Task

GROUP = "kueue.x-k8s.io"
QUEUE = f"{GROUP}/queue-name"
PRIORITY = f"{GROUP}/priority-class"
_LEAST = f"{GROUP}/job-min-parallelism"
_POD_GROUP = f"{GROUP}/pod-group-name"
_IN_GROUP = f"{GROUP}/pod-group-total-count"
_FAST = f"{GROUP}/pod-group-fast-admission"
_MOST_ASKS = 5000


def plan_work(works: list[Work], cluster: Cluster) -> list[Planned]:
    """The asks of ``works``. What can't be planned is a finding and left out.

    A Workload for each object, for each replica of a LeaderWorkerSet, for each pod of a Deployment. The rules are those
    of Kueue's job integrations: the label ``kueue.x-k8s.io/queue-name`` names a LocalQueue of the object's namespace;
    the priority is that of the WorkloadPriorityClass in the label ``kueue.x-k8s.io/priority-class``, else of the
    object's own class, else of the first pod set that names one. Pods that name a group are one Workload, with a pod
    set for each role: pods alike.
    """
    names = resource_names(cluster.configuration)
    selectors = Selectors(cluster.configuration, cluster.beside.namespaces)
    planned: list[Planned] = []
    for work in _grouped(works, cluster):
        target = _queue(work, cluster)
        if target is not None:
            refused = _refusal(work, *target, selectors, cluster)
            planned.append(Planned(work.title, list(_asks(work, target[0], refused, cluster, names))))
    return planned


def _grouped(works: list[Work], cluster: Cluster) -> Iterator[Work]:
    """``works`` with the pods of each group as one, in the place of its first."""
    members: dict[str, list[Work]] = {}
    for work in works:
        if name := _group_name(work):
            members.setdefault(f"{work.manifest.namespace}/{name}", []).append(work)
    for work in works:
        name = _group_name(work)
        if not name:
            yield work
        elif (pods := members.pop(f"{work.manifest.namespace}/{name}", None)) is not None:
            group = _group(name, pods, cluster)
            if group is not None:
                yield group


def _group_name(work: Work) -> str | None:
    if work.kind.full != "Pod":
        return None
    return work.manifest.labels.get(_POD_GROUP) or work.manifest.annotations.get(_POD_GROUP)


def _group(name: str, pods: list[Work], cluster: Cluster) -> Work | None:
    """Kueue's rules for what makes a group (``validatePodGroupMetadata``): each pod says the same queue and the same
    number, and so many there are, unless the first may stand for all. None, and a finding, where one is broken."""
    first = pods[0]
    group = replace(first, kind=replace(first.kind, name="Pod group", kueue="one"), name=name)
    total = 0
    for pod in pods:
        given = pod.manifest.annotations.get(_IN_GROUP, "")
        if not re.fullmatch("[1-9][0-9]{0,5}", given):
            detail = f"a pod of group {name!r} says in {_IN_GROUP!r} how many there are"
            cluster.left_out(pod, detail, "metadata", "annotations", rule="bad-value")
            return None
        total = total or int(given)
        if int(given) != total:
            detail = f"group {name!r} has {given} pods here, and {total} by its first pod"
            cluster.left_out(pod, detail, "metadata", "annotations", _IN_GROUP, rule="bad-value")
            return None
        if cluster.queue is None and _local_queue(pod) != _local_queue(first):
            detail = f"group {name!r} waits in {_local_queue(first)!r} by its first pod"
            cluster.left_out(pod, detail, "metadata", "labels", QUEUE)
            return None
    fast = first.manifest.annotations.get(_FAST) == "true"
    if len(pods) < total and not fast:
        detail = f"{len(pods)} of its {total} pods are here: Kueue waits for the others"
        cluster.left_out(group, detail, "metadata", "annotations", _IN_GROUP, rule="bad-value")
        return None
    if len(pods) > total:
        detail = f"{len(pods)} pods of {total} in group {name!r}: the last are left out, as Kueue deletes them"
        cluster.findings.add("excess-pods", "warning", pods[total].manifest.root.path, detail)
    if fast:
        return replace(group, pod_sets=[replace(first.pod_sets[0], count=total)])
    return replace(group, pod_sets=_roles(group, [pod.pod_sets[0] for pod in pods[:total]], cluster))


def _roles(group: Work, pods: list[PodSet], cluster: Cluster) -> list[PodSet]:
    """A pod set for all pods that are alike, named after its place."""
    roles: list[PodSet] = []
    for pod in pods:
        same = next((i for i, role in enumerate(roles) if role.pod == pod.pod), None)
        if same is None:
            roles.append(replace(pod, name=f"role-{len(roles)}"))
        else:
            roles[same] = replace(roles[same], count=roles[same].count + 1)
    if len(roles) == 1:
        return [replace(roles[0], name="main")]
    detail = f"{group.title} has {len(roles)} roles: they go in the order of the manifest, Kueue's is that of a hash"
    cluster.findings.add("assumed-order", "info", group.manifest.root.path, detail)
    return roles


def _refusal(work: Work, queue: str, local: LocalQueue | None, selectors: Selectors, cluster: Cluster) -> str | None:
    """Why Kueue would not try the work, or None."""
    if local is not None and local.stopped:
        name = _local_queue(work)
        return f"LocalQueue {work.manifest.namespace}/{name} is stopped: its stop policy is {local.stop_policy}"
    refused = selectors.refusal(queue, work.manifest)
    specs = [pod_set.spec for pod_set in work.pod_sets]
    return refused or cluster.beside.admission.inadmissible(specs, work.manifest.namespace)


def _queue(work: Work, cluster: Cluster) -> tuple[str, LocalQueue | None] | None:
    """The ClusterQueue, and the LocalQueue where one leads to it. Where no LocalQueue is known at all, the label is
    taken for the ClusterQueue's own name."""
    known, local = cluster.queues, cluster.beside.local_queues
    leaves = leaf_names(cluster.configuration)
    if cluster.queue is not None:
        if cluster.queue in known:
            return cluster.queue, None
        cluster.left_out(work, f"there is no queue {cluster.queue!r}; there are {near(leaves)}")
        return None
    name = _local_queue(work)
    if name is None:
        detail = f"no label {QUEUE!r}: Kueue leaves it alone, and it would start at once"
        cluster.left_out(work, detail, "metadata", "labels")
        return None
    id = f"{work.manifest.namespace}/{name}"  # noqa: A001
    target = local.get(id)
    if target is not None and target.cluster_queue in known:
        return target.cluster_queue, target
    if target is not None:
        cluster.left_out(
            work,
            f"LocalQueue {id!r} leads to {target.cluster_queue!r}, which is no ClusterQueue here",
            "metadata",
            "labels",
        )
    elif not local and name in leaves:
        detail = f"no LocalQueues are known: {name!r} is taken for the ClusterQueue of that name"
        work.manifest.root.findings.add("assumed-queue", "info", (*work.metadata, "labels", QUEUE), detail)
        return name, None
    else:
        there = f"LocalQueues {near(local)}" if local else f"no LocalQueues; ClusterQueues are {near(leaves)}"
        cluster.left_out(work, f"no LocalQueue {id!r}; there are {there}", "metadata", "labels", QUEUE)
    return None


def leaf_names(configuration: Configuration) -> list[str]:
    """ClusterQueues: queues without children that aren't cohorts by role."""
    parents = {queue.parent for queue in configuration.queues}
    roles = {queue.name: queue.kueue.role for queue in configuration.queues if queue.kueue is not None}
    return [
        queue.name
        for queue in configuration.queues
        if (roles.get(queue.name) or ("cohort" if queue.name in parents else "cluster_queue")) == "cluster_queue"
    ]


def _local_queue(work: Work) -> str | None:
    """The name that its label says. Pods carry it themselves where Kueue decides them one by one; those of an object
    that is one Workload are passed over, whatever they say."""
    of_template = (label for pod_set in work.pod_sets if (label := pod_set.labels.get(QUEUE)))
    return work.manifest.labels.get(QUEUE) or (next(of_template, None) if work.kind.kueue == "pod" else None)


def _asks(work: Work, queue: str, refused: str | None, cluster: Cluster, names: set[str]) -> Iterator[Ask]:
    grouping = work.kind.kueue
    number = {"one": 1, "replica": work.replicas, "pod": work.pods}[grouping]
    if number > _MOST_ASKS:
        cluster.left_out(work, f"{number} Workloads are more than the {_MOST_ASKS} of one plan", rule="too-many")
        return
    priority = _priority(work, cluster)
    decided = bool(cluster.configuration.topologies)
    counting = counting_of(cluster.configuration)
    tasks = [
        _task(pod_set, work, names, counting, single=grouping == "pod", decided=decided) for pod_set in work.pod_sets
    ]
    name = _local_queue(work) if queue in usage_based(cluster.configuration) else None
    block = kueue.Ask(inadmissible=refused, local_queue=None if name is None else f"{work.manifest.namespace}/{name}")
    for i in range(number):
        yield Ask(
            id=cluster.free(work.id if number == 1 else f"{work.id}-{i}"),
            queue=queue, priority=priority, created_at=cluster.created_at, tasks=tasks,
            kueue=None if block == kueue.Ask() else block,
        )  # fmt: skip


def _task(pod_set: PodSet, work: Work, names: set[str], counting: Counting, *, single: bool, decided: bool) -> Task:
    for key in ANNOTATIONS if not decided else ():
        if key in pod_set.annotations:
            path = (*pod_set.path, "metadata", "annotations", key)
            work.manifest.root.findings.add("not-carried", "error", path, f"{UNDECIDED}: planned without it")
    requests = as_counted(counting.counted(pod_set.pod.requests) if counting else pod_set.pod.requests, names)
    if PODS in names:
        requests = {**requests, PODS: 1}
    count = 1 if single else pod_set.count
    return Task(
        name=pod_set.name,
        count=count,
        min_count=_least(work, count),
        requests=quantities(requests),
        node_selector=pod_set.pod.node_selector,
        tolerations=pod_set.pod.tolerations,
        node_affinity=pod_set.pod.node_affinity,
        topology_request=request_of(pod_set.annotations) if decided else None,
    )


def _least(work: Work, count: int) -> int | None:
    """Partial admission of a batch/v1 Job."""
    given = work.manifest.annotations.get(_LEAST)
    if given is None or work.kind.full not in ("batch/Job", "batch/CronJob"):
        return None
    if not given.isascii() or not given.isdigit() or not 0 < int(given[:10]) <= count:
        path = (*work.metadata, "annotations", _LEAST)
        work.manifest.root.findings.add("bad-value", "error", path, f"{given[:40]!r} is no count from 1 to {count}")
        return None
    return int(given)


def _priority(work: Work, cluster: Cluster) -> int:
    name = work.manifest.labels.get(PRIORITY)
    if name is not None:
        known = cluster.beside.classes.find(name, GROUP)
        if known is not None:
            return known.value
        _unknown_class(work, name, (*work.metadata, "labels", PRIORITY))
        return 0
    given = [work.priority_class, *(pod_set.pod.priority_class for pod_set in work.pod_sets)]
    numbers = [pod_set.pod.priority for pod_set in work.pod_sets if pod_set.pod.priority is not None]
    name = next((word for word in given if word), None)
    if name is None and numbers:
        return numbers[0]
    known = cluster.beside.classes.find(name)
    if name is not None and known is None:
        _unknown_class(work, name, (*work.manifest.root.path, "spec"))
    return known.value if known else 0


def _unknown_class(work: Work, name: str, path: Path) -> None:
    detail = f"priority class {name!r} is not known here: planned with priority 0"
    work.manifest.root.findings.add("unknown-name", "warning", path, detail)
