"""Asks of YTsaurus' operations before they start, by the specifications of ``start_op``."""

from collections.abc import Iterator
from typing import Any

import msgspec

from app.base.documents import Path
from app.formats.reader import Reader
from app.formats.work.read import Cluster, Planned, near
from app.solver.model import ytsaurus
from app.solver.model.base import Quantity
from app.solver.model.state import Ask, Task

_SECTIONS = ("mapper", "reducer", "reduce_combiner", "joiner")
_MEMORY = 512 << 20
_SLOTS = "user_slots"


def plan_operations(documents: list[tuple[Path, Any]], cluster: Cluster) -> list[Planned]:
    """The asks of YTsaurus' operations before they start, one for each specification. What can't be planned is a
    finding and left out.

    The specification is that of ``start_op``, by itself or as ``spec`` beside ``operation_type``. A user job has one
    slot and the limits of its section: ``tasks`` of a vanilla operation, ``mapper``, ``reducer`` and others elsewhere.
    What a limit leaves out has YTsaurus' default: one cpu, 512 MiB, no GPU.
    """
    planned: list[Planned] = []
    for at, document in documents:
        root = Reader(document, at, cluster.findings)
        spec = root.child("spec") if "spec" in root else root
        title = spec.text("alias") or spec.text("title") or root.text("id") or "operation"
        ask = _ask(spec, title, cluster)
        if ask is not None:
            planned.append(Planned(f"operation {title}", [ask]))
    return planned


def _ask(spec: Reader, title: str, cluster: Cluster) -> Ask | None:
    pool = _pool(spec, cluster)
    tasks = list(_tasks(spec, cluster))
    if pool is None:
        return None
    if not any(task.count for task in tasks):
        detail = f"operation {title!r} starts no user jobs: {near(('tasks', *_SECTIONS))} are looked for"
        cluster.findings.add("no-pods", "error", spec.at, detail)
        return None
    options = _options(spec, cluster)
    limits = spec.quantities("resource_limits")
    return Ask(
        id=cluster.free(title), queue=pool, created_at=cluster.created_at, tasks=tasks, weight=spec.number("weight"),
        limit=limits or None, ytsaurus=options,
    )  # fmt: skip


def _pool(spec: Reader, cluster: Cluster) -> str | None:
    """The pool of the request, of the operation, or of its only pool tree."""
    trees = spec.child("scheduling_options_per_pool_tree")
    of_trees = [found for tree in trees.value if (found := trees.child(tree).text("pool"))]
    pool = cluster.queue or spec.text("pool") or next(iter(of_trees), None)
    if pool in cluster.queues:
        return pool
    why = "no pool is named" if pool is None else f"there is no pool {pool!r}"
    cluster.findings.add("no-queue", "error", (*spec.at, "pool"), f"{why}; there are {near(cluster.queues)}")
    return None


def _tasks(spec: Reader, cluster: Cluster) -> Iterator[Task]:
    tasks = spec.child("tasks")
    for name in sorted(tasks.value):
        one = tasks.child(name)
        yield _job_task(name, one, one.count("job_count"), cluster)
    for name in _SECTIONS:
        if name in spec:
            yield _job_task(name, spec.child(name), spec.count("job_count"), cluster)


def _job_task(name: str, job: Reader, count: int | None, cluster: Cluster) -> Task:
    if count is None:
        detail = "how many jobs there are depends on the input: say job_count; planned with one"
        job.findings.add("assumed-count", "warning", job.at, detail)
        count = 1
    found: dict[str, Quantity | None] = {
        _SLOTS: 1,
        "cpu": job.quantity("cpu_limit", "cpu") if "cpu_limit" in job else 1,
        "memory": job.quantity("memory_limit", "memory") if "memory_limit" in job else _MEMORY,
        "gpu": job.quantity("gpu_limit", "gpu"),
    }
    requests = {r: value for r, value in found.items() if value and (r != _SLOTS or r in cluster.counted)}
    return Task(name=name, count=count, requests=requests)


def _options(spec: Reader, cluster: Cluster) -> ytsaurus.Workload | None:
    """What the scheduler reads of an operation, under its own names."""
    values: dict[str, Any] = {}
    for field in ytsaurus.Workload.__struct_fields__:
        given = spec.take(field)
        if given is None or field in ("starvation", "status", "below_fair_share_since"):
            continue
        try:
            msgspec.convert({field: given}, ytsaurus.Workload)
        except msgspec.ValidationError as error:
            cluster.findings.add("wrong-type", "error", (*spec.at, field), str(error).partition(" - at")[0])
        else:
            values[field] = given
    return msgspec.convert(values, ytsaurus.Workload) if values else None
