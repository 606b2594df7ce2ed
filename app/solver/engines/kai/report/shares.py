"""What every queue is entitled to and holds: the tables that the actions compare, and ``POST /v1/shares``."""

from dataclasses import dataclass
from typing import Any

from app.solver.engines.kai.compile.baseline import baseline, upwards
from app.solver.engines.kai.compile.state import (
    CPU,
    GPU,
    MEMORY,
    QUEUE_RESOURCES,
    UNLIMITED,
    CompiledConfiguration,
    CompiledState,
    Jobs,
    Share,
)
from app.solver.engines.kai.decide.fair_share import Claims, Ranks, allocatable_share, fair_shares
from app.solver.quotas import quotas

Amounts = tuple[float, float, float]

# Integer steps of compile.py in one unit of KAI's division: it counts milli-CPU, bytes and whole GPUs.
STEPS: Share = (1, 1, 1000)
_NO_SHARE_FACTOR = 1000.0


@dataclass(frozen=True, slots=True)
class Division:
    """Entitlements and use by queue index, (cpu, memory, gpu) each.

    ``fair`` and ``allocatable``: KAI's units (milli-CPU, bytes, GPUs), UNLIMITED where nothing bounds
    ``allocatable``. The rest in integer steps, own pods and those of every queue below: ``allocated`` by running
    and bound pods, ``non_preemptible`` those of them that can't be preempted, ``request`` with pending pods too.
    """

    total: Share
    fair: list[Amounts]
    allocatable: list[Amounts]
    allocated: list[Share]
    non_preemptible: list[Share]
    request: list[Share]


def divide(state: CompiledState, jobs: Jobs) -> Division:
    """Divide the cluster between the queues of ``state`` for ``jobs`` (its own, or those with asks added)."""
    configuration = state.configuration
    tree = configuration.tree
    allocated, non_preemptible, request = _use(state, jobs)
    total = _total(state)
    ranks = Ranks(configuration.priority, configuration.created, tree.names)
    by_resource = [
        fair_shares(tree, total[r] / STEPS[r], _claims(configuration, request, r), ranks) for r in (CPU, MEMORY, GPU)
    ]
    fair: list[Amounts] = list(zip(*by_resource, strict=True))
    allocatable = [_allocatable(configuration, q, fair[q]) for q in range(len(tree))]
    return Division(total, fair, allocatable, allocated, non_preemptible, request)


def _total(state: CompiledState) -> Share:
    """What the nodes offer; nodes that take no pods don't count, as in KAI."""
    usable = [v for v, node in zip(state.capacity, state.nodes, strict=True) if node.schedulable]
    return sum(v[CPU] for v in usable), sum(v[MEMORY] for v in usable), sum(v[GPU] for v in usable)


def _claims(configuration: CompiledConfiguration, request: list[Share], r: int) -> Claims:
    step = STEPS[r]
    return Claims(
        deserved=[float(UNLIMITED) if v[r] == UNLIMITED else v[r] / step for v in configuration.deserved],
        limit=[float(UNLIMITED) if v[r] == UNLIMITED else v[r] / step for v in configuration.limit],
        weight=[v[r] for v in configuration.weight],
        request=[v[r] / step for v in request],
    )


def _allocatable(configuration: CompiledConfiguration, queue: int, fair: Amounts) -> Amounts:
    deserved, limit = configuration.deserved[queue], configuration.limit[queue]

    def of(r: int) -> float:
        return allocatable_share(
            float(UNLIMITED) if deserved[r] == UNLIMITED else deserved[r] / STEPS[r],
            float(UNLIMITED) if limit[r] == UNLIMITED else limit[r] / STEPS[r],
            fair[r],
        )

    return of(CPU), of(MEMORY), of(GPU)


def _use(state: CompiledState, jobs: Jobs) -> tuple[list[Share], list[Share], list[Share]]:
    """Allocated, allocated non-preemptible and requested by queue. Pods being released, nominated or gone are in
    none of them; pending pods, which come with asks, only in the last."""
    base, tree = baseline(state), state.configuration.tree
    pending = [[0, 0, 0] for _ in tree.names]
    for t in range(len(state.jobs.task_name), len(jobs.task_name)):
        _add(pending[jobs.queue[jobs.task_job[t]]], jobs.task_request[t])
    requested = [
        (a[CPU] + b[CPU], a[MEMORY] + b[MEMORY], a[GPU] + b[GPU])
        for a, b in zip(base.allocated, upwards(tree, pending), strict=True)
    ]
    return base.allocated, base.fixed, requested


def _add(to: list[int], request: tuple[int, ...]) -> None:
    to[CPU] += request[CPU]
    to[MEMORY] += request[MEMORY]
    to[GPU] += request[GPU]


def dominant_share(division: Division, queue: int) -> float:
    """The largest part of its allocatable share that a queue holds of any resource; the cluster stands for a share
    without bound, and whatever is held without a share counts a thousandfold."""
    return max(_part(division, queue, r) for r in (CPU, MEMORY, GPU))


def _part(division: Division, queue: int, r: int) -> float:
    held = division.allocated[queue][r] / STEPS[r]
    share = division.allocatable[queue][r]
    if share == UNLIMITED:
        share = division.total[r] / STEPS[r]
    return held / share if share else held * _NO_SHARE_FACTOR


def answer(state: CompiledState, division: Division) -> dict[str, Any]:
    """The body of ``POST /v1/shares``, in whole units; an entitlement without bound is ``"unlimited"``."""
    configuration = state.configuration
    names = answer_names(configuration, state)

    def shown(values: Amounts | Share, units: Share) -> dict[str, int | float | str]:
        return {name: _units(values[r], units[r]) for r, name in enumerate(names)}

    steps: Share = (1000, 1, 1000)
    amounts: Share = (1000, 1, 1)
    return {
        "queues": {
            name: {
                "fair_share": shown(division.fair[q], amounts),
                "allocatable_share": shown(division.allocatable[q], amounts),
                "deserved": shown(configuration.deserved[q], steps),
                "limit": shown(configuration.limit[q], steps),
                "request": shown(division.request[q], steps),
                "usage": shown(division.allocated[q], steps),
                "usage_non_preemptible": shown(division.non_preemptible[q], steps),
                "share": dominant_share(division, q),
            }
            for q, name in enumerate(configuration.tree.names)
        }
    }


def answer_names(configuration: CompiledConfiguration, state: CompiledState | None) -> tuple[str, str, str]:
    """How answers name the three resources: GPUs by the one name that the documents use, else ``gpu``."""
    used = {placed.resource for queue in configuration.queues for placed in quotas(queue)}
    used |= {name for node in (state.nodes if state else ()) for name in node.capacity}
    gpus = {name for name in used if name == QUEUE_RESOURCES[GPU] or name.endswith("/gpu")}
    return "cpu", "memory", gpus.pop() if len(gpus) == 1 else QUEUE_RESOURCES[GPU]


def _units(value: float, step: int) -> int | float | str:
    if value == UNLIMITED:
        return "unlimited"
    shown = value / step
    return int(shown) if shown == int(shown) else shown
