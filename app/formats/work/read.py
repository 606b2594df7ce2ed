"""Manifests of work that does not run yet: which objects start pods, and what stands beside them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from app.base.documents import Path
from app.formats.documents.reader import Findings, Reader
from app.formats.kubernetes.objects import Object, objects
from app.formats.kubernetes.priority_classes import Classes, read_classes
from app.formats.work import admission
from app.formats.work.admission import Admission
from app.formats.work.kinds import KINDS, Kind
from app.formats.work.paths import leaf
from app.formats.work.pod_sets import PodSet, Work, number, read_pod_sets

Special = Callable[[Object, "Beside"], list[PodSet]]
"""Reads the pod sets of a kind whose pods are not templates of the object itself."""

_BY_KIND = {(kind.group, kind.name): kind for kind in KINDS}
_CLASSES = ("PriorityClass", "WorkloadPriorityClass")
_RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
_NO_PODS = (
    "ConfigMap", "Secret", "Service", "ServiceAccount", "Namespace", "PersistentVolumeClaim", "PersistentVolume",
    "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Ingress", "NetworkPolicy", "PodDisruptionBudget",
    "StorageClass", "HorizontalPodAutoscaler", "Endpoints", "EndpointSlice", "ResourceQuota", "Topology",
    "ResourceFlavor", "ClusterQueue", "Cohort", "AdmissionCheck", "Queue", "Node",
)  # fmt: skip
_GENERATED = "xxxxx"


@dataclass(slots=True)
class Beside:
    """What stands beside the work: priority classes, LocalQueues (by id, their ClusterQueue), training runtimes, and
    what fills in pods."""

    classes: Classes = field(default_factory=Classes)
    local_queues: dict[str, str] = field(default_factory=dict[str, str])
    runtimes: dict[tuple[str, str], Object] = field(default_factory=dict[tuple[str, str], Object])
    admission: Admission = field(default_factory=Admission)

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
            into.local_queues[made.id] = made.spec.text("clusterQueue") or ""
        elif made.kind in _RUNTIMES:
            into.runtimes[made.kind, made.name] = made
        elif made.kind in admission.KINDS:
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
    for made in read_beside(documents, beside, findings):
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
    root = beside.admission.admitted(made.root, made.namespace, exists=kind.kueue == "pod")
    made = replace(made, root=root)
    name = made.name
    if not name:
        start = root.child("metadata").text("generateName")
        if not start:
            root.warn("metadata", f"{kind.full} without a name or generateName", "error", "missing-field")
            return None
        name = start + _GENERATED
    pod_sets = read_pod_sets(kind, root) if special is None else special(made, beside)
    replicas = 1 if kind.replicas is None else number(root, kind.replicas)
    work = Work(
        kind=kind, made=made, name=name, pod_sets=pod_sets, replicas=1 if replicas is None else replicas,
        least=_least(kind, root), priority_class=_priority_class(kind, root),
    )  # fmt: skip
    if not work.pods:
        root.findings.add("no-pods", "warning", root.at, f"{work.title} starts no pods: left out")
        return None
    return work


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
