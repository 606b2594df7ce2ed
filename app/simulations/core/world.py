"""What a run changes: jobs, the kept state, what waits, and the accounts."""

from typing import Any

from msgspec.structs import replace

from app.answering.answers import configure
from app.answering.sources import Configurations, Sources
from app.simulations.core.agenda import CANCEL, FINISH, RELEASE, Agenda
from app.simulations.core.amounts import amounts_of
from app.simulations.core.arrivals import Arrivals
from app.simulations.core.kept import Kept
from app.simulations.core.ledger import Ledger
from app.simulations.core.life import Life
from app.simulations.core.scenario import Scenario
from app.simulations.core.sink import Sink
from app.simulations.core.times import span, time_of
from app.simulations.schemas import Event, EventKind, Evicted, Job, RoundLine, Summary
from app.solver import solve
from app.solver.apply import admitted_tasks, workload_of
from app.solver.engine import Question
from app.solver.model.decision import Decision, Result
from app.solver.model.duration import seconds
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Ask
from app.solver.rounds import Rounds
from app.solver.solve import Configured


class World:
    """Everything of one run but its clock. Instants in microseconds."""

    def __init__(self, scenario: Scenario, configurations: Configurations, sink: Sink) -> None:
        self.scenario = scenario
        self._sink = sink
        configured = configure(scenario.configuration, scenario.engine, Sources(configurations))
        self._kept = Kept(configured, scenario.state)
        self._rounds = rounds_of(configured)
        self._ledger = Ledger(
            scenario.start, _parents(configured), self._rounds.guarantees(), self._rounds.capacity(self._kept.nodes)
        )
        self._agenda = Agenda()
        self._lives: dict[str, Life] = {}
        self._arrivals = Arrivals(iter(scenario.jobs), self._agenda, scenario.start, self._lives.__contains__)
        self._round = 0
        self._ended = 0
        self._first: int | None = None
        self._last = scenario.start

    def next_event(self) -> int | None:
        """When something happens next, rounds aside."""
        found = [at for at in (self._agenda.first(), self._arrivals.first()) if at is not None]
        return min(found, default=None)

    def wakes_at(self, now: int) -> int | None:
        """When time alone could let a waiting job act."""
        return self._rounds.wakes_at(now)

    def due(self, now: int) -> bool:
        """Whether a round could lead to anything."""
        del now
        return self._rounds.due()

    def unfinished(self) -> bool:
        """Whether jobs are alive, or still to come."""
        return bool(self._lives) or len(self._arrivals) > 0

    def tell(self, now: int) -> None:
        """Report progress."""
        self._sink.progress(now, self._ended, self.scenario.total, self._round)

    def happen(self, now: int) -> None:
        """Everything that is to happen up to ``now``."""
        self._arrivals.pull(now)
        while (item := self._agenda.take(now)) is not None:
            _, kind, name, _, run = item
            if kind == FINISH:
                self._finish(name, run, now)
            elif kind == RELEASE:
                self._release(name, now)
            elif kind == CANCEL:
                self._cancel(name, now)
            else:
                self._arrive(name, now)

    def round(self, now: int) -> bool:
        """Ask, and carry the answer out; whether another round follows at this instant."""
        self._round += 1
        loaded = self._kept.loaded()
        question = self._rounds.question(now)
        result = solve.planned(loaded, question)
        evicted = [
            Evicted(job=e.workload, task=e.task, queue=e.queue, by=e.for_ask, rule=e.reason)
            for e in result.plan.evictions
            if self._lives[e.workload].status == "running"
        ]
        turn = self._rounds.answered(question, result, evicted=bool(evicted))
        started = _admitted(question, result)
        self._sink.round(
            RoundLine(
                n=self._round, at=time_of(now), asks=[ask.id for ask in question.asks], order=result.order,
                admitted=[ask.id for ask, _ in started], evicted=evicted, state=loaded.used.digest,
            )
        )  # fmt: skip
        for eviction in evicted:
            self._evict(eviction, now)
        for ask, decision in started:
            self._start(ask, decision, now)
        return turn.more

    def summary(self, end: int) -> Summary:
        """What the run came to; what is still alive is told of first."""
        self._ledger.close(end)
        for _, life in sorted(self._lives.items()):
            if life.status == "running":
                before = life.progress, life.overhead
                life.halt(end)
                for account in self._ledger.chain(life.ask.queue):
                    account.ran(life, life.progress - before[0], 0, life.overhead - before[1])
            elif life.status == "waiting":
                life.waited += end - life.since
            self._sink.job(life.line())
        return Summary(
            engine=self._kept.configured.engine.name,  # pyright: ignore[reportArgumentType]
            start=time_of(self.scenario.start), end=time_of(end),
            makespan=seconds(self._last - self._first) if self._first is not None else 0,
            rounds=self._round, total=self._ledger.total.totals(), queues=self._ledger.totals(),
        )  # fmt: skip

    def _arrive(self, name: str, now: int) -> None:
        job = self._arrivals.take(name)
        if job is None:
            return
        life = self._born(job, now)
        self._lives[name] = life
        if self._first is None:
            self._first = now
        self._ledger.submitted(now, life)
        self._event(now, "submitted", life)
        self._rounds.arrive(life.ask)

    def _born(self, job: Job, now: int) -> Life:
        ask = job.ask if job.ask.created_at is not None else replace(job.ask, created_at=time_of(now))
        every, cost = (span(job.checkpoint.every), span(job.checkpoint.cost)) if job.checkpoint else (0, 0)
        return Life(ask, now, span(job.duration), amounts_of(ask.tasks), every, cost)

    def _start(self, ask: Ask, decision: Decision, now: int) -> None:
        life = self._lives[ask.id]
        when = time_of(now)
        workload = replace(workload_of(ask, ask.id, when), tasks=admitted_tasks(ask, decision, when))
        self._kept.set(workload)
        wanted = amounts_of(ask.tasks)
        life.amounts = amounts_of(workload.tasks) if decision.counts else wanted
        self._agenda.add(life.start(now), FINISH, ask.id, life.run)
        self._ledger.starts(now, life, wanted)
        self._event(now, "started", life, round=self._round)

    def _finish(self, name: str, run: int, now: int) -> None:
        life = self._lives.get(name)
        if life is None or life.run != run or life.status != "running":
            return
        before = life.progress, life.overhead
        life.finish(now)
        self._kept.remove(name)
        self._ledger.releases(now, life)
        for account in self._ledger.chain(life.ask.queue):
            account.ran(life, life.progress - before[0], 0, life.overhead - before[1])
            account.done(life, now)
        self._event(now, "finished", life)
        self._end(life, now)
        self._rounds.freed(life.ask.queue)

    def _evict(self, eviction: Evicted, now: int) -> None:
        life = self._lives[eviction.job]
        before = life.progress, life.overhead
        lost = life.stop(now)
        life.status = "releasing"
        life.evictions += 1
        for account in self._ledger.chain(life.ask.queue):
            account.ran(life, life.progress - before[0], lost, life.overhead - before[1])
            account.evicted(life)
        workload = self._kept.workload(eviction.job)
        if workload is not None:
            self._kept.set(self._rounds.evicting(workload, None))
        self._agenda.add(now + self.scenario.grace, RELEASE, eviction.job, life.run)
        self._event(now, "evicted", life, round=self._round, by=eviction.by, rule=eviction.rule, lost=seconds(lost))
        self._rounds.freed(life.ask.queue)

    def _release(self, name: str, now: int) -> None:
        life = self._lives[name]
        self._kept.remove(name)
        self._ledger.releases(now, life)
        self._event(now, "released", life)
        if life.ended_at is not None:
            del self._lives[name]
        else:
            if self.scenario.requeue == "evicted":
                life.ask = replace(life.ask, created_at=time_of(life.since))
            life.amounts = amounts_of(life.ask.tasks)
            life.status, life.since = "waiting", now
            self._ledger.waits(now, life)
            self._rounds.arrive(life.ask)
        self._rounds.freed(life.ask.queue)

    def _cancel(self, name: str, now: int) -> None:
        if self._arrivals.give_up(name, now):
            self._ended += 1
            return
        life = self._lives.get(name)
        if life is None or life.ended_at is not None:
            return
        was = life.status
        if was == "waiting":
            self._rounds.leave(name)
            self._ledger.gives_up(now, life)
        elif was == "running":
            before = life.progress, life.overhead
            life.halt(now)
            self._kept.remove(name)
            self._ledger.releases(now, life)
            for account in self._ledger.chain(life.ask.queue):
                account.ran(life, life.progress - before[0], 0, life.overhead - before[1])
        for account in self._ledger.chain(life.ask.queue):
            account.cancelled += 1
        life.end("cancelled", now)
        self._event(now, "cancelled", life)
        self._ended += 1
        self._last = now
        self._sink.job(life.line())
        self._arrivals.ended(name, now)
        if was != "releasing":
            del self._lives[name]
            self._rounds.freed(life.ask.queue)

    def _end(self, life: Life, now: int) -> None:
        name = life.ask.id
        del self._lives[name]
        self._ended += 1
        self._last = now
        self._sink.job(life.line())
        self._arrivals.ended(name, now)

    def _event(self, now: int, kind: EventKind, life: Life, **more: Any) -> None:
        self._sink.event(Event(at=time_of(now), kind=kind, job=life.ask.id, queue=life.ask.queue, **more))


def rounds_of(configured: Configured) -> Rounds[Any]:
    """The keeper of what waits. Raises InvalidInput."""
    found = configured.engine.rounds(configured.compiled)
    if found is None:
        raise InvalidInput([Problem(pointer="/engine", detail=f"{configured.engine.name} has no rounds yet")])
    return found


def _admitted(question: Question, result: Result) -> list[tuple[Ask, Decision]]:
    """Who starts, in the order in which the engine took them."""
    asks = {ask.id: ask for ask in question.asks}
    found = {decision.ask: decision for decision in result.decisions}
    return [(asks[name], found[name]) for name in result.order or list(asks) if found[name].outcome == "admit"]


def _parents(configured: Configured) -> dict[str, str | None]:
    return {queue.name: queue.parent for queue in configured.configuration.queues}
