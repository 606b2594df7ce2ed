"""One scheduling cycle: the four actions in the order that the settings give, on one overlay."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nsmallest
from itertools import chain, compress
from math import inf
from typing import Any, TypeVar

from app.solver.engines.kai.chance import Chance, Trail
from app.solver.engines.kai.fair_share import Left
from app.solver.engines.kai.job_order import Clocks, Lines, PendingOrder, VictimTable
from app.solver.engines.kai.jobs import ALLOCATED, GPU, PENDING, PIPELINED, RUNNING, added_up, total
from app.solver.engines.kai.overlay import ACTIVE, Overlay
from app.solver.engines.kai.placing import Failed, Placer, Signatures, is_held_back
from app.solver.engines.kai.queue_order import ByLeaf, QueueOrder, those
from app.solver.engines.kai.search import Search
from app.solver.engines.kai.solver import Budget, Reach, Solver, Tools, down_for_gone
from app.solver.engines.kai.state import CompiledState
from app.solver.engines.kai.validators import (
    Fairness,
    Foregone,
    Protection,
    QueueShares,
    Refusal,
    ScenarioValidator,
    VictimFilter,
    may_reclaim,
    refused_victim,
    without_place,
)
from app.solver.model.state import Ask
from app.solver.question import safe_point

T = TypeVar("T")


@dataclass(slots=True)
class Cycle:
    """What the actions share. ``taken``: jobs in the order in which an action first took them; ``starts``: jobs that
    start now, as KAI's allocate action records it; ``overlay``: that everything happens in."""

    tools: Tools
    protection: Protection
    signatures: Signatures
    taken: dict[int, None] = field(default_factory=dict)
    starts: set[int] = field(default_factory=set)
    clocks: Clocks = field(default_factory=Clocks)
    overlay: Overlay = field(init=False)
    _known: dict[Hashable, Any] = field(default_factory=dict)
    _closed: int = 0

    def __post_init__(self) -> None:
        self.overlay = self.tools.overlay

    def still(self, key: Hashable, look: Callable[[], T]) -> T:
        """What ``look`` says, asked once for each key until a statement closes."""
        if self._closed != self.overlay.closed:
            self._known.clear()
            self._closed = self.overlay.closed
        if key not in self._known:
            self._known[key] = look()
        return self._known[key]

    def victims(self, key: Hashable, look: Callable[[], list[int]]) -> list[int]:
        """The same of victims; who explains hears of those spared each time."""
        return look() if self.tools.trail.counts else self.still(key, look)

    def again(self, budget: Budget, chance: Chance, trail: Trail) -> "Cycle":
        """Another run of the cycle that has come as far."""
        tools = replace(self.tools, budget=budget, chance=chance, trail=trail)
        return Cycle(
            tools, self.protection.again(), self.signatures.again(), self.taken.copy(), self.starts.copy(), self.clocks
        )  # fmt: skip

    def outcome(self) -> Hashable:
        """Who is evicted by which action and who has a place where: equal for cycles that came to the same."""
        overlay = self.overlay
        placed = (t for t in overlay.placed if overlay.status[t] in (ALLOCATED, PIPELINED))
        return (
            frozenset((t, eviction.action) for t, eviction in overlay.evictions.items()),
            frozenset((t, overlay.node[t], overlay.status[t]) for t in placed),
        )

    def waiting(self, *, preemptible_only: bool = False, evicting: bool = True) -> ByLeaf:
        """Jobs with pending pods and enough pods for their gang. ``evicting``: those are left out that may make nobody
        go yet."""
        jobs, waiting = self.overlay.jobs, self.tools.lines.ready()
        if preemptible_only and not all(jobs.preemptible):
            waiting = those(waiting, jobs.preemptible.__getitem__)
        if evicting and any(jobs.delay):
            waiting = those(waiting, lambda job: not self._delayed(job))
        return waiting

    def pending(self, waiting: ByLeaf) -> PendingOrder:
        """These jobs in KAI's order of queues."""
        order = PendingOrder(self.overlay, self.tools.order)
        order.add_all(waiting, self.tools.chance)
        return order

    def left(self, waiting: ByLeaf) -> Left:
        """The same before the first has its turn."""
        return self.tools.lines.left(waiting, apart=self.tools.trail.unheard)

    def _delayed(self, job: int) -> bool:
        """Whether the job's delay since its creation and its last eviction is not over. The exact instant is free."""
        overlay = self.overlay
        delay = overlay.jobs.delay[job]
        if not delay or not overlay.state.configuration.policy.release.delays_preemption:
            return False
        since = max(overlay.jobs.created[job], overlay.evicted_at[job] or overlay.jobs.created[job])
        if overlay.now >= since + delay:
            return False
        self.tools.trail.begin(job, "preemption-delay")
        self.tools.trail.note("preemption-delay", "it makes nobody go before its delay is over")
        return True

    def passes(self, filters: Sequence[VictimFilter], job: int, victim: int) -> bool:
        """Whether every victim filter lets the victim be taken; a refusal is recorded."""
        refusal = self._just_placed(victim) or refused_victim(filters, job, victim)
        if refusal is not None:
            self.tools.trail.spare(victim, refusal)
        return refusal is None

    def _just_placed(self, victim: int) -> Refusal | None:
        """Exact books take from no job of which the same cycle placed or moved a pod; the released scheduler does."""
        overlay = self.overlay
        if not overlay.exact or not overlay.placed:
            return None

        def jobs() -> set[int]:
            status, task_job = overlay.status, overlay.jobs.task_job
            return {task_job[t] for t in overlay.placed if status[t] in (ALLOCATED, PIPELINED)}

        if victim in self.still("just-placed", jobs):
            return Refusal("just-placed", "the same cycle has given it a place")
        return None

    def each(
        self,
        action: str,
        attempt: Callable[[int], bool],
        *,
        hopeless: Callable[[int], bool],
        by_queue: bool,
        preemptible_only: bool = False,
        gate: Callable[[int], bool] | None = None,
    ) -> None:
        """Attempt every pending job once that passes ``gate``; commit what succeeds. With signatures on, a job that
        is no easier than one of its like that failed (of its queue, with ``by_queue``) is skipped; one that nobody's
        going makes room for is passed over, and has not failed. ``hopeless``:
        whether an attempt is sure to fail as all stands between two statements, which leaves no trace."""
        overlay, trail = self.overlay, self.tools.trail
        waiting = self.waiting(preemptible_only=preemptible_only)
        left, failed = self.left(waiting), dict[int, Failed]()
        use_signatures = overlay.state.configuration.policy.use_scheduling_signatures

        def like(job: int) -> Failed:
            return failed.setdefault(overlay.jobs.queue[job] if by_queue else -1, Failed(self.signatures))

        over = partial(self._ends, left, gate)
        if not (left or overlay.pending_jobs()) or over(hopeless):
            return
        order = self.pending(waiting)

        while (job := order.pop()) is not None:
            safe_point()
            left.take(job)
            self.taken.setdefault(job)
            trail.begin(job, action)
            if not overlay.ready(job) or (gate is not None and not gate(job)):
                continue
            if use_signatures and not like(job).easier(job):
                trail.note("no-easier", "a job of the same constraints that is no harder failed before it")
            elif self.tools.placer.oversized(job):
                trail.note("larger-than-any-node", "a pod asks for more than the largest node has")
            elif attempt(job):
                trail.succeeded(overlay)
                overlay.commit(action, job)
                if over(hopeless):
                    return
            else:
                like(job).add(job)
                if use_signatures and over(lambda job: hopeless(job) or not like(job).easier(job)):
                    return

    def _ends(self, left: Left, gate: Callable[[int], bool] | None, hopeless: Callable[[int], bool]) -> bool:
        """See ``over``. Who may lose pods later in the cycle has been asked for its constraints by then."""
        if not self.over(left, hopeless):
            return False
        if self.overlay.state.configuration.policy.use_scheduling_signatures:
            for job in left.running(self.overlay.active):
                if self.overlay.ready(job) and (gate is None or gate(job)):
                    self.signatures.of(job)
        return True

    def over(self, left: Left, hopeless: Callable[[int], bool]) -> bool:
        """Whether nothing comes of the jobs that are left, and nobody is told whose turn it would be, or why. Of those
        that are alike the first is asked: for none of less priority there are more victims. Tries may leave traces in
        books of shared GPUs."""
        tools = self.tools
        if not tools.trail.unheard or self.overlay.gpus.any or tools.chance.drawn:
            return False
        return all(map(hopeless, left.firsts()))


def begin(
    state: CompiledState, asks: Sequence[Ask], now: int, budget: Budget, trail: Trail, chance: Chance, *, strict: bool
) -> Cycle:
    """A fresh cycle; ``trail`` hears it. ``strict``: no bookkeeping habit may overfill a node."""
    overlay = Overlay(state, asks, now, strict=strict)
    order = QueueOrder(overlay)
    tools = Tools(overlay, order, Placer(overlay, order), budget, trail, VictimTable(overlay), Lines(overlay), chance)
    return Cycle(tools, Protection(overlay), Signatures(overlay))


def allocate(cycle: Cycle) -> None:
    """Place every job that fits; a job with pods left comes back for one more."""
    overlay, trail = cycle.overlay, cycle.tools.trail
    cycle.clocks = cycle.clocks.again()
    waiting = cycle.waiting(evicting=False)
    left, order = cycle.left(waiting), cycle.pending(waiting)
    while (job := order.pop()) is not None:
        left.take(job)
        cycle.taken.setdefault(job)
        trail.begin(job, "allocate")
        if not cycle.tools.budget.spend():
            trail.cut_short()
            continue
        tasks = overlay.jobs.tasks[job]
        ran_before = overlay.active[job] and any(overlay.status[t] in (RUNNING, ALLOCATED) for t in tasks)
        if not _place(cycle, job):
            if _nothing_fits(cycle, left):  # while jobs fit, to ask that is as much as to place them
                return
            continue
        waits = is_held_back(overlay, job)
        if waits:
            overlay.make_pipelined()
        overlay.commit("allocate", job)
        if not waits and not ran_before:
            cycle.starts.add(job)
            overlay.journal.put_any(overlay.started, job, overlay.now)
        if any(overlay.status[t] == PENDING for t in tasks):
            order.push(job)
            left.put_back(job)


def _nothing_fits(cycle: Cycle, left: Left) -> bool:
    """Whether nothing comes of the jobs that are left; their turns are paid for."""
    overlay, placer, budget = cycle.overlay, cycle.tools.placer, cycle.tools.budget
    over = cycle.over(left, lambda job: placer.in_vain(job, overlay.wanted(job)[0]))
    if over and left:
        budget.spend(len(left))
    return over


def _place(cycle: Cycle, job: int) -> bool:
    overlay, placer, trail = cycle.overlay, cycle.tools.placer, cycle.tools.trail
    tasks = overlay.wanted(job)[0]
    if tasks and placer.place_everywhere(job, tasks):
        trail.note("placed", "the pods fit what is idle or being released", pods=len(tasks))
        return True
    if not tasks:
        trail.note("no-room", "the sub group that goes first has no pods left to place")
    elif (bound := placer.refused) is not None:
        trail.note(bound.rule, f"{overlay.queue_name(bound.queue)} would pass its bound", pods=len(tasks))
    else:
        trail.note("no-room", "no place for all pods of the gang", pods=len(tasks))
    return False


def consolidation(cycle: Cycle) -> None:
    """Try every preemptible pending job; nobody may end without a place."""
    if cycle.overlay.state.configuration.policy.max_consolidation_preemptees == 0:
        return

    def hopeless(job: int) -> bool:
        return _too_few_gpus(cycle, job) or _too_little_room(cycle, job)

    cycle.each("consolidation", lambda job: _consolidate_for(cycle, job), hopeless=hopeless, by_queue=False,
               preemptible_only=True)  # fmt: skip


def _too_few_gpus(cycle: Cycle, job: int) -> bool:
    overlay = cycle.overlay
    tasks = overlay.wanted(job)[0]
    needed = added_up(map(overlay.gpus_of, tasks))

    def available() -> float:
        free, ready = overlay.nodes.gpu_free(), [node.schedulable for node in overlay.state.nodes]
        if not overlay.in_doubles:
            return sum(compress(free, ready))
        return added_up(chain.from_iterable(map(overlay.nodes.gpu_room, compress(range(len(free)), ready))))

    if not overlay.gpus.any:  # else tries may leave traces
        return cycle.still("available", available) < needed
    memory = sum(portion.memory for t in tasks if (portion := overlay.jobs.task_portion[t]) is not None)
    return available() < needed or (memory > 0 and overlay.nodes.gpu_memory() < memory)


def _too_little_room(cycle: Cycle, job: int) -> bool:
    """Whether less is free in all than the job's first pod wants: whoever moves takes elsewhere what it gives. Not
    where some pod left a node earlier in the cycle, for it may be put back where there is no room."""
    overlay = cycle.overlay
    tasks = overlay.wanted(job)[0]

    def room() -> list[float]:
        if any(overlay.ghost):
            return [inf, inf, inf]
        ready = [node.schedulable for node in overlay.state.nodes]
        return [sum(max(0, have) for have in compress(column, ready)) for column in overlay.free[: GPU + 1]]

    most = cycle.still("room", room)
    return bool(tasks) and any(amount > have for amount, have in zip(overlay.request[tasks[0]], most, strict=False))


def _consolidate_for(cycle: Cycle, job: int) -> bool:
    overlay = cycle.overlay
    if _too_few_gpus(cycle, job):
        cycle.tools.trail.note("too-few-gpus-free", "the cluster has too few GPUs idle or being released")
        return False

    key = "movable", job if overlay.exact else None
    victims = [victim for victim in cycle.victims(key, lambda: _movable(cycle, job)) if victim != job]
    most = cycle.overlay.state.configuration.policy.max_consolidation_preemptees
    if most is not None and not _cap(cycle):
        victims = nsmallest(most + 1, victims, key=cycle.overlay.jobs.id.__getitem__)
    return _solve(cycle, job, victims, (partial(without_place, overlay),), cap=_cap(cycle), stay=True)


def _solve(
    cycle: Cycle, job: int, victims: list[int], validators: Sequence[ScenarioValidator],
    foregone: Foregone | None = None, cap: int | None = None, *, stay: bool = False,
) -> bool:  # fmt: skip
    """One attempt, as the release searches. ``cap``: how many victims it may draw; ``stay``: all must have a place."""
    trail = cycle.tools.trail
    trail.search(victims)
    if not victims or not cycle.overlay.wanted(job)[0]:
        trail.note("no-victims", "no room, and nobody that it may take from")
        return False
    if down_for_gone(cycle.tools, job):
        return False
    if cycle.overlay.state.configuration.policy.release.one_prefix:
        reach: Reach | None = None
        if cycle.overlay.exact and trail.unheard:
            fitting = cycle.still("fitting", dict[Hashable, list[int]])
            fairness = next((judge for judge in validators if isinstance(judge, Fairness)), None)
            reach = Reach(cycle.tools, job, victims, fairness, fitting, stay=stay)
        return (reach is None or reach.of_any()) and Solver(
            cycle.tools, job, victims, validators, foregone, stay=stay
        ).solve(reach)
    return Search(cycle.tools, job, victims, validators, cap, stay=stay).solve()


def stale_gang_eviction(cycle: Cycle) -> None:
    """Evict every job that has run with too few pods of some pod set for longer than its grace."""
    overlay, policy = cycle.overlay, cycle.overlay.state.configuration.policy
    jobs = overlay.jobs
    for j in range(len(jobs.id)):
        own = jobs.grace[j] if policy.release.own_staleness else None
        grace = policy.staleness_grace if own is None else own
        if grace < 0 or not overlay.active[j] or not jobs.is_stale(j, overlay.used[j], overlay.used_pods):
            continue
        since = jobs.stale_since[j]
        if overlay.now - (overlay.now if since is None else since) >= grace:
            overlay.evict_stale([t for t in jobs.tasks[j] if overlay.status[t] in ACTIVE], "stalegangeviction")


def _movable(cycle: Cycle, job: int) -> list[int]:
    """Preemptible jobs that run something, the job itself among them."""
    overlay = cycle.overlay
    of_leaves = cycle.clocks.preemptible(overlay).values()
    movable = overlay.counts.seeming_active(sorted(j for of_leaf in of_leaves for j in of_leaf))
    return [j for j in movable if j == job or cycle.passes((), job, j)] if overlay.exact else movable


def _cap(cycle: Cycle) -> int | None:
    """How many victims released 0.17 draws for each part of a gang: one more than the cap says."""
    policy = cycle.overlay.state.configuration.policy
    most = policy.max_consolidation_preemptees
    return most + 1 if most is not None and policy.release.draws and not cycle.overlay.exact else None


def reclaim(cycle: Cycle) -> None:
    """Try every pending job that stays within its queue's fair share."""

    def hopeless(job: int) -> bool:
        return not _may_reclaim(cycle, job) or not _reclaim_victims(cycle, job)

    cycle.each("reclaim", lambda job: _reclaim_for(cycle, job), hopeless=hopeless, by_queue=True,
               gate=lambda job: _may_reclaim(cycle, job))  # fmt: skip


def _may_reclaim(cycle: Cycle, job: int) -> bool:
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    key = "gate", jobs.queue[job], jobs.preemptible[job], overlay.wanted(job)[1]
    refusal = cycle.still(key, lambda: may_reclaim(overlay, cycle.tools.order, job))
    if refusal is not None:
        cycle.tools.trail.note(refusal.rule, refusal.detail, **refusal.numbers)
    return refusal is None


def _reclaim_for(cycle: Cycle, job: int) -> bool:
    policy = cycle.overlay.state.configuration.policy
    chance = cycle.tools.chance if policy.release.draws and not cycle.overlay.exact else None
    fairness = Fairness(
        cycle.overlay, cycle.tools.order.frozen(), ignore_moved=policy.allow_consolidating_reclaim, chance=chance
    )

    keeps_protected_gangs = partial(cycle.protection.validate, "reclaim")
    breaks_protected_gang = partial(cycle.protection.foregone, "reclaim")
    victims = _reclaim_victims(cycle, job)
    return _solve(cycle, job, victims, (keeps_protected_gangs, fairness), breaks_protected_gang)


def _reclaim_victims(cycle: Cycle, job: int) -> list[int]:
    key = "reclaimable", cycle.overlay.jobs.queue[job], cycle.overlay.wanted(job)[1]
    return cycle.victims(key, lambda: _reclaimable(cycle, job))


def _reclaimable(cycle: Cycle, job: int) -> list[int]:
    """Preemptible jobs of other leaves, of any priority, that run something and that no filter spares."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs
    queue, preemptible, leaf, active = jobs.queue, jobs.preemptible, overlay.leaf, overlay.active

    def minimum_runtime(pending: int, victim: int) -> Refusal | None:
        return cycle.protection.filter("reclaim", pending, victim)

    filters: list[VictimFilter] = [minimum_runtime]
    if overlay.state.configuration.policy.release.filters_by_queue:
        filters.insert(0, QueueShares(overlay, cycle.tools.order, job))
    if overlay.exact or cycle.tools.trail.counts:
        return [
            victim
            for victim, its_leaf in enumerate(queue)
            if its_leaf != queue[job]
            and active[victim]
            and preemptible[victim]
            and leaf[victim]
            and cycle.passes(filters, job, victim)
        ]

    unprotected = partial(cycle.protection.unprotected, job)
    victims: list[int] = []
    for its_leaf, of_leaf in cycle.clocks.preemptible(overlay).items():
        if its_leaf == queue[job] or refused_victim(filters[:-1], job, of_leaf[0]) is not None:
            continue
        free, unknown = cycle.clocks.of(overlay, job, its_leaf, unprotected)
        victims += [victim for victim in free if active[victim]]
        victims += unprotected([victim for victim in unknown if active[victim]])
    return sorted(victims)


def preempt(cycle: Cycle) -> None:
    """Try every pending job."""

    def hopeless(job: int) -> bool:
        bound = cycle.tools.order.over_quota(job, total(cycle.overlay.bounded, cycle.overlay.wanted(job)[0]))
        return bound is not None or not _preempt_victims(cycle, job)

    cycle.each("preempt", lambda job: _preempt_for(cycle, job), hopeless=hopeless, by_queue=True)


def _preempt_for(cycle: Cycle, job: int) -> bool:
    overlay = cycle.overlay
    bound = cycle.tools.order.over_quota(job, total(overlay.bounded, overlay.wanted(job)[0]))
    if bound is not None:
        cycle.tools.trail.note(bound.rule, f"{overlay.queue_name(bound.queue)} would pass its deserved quota")
        return False

    keeps_protected_gangs = partial(cycle.protection.validate, "preempt")
    breaks_protected_gang = partial(cycle.protection.foregone, "preempt")
    victims = _preempt_victims(cycle, job)
    return _solve(cycle, job, victims, (keeps_protected_gangs,), breaks_protected_gang)


def _preempt_victims(cycle: Cycle, job: int) -> list[int]:
    key = "preemptible", cycle.overlay.jobs.queue[job], cycle.overlay.jobs.priority[job]
    return cycle.victims(key, lambda: _preemptible(cycle, job))


def _preemptible(cycle: Cycle, job: int) -> list[int]:
    """Preemptible jobs of the same leaf and lower priority that run something and that no filter spares."""
    overlay, jobs = cycle.overlay, cycle.overlay.jobs

    def minimum_runtime(pending: int, victim: int) -> Refusal | None:
        return cycle.protection.filter("preempt", pending, victim)

    def running() -> list[int]:
        return overlay.counts.seeming_active(cycle.clocks.preemptible(overlay).get(own, ()))

    own, above, priority = jobs.queue[job], jobs.priority[job], jobs.priority
    of_leaf = cycle.still(("running", own), running)
    return [victim for victim in of_leaf if priority[victim] < above and cycle.passes((minimum_runtime,), job, victim)]
