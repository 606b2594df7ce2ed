"""Manifests of work that does not run yet: which objects start pods (kinds among them whose pods other objects
describe), what is beside them, and which cluster it is for.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from app.base.documents import Path, as_list, as_mapping
from app.formats.admission import KINDS as OF_ADMISSION
from app.formats.admission import Admission
from app.formats.kueue.considered import LocalQueue, read_local_queue
from app.formats.objects import Classes, Object, objects, read_classes
from app.formats.pods import Steps, read_pod_spec
from app.formats.reader import Findings, Reader
from app.formats.work.kinds import (
    KINDS,
    Kind,
    PodSet,
    PodSets,
    ReadSpec,
    Work,
    default_pod,
    follow,
    leaf,
    number,
    read_pod_sets,
    read_template,
)
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import few
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
        """Take over what ``other`` knows of a cluster, and this does not."""
        self.classes = self.classes.over(other.classes)
        self.local_queues = {**other.local_queues, **self.local_queues}
        self.namespaces = {**other.namespaces, **self.namespaces}
        self.admission = self.admission or other.admission


def kinds() -> list[str]:
    """Group and kind of everything that can be planned."""
    return sorted(kind.full for kind in KINDS)


def read_beside(documents: list[tuple[Path, Any]], into: Beside, findings: Findings) -> list[Object]:
    """Take what stands beside the work out of ``documents``; the other objects."""
    left: list[Object] = []
    classes: list[Object] = []
    for manifest in objects(_without_config_maps(documents), findings):
        if manifest.kind in _CLASSES:
            classes.append(manifest)
        elif manifest.kind == "LocalQueue":
            into.local_queues[manifest.id] = read_local_queue(manifest.spec)
        elif manifest.kind == "Namespace" and not manifest.group:
            into.namespaces[manifest.name] = manifest.labels
        elif manifest.kind in _RUNTIMES:
            into.runtimes[manifest.kind, manifest.name] = manifest
        elif (manifest.group, manifest.kind) == _POD_GROUP:
            into.groups.append(manifest)
        elif manifest.kind in OF_ADMISSION:
            into.admission.add(manifest)
        else:
            left.append(manifest)
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
    works: list[Work] = []
    names: dict[str, int] = {}
    left = read_beside(documents, beside, findings)
    beside.groups = [_in(manifest, namespace) for manifest in beside.groups]
    for manifest in left:
        kind = _BY_KIND.get((manifest.group, manifest.kind))
        if kind is not None:
            work = _work(kind, _in(manifest, namespace), beside, special.get(kind.full))
            if work is not None:
                works.append(_told_apart(work, names))
        elif manifest.kind in _NO_PODS:
            manifest.root.findings.add(
                "no-pods", "info", manifest.root.path, f"{manifest.kind} {manifest.id!r} starts no pods"
            )
        else:
            full = f"{manifest.group}/{manifest.kind}" if manifest.group else manifest.kind
            detail = f"kind {full!r} is not known; known are {', '.join(kinds())}"
            manifest.root.findings.add("unknown-kind", "error", (*manifest.root.path, "kind"), detail)
    return works


def _in(manifest: Object, namespace: str) -> Object:
    return manifest if manifest.namespace else replace(manifest, namespace=namespace)


def _work(kind: Kind, manifest: Object, beside: Beside, special: Special | None) -> Work | None:
    """The object as work; None, and findings, where it starts nothing."""
    root = beside.admission.admitted(manifest.root, manifest.namespace, exists=kind.kueue == "pod", planned=True)
    manifest = _as_seen(kind, replace(manifest, root=root))
    name = manifest.name
    if not name:
        start = root.child("metadata").text("generateName")
        if not start:
            root.warn("metadata", f"{kind.full} without a name or generateName", "error", "missing-field")
            return None
        name = start + _GENERATED
    pod_sets = read_pod_sets(kind, root, beside.read_spec) if special is None else special(manifest, beside)
    replicas = 1 if kind.replicas is None else number(root, kind.replicas)
    work = Work(
        kind=kind, manifest=manifest, name=name, pod_sets=pod_sets, replicas=1 if replicas is None else replicas,
        least=_least(kind, root), priority_class=_priority_class(kind, root), in_order=_in_order(kind, root),
    )  # fmt: skip
    if not work.pods:
        root.findings.add("no-pods", "warning", root.path, f"{work.title} starts no pods: left out")
        return None
    return work


def _as_seen(kind: Kind, manifest: Object) -> Object:
    """With the labels and annotations of what the system sees: the Job of a CronJob has those of its template."""
    if kind.metadata == Kind.metadata:
        return manifest
    metadata = follow(manifest.root, kind.metadata)
    labels = metadata.labels("labels")
    for key in manifest.labels:
        if key not in labels and OF_SCHEDULERS.match(key):
            detail = f"a {kind.name} does not hand its own labels on: only those at {kind.metadata}.labels count"
            manifest.root.findings.add(
                "not-handed-on", "warning", (*manifest.root.path, "metadata", "labels", key), detail
            )
    return replace(manifest, labels=labels, annotations=metadata.labels("annotations"))


def _in_order(kind: Kind, root: Reader) -> bool:
    if kind.kai_order is None:
        return True
    holder, name = leaf(root, kind.kai_order)
    return holder.text(name) in (None, "InOrder")


def _least(kind: Kind, root: Reader) -> int | None:
    counts = (number(root, path) for path in kind.least_of_all)
    return next((value for value in counts if value is not None), None)


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
    if work.manifest.name:
        path = (*work.manifest.root.path, "metadata", "name")
        work.manifest.root.findings.add("duplicate", "error", path, f"a second {work.title}")
    return replace(work, name=f"{work.name}-{names[work.id]}")


def _without_config_maps(documents: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """A ConfigMap beside a job holds its files: nothing that is planned."""
    return [(path, document) for path, document in documents if as_mapping(document).get("kind") != "ConfigMap"]


@dataclass(frozen=True, slots=True)
class Planned:
    """One object, as messages name it, and the asks that it became."""

    title: str
    asks: list[Ask]


@dataclass(slots=True)
class Cluster:
    """What work is planned for. ``queue``: the one that all of it goes to, whatever the objects say; ``created_at``:
    since when the asks wait; ``taken``: ids that running and waiting work has, ``running``: those of what runs;
    ``counted``: the resources that queues or nodes have; ``dynamic``: queues that the work itself makes (YuniKorn)."""

    configuration: Configuration
    beside: Beside
    findings: Findings
    created_at: datetime
    queue: str | None = None
    taken: set[str] = field(default_factory=set[str])
    running: set[str] = field(default_factory=set[str])
    counted: set[str] = field(default_factory=set[str])
    dynamic: list[Queue] = field(default_factory=list[Queue])

    def free(self, wanted: str) -> str:
        """``wanted``, or the first like it that nobody has; taken from now on."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}-{number}"
        self.taken.add(name)
        return name

    @property
    def queues(self) -> dict[str, Queue]:
        """By name."""
        return {queue.name: queue for queue in self.configuration.queues}

    def left_out(self, work: Work, detail: str, *below: str, rule: str = "no-queue") -> None:
        """An object that can't be planned, and why."""
        path = (*work.metadata, *below[1:]) if below[:1] == ("metadata",) else (*work.manifest.root.path, *below)
        self.findings.add(rule, "error", path, f"{work.title}: {detail}")


def near(names: Iterable[str], most: int = 10) -> str:
    """The names that there are, for a message."""
    return few(list(map(repr, names)), most) or "none"


def resource_names(configuration: Configuration) -> set[str]:
    """Every resource that some queue of the configuration has a quota of."""
    names: set[str] = set()
    for queue in configuration.queues:
        names.update(queue.quota or ())
        for group in queue.resource_groups or ():
            names.update(group.resources)
            for flavor in group.flavors:
                names.update(flavor.quota)
    return names


def as_counted(requests: Steps, names: Collection[str]) -> Steps:
    """``requests`` as a configuration counts them that knows GPUs by the one name ``gpu``."""
    if "gpu" not in names:
        return requests
    out: Steps = {}
    for name, value in requests.items():
        counted = "gpu" if name.endswith("/gpu") and name not in names else name
        out[counted] = out.get(counted, 0) + value
    return out


_SPARK_BY_KIND = {(kind.group, kind.name): kind for kind in KINDS if kind.sets}
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"

_Read = Callable[[Reader, str, str, int], PodSet | None]
"""Reads the template at a path below an element, with what the cluster fills in of pods: name and count."""


def app_wrapper(manifest: Object, beside: Beside) -> list[PodSet]:
    """The pod sets of every component that it wraps, numbered as Kueue names them: inferred where the kind is known,
    else as the component's ``podSets`` say."""
    wrapped: list[PodSet] = []
    for component in manifest.spec.children("components"):
        template = component.child("template")
        group = (template.text("apiVersion") or "").rpartition("/")[0]
        kind = _SPARK_BY_KIND.get((group, template.text("kind") or ""))
        declared = component.children("podSets")
        if kind is not None:
            replicas = 1 if kind.replicas is None else number(template, kind.replicas)
            sets = read_pod_sets(kind, template, beside.read_spec)
            wrapped += [
                replace(pod_set, count=pod_set.count * (1 if replicas is None else replicas)) for pod_set in sets
            ]
        else:
            wrapped += [read for declaration in declared if (read := _declared(component, declaration, beside))]
    return [replace(pod_set, name=f"{manifest.name or 'appwrapper'}-{i}") for i, pod_set in enumerate(wrapped)]


def _declared(component: Reader, declaration: Reader, beside: Beside) -> PodSet | None:
    path, replicas = declaration.text("path"), declaration.count("replicas")
    if not path or not path.startswith("template."):
        declaration.warn("path", "a path that starts with 'template.' is expected", "error", "missing-field")
        return None
    count = 1 if replicas is None else replicas
    return read_template(component, PodSets("", template=path), "main", count, None, beside.read_spec)


def train_job(manifest: Object, beside: Beside) -> list[PodSet]:
    """The replicated jobs of the training runtime; the one that trains has the nodes and the resources of the job.
    Where the runtime is not known, only that one, and a finding."""

    def read(pods: Reader, path: str, name: str, count: int) -> PodSet | None:
        admitted = beside.admission.admitted(pods, manifest.namespace, exists=False, planned=True)
        return read_template(admitted, PodSets("", template=path), name, count, None, beside.read_spec)

    spec = manifest.spec
    reference, trainer = spec.child("runtimeRef"), spec.child("trainer")
    nodes = trainer.count("numNodes")
    resources = trainer.take("resourcesPerNode")
    name, kind = reference.text("name") or "", reference.text("kind") or "ClusterTrainingRuntime"
    runtime = beside.runtimes.get((kind, name))
    if runtime is None:
        detail = f"{kind} {name!r} is not known here: only the nodes that train are planned, with resourcesPerNode"
        spec.warn("runtimeRef", detail, rule="unknown-name")
        container: dict[str, Any] = {"name": _NODE, "resources": resources or {}}
        return [_trainer({"containers": [container]}, 1 if nodes is None else nodes, spec, read)]
    policy = follow(runtime.root, "spec.mlPolicy").count("numNodes")
    count = next((n for n in (nodes, policy) if n is not None), 1)
    jobs = follow(runtime.root, "spec.template.spec").children("replicatedJobs")
    return [pod_set for job in jobs if (pod_set := _replicated(job, count, resources, read))]


def _replicated(job: Reader, nodes: int, resources: Any, read: _Read) -> PodSet | None:
    name = job.text("name") or "main"
    labels = follow(job, "template.metadata").labels("labels")
    trains = labels.get(_STEP) == "trainer" or (_STEP not in labels and name == _NODE)
    if not trains:
        return read(job, "template.spec.template", name, 1)
    spec = follow(job, "template.spec.template.spec")
    document = {**spec.value}
    if resources:
        document["containers"] = [_with_resources(of, resources) for of in as_list(document.get("containers"))]
    return replace(_trainer(document, nodes, spec, read), name=name)


def _with_resources(container: Any, resources: Any) -> Any:
    of = as_mapping(container)
    return {**of, "resources": resources} if of.get("name") == _NODE else container


def _trainer(document: Any, nodes: int, spec: Reader, read: _Read) -> PodSet:
    trainer = read(Reader({"template": {"spec": document}}, spec.path, spec.findings), "template", _NODE, nodes)
    return trainer or PodSet(_NODE, nodes, None, default_pod({}, spec), {}, {}, spec.path)


_MIB = 2**20
_MEMORY = re.compile(r"([0-9]{1,12})([kmgtp]?)b?")
_UNITS = {"": _MIB, "k": 2**10, "m": _MIB, "g": 2**30, "t": 2**40, "p": 2**50}
_DEFAULT_MEMORY = 1024
_LEAST_OVERHEAD = 384
_OVERHEAD_OF_JVM, _OVERHEAD_OF_OTHERS = "0.1", "0.4"
_DEFAULT_EXECUTORS = 2
_OF_A_POD = ("nodeSelector", "tolerations", "affinity", "initContainers", "priorityClassName")


def pod_sets(manifest: Object, beside: Beside) -> list[PodSet]:
    """Driver and executors of a SparkApplication, whose pods Spark makes up itself.

    Source: Spark 3.5 on Kubernetes (memory, its overhead and their defaults) and the Spark operator's fields. A field
    of the role goes before ``sparkConf``, that before ``memoryOverheadFactor``. Memory is in MiB: a plain number means
    MiB too.
    """
    spec = manifest.spec
    driver, executor = spec.child("driver"), spec.child("executor")
    roles = [(driver, "driver", 1), (executor, "executor", _executors(spec, executor))]
    return [_pod_set(spec, role, name, count, beside.read_spec) for role, name, count in roles if count]


def _executors(spec: Reader, executor: Reader) -> int:
    dynamic = spec.child("dynamicAllocation")
    instances = executor.count("instances")
    if instances is None and dynamic.boolean("enabled"):
        instances = next(
            (n for key in ("initialExecutors", "minExecutors") if (n := dynamic.count(key)) is not None), None
        )
    if instances is None:
        executor.warn("instances", f"no number of executors: Spark starts {_DEFAULT_EXECUTORS}", "info", "defaults")
        return _DEFAULT_EXECUTORS
    return instances


def _pod_set(spec: Reader, role: Reader, name: str, count: int, read: ReadSpec) -> PodSet:
    template = role.child("template")
    metadata = template.child("metadata")
    base = dict(template.child("spec").value)
    containers = as_list(base.get("containers")) or [{}]
    own = {"requests": {"cpu": _cores(spec, role, name), "memory": _memory(spec, role, name) * _MIB}}
    gpu = role.child("gpu")
    resource, number = gpu.text("name"), gpu.count("quantity")
    if resource and number:
        own["limits"] = {resource: number}
    sidecars = [sidecar.value for sidecar in role.children("sidecars")]
    document = {**base, **{key: role.take(key) for key in _OF_A_POD if key in role}}
    document["containers"] = [{**as_mapping(containers[0]), "resources": own}, *containers[1:], *sidecars]
    return PodSet(
        name=name, count=count, least=None, pod=read(Reader(document, role.path, role.findings)),
        labels={**metadata.labels("labels"), **role.labels("labels")},
        annotations={**metadata.labels("annotations"), **role.labels("annotations")}, path=role.path,
    )  # fmt: skip


def _conf(spec: Reader, key: str) -> str | None:
    value = spec.child("sparkConf").value.get(key)
    return None if value is None else str(value)


def _cores(spec: Reader, role: Reader, name: str) -> Any:
    """``coreRequest`` may be a part of a core; ``cores``, what Spark itself counts, is 1 by default."""
    asked = role.take("coreRequest") or _conf(spec, f"spark.kubernetes.{name}.request.cores")
    if asked is not None:
        return asked
    cores = role.count("cores")
    return cores if cores is not None else _conf(spec, f"spark.{name}.cores") or 1


def _memory(spec: Reader, role: Reader, name: str) -> int:
    """MiB of a pod: the heap, and its overhead."""
    heap = _mib(role, "memory", _conf(spec, f"spark.{name}.memory"))
    heap = _DEFAULT_MEMORY if heap is None else heap
    given = _mib(role, "memoryOverhead", _conf(spec, f"spark.{name}.memoryOverhead"))
    extra = _mib(spec, "", _conf(spec, "spark.executor.pyspark.memory")) if name == "executor" else None
    overhead = max(int(_factor(spec, name) * heap), _LEAST_OVERHEAD) if given is None else given
    return heap + overhead + (extra or 0)


def _mib(role: Reader, key: str, conf: str | None) -> int | None:
    value = (role.text(key) if key else None) or conf
    if value is None:
        return None
    match = _MEMORY.fullmatch(value.strip().lower())
    if match is None:
        role.warn(key or "sparkConf", f"{value[:40]!r} is no amount of memory as Spark writes it", "error", "bad-value")
        return None
    return int(match[1]) * _UNITS[match[2]] // _MIB


def _factor(spec: Reader, name: str) -> Decimal:
    given = (
        _conf(spec, f"spark.{name}.memoryOverheadFactor")
        or _conf(spec, "spark.kubernetes.memoryOverheadFactor")
        or spec.text("memoryOverheadFactor")
    )
    default = _OVERHEAD_OF_OTHERS if spec.text("type") in ("Python", "R") else _OVERHEAD_OF_JVM
    try:
        factor = Decimal(given or default)
    except InvalidOperation:
        factor = Decimal(-1)
    if not 0 <= factor <= 1000:
        spec.warn("memoryOverheadFactor", "a number from 0 to 1000 is expected", "error", "bad-value")
        return Decimal(default)
    return factor
