"""What a run changes: jobs, the cluster, what waits, and the accounting; and how fragmented what is free is."""

from collections.abc import Hashable
from dataclasses import replace as with_
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from app.simulations.core.accounting import Accounting, AllQueueStatistics, Loops
from app.simulations.core.life import (
    ARRIVE,
    CANCEL,
    CHANGE,
    FINISH,
    RELEASE,
    Agenda,
    Arrivals,
    Clock,
    Item,
    LiveJob,
    one_by_one,
)
from app.simulations.core.lifecycle import JobLifecycle
from app.simulations.core.scenario import Scenario
from app.simulations.core.sink import Amounts, Asked, Carried, Course, Sink, Watch, hears, span, time_of, work
from app.simulations.core.state import Recorder, SimulatedCluster
from app.simulations.schemas import Evicted, Fragmentation, Job, RoundLine, Summary
from app.solver import solve
from app.solver.model.base import seconds
from app.solver.model.decision import Placement, Plan, PlannedEviction
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Ask, Workload
from app.solver.model.yunikorn import Application
from app.solver.model.yunikorn import Ask as YuniKornAsk
from app.solver.question import safe_point
from app.solver.rounds import Ahead, Outcome, Rounds, Spare, Turn
from app.solver.solve import Configured, Loaded


class FreeRoom:
    """Told at instants, in order, of what is free from then on; tells the sink what has changed, and counts areas.

    Much that is free and little of it in one place is fragmentation: what asks for one rack waits although quota is
    there.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._counted_until = 0
        self._now: Spare = {}
        self._areas: dict[tuple[str, str, str], tuple[int, int]] = {}

    def note(self, now: int, spare: Spare) -> None:
        """``spare``, as engines have it, is free from ``now`` on."""
        self._count(now)
        for level, of in spare.items():
            if self._now.get(level) != of:
                self._tell(level, now, of)
        for level in self._now.keys() - spare.keys():
            self._tell(level, now, {})
        self._now = spare

    def _tell(self, level: tuple[str, str], now: int, of: dict[str, tuple[int, int]]) -> None:
        if self._sink.leveled:
            free: Amounts = {resource: amount for resource, (amount, _) in of.items()}
            largest: Amounts = {resource: most for resource, (_, most) in of.items()}
            self._sink.spare(*level, now, free, largest)

    def _count(self, now: int) -> None:
        passed, self._counted_until = now - self._counted_until, now
        if not passed:
            return
        for (flavor, level), of in self._now.items():
            for resource, (amount, most) in of.items():
                free, largest = self._areas.get((flavor, level, resource), (0, 0))
                self._areas[flavor, level, resource] = free + amount * passed, largest + most * passed

    def summary(self, end: int) -> list[Fragmentation]:
        """By flavor, level in order from the outermost, and resource."""
        self._count(end)
        return [
            Fragmentation(
                flavor=flavor, level=level, resource=resource, free=work(free, resource),
                largest=work(largest, resource), share=1 - largest / free if free else 0.0,
            )
            for (flavor, level, resource), (free, largest) in self._areas.items()
        ]  # fmt: skip


_job = attrgetter("job")
_TURNS = 1000
"""So often a loop is played at one instant where the caller wants it to go on."""


class _Instant:
    """The rounds of one instant. ``acts``: how many of them started or evicted somebody."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.acts = 0
        self._seen: dict[Hashable, int] = {}
        self._turns = 0

    def again(self, situation: Hashable) -> bool:
        """Whether rounds go round for ever with this one, without any time passing: one was asked of the same
        situation and nobody was started or evicted since, or the turns in which somebody was are too many. A real
        scheduler spins, and in which phase the next event meets it is chance."""
        before = self._seen.get(situation)
        self._seen[situation] = self.acts
        self._turns += before is not None
        return before == self.acts or self._turns > _TURNS


class World:
    """Everything of one run but its clock. Instants in microseconds."""

    def __init__(
        self, scenario: Scenario, sink: Sink, watch: Watch | None = None, course: Course | None = None
    ) -> None:
        self.scenario = scenario
        self._sink = sink
        self._watch, self._course = watch, course
        self._brief = watch is None and scenario.request.explain == "none"
        self._foresees = self._brief
        self._heard = course is not None or hears(sink, "round")
        self._recorder = Recorder() if sink.recorded else None
        state, written = scenario.request.state, sink.recorded or sink.digested or course is not None
        self._cluster = SimulatedCluster(scenario.configured, state, self._recorder, written=written)
        self._rounds: Rounds[Any, Any] = solve.rounds(scenario.configured, scenario.request.options)
        capacity = self._rounds.capacity(self._cluster.nodes)
        level = sink.level if sink.leveled else None
        guarantees = self._rounds.guarantees()
        ledger = AllQueueStatistics(scenario.start, _parents(scenario.configured), guarantees, capacity, level)
        self._accounting = Accounting(sink, ledger)
        self._agenda = Agenda()
        self._lives: dict[str, LiveJob] = {}
        self._arrivals = Arrivals(iter(scenario.jobs), self._agenda, scenario.start, self._lives.__contains__)
        self._lifecycle = JobLifecycle(
            scenario, self._cluster, self._rounds, self._accounting, self._agenda, self._lives
        )
        self._free = FreeRoom(sink)
        self._loops = Loops()
        self._looping = False
        self._orbits = 0
        self._spinning = False
        self._instant = _Instant(scenario.start)
        self._round = 0
        self._initial = {workload.id for workload in scenario.request.state.workloads}
        for i, change in enumerate(scenario.changes):
            self._agenda.add(change.instant, CHANGE, "", i)
        self._begin()
        self._look(scenario.start)

    def next_event(self) -> int | None:
        """When something happens next, rounds aside."""
        self._agenda.skip(self._still_to_come)
        moments = [moment for moment in (self._agenda.first(), self._arrivals.first()) if moment is not None]
        return min(moments, default=None)

    def wakes_at(self) -> int | None:
        """When time alone could let a waiting job act."""
        return None if self._looping or not self._lives else self._rounds.wakes_at()

    def due(self, now: int) -> bool:
        """Whether a round could lead to anything."""
        if self._spinning:
            wakes = self._rounds.wakes_at()
            if wakes is None or wakes > now:
                return False
            self._spinning = False
        return not self._looping and self._rounds.due(now)

    def unfinished(self) -> bool:
        """Whether jobs are alive, or still to come."""
        return bool(self._lives) or len(self._arrivals) > 0

    def tell(self, now: int) -> None:
        """Report progress and what is free, and tidy up."""
        self._look(now)
        self._sink.progress(now, self._accounting.ended + self._arrivals.given_up, self.scenario.total, self._round)
        if len(self._agenda) > 2 * (len(self._lives) + len(self._arrivals)) + 1024:
            self._agenda.prune(self._still_to_come)

    def happen(self, now: int) -> None:
        """Everything that is to happen up to ``now``."""
        self._arrivals.pull(now)
        while (item := self._agenda.take(now)) is not None:
            _, kind, name, _, detail = item
            self._spinning = False
            if kind == ARRIVE:
                self._arrive(name, now)
            elif kind == FINISH:
                self._finish(name, detail, now)
            elif kind == RELEASE:
                self._lifecycle.release(name, detail, now)
            elif kind == CANCEL:
                self._cancel(name, now)
            else:
                self._change(int(detail), now)

    def round(self, now: int) -> bool:
        """Ask, and carry the answer out; whether another round follows at this instant."""
        if self._instant.now != now:
            self._instant = _Instant(now)
        ahead = self._cluster.ahead()
        if not self._foresees:
            ahead = None
        elif ahead is not None and not self._heard and not self._idle(ahead, now):
            return False
        self._round += 1
        asked = None
        if (outcome := self._foreseen(ahead, now)) is None:
            asked, outcome = self._ask(now)
        written, question = self._cluster.written(), None if asked is None else asked.question
        if question is None and (self._heard or self._recorder is not None):
            question = self._rounds.question(now, self._cluster.holds)
        carried, age = self._rounds.carried()
        situation = (self._accounting.mark, carried)
        # A loop is looked for, and ends, before it evicts anybody: whoever runs there runs to its end.
        evicts = any(not self._lifecycle.leaving(eviction) for eviction in outcome.evictions)
        loop = self._loops.look(self._round, (situation, age), now) if evicts else None
        looping = loop is not None and self.scenario.request.on_loop == "stop"
        spinning = self._instant.again(situation)
        stop = looping or spinning
        order = outcome.order(question) if self._heard and question is not None else None
        turn = Turn() if stop else outcome.carry_out(self._lifecycle.leaving)
        if self._course is not None and written is not None and question is not None:
            promised = [] if asked is None else _promised(asked.result.plan)
            self._course(Carried(self._round, self._cluster.configured, written.state, question, turn, promised))
        evicted = [self._evicted(eviction) for eviction in turn.evicted]
        if self._heard and question is not None:
            line = RoundLine(
                n=self._round, at=time_of(now), asks=[ask.id for ask in question.asks], order=order,
                admitted=list(dict.fromkeys(start.job for start in turn.started)), evicted=evicted,
                state=written.digest if written is not None and self._sink.digested else None, loop=stop,
            )  # fmt: skip
            self._sink.round(line)
        if self._recorder is not None and written is not None and question is not None:
            self._sink.record(self._recorder.round(self._round, written.state, question))
        if loop is not None:
            self._accounting.other(now, "loop", round=loop.second, first=loop.first, jobs=loop.jobs)
            self._looping = looping
        if spinning:
            self._spin()
        self._loops.evicted(evicted)
        self._instant.acts += bool(turn.started or evicted)
        self._cluster.note(turn)
        self._carry(turn, evicted, now)
        return turn.more and self._rounds.due(now)

    def _idle(self, ahead: Ahead[Any], now: int) -> bool:
        """Rounds that lead to nothing but another, which nobody is to be shown; whether another follows."""
        before, mark = self._round, None
        for carried in self._rounds.idle(ahead, now):
            self._round += 1
            mark = self._accounting.mark if mark is None else mark
            if self._instant.again((mark, carried)):
                self._spin()
                return False
        return self._round == before or self._rounds.due(now)

    def in_vain(self, now: int) -> bool:
        """Whether a round which time alone brings about is over, has led to nothing, and nobody is to be shown it."""
        if not self._foresees or self._heard or self._spinning:
            return False
        ahead = self._cluster.ahead()
        over = ahead is not None and self._rounds.in_vain(ahead, now)
        self._round += over
        return over

    def _spin(self) -> None:
        self._orbits += 1
        self._spinning = True

    def _foreseen(self, ahead: Ahead[Any] | None, now: int) -> Outcome | None:
        """A round that needs no state, of which nobody is to be shown more than its outcome."""
        return None if ahead is None else self._rounds.foreseen(ahead, now)

    def _ask(self, now: int) -> tuple[Asked, Outcome]:
        loaded = self._loaded(now)
        question = self._rounds.question(now, self._cluster.holds)
        explain, ordered = self.scenario.request.explain, not self._brief or self._heard
        question = with_(question, brief=self._brief, explain=explain, ordered=ordered)
        result = solve.planned(loaded, question)
        asked = Asked(self._round, loaded, question, result)
        if self._watch is not None:
            self._watch(asked)
        return asked, Outcome(
            lambda _: result.order, lambda leaving: self._rounds.answered(question, result, leaving),
            result.plan.evictions,
        )  # fmt: skip

    def summary(self, end: int) -> Summary:
        """What the run came to; what is still alive is told of first."""
        for _, life in sorted(self._lives.items()):
            safe_point()
            self._lifecycle.look(life, end)
            self._sink.job(life.line())
        ledger, first, last = self._accounting.ledger, self._accounting.first, self._accounting.last
        ledger.close(end)
        return Summary(
            engine=self._cluster.configured.engine.name,  # pyright: ignore[reportArgumentType]
            start=time_of(self.scenario.start), end=time_of(end),
            makespan=0 if first is None or last is None else seconds(last - first),
            rounds=self._round, total=ledger.total.totals(), queues=ledger.totals(),
            fragmentation=self._free.summary(end),
            loops=self._loops.count, first_loops=self._loops.first, orbits=self._orbits,
            findings=self.scenario.findings,
        )  # fmt: skip

    def _look(self, now: int) -> None:
        """At what is free, where pods are placed by topologies."""
        if self._cluster.configured.configuration.topologies:
            self._free.note(now, self._rounds.spare(self._cluster.loaded().compiled))

    def _loaded(self, now: int) -> Loaded:
        """The state that a round is asked of."""
        if (unfollowed := self._cluster.unfollowed()) is not None:
            return unfollowed
        loaded = self._cluster.loaded()
        before = self._rounds.before(loaded.compiled, loaded.state, now)
        if before is not None:
            self._cluster.note(before)
            loaded = self._cluster.loaded()
        if self._brief:
            self._cluster.go_ahead(self._rounds.ahead(loaded.compiled))
        return loaded

    def _carry(self, turn: Turn, evicted: list[Evicted], now: int) -> None:
        """What the answer says, done: who goes, who moves, who comes."""
        moved = {(move.job, move.task) for move in turn.moved}
        leaving = [eviction for eviction in evicted if (eviction.job, eviction.task) not in moved]
        for _, of_job in groupby(leaving, key=_job):
            self._lifecycle.evict(list(of_job), self._round, now)
        for move in turn.moved:
            self._lifecycle.move(move, self._round, now)
        for start in turn.started:
            self._lifecycle.start(start, self._round, now)

    def _evicted(self, eviction: PlannedEviction) -> Evicted:
        return Evicted(
            job=eviction.workload, task=eviction.task, queue=eviction.queue,
            by=None if eviction.for_ask is None else self._rounds.job_of(eviction.for_ask), rule=eviction.reason,
        )  # fmt: skip

    def _outside(self) -> None:
        """Something happened that no round decided: what looked like a circle may be none any more."""
        self._loops.outside()
        self._looping = False

    def _begin(self) -> None:
        trace = self.scenario.request.trace
        jobs = {} if isinstance(trace, str) else {job.ask.id: job for job in trace.jobs}
        for workload in sorted(self.scenario.request.state.workloads, key=_id):
            job = jobs.get(workload.id)
            whole = job is not None and workload.id not in self.scenario.remaining
            self._lifecycle.adopt(workload, self._running(workload, job), whole=whole)

    def _running(self, workload: Workload, job: Job | None) -> LiveJob:
        """The life of what runs at the start: as long as ``remaining`` says, else as its job."""
        start, known = self.scenario.start, self.scenario.remaining.get(workload.id)
        ask = _ask_of(workload) if job is None else self._asked(job.ask, start)
        if known is not None:
            clock = Clock(start, known)
        elif job is not None:
            clock = _clock(job, start)
        else:
            detail = f"{workload.id!r} runs, and neither trace nor `remaining` says how long"
            raise InvalidInput([Problem(pointer="/remaining", detail=detail)])
        return LiveJob(ask, start, clock, self._rounds.unit)

    def _arrive(self, name: str, now: int) -> None:
        job = self._arrivals.take(name)
        if job is None or name in self._initial:
            return
        self._outside()
        life = LiveJob(self._asked(job.ask, now), now, _clock(job, now), self._rounds.unit)
        self._lives[name] = life
        self._accounting.submitted(life, now)
        self._rounds.arrive(life.ask)

    def _asked(self, ask: Ask, now: int) -> Ask:
        if ask.workload is not None:
            ask = replace(ask, workload=None)
        if ask.created_at is None:
            ask = replace(ask, created_at=time_of(now))
        self._foresees = self._foresees and ask.pending_reason is None  # whoever is held back is in no round
        return ask if self._rounds.unit == "job" else one_by_one(ask)

    def _finish(self, name: str, detail: Any, now: int) -> None:
        if self._lifecycle.finish(name, detail, now):
            self._outside()
            if name not in self._lives:
                self._arrivals.ended(name, now)

    def _cancel(self, name: str, now: int) -> None:
        if self._arrivals.give_up(name, now):
            return
        life = self._lives.get(name)
        if life is not None and life.ended_at is None:
            self._outside()
            self._lifecycle.cancel(life, now)
            self._arrivals.ended(name, now)

    def _change(self, i: int, now: int) -> None:
        change = self.scenario.changes[i]
        self._outside()
        if change.nodes is not None:
            self._lifecycle.lose(set(change.nodes.remove), now)
            self._cluster.change_nodes(change.nodes)
            for node in sorted([*(n.name for n in (*change.nodes.add, *change.nodes.change)), *change.nodes.remove]):
                self._accounting.other(now, "node", node=node)
        if change.configured is not None:
            self._cluster.configure(change.configured)
            if self._recorder is not None:
                self._recorder.configured(i + 1)
            for queue in change.queues or [None]:
                self._accounting.other(now, "configuration", queue=queue)
        configured, ledger = self._cluster.configured, self._accounting.ledger
        self._rounds.changed(configured.compiled, configured.configuration, self._cluster.nodes)
        self._lifecycle.count(now, -1)
        capacity = self._rounds.capacity(self._cluster.nodes)
        ledger.entitle(now, _parents(configured), self._rounds.guarantees(), capacity)
        self._lifecycle.count(now, 1)

    def _still_to_come(self, item: Item) -> bool:
        """Whether it happens to anybody: a run may have been cut short, a job may have ended."""
        moment, kind, name, _, detail = item
        if kind == FINISH:
            return bool(self._lifecycle.current(name, detail))
        if kind == RELEASE:
            return bool(self._lifecycle.going(name, detail, moment))
        if kind == CHANGE or name in self._arrivals:
            return True
        life = self._lives.get(name)
        return kind == CANCEL and life is not None and life.ended_at is None


def _promised(plan: Plan) -> list[Placement]:
    """See ``Carried``."""
    evicting = {eviction.for_ask for eviction in plan.evictions}
    return [placement for placement in plan.placements if placement.pipelined and placement.ask not in evicting]


def _clock(job: Job, now: int) -> Clock:
    every, cost = (span(job.checkpoint.every), span(job.checkpoint.cost)) if job.checkpoint else (0, 0)
    return Clock(now, span(job.duration), every, cost)


def _ask_of(workload: Workload) -> Ask:
    """What a workload that runs at the start will ask for once it is evicted."""
    return Ask(
        id=workload.id, queue=workload.queue, uid=workload.uid, priority=workload.priority,
        created_at=workload.created_at, preemptible=workload.preemptible, min_available=workload.min_available,
        weight=workload.weight, limit=workload.limit, yunikorn=_as_told(workload.yunikorn),
        tasks=[replace(task, node=None, flavors=None, started_at=None, state="running") for task in workload.tasks],
    )  # fmt: skip


def _as_told(owner: Application | None) -> YuniKornAsk | None:
    return None if owner is None else YuniKornAsk(user=owner.user, groups=owner.groups)


def _id(workload: Workload) -> str:
    return workload.id


def _parents(configured: Configured) -> dict[str, str | None]:
    return {queue.name: queue.parent for queue in configured.configuration.queues}
