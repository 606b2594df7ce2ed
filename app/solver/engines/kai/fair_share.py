"""How KAI divides a cluster between queues: deserved quota, over-quota by priority and weight, left-over units; and
what every queue is entitled to and holds, in the tables that the actions compare.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from app.solver.compiled import Journal, Tree
from app.solver.engines.kai.configuration import CompiledConfiguration
from app.solver.engines.kai.jobs import CPU, GPU, KAI_UNLIMITED, LEAST_GPU_MEMORY, MEMORY, PENDING, Jobs, Share, Vector
from app.solver.engines.kai.state import Baseline, CompiledState, baseline, layout, upwards

_EXTRA_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Claims:
    """What queues may ask of one resource, by queue index, in KAI's units.

    ``deserved`` and ``limit``: quota, or KAI_UNLIMITED. ``weight``: over-quota weight, 0 takes no over-quota.
    ``request``: pods allocated and pending of the queue and everything below it. ``usage``: what it used over time as a
    part of the cluster, which ``k_value`` times counts against its part of the weights (KAI: calcShareWeights).
    """

    deserved: Sequence[float]
    limit: Sequence[float]
    weight: Sequence[float]
    request: Sequence[float]
    usage: Sequence[float] | None = None
    k_value: float = 1.0


@dataclass(frozen=True, slots=True)
class Ranks:
    """What orders queues where amounts don't, by queue index: priority, age (microseconds; absent is oldest), name."""

    priority: Sequence[int]
    created_at: Sequence[int]
    name: Sequence[str]


def fair_shares(tree: Tree, total: float, claims: Claims, ranks: Ranks) -> list[float]:
    """The fair share of every queue: roots divide ``total``, children divide the fair share of their parent."""
    share = [0.0] * len(tree)
    _divide(total, tree.roots, claims, ranks, share)
    for queue in tree.top_down:
        if tree.children[queue]:
            _divide(share[queue], tree.children[queue], claims, ranks, share)
    return share


def allocatable_share(deserved: float, limit: float, fair_share: float) -> float:
    """What a queue may hold before others may reclaim from it: its limit if it deserves everything, else the larger
    of deserved and fair share, within the limit. KAI_UNLIMITED when nothing bounds it."""
    if deserved == KAI_UNLIMITED:
        return limit
    allocatable = max(deserved, fair_share)
    return allocatable if limit == KAI_UNLIMITED else min(limit, allocatable)


def _divide(total: float, queues: Sequence[int], claims: Claims, ranks: Ranks, share: list[float]) -> None:
    """Write the shares of ``queues``, which divide ``total`` as siblings."""
    wanted = {q: _requestable(claims, q) for q in queues}
    rest = total
    for q in queues:
        deserved = total if claims.deserved[q] == KAI_UNLIMITED else claims.deserved[q]
        share[q] = min(deserved, wanted[q])
        rest -= share[q]
    if rest <= 0:  # quotas may promise more than there is; then nobody gets over-quota
        return
    hungry = [q for q in queues if wanted[q] > share[q] and claims.weight[q] != 0]
    levels = sorted({ranks.priority[q] for q in hungry}, reverse=True)
    leftovers: list[dict[int, float]] = []
    for level in levels:
        siblings = [q for q in hungry if ranks.priority[q] == level]
        rest, fractions = _over_quota(rest, siblings, wanted, claims, share)
        leftovers.append(fractions)
    for fractions in leftovers:
        rest = _hand_out_units(rest, fractions, ranks, share)


def _requestable(claims: Claims, queue: int) -> float:
    limit = claims.limit[queue]
    return claims.request[queue] if limit == KAI_UNLIMITED else min(limit, claims.request[queue])


def _over_quota(
    rest: float, queues: Sequence[int], wanted: dict[int, float], claims: Claims, share: list[float]
) -> tuple[float, dict[int, float]]:
    """Rounds of division by weight among siblings of one priority. Returns what is left, and for every queue that
    was rounded down the fraction of a unit that it lost in the latest round in which it lost one.

    Another round runs only when someone wanted less than its part. In exact arithmetic that satisfies at least one
    queue, which bounds the rounds; the slack is for doubles that miss their mark.
    """
    fractions: dict[int, float] = {}
    hungry: list[int] = list(queues)
    for _ in range(2 * len(hungry) + _EXTRA_ROUNDS):
        again = False
        for q, part in zip(hungry, _parts(rest, hungry, claims), strict=True):
            if rest == 0:
                break
            missing = wanted[q] - share[q]
            if missing <= part:
                given = missing
                fractions.pop(q, None)
            else:
                given = float(floor(part))
                if part > given:
                    fractions[q] = part - given
            if given:
                share[q] += given
                rest -= given
                again = again or missing < part
        hungry = [q for q in hungry if wanted[q] > share[q]]
        if not again or rest == 0 or not hungry:
            break
    return rest, fractions


def _parts(amount: float, queues: Sequence[int], claims: Claims) -> list[float]:
    """``amount`` split by weight and usage, in the origin's order of operations. Without usage the factor cancels out
    in exact arithmetic, but not in doubles, where it decides what is rounded down."""
    weight, k, used = claims.weight, claims.k_value, claims.usage
    total = 0.0
    for q in queues:
        total += weight[q]
    if used is None:
        terms = [weight[q] / total + k * (weight[q] / total) for q in queues]
    else:
        terms = [max(0.0, weight[q] / total + k * (weight[q] / total - used[q])) for q in queues]
    whole = 0.0
    for term in terms:
        whole += term
    if whole <= 0:  # all have used more than their part, or weights so far apart that doubles can't hold their ratio
        return [0.0] * len(terms)
    return [amount * (term / whole) for term in terms]


def _hand_out_units(rest: float, fractions: dict[int, float], ranks: Ranks, share: list[float]) -> float:
    """Give one unit each, the largest lost fraction first (then oldest, then name). A queue may end above its
    request by less than one unit."""
    for q in sorted(fractions, key=lambda q: (-fractions[q], ranks.created_at[q], ranks.name[q])):
        if rest <= 0:
            break
        unit = min(1.0, rest)
        share[q] += unit
        rest -= unit
    return rest


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
        fair_shares(tree, total[r] / STEPS[r], _claims(state, request, r), ranks) for r in (CPU, MEMORY, GPU)
    ]
    fair: list[Amounts] = list(zip(*by_resource, strict=True))
    allocatable = [_allocatable(configuration, q, fair[q]) for q in range(len(tree))]
    return Division(total, fair, allocatable, allocated, non_preemptible, request)


def _claims(state: CompiledState, request: list[Share], r: int) -> Claims:
    configuration, step = state.configuration, STEPS[r]
    return Claims(
        deserved=[float(KAI_UNLIMITED) if v[r] == KAI_UNLIMITED else v[r] / step for v in configuration.deserved],
        limit=[float(KAI_UNLIMITED) if v[r] == KAI_UNLIMITED else v[r] / step for v in configuration.limit],
        weight=[v[r] for v in configuration.weight],
        request=[v[r] / step for v in request],
        usage=None if state.usage is None else [v[r] for v in state.usage],
        k_value=configuration.policy.k_value,
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
    wants, _ = by_memory(state, jobs)
    for t in range(len(state.jobs.task_name), len(jobs.task_name)):
        if jobs.task_state[t] != PENDING:
            continue
        _add(pending[jobs.queue[jobs.task_job[t]]], wants[t])
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


def by_memory(state: CompiledState, jobs: Jobs) -> tuple[list[Vector], list[Vector]]:
    """What pods count before they have a node, for the order of queues and their shares, and for bounds: GPU memory in
    GPUs of the smallest node that says what it has, and of the largest. 0.13 takes the smallest for 100 MiB, and for
    bounds memory counts nothing."""
    if not any(portion is not None and portion.memory for portion in jobs.task_portion):
        return jobs.task_request, jobs.task_request
    memory = layout(state).gpu_memory
    if not state.configuration.policy.release.measures_gpu_memory:
        return _by_memory(jobs, LEAST_GPU_MEMORY), _by_memory(jobs, None)
    smallest = min((size for size in memory if size > LEAST_GPU_MEMORY), default=LEAST_GPU_MEMORY)
    return _by_memory(jobs, smallest), _by_memory(jobs, max(memory, default=None))


def _by_memory(jobs: Jobs, size: int | None) -> list[Vector]:
    counted = jobs.task_request.copy()
    for t, portion in enumerate(jobs.task_portion):
        if portion is not None and portion.memory:
            gpus = 0 if size is None else round(portion.devices * portion.memory / size * 1000)
            counted[t] = (*counted[t][:GPU], gpus, *counted[t][GPU + 1 :])
    return counted


class QueueUse:
    """What queues hold by resource and queue, those below included: ``allocated``, and ``fixed`` of it by pods that
    can't be preempted."""

    def __init__(self, journal: Journal, base: Baseline, paths: list[list[int]], jobs: Jobs) -> None:
        self._spread = journal.spread
        self._paths = paths
        self._queue, self._preemptible = jobs.queue, jobs.preemptible
        self.allocated = [list(column) for column in zip(*base.allocated, strict=True)] or [[], [], []]
        self.fixed = [list(column) for column in zip(*base.fixed, strict=True)] or [[], [], []]

    def charge(self, j: int, request: Vector | Share, sign: int) -> None:
        """Count a pod of job j in, or out of, what its queue and every queue above holds."""
        spread = self._spread
        fixed = not self._preemptible[j]
        for q in self._paths[self._queue[j]]:
            spread(self.allocated, q, request, sign)
            if fixed:
                spread(self.fixed, q, request, sign)
