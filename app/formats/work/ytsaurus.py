"""Asks of YTsaurus' operations before they start, by the specifications of ``start_op``."""

from collections.abc import Iterator
from typing import Any, cast

from app.base.documents import Path
from app.formats.fields import effect_of
from app.formats.reader import Reader
from app.formats.work.read import Cluster, Planned, near
from app.formats.ytsaurus.configuration import block_of
from app.solver.model import ytsaurus
from app.solver.model.base import Quantity
from app.solver.model.state import Ask, Task

_SECTIONS = ("mapper", "reducer", "reduce_combiner", "joiner")
_MEMORY = 512 << 20
_SLOTS = "user_slots"
_PER_TREE = "scheduling_options_per_pool_tree"
_CARRIED = ("starvation", "status", "below_fair_share_since")
_OPTIONS = tuple(name for name in ytsaurus.Workload.__struct_fields__ if name not in _CARRIED)
"""What the scheduler reads of an operation, under its own names."""


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


def _ask(said: Reader, title: str, cluster: Cluster) -> Ask | None:
    spec = _in_one_tree(said, cluster)
    pool = _pool(spec, cluster)
    tasks = list(_tasks(spec, cluster))
    if pool is None:
        return None
    if not any(task.count for task in tasks):
        detail = f"operation {title!r} starts no user jobs: {near(('tasks', *_SECTIONS))} are looked for"
        cluster.findings.add("no-pods", "error", spec.at, detail)
        return None
    options = block_of(spec, ytsaurus.Workload, _OPTIONS)
    limits = spec.quantities("resource_limits")
    return Ask(
        id=cluster.free(title), queue=pool, created_at=cluster.created_at, tasks=tasks, weight=spec.number("weight"),
        limit=limits or None, ytsaurus=options,
    )  # fmt: skip


def _in_one_tree(spec: Reader, cluster: Cluster) -> Reader:
    """What holds for the operation in the pool tree that has its pool, else in the first; what is said of a tree goes
    before the rest. What decisions would depend on and don't is a finding."""
    _warn(spec)
    trees = spec.child(_PER_TREE)
    every = [trees.child(name) for name in trees.value]
    if not every:
        return spec
    own = spec.value.get("pool")
    chosen = next((one for one in every if one.value.get("pool", own) in cluster.queues), every[0])
    if len(every) > 1:
        spec.warn(_PER_TREE, f"planned in one pool tree, {chosen.at[-1]!r}, of {len(every)}")
    _warn(chosen, f"{_PER_TREE}.{chosen.at[-1]}.")
    return Reader({**spec.value, **chosen.value}, spec.at, spec.findings)


def _warn(reader: Reader, below: str = "") -> None:
    for key, value in reader.value.items():
        effect = effect_of("ytsaurus", "Operation", key)
        alone = key == "pool_trees" and isinstance(value, list) and len(cast(list[Any], value)) < 2
        if effect in ("error", "warning") and value not in (None, False, [], {}, "") and not alone:
            reader.warn(key, f"{below}{key} is not decided here", effect)


def _pool(spec: Reader, cluster: Cluster) -> str | None:
    """The pool of the request, or of the operation."""
    pool = cluster.queue or spec.text("pool")
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
