"""AppWrapper, TrainJob, SparkApplication: kinds whose pods other objects describe, or Spark makes up itself."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from app.formats.objects import Object
from app.formats.reader import Reader
from app.formats.work.kinds import (
    KINDS,
    PodSet,
    PodSets,
    ReadSpec,
    default_pod,
    follow,
    number,
    read_pod_sets,
    read_template,
)
from app.formats.work.read import Beside

_BY_KIND = {(kind.group, kind.name): kind for kind in KINDS if kind.sets}
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"

_Read = Callable[[Reader, str, str, int], PodSet | None]
"""Reads the template at a path below an element, with what the cluster fills in of pods: name and count."""


def app_wrapper(made: Object, beside: Beside) -> list[PodSet]:
    """The pod sets of every component that it wraps, numbered as Kueue names them: inferred where the kind is known,
    else as the component's ``podSets`` say."""
    found: list[PodSet] = []
    for component in made.spec.children("components"):
        template = component.child("template")
        group = (template.text("apiVersion") or "").rpartition("/")[0]
        kind = _BY_KIND.get((group, template.text("kind") or ""))
        declared = component.children("podSets")
        if kind is not None:
            replicas = 1 if kind.replicas is None else number(template, kind.replicas)
            sets = read_pod_sets(kind, template, beside.read_spec)
            found += [replace(one, count=one.count * (1 if replicas is None else replicas)) for one in sets]
        else:
            found += [read for one in declared if (read := _declared(component, one, beside))]
    return [replace(one, name=f"{made.name or 'appwrapper'}-{i}") for i, one in enumerate(found)]


def _declared(component: Reader, one: Reader, beside: Beside) -> PodSet | None:
    path, replicas = one.text("path"), one.count("replicas")
    if not path or not path.startswith("template."):
        one.warn("path", "a path that starts with 'template.' is expected", "error", "missing-field")
        return None
    count = 1 if replicas is None else replicas
    return read_template(component, PodSets("", template=path), "main", count, None, beside.read_spec)


def train_job(made: Object, beside: Beside) -> list[PodSet]:
    """The replicated jobs of the training runtime; the one that trains has the nodes and the resources of the job.
    Where the runtime is not known, only that one, and a finding."""

    def read(pods: Reader, path: str, name: str, count: int) -> PodSet | None:
        admitted = beside.admission.admitted(pods, made.namespace, exists=False, planned=True)
        return read_template(admitted, PodSets("", template=path), name, count, None, beside.read_spec)

    spec = made.spec
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
    return [one for job in jobs if (one := _replicated(job, count, resources, read))]


def _replicated(job: Reader, nodes: int, resources: Any, read: _Read) -> PodSet | None:
    name = job.text("name") or "main"
    labels = follow(job, "template.metadata").labels("labels")
    trains = labels.get(_STEP) == "trainer" or (_STEP not in labels and name == _NODE)
    if not trains:
        return read(job, "template.spec.template", name, 1)
    spec = follow(job, "template.spec.template.spec")
    document = {**spec.value}
    if resources:
        listed = document.get("containers")
        containers = cast(list[Any], listed) if isinstance(listed, list) else []
        document["containers"] = [_with_resources(one, resources) for one in containers]
    return replace(_trainer(document, nodes, spec, read), name=name)


def _with_resources(container: Any, resources: Any) -> Any:
    if not isinstance(container, dict):
        return container
    of = cast(dict[str, Any], container)
    return {**of, "resources": resources} if of.get("name") == _NODE else of


def _trainer(document: Any, nodes: int, at: Reader, read: _Read) -> PodSet:
    made = read(Reader({"template": {"spec": document}}, at.at, at.findings), "template", _NODE, nodes)
    return made or PodSet(_NODE, nodes, None, default_pod({}, at), {}, {}, at.at)


_MIB = 2**20
_MEMORY = re.compile(r"([0-9]{1,12})([kmgtp]?)b?")
_UNITS = {"": _MIB, "k": 2**10, "m": _MIB, "g": 2**30, "t": 2**40, "p": 2**50}
_DEFAULT_MEMORY = 1024
_LEAST_OVERHEAD = 384
_OVERHEAD_OF_JVM, _OVERHEAD_OF_OTHERS = "0.1", "0.4"
_DEFAULT_EXECUTORS = 2
_OF_A_POD = ("nodeSelector", "tolerations", "affinity", "initContainers", "priorityClassName")


def pod_sets(made: Object, beside: Beside) -> list[PodSet]:
    """Driver and executors of a SparkApplication, whose pods Spark makes up itself.

    Source: Spark 3.5 on Kubernetes (memory, its overhead and their defaults) and the Spark operator's fields. A field
    of the role goes before ``sparkConf``, that before ``memoryOverheadFactor``. Memory is in MiB: a plain number means
    MiB too.
    """
    spec = made.spec
    driver, executor = spec.child("driver"), spec.child("executor")
    roles = [(driver, "driver", 1), (executor, "executor", _executors(spec, executor))]
    return [_pod_set(spec, role, name, count, beside.read_spec) for role, name, count in roles if count]


def _executors(spec: Reader, executor: Reader) -> int:
    dynamic = spec.child("dynamicAllocation")
    found = executor.count("instances")
    if found is None and dynamic.boolean("enabled"):
        found = next((n for key in ("initialExecutors", "minExecutors") if (n := dynamic.count(key)) is not None), None)
    if found is None:
        executor.warn("instances", f"no number of executors: Spark starts {_DEFAULT_EXECUTORS}", "info", "defaults")
        return _DEFAULT_EXECUTORS
    return found


def _pod_set(spec: Reader, role: Reader, name: str, count: int, read: ReadSpec) -> PodSet:
    template = role.child("template")
    metadata = template.child("metadata")
    base = dict(template.child("spec").value)
    containers = _listed(base.get("containers")) or [{}]
    first = cast(dict[str, Any], containers[0]) if isinstance(containers[0], dict) else {}
    own = {"requests": {"cpu": _cores(spec, role, name), "memory": _memory(spec, role, name) * _MIB}}
    gpu = role.child("gpu")
    resource, number = gpu.text("name"), gpu.count("quantity")
    if resource and number:
        own["limits"] = {resource: number}
    sidecars = [one.value for one in role.children("sidecars")]
    document = {**base, **{key: role.take(key) for key in _OF_A_POD if key in role}}
    document["containers"] = [{**first, "resources": own}, *containers[1:], *sidecars]
    return PodSet(
        name=name, count=count, least=None, pod=read(Reader(document, role.at, role.findings)),
        labels={**metadata.labels("labels"), **role.labels("labels")},
        annotations={**metadata.labels("annotations"), **role.labels("annotations")}, at=role.at,
    )  # fmt: skip


def _listed(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


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
