"""What a run tells and counts: events, lines of jobs, accounts of queues, and circles in which it goes round."""

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from app.simulations.core.life import Areas, LiveJob
from app.simulations.core.sink import Amounts, Sink, amounts_of, hears, time_of, work
from app.simulations.schemas import Event, EventKind, Evicted, Loop, Spread, Totals
from app.solver.model.base import seconds
from app.solver.model.state import Task
from app.solver.question import safe_point


class Loops:
    """Circles: what runs where, what waits and what the engine carries over is as it was at an earlier round, and
    somebody was evicted in between.

    Looked for among the rounds since a job last arrived, ended or was cancelled, or somebody changed nodes or quotas.
    ``found``: how many loops; ``first``: the first of them.
    """

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self._seen: dict[Hashable, tuple[int, int]] = {}
        self._evicted: list[Evicted] = []
        self.count = 0
        self.first: list[Loop] = []

    def outside(self) -> None:
        """Something happened that no round decided."""
        if self._seen:
            self._seen, self._evicted = {}, []

    def evicted(self, evictions: list[Evicted]) -> None:
        """What a round evicted."""
        self._evicted += evictions

    def look(self, n: int, situation: Hashable, now: int) -> Loop | None:
        """Round ``n``, which evicts somebody, was asked of this situation; the loop that it closes, if it does."""
        seen = self._seen.get(situation)
        if seen is None or seen[1] == len(self._evicted):
            self._seen.setdefault(situation, (n, len(self._evicted)))
            return None
        turn = self._evicted[seen[1] :]
        loop = Loop(at=time_of(now), first=seen[0], second=n, jobs=sorted({e.job for e in turn}), evictions=turn)
        self.count += 1
        if len(self.first) < self._most:
            self.first.append(loop)
        self._seen, self._evicted = {situation: (n, 0)}, []
        return loop


Level = Callable[[str, int, Amounts, Amounts, Amounts], None]
"""Told of a queue, since when, and what it then holds, waits for and is guaranteed, until it tells again. The amounts
go on changing: whoever wants to keep them copies them."""


class QueueStatistics:
    """What one queue with all that is below it has come to: exact areas under its usage, and the times of its jobs.
    ``now`` never goes back; ``level`` is told once an instant at which something changed, when the instant is over.

    Memory grows by 24 bytes for each job that finishes: percentiles are exact.
    """

    __slots__ = (
        "_changed", "_completions", "_counted_until", "_demand", "_entitled_at", "_guarantee", "_guaranteed",
        "_level", "_missing",
        "_moments", "_name", "_slowdowns", "_usage",
        "_waits", "cancelled", "evictions", "finished", "jobs", "most_evictions", "work_done", "work_lost",
        "work_overhead",
    )  # fmt: skip

    def __init__(self, now: int, guarantee: Amounts, name: str = "", level: Level | None = None) -> None:
        self._counted_until = self._entitled_at = now
        self._name = name
        self._level = level
        self._changed = True
        self._guarantee = guarantee
        self._usage: Amounts = {}
        self._demand: Amounts = {}
        self._moments: Areas = {}
        """Amounts that came, times when, less those that went: what the usage of now would have come to since 0, less
        this, is the area under usage."""
        self._guaranteed: Areas = {}
        self._missing: Areas = {}
        self._waits, self._completions, self._slowdowns = array("q"), array("q"), array("d")
        self.jobs = self.finished = self.cancelled = self.evictions = self.most_evictions = 0
        self.work_done: Areas = {}
        self.work_lost: Areas = {}
        self.work_overhead: Areas = {}

    def hold(self, now: int, amounts: Amounts, sign: int) -> None:
        """``amounts`` are held from now on, or (``sign`` -1) no longer."""
        self.advance(now)
        self._changed = True
        usage, moments = self._usage, self._moments
        for resource, amount in amounts.items():
            more = amount * sign
            usage[resource] = usage.get(resource, 0) + more
            moments[resource] = moments.get(resource, 0) + more * now

    def want(self, now: int, amounts: Amounts, sign: int) -> None:
        """``amounts`` are waited for from now on, or no longer."""
        self.advance(now)
        self._changed = True
        _add(self._demand, amounts, sign)

    def entitle(self, now: int, guarantee: Amounts) -> None:
        """The guarantee is another from now on."""
        self.advance(now)
        self._settle()
        self._changed = True
        self._guarantee = guarantee

    def advance(self, now: int) -> None:
        """Add what has passed to the areas."""
        passed = now - self._counted_until
        if not passed:
            return
        usage, demand, guarantee = self._usage, self._demand, self._guarantee
        if self._changed and self._level is not None:
            self._changed = False
            self._level(self._name, self._counted_until, usage, demand, guarantee)
        self._counted_until = now
        for resource, wanted in demand.items():
            if not wanted:
                continue
            held = usage.get(resource, 0)
            short = min(guarantee.get(resource, 0), held + wanted) - held
            if short > 0:
                self._missing[resource] = self._missing.get(resource, 0) + short * passed

    def _settle(self) -> None:
        """Add the guarantee's area since it is what it is, which is no sooner than it is asked for or changes."""
        _add(self._guaranteed, self._guarantee, self._counted_until - self._entitled_at)
        self._entitled_at = self._counted_until

    def started(self, wait: int) -> None:
        """A job started for the first time, after so long."""
        self._waits.append(wait)

    def spent(self, done: Areas, lost: Areas, overhead: Areas) -> None:
        """Runs are over: what they made and kept, what was thrown away, what checkpoints took."""
        for sums, areas in ((self.work_done, done), (self.work_lost, lost), (self.work_overhead, overhead)):
            if areas:
                _add(sums, areas, 1)

    def evicted(self, life: LiveJob) -> None:
        """A job was evicted."""
        self.evictions += 1
        self.most_evictions = max(self.most_evictions, life.evictions)

    def done(self, life: LiveJob, now: int) -> None:
        """A job finished. How long one took that ran before the run began is not known."""
        self.finished += 1
        if life.initial:
            return
        completion = now - life.submitted
        self._completions.append(completion)
        self._slowdowns.append(completion / max(clock.duration for clock in life.clocks.values()))

    def totals(self) -> Totals:
        """Everything, as the wire has it."""
        self._settle()
        used = {
            resource: held * self._counted_until - self._moments[resource] for resource, held in self._usage.items()
        }
        return Totals(
            jobs=self.jobs, finished=self.finished, cancelled=self.cancelled, wait=_spread(self._waits),
            completion=_spread(self._completions), slowdown=_ratios(self._slowdowns),
            evictions=self.evictions, most_evictions=self.most_evictions, work_done=_works(self.work_done),
            work_lost=_works(self.work_lost), work_overhead=_works(self.work_overhead), used=_works(used),
            utilisation={r: used.get(r, 0) / area for r, area in sorted(self._guaranteed.items()) if area},
            shortfall=_works(self._missing),
        )  # fmt: skip


def _add(into: dict[str, int], amounts: Mapping[str, int], times: int) -> None:
    if not times:
        return
    for resource, amount in amounts.items():
        into[resource] = into.get(resource, 0) + amount * times


def _works(areas: Areas) -> dict[str, int | float]:
    return {resource: work(area, resource) for resource, area in sorted(areas.items()) if area}


def _spread(values: "array[int]") -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    p50, p90, p99 = (seconds(ordered[rank(len(ordered), share)]) for share in (50, 90, 99))
    total, count = sum(ordered), len(ordered) * 10**6
    mean = total // count if total % count == 0 else total / count
    return Spread(mean=mean, p50=p50, p90=p90, p99=p99, max=seconds(ordered[-1]))


def _ratios(values: "array[float]") -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    p50, p90, p99 = (ordered[rank(len(ordered), share)] for share in (50, 90, 99))
    return Spread(mean=fsum(ordered) / len(ordered), p50=p50, p90=p90, p99=p99, max=ordered[-1])


def rank(count: int, percent: int) -> int:
    """The place, in ascending order, of the smallest value that ``percent`` of all do not exceed."""
    return max(0, -(-count * percent // 100) - 1)


class _Change:
    """Of a queue at one instant: how often ``amounts`` are held and waited for from now on, less how often they no
    longer are; how long they did what they kept, what is thrown away, and checkpoints, in runs that are over."""

    __slots__ = ("amounts", "done", "held", "lost", "overhead", "wanted")

    def __init__(self, amounts: Amounts) -> None:
        self.amounts = amounts
        self.held = self.wanted = self.done = self.lost = self.overhead = 0


class AllQueueStatistics:
    """The accounts of all queues, and of all of them together. ``parents``: the queue above each queue; ``guarantees``
    by queue, with all below it; ``capacity``: of all; ``level``: told what each queue holds, and all of them as the
    queue ``""``. ``_changes``: by queue, what its account and those above it are still to be told of ``_now``, amounts
    by identity, for those of tasks that are alike are the same."""

    def __init__(
        self,
        now: int,
        parents: Mapping[str, str | None],
        guarantees: Mapping[str, Amounts],
        capacity: Amounts,
        level: Level | None = None,
    ) -> None:
        self.total = QueueStatistics(now, capacity, "", level)
        self._level = level
        self._queues: dict[str, QueueStatistics] = {}
        self._chains: dict[str, list[QueueStatistics]] = {}
        self._parents: Mapping[str, str | None] = {}
        self._now = now
        self._changes: dict[str, dict[int, _Change]] = {}
        self.entitle(now, parents, guarantees, capacity)

    def entitle(
        self, now: int, parents: Mapping[str, str | None], guarantees: Mapping[str, Amounts], capacity: Amounts
    ) -> None:
        """Another configuration is in force from now on. Nothing may be held or waited for
        meanwhile: whoever calls takes all off before and puts it on again after, for queues may have moved."""
        self._hand_on()
        self.total.entitle(now, capacity)
        for name in {**self._queues, **parents}:
            guarantee = guarantees.get(name, {})
            if name not in self._queues:
                self._queues[name] = QueueStatistics(now, guarantee, name, self._level)
            else:
                self._queues[name].entitle(now, guarantee)
        self._parents, self._chains = parents, {}

    def chain(self, queue: str) -> list[QueueStatistics]:
        """The account of a queue, those above it, and that of all."""
        chain = self._chains.get(queue)
        if chain is None:
            chain = [self.total]
            above: str | None = queue
            while above is not None and above in self._queues:
                chain.append(self._queues[above])
                above = self._parents.get(above)
            self._chains[queue] = chain
        return chain

    def count(
        self, now: int, queue: str, amounts: Amounts, *, held: int = 0, wanted: int = 0,
        spent: tuple[int, int, int] | None = None,
    ) -> None:  # fmt: skip
        """``amounts``, which are not to change any more, are ``held`` and ``wanted`` from now on (1), no longer (-1) or
        as before (0). ``spent``: a run of something that held them is over, or is looked at: how long it did what it
        kept, what is thrown away, and checkpoints."""
        if now != self._now:
            self._hand_on()
            self._now = now
        changes = self._changes.get(queue)
        if changes is None:
            changes = self._changes[queue] = {}
        change = changes.get(id(amounts))
        if change is None:
            change = changes[id(amounts)] = _Change(amounts)
        change.held += held
        change.wanted += wanted
        if spent is not None:
            change.done += spent[0]
            change.lost += spent[1]
            change.overhead += spent[2]

    def _hand_on(self) -> None:
        """An instant is over: much of what changed in it may have gone back and forth."""
        for queue, changes in self._changes.items():
            held, wanted = Amounts(), Amounts()
            done, lost, overhead = Areas(), Areas(), Areas()
            for change in changes.values():
                _add(held, change.amounts, change.held)
                _add(wanted, change.amounts, change.wanted)
                _add(done, change.amounts, change.done)
                _add(lost, change.amounts, change.lost)
                _add(overhead, change.amounts, change.overhead)
            for account in self.chain(queue):
                account.hold(self._now, held, 1)
                if wanted:
                    account.want(self._now, wanted, 1)
                account.spent(done, lost, overhead)
        self._changes = {}

    def close(self, now: int) -> None:
        """The run ends: bring every account to this instant."""
        self._hand_on()
        self.total.advance(now)
        for account in self._queues.values():
            account.advance(now)

    def totals(self) -> dict[str, Totals]:
        """By queue, in order of name; queues that no job ever named, nor named below them, are left out."""
        totals: dict[str, Totals] = {}
        for name, account in sorted(self._queues.items()):
            safe_point()
            if account.jobs:
                totals[name] = account.totals()
        return totals


class Accounting:
    """``first``, ``last``: when the first job was asked for and the last one ended, if any; ``ended``: how many have.
    ``_mark``: see ``mark``, but for the jobs of ``_changed``."""

    def __init__(self, sink: Sink, ledger: AllQueueStatistics) -> None:
        self.ledger = ledger
        self._sink = sink
        self.first: int | None = None
        self.last: int | None = None
        self.ended = 0
        self._mark = 0
        self._changed: set[LiveJob] = set()
        self._hears_events, self._hears_jobs = hears(sink, "event"), hears(sink, "job")

    def submitted(self, life: LiveJob, now: int) -> None:
        """A job is asked for."""
        if self.first is None:
            self.first = now
        for account in self.ledger.chain(life.ask.queue):
            account.jobs += 1
        self.ledger.count(now, life.ask.queue, amounts_of(life.waiting.values()), wanted=1)
        self.event(now, "submitted", life)
        self.remark(life)

    def started(self, life: LiveJob, tasks: list[Task], wanted: Amounts, now: int) -> None:
        """Tasks run that waited for ``wanted``."""
        queue = life.ask.queue
        self.ledger.count(now, queue, amounts_of(tasks), held=1)
        self.ledger.count(now, queue, wanted, wanted=-1)
        if life.first_started is None:
            life.first_started = now
            if not life.initial:
                for account in self.ledger.chain(queue):
                    account.started(now - life.submitted)
        self.remark(life)

    def began(self, life: LiveJob, tasks: Iterable[tuple[str | None, str | None]], now: int, n: int | None) -> None:
        """The events of starts, by task (None: the job) and node."""
        for task, node in tasks:
            life.starts += 1
            self.event(now, "started", life, task=task, round=n, node=node)

    def evicted(self, life: LiveJob, now: int, lost: int, **more: Any) -> None:
        """A job, or a task, was evicted."""
        life.evictions += 1
        for account in self.ledger.chain(life.ask.queue):
            account.evicted(life)
        self.event(now, "evicted", life, lost=seconds(lost), **more)
        self.remark(life)

    def released(
        self, life: LiveJob, names: Sequence[str | None], tasks: Iterable[Task], wanted: Amounts, now: int
    ) -> None:
        """What was evicted holds nothing any more, and waits for ``wanted``. ``names``: of whom events tell; None: of
        the job."""
        self.ledger.count(now, life.ask.queue, amounts_of(tasks), held=-1)
        self.ledger.count(now, life.ask.queue, wanted, wanted=1)
        for name in names:
            self.event(now, "released", life, task=name)
        self.remark(life)

    def over(self, life: LiveJob, now: int) -> None:
        """A job has finished or was cancelled."""
        self.event(now, "cancelled" if life.cancelled else "finished", life)
        for account in self.ledger.chain(life.ask.queue):
            if life.cancelled:
                account.cancelled += 1
            else:
                account.done(life, now)
        self.ended += 1
        self.last = now
        if self._hears_jobs:
            self._sink.job(life.line())
        self.remark(life)

    def event(self, now: int, kind: EventKind, life: LiveJob, **more: Any) -> None:
        """Something happened to a job."""
        if self._hears_events:
            self._sink.event(Event(at=time_of(now), kind=kind, job=life.ask.id, queue=life.ask.queue, **more))

    def other(self, now: int, kind: EventKind, **more: Any) -> None:
        """Something happened to no job."""
        self._sink.event(Event(at=time_of(now), kind=kind, **more))

    def remark(self, life: LiveJob) -> None:
        """The job's part in ``mark`` is another now."""
        self._changed.add(life)

    @property
    def mark(self) -> int:
        """Stands for what runs where and what waits, now."""
        for life in self._changed:
            standing = _standing(life) if life.waiting or life.running or life.leaving else 0
            self._mark ^= life.mark ^ standing
            life.mark = standing
        self._changed.clear()
        return self._mark


def _standing(life: LiveJob) -> int:
    """A number of 64 bits that stands for what runs where of a job, and what waits, in this process; the exclusive or
    of such numbers stands for all jobs: among a million situations two that differ have the same by a chance of one in
    tens of millions."""
    return hash((life.ask.id, frozenset(life.waiting), _places(life.running), _places(life.leaving)))


def _places(tasks: Mapping[str, Task]) -> Hashable:
    return frozenset([(name, task.node or str(task.flavors)) for name, task in tasks.items()]) if tasks else None
