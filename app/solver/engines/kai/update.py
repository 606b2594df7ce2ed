"""A compiled state after a delta, from the one before it: what the delta doesn't name is taken over, renumbered where
jobs went or changed their number of pods.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

from app.solver.compiled import ResourceIndex
from app.solver.delta import Changes
from app.solver.engines.kai.configuration import CompiledConfiguration
from app.solver.engines.kai.jobs import NOWHERE, Columns, Jobs, Readable, Share, add_workloads, job_problems
from app.solver.engines.kai.state import (
    Baseline,
    CompiledState,
    Kind,
    Resident,
    Victim,
    columns,
    compile_state,
    homeless,
    kinds_of,
    layout,
    sums_over,
    upwards,
    usage_over_time,
)
from app.solver.model.state import State, Workload

T = TypeVar("T")
Edit = tuple[int, int, int, int]
"""``[a, b)`` of the old table becomes ``[c, d)`` of the fresh one."""
_Touched = tuple[int, int, Workload | None]
"""A job of the old table; how many of it are replaced: 1, or 0 where something comes before it; by what."""

_BY_JOB = ("id", "uid", "queue", "priority", "created", "started", "preemptible", "min_available",
           "gang", "delay", "evicted_at", "stale_since", "grace", "ask")  # fmt: skip
_BY_TASK = ("task_name", "task_node", "task_state", "task_request", "task_wire", "task_portion")


def update(loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """``state`` compiled, from what was compiled before where that will do. Raises what ``compile_state`` raises."""
    kept = followed(loaded, configured, state, changes)
    return compile_state(configured, state) if kept is None else kept


def followed(
    loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes
) -> CompiledState | None:
    """``state`` compiled; None where it has to be compiled anew: nodes changed, or a request names a resource that no
    node has, or can't be read. Raises KeyError, QuantityError."""
    old, width = loaded.jobs, loaded.named_by_nodes
    if changes.nodes or configured is not loaded.configuration or len(loaded.resources) != width:
        return None
    touched = _touched(old, changes)
    now = [new for _, _, new in touched if new is not None]
    resources = ResourceIndex(loaded.resources.names)
    fresh = Jobs()
    add_workloads(fresh, now, configured.tree.index, loaded.node_index, Columns(resources),
                  configured.policy.release, layout(loaded).gpu_memory)  # fmt: skip
    if len(resources) != width or not _readable(now):
        return None
    jobs_edits, task_edits = _edits(old, fresh, touched)
    jobs = Jobs()
    for names, edits in ((_BY_JOB, jobs_edits), (_BY_TASK, task_edits)):
        for name in names:
            setattr(jobs, name, _spliced(getattr(old, name), getattr(fresh, name), edits))
    _number(jobs, _spliced(old.tasks, fresh.tasks, jobs_edits))
    return CompiledState(
        configuration=configured, resources=loaded.resources, nodes=state.nodes, node_name=loaded.node_name,
        node_index=loaded.node_index, capacity=loaded.capacity, jobs=jobs, named_by_nodes=width,
        workloads=state.workloads, usage=usage_over_time(configured, state),
        resident=_resident(loaded, jobs, fresh, jobs_edits, task_edits),
    )  # fmt: skip


def _readable(workloads: Sequence[Workload]) -> bool:
    readable = Readable()
    if any(True for w in workloads for _ in job_problems(w, ())):
        return False
    return all(task.count == 1 and readable(task.requests) for w in workloads for task in w.tasks)


def _touched(old: Jobs, changes: Changes) -> list[_Touched]:
    """In the order of ids."""
    found: list[_Touched] = []
    for _, before, new in changes.workloads:
        if before is not None:
            found.append((old.by_id[before.id], 1, new))
        elif new is not None:
            found.append((bisect_left(old.id, new.id), 0, new))
    return sorted(found, key=lambda one: (one[0], one[1], one[2].id if one[2] is not None else ""))


def _edits(old: Jobs, fresh: Jobs, touched: list[_Touched]) -> tuple[list[Edit], list[Edit]]:
    """Of the job columns and of the task columns, in order."""
    ends = [0, *accumulate(map(len, fresh.tasks))]
    jobs: list[Edit] = []
    tasks: list[Edit] = []
    at = start = 0  # in the old tasks: the first of job ``at``
    made = 0
    for j, width, new in touched:
        start += sum(map(len, old.tasks[at:j]))
        at = j + width
        end = start + (len(old.tasks[j]) if width else 0)
        until = made + (new is not None)
        jobs.append((j, at, made, until))
        tasks.append((start, end, ends[made], ends[until]))
        start, made = end, until
    jobs.append((len(old.id), len(old.id), made, made))  # what is left of the old ones follows
    tasks.append((len(old.task_name), len(old.task_name), ends[made], ends[made]))
    return jobs, tasks


def _spliced(old: list[T], fresh: list[T], edits: list[Edit]) -> list[T]:
    out: list[T] = []
    at = 0
    for a, b, c, d in edits:
        out += old[at:a]
        out += fresh[c:d]
        at = b
    return out


def _number(jobs: Jobs, tasks: list[list[int]]) -> None:
    """Number the pods by job; ``tasks`` tells how many each has."""
    at = 0
    for j, of in enumerate(tasks):
        jobs.tasks.append(of if of and of[0] == at else list(range(at, at + len(of))))
        jobs.task_job += [j] * len(of)
        at += len(of)
    jobs.by_id = dict(zip(jobs.id, range(len(jobs.id)), strict=True))


def _resident(
    loaded: CompiledState, jobs: Jobs, fresh: Jobs, jobs_edits: list[Edit], task_edits: list[Edit]
) -> Resident:
    """What decisions found out, for the jobs that are as they were."""
    before, old = loaded.resident, loaded.jobs
    baseline = _baseline(loaded, jobs, fresh, jobs_edits, task_edits)
    resident = Resident(baseline=baseline, layout=before.layout)
    if baseline is not None:
        gone = (t for a, b, _, _ in task_edits for t in range(a, b))
        touched = {*(old.task_node[t] for t in gone), *fresh.task_node} - {NOWHERE}
        resident.alike = _alike(before, baseline, sorted(touched))
    known_order, known_victims = before.order.copy(), before.victims.copy()
    if not known_order and not known_victims:
        return resident
    at = shift = 0
    for a, b, c, d in jobs_edits:
        for j in range(at, a):
            now = j + shift
            by = jobs.tasks[now][0] - old.tasks[j][0] if old.tasks[j] else 0
            if (order := known_order.get(j)) is not None:
                resident.order[now] = [t + by for t in order] if by else order
            if (victim := known_victims.get(j)) is not None:
                resident.victims[now] = _renumbered(victim, now, by) if by or shift else victim
        shift += (d - c) - (b - a)
        at = b
    return resident


def _alike(before: Resident, after: Baseline, touched: list[int]) -> dict[Kind, list[int]] | None:
    """``state.alike`` where only ``touched`` nodes are others."""
    if before.alike is None or before.layout is None or before.baseline is None:
        return None
    found, place = before.alike.copy(), before.layout.place
    were, are = (kinds_of(base, before.layout, touched) for base in (before.baseline, after))
    for n, was, now in zip(touched, were, are, strict=True):
        if was != now:
            found[was] = [other for other in found[was] if other != place[n]]
            if not found[was]:
                del found[was]
            found[now] = sorted((*found.get(now, ()), place[n]))
    return found


def _renumbered(victim: Victim, job: int, by: int) -> Victim:
    priority, rank, created, uid, _ = victim.key
    return Victim(
        job, (priority, rank, created, uid, job), [t + by for t in victim.tasks], victim.holds, others=victim.others
    )


def _baseline(
    loaded: CompiledState, jobs: Jobs, fresh: Jobs, jobs_edits: list[Edit], task_edits: list[Edit]
) -> Baseline | None:
    """The sums of before, less the jobs that went, with those that came; None where they have to be worked out anew."""
    before = loaded.resident.baseline
    if before is None or before.homeless or homeless(fresh):
        return None
    old, tree = loaded.jobs, loaded.configuration.tree
    taken = list(columns(fresh.task_request, fresh.task_portion, {}))
    sums = sums_over(tree, before.free, before.idle)
    for a, b, _, _ in jobs_edits:
        for j in range(a, b):
            sums.count(old, j, before.columns, -1)
    counted = [sums.count(fresh, j, taken, 1) for j in range(len(fresh.id))]
    return Baseline(
        active=_spliced(before.active, [active for active, _ in counted], jobs_edits),
        used=_spliced(before.used, [used for _, used in counted], jobs_edits),
        columns=_spliced(before.columns, taken, task_edits), free=sums.free, idle=sums.idle,
        allocated=_plus(before.allocated, upwards(tree, sums.allocated)),
        fixed=_plus(before.fixed, upwards(tree, sums.fixed)), homeless=[],
    )  # fmt: skip


def _plus(before: list[Share], change: list[Share]) -> list[Share]:
    return [(a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in zip(before, change, strict=True)]
