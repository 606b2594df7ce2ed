"""SparkApplication: a driver and executors whose pods Spark makes up itself.

Source: Spark 3.5 on Kubernetes (memory, its overhead and their defaults) and the Spark operator's fields. A field of
the role goes before ``sparkConf``, that before ``memoryOverheadFactor``. Memory is in MiB: a plain number means MiB
too.
"""

import re
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from app.formats.documents.reader import Reader
from app.formats.kubernetes.objects import Object
from app.formats.kubernetes.pod_spec import read_pod_spec
from app.formats.work.pod_sets import PodSet
from app.formats.work.read import Beside

_MIB = 2**20
_MEMORY = re.compile(r"([0-9]{1,12})([kmgtp]?)b?")
_UNITS = {"": _MIB, "k": 2**10, "m": _MIB, "g": 2**30, "t": 2**40, "p": 2**50}
_DEFAULT_MEMORY = 1024
_LEAST_OVERHEAD = 384
_OVERHEAD_OF_JVM, _OVERHEAD_OF_OTHERS = "0.1", "0.4"
_DEFAULT_EXECUTORS = 2
_OF_A_POD = ("nodeSelector", "tolerations", "affinity", "initContainers", "priorityClassName")


def pod_sets(made: Object, beside: Beside) -> list[PodSet]:
    """Driver and executors."""
    del beside
    spec = made.spec
    driver, executor = spec.child("driver"), spec.child("executor")
    roles = [(driver, "driver", 1), (executor, "executor", _executors(spec, executor))]
    return [_pod_set(spec, role, name, count) for role, name, count in roles if count]


def _executors(spec: Reader, executor: Reader) -> int:
    dynamic = spec.child("dynamicAllocation")
    found = executor.count("instances")
    if found is None and dynamic.boolean("enabled"):
        found = next((n for key in ("initialExecutors", "minExecutors") if (n := dynamic.count(key)) is not None), None)
    if found is None:
        executor.warn("instances", f"no number of executors: Spark starts {_DEFAULT_EXECUTORS}", "info", "defaults")
        return _DEFAULT_EXECUTORS
    return found


def _pod_set(spec: Reader, role: Reader, name: str, count: int) -> PodSet:
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
        name=name, count=count, least=None, pod=read_pod_spec(Reader(document, role.at, role.findings)),
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
