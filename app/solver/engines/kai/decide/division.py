"""What every queue is entitled to and holds: the tables that the actions compare."""

from dataclasses import dataclass

from app.solver.engines.kai.compile.baseline import baseline, layout, upwards
from app.solver.engines.kai.compile.configuration import CompiledConfiguration
from app.solver.engines.kai.compile.jobs import Jobs
from app.solver.engines.kai.compile.resources import CPU, GPU, KAI_UNLIMITED, MEMORY, Share
from app.solver.engines.kai.compile.state import CompiledState
from app.solver.engines.kai.decide.fair_share import Claims, Ranks, allocatable_share, fair_shares

Amounts = tuple[float, float, float]

# Integer steps of compile.py in one unit of KAI's division: it counts milli-CPU, bytes and whole GPUs.
STEPS: Share = (1, 1, 1000)
_NO_SHARE_FACTOR = 1000.0


@dataclass(frozen=True, slots=True)
class Division:
    """Entitlements and use by queue index, (cpu, memory, gpu) each.

    ``fair`` and ``allocatable``: KAI's units (milli-CPU, bytes, GPUs), KAI_UNLIMITED where nothing bounds
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
    total = layout(state).usable  # nodes that take no pods don't count, as in KAI
    ranks = Ranks(configuration.priority, configuration.created, tree.names)
    by_resource = [
        fair_shares(tree, total[r] / STEPS[r], _claims(configuration, request, r), ranks) for r in (CPU, MEMORY, GPU)
    ]
    fair: list[Amounts] = list(zip(*by_resource, strict=True))
    allocatable = [_allocatable(configuration, q, fair[q]) for q in range(len(tree))]
    return Division(total, fair, allocatable, allocated, non_preemptible, request)


def _claims(configuration: CompiledConfiguration, request: list[Share], r: int) -> Claims:
    step = STEPS[r]
    return Claims(
        deserved=[float(KAI_UNLIMITED) if v[r] == KAI_UNLIMITED else v[r] / step for v in configuration.deserved],
        limit=[float(KAI_UNLIMITED) if v[r] == KAI_UNLIMITED else v[r] / step for v in configuration.limit],
        weight=[v[r] for v in configuration.weight],
        request=[v[r] / step for v in request],
    )


def _allocatable(configuration: CompiledConfiguration, queue: int, fair: Amounts) -> Amounts:
    deserved, limit = configuration.deserved[queue], configuration.limit[queue]

    def of(r: int) -> float:
        return allocatable_share(
            float(KAI_UNLIMITED) if deserved[r] == KAI_UNLIMITED else deserved[r] / STEPS[r],
            float(KAI_UNLIMITED) if limit[r] == KAI_UNLIMITED else limit[r] / STEPS[r],
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
    if share == KAI_UNLIMITED:
        share = division.total[r] / STEPS[r]
    return held / share if share else held * _NO_SHARE_FACTOR
