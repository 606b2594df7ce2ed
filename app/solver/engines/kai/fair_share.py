"""How KAI divides a cluster between queues: deserved quota, over-quota by priority and weight, left-over units; and
what every queue is entitled to and holds, in the tables that the actions compare; beside them what every job has, and
which of those that wait are alike.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import floor

from app.solver.compiled import Journal, Tree
from app.solver.engines.kai.jobs import CPU, GPU, KAI_UNLIMITED, LEAST_GPU_MEMORY, MEMORY, PENDING, Jobs, Share, Vector
from app.solver.engines.kai.state import Baseline, CompiledState, baseline, layout, upwards

_EXTRA_ROUNDS = 64
_MOST_DIVIDED = 256
"""Divisions of a resource that are kept with a state."""


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
    return divided(state, *_use(state, jobs))


def divided(
    state: CompiledState, allocated: list[Share], non_preemptible: list[Share], request: list[Share]
) -> Division:
    """The same where these amounts are known."""
    total = layout(state).usable  # nodes that take no pods don't count, as in KAI
    by_resource = [
        _of_resource(state, r, total[r] / STEPS[r], tuple([v[r] for v in request])) for r in (CPU, MEMORY, GPU)
    ]
    fair: list[Amounts] = list(zip(*(fair for fair, _ in by_resource), strict=True))
    allocatable: list[Amounts] = list(zip(*(allocatable for _, allocatable in by_resource), strict=True))
    return Division(total, fair, allocatable, allocated, non_preemptible, request)


def _of_resource(
    state: CompiledState, r: int, total: float, request: tuple[int, ...]
) -> tuple[list[float], list[float]]:  # fmt: skip
    """Fair and allocatable shares of one resource by queue. Without use over time they hang on no more than what is
    requested between versions of a state, and are kept."""
    configuration, divided, key = state.configuration, state.resident.divided, (r, request)
    if state.usage is None and (known := divided.get(key)) is not None:
        return known
    claims = _claims(state, request, r)
    ranks = Ranks(configuration.priority, configuration.created, configuration.tree.names)
    fair = fair_shares(configuration.tree, total, claims, ranks)
    shares = fair, [allocatable_share(*of) for of in zip(claims.deserved, claims.limit, fair, strict=True)]
    if state.usage is None:
        if len(divided) >= _MOST_DIVIDED:
            divided.clear()
        divided[key] = shares
    return shares


def _claims(state: CompiledState, request: tuple[int, ...], r: int) -> Claims:
    configuration, step = state.configuration, STEPS[r]
    return Claims(
        deserved=[float(KAI_UNLIMITED) if v[r] == KAI_UNLIMITED else v[r] / step for v in configuration.deserved],
        limit=[float(KAI_UNLIMITED) if v[r] == KAI_UNLIMITED else v[r] / step for v in configuration.limit],
        weight=[v[r] for v in configuration.weight],
        request=[amount / step for amount in request],
        usage=None if state.usage is None else [v[r] for v in state.usage],
        k_value=configuration.policy.k_value,
    )


def _use(state: CompiledState, jobs: Jobs) -> tuple[list[Share], list[Share], list[Share]]:
    """Allocated, allocated non-preemptible and requested by queue. Pods being released, nominated or gone are in
    none of them; pending pods, which come with asks, only in the last."""
    base, tree = baseline(state), state.configuration.tree
    pending = [[0, 0, 0] for _ in tree.names]
    wants, _ = by_memory(state, jobs)
    if wants is jobs.task_request:
        queue = jobs.queue
        for (q, want), times in Counter([(queue[j], want) for j, _, want in jobs.waiting]).items():
            _add(pending[q], [amount * times for amount in want])
    else:
        for t in range(len(state.jobs.task_name), len(jobs.task_name)):
            if jobs.task_state[t] == PENDING:
                _add(pending[jobs.queue[jobs.task_job[t]]], wants[t])
    requested = [
        (a[CPU] + b[CPU], a[MEMORY] + b[MEMORY], a[GPU] + b[GPU])
        for a, b in zip(base.allocated, upwards(tree, pending), strict=True)
    ]
    return base.allocated, base.fixed, requested


def _add(to: list[int], request: Sequence[int]) -> None:
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
    portions = jobs.task_portion
    if portions.count(None) == len(portions) or not any(of is not None and of.memory for of in portions):
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


class JobCounts:
    """Pods by job: ``active`` (they have a place), ``used`` (those being released too), ``pending``.

    Released KAI's own count of what runs goes wrong where pods are evicted twice: ``miscounted`` is by how much as long
    as the statement stands, ``drift`` what stays of it when one is undone. ``taken``: the last that a
    statement did to the job was to evict a pod: until something else happens to it, KAI has it down for that pod.
    """

    def __init__(
        self, journal: Journal, count: int, active: list[int], used: list[int],
        waiting: Iterable[tuple[int, int, Share]],
    ) -> None:  # fmt: skip
        """``count``: of all jobs; ``active``, ``used``: of those of the state, which come first; ``waiting``: see
        ``Jobs``."""
        self._running = len(active)
        more = [0] * (count - len(active))
        self._add = journal.add
        self.active, self.used = active + more, used + more
        self.pending, self.miscounted, self.drift = ([0] * count for _ in range(3))
        self.taken = [False] * count
        for j, pods, _ in waiting:
            self.pending[j] += pods

    def evicted(self, j: int) -> None:
        """An active pod is being released."""
        self._add(self.active, j, -1)

    def back(self, j: int) -> None:
        """A pod that was being released is active again."""
        self._add(self.active, j, 1)

    def placed(self, j: int) -> None:
        """A pending pod has a place."""
        self._add(self.active, j, 1)
        self._add(self.pending, j, -1)
        self._add(self.used, j, 1)

    def counted_twice(self, j: int) -> None:
        """KAI counts a pod out that it has counted out before."""
        self._add(self.miscounted, j, -1)

    def drifts(self, j: int) -> None:
        """KAI counts a pod back in that it has not counted out again; no rollback undoes it."""
        self.drift[j] += 1

    def keep(self) -> tuple[list[int], list[bool]]:
        """What no journal says."""
        return self.drift.copy(), self.taken.copy()

    def go_back(self, counts: tuple[list[int], list[bool]]) -> None:
        """As it was then."""
        self.drift[:], self.taken[:] = counts

    def seems_active(self, j: int) -> bool:
        """Whether the job runs something by KAI's count, which double evictions upset."""
        return self.active[j] + self.miscounted[j] + self.drift[j] != 0

    def seeming_active(self, jobs: Iterable[int]) -> list[int]:
        """Those of ``jobs`` that do."""
        active, miscounted, drift = self.active, self.miscounted, self.drift
        return [j for j in jobs if active[j] + miscounted[j] + drift[j]]

    def kinds(self, jobs: Jobs, waiting: Iterable[int], version: Sequence[int]) -> list[list[int]]:
        """``waiting``, the best first, by what differs in nothing but priority and age. Who was touched by a statement
        (``version``), or has pods that neither run nor wait, is like nobody."""
        like, tasks, used, active, pending = jobs.like, jobs.tasks, self.used, self.active, self.pending
        running, kinds = self._running, defaultdict[Hashable, list[int]](list)
        for j in waiting:
            kind: Hashable = like.get(j)
            if kind is None or version[j]:
                kind = ~j
            elif j < running:
                number, waits = len(tasks[j]), pending[j]
                kind = (kind, number, waits) if used[j] == active[j] == number - waits else ~j
            kinds[kind].append(j)
        return list(kinds.values())


class Left:
    """The jobs of an action that have not had their turn. ``kinds``: those that are alike, the best first. Who was
    touched by a statement since then (``settled``), or had a turn and comes back, is like nobody."""

    def __init__(self, settled: Sequence[int], number: int, kinds: Sequence[Sequence[int]]) -> None:
        """``number``: of all jobs; ``settled``: touched ones, one after the other, which grows."""
        self._settled, self._before, self._looked = settled, len(settled), len(settled)
        self._number = number
        self._kinds = kinds
        self._next = [0] * len(kinds)
        self._touched: set[int] = set()
        self._gone: set[int] = set()
        self._back: dict[int, None] = {}

    def __len__(self) -> int:
        return self._number

    def take(self, job: int) -> None:
        """It has its turn."""
        self._number -= 1
        self._gone.add(job)
        self._back.pop(job, None)

    def put_back(self, job: int) -> None:
        """It comes once more."""
        self._number += 1
        self._back[job] = None

    def firsts(self) -> Iterator[int]:
        """The best of each kind."""
        if self._looked != len(self._settled):
            self._looked = len(self._settled)
            self._touched = set(self._settled[self._before :]).intersection(chain.from_iterable(self._kinds))
        gone, touched = self._gone, self._touched
        for kind, jobs in enumerate(self._kinds):
            place = self._next[kind]
            while place < len(jobs) and (jobs[place] in gone or jobs[place] in touched):
                place += 1
            self._next[kind] = place
            if place < len(jobs):
                yield jobs[place]
        yield from touched - gone
        yield from self._back

    def running(self, active: Sequence[int]) -> Iterator[int]:
        """Those left of which something runs (``active``): alike are those of which as much does."""
        for jobs in self._kinds:
            if active[jobs[0]]:
                yield from (job for job in jobs if job not in self._gone)
