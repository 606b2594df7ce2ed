"""Work under KAI Scheduler: pod groups as its pod grouper makes them.

A group is an object, one pod of it (Job, Deployment), or one replica (LeaderWorkerSet). Training jobs need all their
pods at once, Ray its head and the fewest workers, the others one pod. The queue is in the label
``kai.scheduler/queue`` of the object, else of its pods; the priority is that of the pods' class, else of the class in
the label ``priorityClassName``, else ``train``, and ``inference`` for a Deployment.
"""

from collections.abc import Iterator

from app.formats.kai.pods import NON_PREEMPTIBLE_FROM, OWN_CLASSES, QUEUE_LABELS, requests_of, warn_of_topology
from app.formats.kubernetes.amounts import quantities
from app.formats.kubernetes.cluster import Pod
from app.formats.work.asking import Cluster, Planned, near
from app.formats.work.pod_sets import PodSet, Work
from app.formats.work.pods import pods_of, too_many
from app.solver.model.state import Ask, Task

_DEFAULT_QUEUE = "default-queue"
_PROJECT = ("project", "kai.scheduler/project")
_PRIORITY = "priorityClassName"
_PREEMPTIBILITY = "kai.scheduler/preemptibility"

_Member = tuple[PodSet, Pod]


def plan_work(works: list[Work], cluster: Cluster) -> list[Planned]:
    """The asks of ``works``: one for each pod group."""
    if works and too_many(works, cluster):
        return []
    return [Planned(work.title, list(_asks(work, cluster))) for work in works]


def _asks(work: Work, cluster: Cluster) -> Iterator[Ask]:
    queue = _queue(work, cluster)
    if queue is None:
        return
    warn_of_topology(work.made.annotations, work.made.root, (*work.made.root.at, "metadata", "annotations"))
    priority = _priority(work, cluster)
    for name, members in _groups(work, cluster):
        yield Ask(
            id=cluster.free(name), queue=queue, priority=priority, created_at=cluster.created_at,
            preemptible=_preemptible(work, priority), min_available=_minimum(work, members),
            tasks=[_task(pod, cluster) for _, pod in members],
        )  # fmt: skip


def _groups(work: Work, cluster: Cluster) -> Iterator[tuple[str, list[_Member]]]:
    grouped: dict[str, list[_Member]] = {}
    for replica, pod_set, pod in pods_of(work, cluster):
        grouping = work.kind.kai
        one = work.id if grouping == "one" or (grouping == "replica" and work.replicas == 1) else f"{work.id}-{replica}"
        grouped.setdefault(pod.made.id if grouping == "pod" else one, []).append((pod_set, pod))
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


def _queue(work: Work, cluster: Cluster) -> str | None:
    known = cluster.queues
    words = [work.made.labels, *(pod_set.labels for pod_set in work.pod_sets)]
    given = next((of[key] for of in words for key in (*QUEUE_LABELS, *_PROJECT) if of.get(key)), None)
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
    words = [work.made.labels, *(pod_set.labels for pod_set in work.pod_sets)]
    own = next((pod_set.pod.priority_class for pod_set in work.pod_sets if pod_set.pod.priority_class), None)
    name = own or next((of[_PRIORITY] for of in words if of.get(_PRIORITY)), None) or work.kind.kai_class
    found = cluster.beside.classes.find(name)
    if found is not None:
        return found.value
    if name not in OWN_CLASSES:
        detail = f"priority class {name!r} is not known here: planned as {work.kind.kai_class!r}"
        cluster.findings.add("unknown-name", "warning", (*work.made.root.at, "spec"), detail)
    return OWN_CLASSES.get(name, OWN_CLASSES[work.kind.kai_class])


def _preemptible(work: Work, priority: int) -> bool:
    said = work.made.labels.get(_PREEMPTIBILITY)
    return said != "non-preemptible" if said else priority < NON_PREEMPTIBLE_FROM


def _task(pod: Pod, cluster: Cluster) -> Task:
    return Task(
        name=pod.made.name,
        requests=quantities(requests_of(pod, cluster.gpus)),
        node_selector=pod.spec.node_selector,
        tolerations=pod.spec.tolerations,
        node_affinity=pod.spec.node_affinity,
    )
