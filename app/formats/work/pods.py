"""The pods of work, as they would be made: for systems that schedule pods and not objects."""

from collections.abc import Iterator
from dataclasses import replace

from app.formats.kubernetes.cluster import Pod
from app.formats.work.asking import Cluster
from app.formats.work.pod_sets import PodSet, Work

MOST_PODS = 4000
"""Of one plan."""


def pods_of(work: Work, cluster: Cluster) -> Iterator[tuple[int, PodSet, Pod]]:
    """Replica, pod set and pod, in order. ``first`` of each pod set goes by the name ``<object>-<set>-0``."""
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
            cluster.findings.add("unknown-name", "warning", (*pod_set.at, "spec", "priorityClassName"), detail)


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
    if sets is None or not sets.count or sets.at.endswith(("[]", "{}")):
        return []
    return [name for path in (sets.at, sets.count[0].path) for name in path.split(".") if name]


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
    made = replace(
        work.made,
        kind="Pod",
        group="",
        name=name,
        uid=None,
        created_at=cluster.created_at,
        labels=work.made.labels if bare else pod_set.labels,
        annotations=work.made.annotations if bare else pod_set.annotations,
        owners=() if bare else (work.kind.name,),
    )
    spec = pod_set.pod
    priority = spec.priority
    if priority is None:
        found = cluster.beside.classes.find(spec.priority_class)
        priority = found.value if found else 0
    return Pod(made=made, spec=spec, phase="pending", node=None, priority=priority)
