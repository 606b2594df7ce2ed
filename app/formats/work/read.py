"""What a cluster fills in of pods that a manifest leaves out: defaults of LimitRanges, overhead of RuntimeClasses.

Sources: the admission plugins LimitRanger and RuntimeClass of Kubernetes' API server, defaults of ``LimitRangeItem``,
and ``pkg/workload/resources.go`` of Kueue, which fills in before a pod exists: there a LimitRange's default request
goes before the container's own limit, with the API server after it.

Manifests of work that does not run yet: which objects start pods, and what stands beside them.

What every system's reader of work needs: the cluster it is for, names of queues and resources, ids that are free.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from app.base.documents import Path
from app.formats.objects import Classes, Object, objects, read_classes
from app.formats.pods import Steps, steps
from app.formats.reader import Findings, Reader
from app.formats.work.kinds import KINDS, Kind, PodSet, Work, leaf, number, read_pod_sets
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.state import Ask
from app.solver.stopping import safe_point

BESIDE_KINDS = ("LimitRange", "RuntimeClass")
_CONTAINERS = ("containers", "initContainers")

_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Runtime:
    overhead: _Json
    selector: _Json
    tolerations: list[Any]


@dataclass(slots=True)
class Admission:
    """By namespace the default limits and requests of containers, and runtime classes by name. ``kueue``: Kueue counts,
    not the API server."""

    kueue: bool = False
    _limits: dict[str, _Json] = field(default_factory=dict[str, _Json])
    _requests: dict[str, _Json] = field(default_factory=dict[str, _Json])
    _runtimes: dict[str, _Runtime] = field(default_factory=dict[str, _Runtime])

    def add(self, made: Object) -> None:
        """Take in a LimitRange or a RuntimeClass. Of several LimitRanges the first that says something holds."""
        if made.kind == "RuntimeClass":
            scheduling = made.root.child("scheduling")
            self._runtimes[made.name] = _Runtime(
                _amounts(made.root.child("overhead"), "podFixed"), dict(scheduling.labels("nodeSelector")),
                [one.value for one in scheduling.children("tolerations")],
            )  # fmt: skip
            return
        for item in made.spec.children("limits"):
            if item.text("type") != "Container":
                continue
            limits = {**_amounts(item, "max"), **_amounts(item, "default")}
            requests = {**_amounts(item, "min"), **limits, **_amounts(item, "defaultRequest")}
            for of, found in ((self._limits, limits), (self._requests, requests)):
                of[made.namespace] = {**found, **of.get(made.namespace, {})}

    def admitted(self, root: Reader, namespace: str, *, exists: bool) -> Reader:
        """The object with every pod template in it filled in. ``exists``: its pods are made before anybody decides on
        them, so that the API server goes first whoever decides. Without recursion."""
        top: list[Any] = [root.value]
        pending: list[tuple[Any, Any, Path]] = [(top, 0, root.at)]
        # What aliases of YAML share stays shared, however much it stands for. What is known is held: ids come again.
        known: dict[int, tuple[Any, Any]] = {}
        while pending:
            safe_point()
            holder, key, at = pending.pop()
            value: Any = holder[key]
            if id(value) in known:
                _, holder[key] = known[id(value)]
            elif isinstance(value, Mapping):
                was = cast(_Json, value)
                made = dict(was)
                known[id(was)] = was, made
                if isinstance(made.get("containers"), list):
                    self._fill_in(made, root, at, namespace, exists=exists)
                holder[key] = made
                pending += [(made, name, (*at, name)) for name in made]
            elif isinstance(value, list):
                old = cast(list[Any], value)
                listed = list(old)
                known[id(old)] = old, listed
                holder[key] = listed
                pending += [(listed, i, (*at, i)) for i in range(len(listed))]
        return Reader(top[0], root.at, root.findings)

    def _fill_in(self, spec: _Json, root: Reader, at: Path, namespace: str, *, exists: bool) -> None:
        for key in _CONTAINERS:
            listed = spec.get(key)
            if isinstance(listed, list):
                spec[key] = [self._container(one, namespace, exists=exists) for one in cast(list[Any], listed)]
        name = spec.get("runtimeClassName")
        runtime = self._runtimes.get(name) if isinstance(name, str) else None
        if runtime is None:
            if isinstance(name, str) and name and not spec.get("overhead"):
                detail = f"RuntimeClass {name!r} is not known here: planned without its overhead"
                root.findings.add("unknown-name", "warning", (*at, "runtimeClassName"), detail)
            return
        spec["overhead"] = spec.get("overhead") or runtime.overhead
        if self.kueue and not exists:
            return
        if isinstance(spec.get("nodeSelector", {}), dict):
            spec["nodeSelector"] = {**runtime.selector, **(spec.get("nodeSelector") or {})}
        if isinstance(spec.get("tolerations", []), list):
            spec["tolerations"] = [*(spec.get("tolerations") or []), *runtime.tolerations]

    def _container(self, container: Any, namespace: str, *, exists: bool) -> Any:
        """With the requests that it has in the end; what is no container stays for whoever reads it."""
        of = _mapping(container)
        given = None if of is None else _mapping(of.get("resources"))
        own, limits = (None, None) if given is None else (_mapping(given.get(key)) for key in ("requests", "limits"))
        defaults = self._of(self._requests, namespace)
        if not defaults or of is None or given is None or own is None or limits is None:
            return container
        if self.kueue and not exists:
            found = {**self._of(self._limits, namespace), **limits, **defaults, **own}
        else:
            found = {**defaults, **limits, **own}
        return {**of, "resources": {**given, "requests": found}}

    @staticmethod
    def _of(defaults: dict[str, _Json], namespace: str) -> _Json:
        """Those of the namespace, and of a LimitRange beside the work that names none."""
        return {**defaults.get("", {}), **defaults.get(namespace, {})}


def _mapping(value: Any) -> _Json | None:
    """An empty one where there is nothing; None for anything else."""
    return {} if value is None else cast(_Json, value) if isinstance(value, dict) else None


def _amounts(reader: Reader, key: str) -> _Json:
    """Amounts as they are written, of those that are some."""
    known = steps(reader, key)
    return {name: value for name, value in reader.child(key).value.items() if name in known}


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
        elif made.kind in BESIDE_KINDS:
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
        at = (*work.made.root.at, *below)
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
