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


class JobStatistics:
    """What has become of jobs: how many, and their times.

    Memory grows by 24 bytes for each job that finishes: percentiles are exact.
    """

    __slots__ = (
        "_completions", "_slowdowns", "_waits", "cancelled", "evictions", "finished", "jobs", "most_evictions",
    )  # fmt: skip

    def __init__(self) -> None:
        self._waits, self._completions, self._slowdowns = array("q"), array("q"), array("d")
        self.jobs = self.finished = self.cancelled = self.evictions = self.most_evictions = 0

    def started(self, wait: int) -> None:
        """A job started for the first time, after so long."""
        self._waits.append(wait)

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

    def add(self, others: "JobStatistics") -> None:
        """These jobs as well."""
        self.jobs += others.jobs
        self.finished += others.finished
        self.cancelled += others.cancelled
        self.evictions += others.evictions
        self.most_evictions = max(self.most_evictions, others.most_evictions)
        self._waits += others._waits
        self._completions += others._completions
        self._slowdowns += others._slowdowns

    def spreads(self) -> tuple[Spread | None, Spread | None, Spread | None]:
        """Of waits, completions and slowdowns."""
        return _spread(self._waits), _spread(self._completions), _ratios(self._slowdowns)


class _Alike:
    """What holds, waited for and did the same ``amounts`` in one queue: ``accounts`` that follow it. ``held``: how many
    hold them, as of the last instant that is over; ``moments``: when they came, less when those that went did, added
    up; ``more``, ``wanted``: how many more hold them and wait for them from this instant on, if ``changed``; ``done``,
    ``lost``, ``overhead``: how long they did what they kept, what was thrown away, and checkpoints, in runs that are
    over."""

    __slots__ = ("accounts", "amounts", "changed", "done", "held", "lost", "moments", "more", "overhead", "wanted")

    def __init__(self, amounts: Amounts, accounts: "list[QueueStatistics]") -> None:
        self.amounts = amounts
        self.accounts = accounts
        self.changed = False
        self.held = self.moments = self.more = self.wanted = self.done = self.lost = self.overhead = 0


class QueueStatistics:
    """What one queue with all that is below it has come to: its ``jobs``, and exact areas. ``now`` never goes back;
    ``level`` is told once an instant at which something changed, when the instant is over."""

    __slots__ = (
        "_changed", "_demand", "_done", "_entitled_at", "_guarantee", "_guaranteed", "_held", "_level", "_lost",
        "_missed", "_moments", "_name", "_overhead", "_short", "_since", "_usage", "jobs",
    )  # fmt: skip

    def __init__(self, now: int, guarantee: Amounts, name: str = "", level: Level | None = None) -> None:
        self.jobs = JobStatistics()
        self._since = self._entitled_at = now
        self._name = name
        self._level = level
        self._changed = True
        self._guarantee = guarantee
        self._usage: Amounts = {}
        self._demand: Amounts = {}
        self._guaranteed: Areas = {}
        self._short: Amounts = {}  # what is waited for, and guaranteed, and not held
        self._missed: Areas = {}
        """Changes of that, times when: what it would have come to since 0, less this, is the area under it."""
        self._held: Amounts = {}
        self._moments: Areas = {}  # the same of what is held
        self._done, self._lost, self._overhead = Areas(), Areas(), Areas()

    @property
    def follows(self) -> bool:
        """Whether anything hangs on what is held and waited for when."""
        return self._level is not None or bool(self._guarantee)

    def change(self, now: int, amounts: Amounts, held: int, wanted: int) -> None:
        """So many more hold, and wait for, ``amounts`` from now on."""
        if self._level is not None:
            self.advance(now)
            self._changed = True
        usage, demand, guarantee, short = self._usage, self._demand, self._guarantee, self._short
        for resource, amount in amounts.items():
            used, waiting = usage.get(resource, 0), demand.get(resource, 0)
            if held:
                used = usage[resource] = used + amount * held
            if wanted:
                waiting = demand[resource] = waiting + amount * wanted
            left = guarantee.get(resource, 0) - used
            lacks = min(left, waiting) if left > 0 else 0
            before = short.get(resource, 0)
            if lacks != before:
                short[resource] = lacks
                self._missed[resource] = self._missed.get(resource, 0) + (lacks - before) * now

    def entitle(self, now: int, guarantee: Amounts) -> None:
        """The guarantee is another from now on. Nothing may be held or waited for."""
        self.advance(now)
        self._settle()
        self._changed = True
        self._guarantee = guarantee

    def advance(self, now: int) -> None:
        """It is ``now``: what there was up to now is over."""
        if now == self._since:
            return
        if self._changed and self._level is not None:
            self._changed = False
            self._level(self._name, self._since, self._usage, self._demand, self._guarantee)
        self._since = now

    def _settle(self) -> None:
        """Add the guarantee's area since it is what it is, which is no sooner than it is asked for or changes."""
        _add(self._guaranteed, self._guarantee, self._since - self._entitled_at)
        self._entitled_at = self._since

    def add(self, held: Amounts, moments: Areas, done: Areas, lost: Areas, overhead: Areas) -> None:
        """See ``_Alike``, for all of a queue."""
        for into, more in (
            (self._held, held), (self._moments, moments), (self._done, done), (self._lost, lost),
            (self._overhead, overhead),
        ):  # fmt: skip
            _add(into, more, 1)

    def totals(self) -> Totals:
        """Everything up to where it last advanced, as the wire has it."""
        self._settle()
        jobs, now = self.jobs, self._since
        wait, completion, slowdown = jobs.spreads()
        used = {resource: self._held.get(resource, 0) * now - moment for resource, moment in self._moments.items()}
        missing = {resource: self._short[resource] * now - missed for resource, missed in self._missed.items()}
        return Totals(
            jobs=jobs.jobs, finished=jobs.finished, cancelled=jobs.cancelled, wait=wait, completion=completion,
            slowdown=slowdown, evictions=jobs.evictions, most_evictions=jobs.most_evictions,
            work_done=_works(self._done), work_lost=_works(self._lost), work_overhead=_works(self._overhead),
            used=_works(used),
            utilisation={r: used.get(r, 0) / area for r, area in sorted(self._guaranteed.items()) if area},
            shortfall=_works(missing),
        )  # fmt: skip


def _add(into: dict[str, int], amounts: Mapping[str, int], times: int) -> None:
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


_MOST_ALIKE = 4096


class AllQueueStatistics:
    """The accounts of all queues, and of all of them together. ``parents``: the queue above each queue; ``guarantees``
    by queue, with all below it; ``capacity``: of all; ``level``: told what each queue holds, and all of them as the
    queue ``""``.

    What a queue has come to by itself (``_jobs``, ``_alike``: amounts by identity, for those of tasks that are alike
    are the same) is added to its account and those above it when the run ends, or other queues are above it. What is
    held and waited for, they are told once an instant, where anything hangs on it."""

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
        self._parents: Mapping[str, str | None] = {}
        self._now = now
        self._jobs: dict[str, JobStatistics] = {}
        self._alike: dict[str, tuple[dict[int, _Alike], list[QueueStatistics]]] = {}
        self._changed: list[_Alike] = []
        self._count = 0
        self.entitle(now, parents, guarantees, capacity)

    def entitle(
        self, now: int, parents: Mapping[str, str | None], guarantees: Mapping[str, Amounts], capacity: Amounts
    ) -> None:
        """Another configuration is in force from now on. Nothing may be held or waited for
        meanwhile: whoever calls takes all off before and puts it on again after, for queues may have moved."""
        self._settle()
        self.total.entitle(now, capacity)
        for name in {**self._queues, **parents}:
            guarantee = guarantees.get(name, {})
            if name not in self._queues:
                self._queues[name] = QueueStatistics(now, guarantee, name, self._level)
            else:
                self._queues[name].entitle(now, guarantee)
        self._parents = parents

    def jobs(self, queue: str) -> JobStatistics:
        """What has become of the jobs of a queue itself since it is where it is."""
        if (jobs := self._jobs.get(queue)) is None:
            jobs = self._jobs[queue] = JobStatistics()
        return jobs

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
        if (known := self._alike.get(queue)) is None:
            known = self._alike[queue] = {}, [account for account in self._chain(queue) if account.follows]
        of, accounts = known
        alike = of.get(id(amounts))
        if alike is None:
            alike = of[id(amounts)] = _Alike(amounts, accounts)
            self._count += 1
        if held or wanted:
            alike.more += held
            alike.wanted += wanted
            if not alike.changed:
                alike.changed = True
                self._changed.append(alike)
        if spent is not None:
            alike.done += spent[0]
            alike.lost += spent[1]
            alike.overhead += spent[2]

    def turn(self, now: int, queue: str, held: Amounts, wanted: Amounts, sign: int) -> None:
        """Who waited for ``wanted`` holds ``held`` from now on, or (``sign`` -1) the other way round."""
        self.count(now, queue, held, held=sign, wanted=-sign if held is wanted else 0)
        if held is not wanted:
            self.count(now, queue, wanted, wanted=-sign)

    def _chain(self, queue: str) -> list[QueueStatistics]:
        """The account of a queue, those above it, and that of all."""
        chain = [self.total]
        above: str | None = queue
        while above is not None and above in self._queues:
            chain.append(self._queues[above])
            above = self._parents.get(above)
        return chain

    def _hand_on(self) -> None:
        """An instant is over: much of what changed in it may have gone back and forth."""
        now = self._now
        for alike in self._changed:
            held, wanted = alike.more, alike.wanted
            if held or wanted:
                alike.held += held
                alike.moments += held * now
                for account in alike.accounts:
                    account.change(now, alike.amounts, held, wanted)
                alike.more = alike.wanted = 0
            alike.changed = False
        self._changed.clear()
        if self._count > _MOST_ALIKE:
            self._add_up()

    def _add_up(self) -> None:
        for queue, (of, _) in self._alike.items():
            sums: tuple[Areas, Areas, Areas, Areas, Areas] = {}, {}, {}, {}, {}
            for alike in of.values():
                times = alike.held, alike.moments, alike.done, alike.lost, alike.overhead
                for into, more in zip(sums, times, strict=True):
                    if more:
                        _add(into, alike.amounts, more)
            for account in self._chain(queue):
                account.add(*sums)
        self._alike, self._count = {}, 0

    def _settle(self) -> None:
        self._hand_on()
        self._add_up()
        for queue, jobs in self._jobs.items():
            for account in self._chain(queue):
                account.jobs.add(jobs)
        self._jobs = {}

    def close(self, now: int) -> None:
        """The run ends: bring every account to this instant."""
        self._settle()
        self.total.advance(now)
        for account in self._queues.values():
            account.advance(now)

    def totals(self) -> dict[str, Totals]:
        """By queue, in order of name; queues that no job ever named, nor named below them, are left out."""
        totals: dict[str, Totals] = {}
        for name, account in sorted(self._queues.items()):
            safe_point()
            if account.jobs.jobs:
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
        self.ledger.jobs(life.ask.queue).jobs += 1
        self.ledger.count(now, life.ask.queue, amounts_of(life.waiting.values()), wanted=1)
        self.event(now, "submitted", life)
        self.remark(life)

    def started(self, life: LiveJob, tasks: list[Task], wanted: Amounts, now: int) -> None:
        """Tasks run that waited for ``wanted``."""
        queue = life.ask.queue
        self.ledger.turn(now, queue, amounts_of(tasks), wanted, 1)
        if life.first_started is None:
            life.first_started = now
            if not life.initial:
                self.ledger.jobs(queue).started(now - life.submitted)
        self.remark(life)

    def began(self, life: LiveJob, tasks: Sequence[Task] | None, now: int, n: int | None) -> None:
        """The events of starts: of these tasks, or (None) of the job as a whole."""
        life.starts += 1 if tasks is None else len(tasks)
        if self._hears_events:
            several = len(life.tasks) > 1
            places = [(None, None)] if tasks is None else [(t.name if several else None, t.node) for t in tasks]
            for task, node in places:
                self.event(now, "started", life, task=task, round=n, node=node)

    def evicted(self, life: LiveJob, now: int, lost: int, **more: Any) -> None:
        """A job, or a task, was evicted."""
        life.evictions += 1
        self.ledger.jobs(life.ask.queue).evicted(life)
        if self._hears_events:
            self.event(now, "evicted", life, lost=seconds(lost), **more)
        self.remark(life)

    def released(
        self, life: LiveJob, names: Sequence[str | None], tasks: Iterable[Task], wanted: Amounts, now: int
    ) -> None:
        """What was evicted holds nothing any more, and waits for ``wanted``. ``names``: of whom events tell; None: of
        the job."""
        self.ledger.turn(now, life.ask.queue, amounts_of(tasks), wanted, -1)
        if self._hears_events:
            for name in names:
                self.event(now, "released", life, task=name)
        self.remark(life)

    def over(self, life: LiveJob, now: int) -> None:
        """A job has finished or was cancelled."""
        self.event(now, "cancelled" if life.cancelled else "finished", life)
        jobs = self.ledger.jobs(life.ask.queue)
        if life.cancelled:
            jobs.cancelled += 1
        else:
            jobs.done(life, now)
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
            standing = life.standing()
            self._mark ^= life.mark ^ standing
            life.mark = standing
        self._changed.clear()
        return self._mark
