"""Manifests of work that does not run yet: which objects start pods, what is beside them, which cluster it is for."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from app.base.documents import Path
from app.formats.admission import KINDS as OF_ADMISSION
from app.formats.admission import Admission
from app.formats.kueue.considered import LocalQueue, read_local_queue
from app.formats.objects import Classes, Object, objects, read_classes
from app.formats.pods import Steps, read_pod_spec
from app.formats.reader import Findings, Reader
from app.formats.work.kinds import KINDS, Kind, PodSet, ReadSpec, Work, follow, leaf, number, read_pod_sets
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.state import Ask

Special = Callable[[Object, "Beside"], list[PodSet]]
"""Reads the pod sets of a kind whose pods are not templates of the object itself."""

_BY_KIND = {(kind.group, kind.name): kind for kind in KINDS}
_CLASSES = ("PriorityClass", "WorkloadPriorityClass")
_POD_GROUP = ("scheduling.run.ai", "PodGroup")
_RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
_NO_PODS = (
    "ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim", "PersistentVolume",
    "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Ingress", "NetworkPolicy", "PodDisruptionBudget",
    "StorageClass", "HorizontalPodAutoscaler", "Endpoints", "EndpointSlice", "ResourceQuota", "Topology",
    "ResourceFlavor", "ClusterQueue", "Cohort", "AdmissionCheck", "Queue", "Node",
)  # fmt: skip
_GENERATED = "xxxxx"
OF_SCHEDULERS = re.compile(
    r"(kueue\.x-k8s\.io|yunikorn\.apache\.org|kai\.scheduler|runai)/|(applicationId|queue|project|priorityClassName)$"
)
"""Labels that Kueue, YuniKorn or KAI Scheduler reads of work."""


@dataclass(slots=True)
class Beside:
    """What stands beside the work: priority classes, LocalQueues (by id), labels of namespaces, training runtimes,
    PodGroups (KAI), what fills in pods, and what reads their specs."""

    classes: Classes = field(default_factory=Classes)
    local_queues: dict[str, LocalQueue] = field(default_factory=dict[str, LocalQueue])
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    runtimes: dict[tuple[str, str], Object] = field(default_factory=dict[tuple[str, str], Object])
    groups: list[Object] = field(default_factory=list[Object])
    admission: Admission = field(default_factory=Admission)
    read_spec: ReadSpec = read_pod_spec

    def complete(self, other: "Beside") -> None:
        """Take over what ``other`` knows of classes and LocalQueues, and this does not."""
        self.classes = self.classes.over(other.classes)
        self.local_queues = {**other.local_queues, **self.local_queues}


def kinds() -> list[str]:
    """Group and kind of everything that can be planned."""
    return sorted(kind.full for kind in KINDS)


def read_beside(documents: list[tuple[Path, Any]], into: Beside, findings: Findings) -> list[Object]:
    """Take what stands beside the work out of ``documents``; the other objects."""
    left: list[Object] = []
    classes: list[Object] = []
    for made in objects(_without_config_maps(documents), findings):
        if made.kind in _CLASSES:
            classes.append(made)
        elif made.kind == "LocalQueue":
            into.local_queues[made.id] = read_local_queue(made.spec)
        elif made.kind == "Namespace" and not made.group:
            into.namespaces[made.name] = made.labels
        elif made.kind in _RUNTIMES:
            into.runtimes[made.kind, made.name] = made
        elif (made.group, made.kind) == _POD_GROUP:
            into.groups.append(made)
        elif made.kind in OF_ADMISSION:
            into.admission.add(made)
        else:
            left.append(made)
    into.classes = read_classes(classes).over(into.classes)
    return left


def read_work(
    documents: list[tuple[Path, Any]],
    beside: Beside,
    findings: Findings,
    *,
    namespace: str,
    special: dict[str, Special],
) -> list[Work]:
    """The work of ``documents``. ``namespace``: of objects that name none; ``special``: by full name of the kind. A
    kind that starts pods in a way that nobody knows here is a finding of severity error that lists those that are
    known."""
    found: list[Work] = []
    names: dict[str, int] = {}
    left = read_beside(documents, beside, findings)
    beside.groups = [_in(made, namespace) for made in beside.groups]
    for made in left:
        kind = _BY_KIND.get((made.group, made.kind))
        if kind is not None:
            work = _work(kind, _in(made, namespace), beside, special.get(kind.full))
            if work is not None:
                found.append(_told_apart(work, names))
        elif made.kind in _NO_PODS:
            made.root.findings.add("no-pods", "info", made.root.at, f"{made.kind} {made.id!r} starts no pods")
        else:
            full = f"{made.group}/{made.kind}" if made.group else made.kind
            detail = f"kind {full!r} is not known; known are {', '.join(kinds())}"
            made.root.findings.add("unknown-kind", "error", (*made.root.at, "kind"), detail)
    return found


def _in(made: Object, namespace: str) -> Object:
    return made if made.namespace else replace(made, namespace=namespace)


def _work(kind: Kind, made: Object, beside: Beside, special: Special | None) -> Work | None:
    """The object as work; None, and findings, where it starts nothing."""
    root = beside.admission.admitted(made.root, made.namespace, exists=kind.kueue == "pod", planned=True)
    made = _as_seen(kind, replace(made, root=root))
    name = made.name
    if not name:
        start = root.child("metadata").text("generateName")
        if not start:
            root.warn("metadata", f"{kind.full} without a name or generateName", "error", "missing-field")
            return None
        name = start + _GENERATED
    pod_sets = read_pod_sets(kind, root, beside.read_spec) if special is None else special(made, beside)
    replicas = 1 if kind.replicas is None else number(root, kind.replicas)
    work = Work(
        kind=kind, made=made, name=name, pod_sets=pod_sets, replicas=1 if replicas is None else replicas,
        least=_least(kind, root), priority_class=_priority_class(kind, root), in_order=_in_order(kind, root),
    )  # fmt: skip
    if not work.pods:
        root.findings.add("no-pods", "warning", root.at, f"{work.title} starts no pods: left out")
        return None
    return work


def _as_seen(kind: Kind, made: Object) -> Object:
    """With the labels and annotations of what the system sees: the Job of a CronJob has those of its template."""
    if kind.metadata == Kind.metadata:
        return made
    metadata = follow(made.root, kind.metadata)
    labels = metadata.labels("labels")
    for key in made.labels:
        if key not in labels and OF_SCHEDULERS.match(key):
            detail = f"a {kind.name} does not hand its own labels on: only those at {kind.metadata}.labels count"
            made.root.findings.add("not-handed-on", "warning", (*made.root.at, "metadata", "labels", key), detail)
    return replace(made, labels=labels, annotations=metadata.labels("annotations"))


def _in_order(kind: Kind, root: Reader) -> bool:
    if kind.kai_order is None:
        return True
    holder, name = leaf(root, kind.kai_order)
    return holder.text(name) in (None, "InOrder")


def _least(kind: Kind, root: Reader) -> int | None:
    found = (number(root, path) for path in kind.least_of_all)
    return next((value for value in found if value is not None), None)


def _priority_class(kind: Kind, root: Reader) -> str | None:
    if kind.priority is None:
        return None
    holder, name = leaf(root, kind.priority)
    return holder.text(name) or None


def _told_apart(work: Work, names: dict[str, int]) -> Work:
    """Two objects that a server would name get two names here."""
    names[work.id] = names.get(work.id, 0) + 1
    if names[work.id] == 1:
        return work
    if work.made.name:
        at = (*work.made.root.at, "metadata", "name")
        work.made.root.findings.add("duplicate", "error", at, f"a second {work.title}")
    return replace(work, name=f"{work.name}-{names[work.id]}")


def _without_config_maps(documents: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """A ConfigMap beside a job holds its files: nothing that is planned."""
    return [
        (at, document)
        for at, document in documents
        if not (isinstance(document, dict) and cast(dict[str, Any], document).get("kind") == "ConfigMap")
    ]


@dataclass(frozen=True, slots=True)
class Planned:
    """One object, as messages name it, and the asks that it became."""

    title: str
    asks: list[Ask]


@dataclass(slots=True)
class Cluster:
    """What work is planned for. ``queue``: the one that all of it goes to, whatever the objects say; ``created_at``:
    since when the asks wait; ``taken``: ids that running and waiting work has, ``running``: those of what runs;
    ``counted``: the resources that queues or nodes have; ``gpus``: MiB of a GPU, by node (KAI); ``dynamic``: queues
    that the work itself makes (YuniKorn)."""

    configuration: Configuration
    beside: Beside
    findings: Findings
    created_at: datetime
    queue: str | None = None
    taken: set[str] = field(default_factory=set[str])
    running: set[str] = field(default_factory=set[str])
    counted: set[str] = field(default_factory=set[str])
    gpus: dict[str, int] = field(default_factory=dict[str, int])
    dynamic: list[Queue] = field(default_factory=list[Queue])

    def free(self, wanted: str) -> str:
        """``wanted``, or the first like it that nobody has; taken from now on."""
        found, number = wanted, 1
        while found in self.taken:
            number += 1
            found = f"{wanted}-{number}"
        self.taken.add(found)
        return found

    @property
    def queues(self) -> dict[str, Queue]:
        """By name."""
        return {queue.name: queue for queue in self.configuration.queues}

    def left_out(self, work: Work, detail: str, *below: str, rule: str = "no-queue") -> None:
        """An object that can't be planned, and why."""
        at = (*work.metadata, *below[1:]) if below[:1] == ("metadata",) else (*work.made.root.at, *below)
        self.findings.add(rule, "error", at, f"{work.title}: {detail}")


def near(names: Iterable[str], most: int = 10) -> str:
    """The names that there are, for a message."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(repr(name) for name in listed[:most]) + more if listed else "none"


def resource_names(configuration: Configuration) -> set[str]:
    """Every resource that some queue of the configuration has a quota of."""
    found: set[str] = set()
    for queue in configuration.queues:
        found.update(queue.quota or ())
        for group in queue.resource_groups or ():
            found.update(group.resources)
            for flavor in group.flavors:
                found.update(flavor.quota)
    return found


def as_counted(requests: Steps, names: Collection[str]) -> Steps:
    """``requests`` as a configuration counts them that knows GPUs by the one name ``gpu``."""
    if "gpu" not in names:
        return requests
    out: Steps = {}
    for name, value in requests.items():
        counted = "gpu" if name.endswith("/gpu") and name not in names else name
        out[counted] = out.get(counted, 0) + value
    return out
