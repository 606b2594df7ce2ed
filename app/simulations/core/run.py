"""One run: a trace of jobs through one engine, round by round, on a virtual clock.

What happens at one instant happens in this order: completions, releases, cancellations, changes, arrivals; equal ones
by job. Then, where something has changed that could let a waiting job act, a round, no sooner than ``round_every``
after the last. A round is a decision request in mode ``cycle`` to the same solver that answers requests; its answer is
carried out, and the next one is asked of what came of it.
"""

from collections.abc import Callable, Iterable

from app.answering.comparison import Difference, parted
from app.answering.sources import Configurations
from app.simulations.core.scenario import Scenario, scenario_of
from app.simulations.core.sink import LATEST, Asked, Sink, Stopped, Watch, time_of
from app.simulations.core.world import World
from app.simulations.schemas import Job, Parted, SimulationRequest, Summary
from app.solver import solve
from app.solver.solve import Configured


def simulate(
    request: SimulationRequest,
    configurations: Configurations,
    sink: Sink,
    stop: Callable[[], bool],
    jobs: Iterable[Job] | None = None,
    total: int | None = None,
    watch: Watch | None = None,
) -> Summary:
    """Run a request without variants. ``jobs``: those of its trace, in order of submission, where the trace is no list;
    ``total``: how many. ``stop`` is asked before every round and every instant, ``watch`` shown every round.

    Raises Stopped, InvalidInput (nothing has happened then), and what ``configurations`` raises."""
    return run(scenario_of(request, configurations, jobs, total), sink, stop, watch)


def run(scenario: Scenario, sink: Sink, stop: Callable[[], bool], watch: Watch | None = None) -> Summary:
    """See ``simulate``. ``watch`` is shown every round."""
    clock = Clock(World(scenario, sink, watch), stop)
    clock.run()
    return clock.world.summary(clock.end)


_MOST = 20


class Parting:
    """Where the course of a variant leaves the first one's: in the first round that they decide otherwise. Up to there
    the situation is the same. Is shown every round of the first variant before all others."""

    def __init__(self) -> None:
        self.parted: dict[str, Parted] = {}
        self._first = ""
        self._rounds: list[int] = []
        self._configured: list[tuple[int, Configured]] = []

    def first(self, name: str) -> Watch:
        """Who watches the first variant."""

        def watch(asked: Asked) -> None:
            self._rounds.append(_outcome(asked))
            if not self._configured or self._configured[-1][1] is not asked.loaded.configured:
                self._configured.append((asked.n, asked.loaded.configured))

        self._first = name
        return watch

    def other(self, name: str) -> Watch:
        """Who watches another."""

        def watch(asked: Asked) -> None:
            if name in self.parted or asked.n > len(self._rounds) or self._rounds[asked.n - 1] == _outcome(asked):
                return
            configured = next(current for n, current in reversed(self._configured) if n <= asked.n)
            differences = list[Difference]()
            if configured.engine is asked.loaded.configured.engine:
                before = solve.load(configured, asked.loaded.state), asked.question
                differences = parted((self._first, before), (name, (asked.loaded, asked.question)))
            when = time_of(asked.question.now)
            self.parted[name] = Parted(round=asked.n, at=when, differences=differences[:_MOST])

        return watch


def _outcome(asked: Asked) -> int:
    """Equal for rounds of one process that decide the same at the same time."""
    plan = asked.result.plan
    placed = frozenset(
        (placement.ask, placement.workload, placement.task, placement.node, placement.pipelined)
        for placement in plan.placements
    )
    evicted = frozenset((eviction.workload, eviction.task) for eviction in plan.evictions)
    outcomes = tuple((decision.ask, decision.outcome) for decision in asked.result.decisions)
    return hash((asked.question.now, placed, evicted, outcomes))


class Clock:
    """Moves a world from instant to instant."""

    def __init__(self, world: World, stop: Callable[[], bool]) -> None:
        self.world = world
        self.now = world.scenario.start
        self._stop = stop
        self._last_round: int | None = None

    @property
    def end(self) -> int:
        """When the run ended: at ``until`` where it cut something short, else when the last thing happened."""
        until = self.world.scenario.until
        return until if until is not None and self.world.unfinished() else self.now

    def run(self) -> None:
        """Until nothing happens any more, or past ``until``. Raises Stopped."""
        until = LATEST if self.world.scenario.until is None else min(LATEST, self.world.scenario.until)
        while (instant := self._next(until)) is not None and instant <= until:
            self._heed()
            self.now = instant
            self.world.happen(instant)
            if self.world.due(instant) and instant >= self._soonest():
                self._rounds(instant)
            self.world.tell(instant)

    def _rounds(self, now: int) -> None:
        more = True
        while more:
            self._heed()
            more = self.world.round(now)
            self.world.happen(now)
        self._last_round = now

    def _next(self, until: int) -> int | None:
        """The next instant. Rounds up to ``until`` that time alone brings about, and that lead to nothing, are over by
        then: they are played one after the other, for nothing else happens between them."""
        event = self.world.next_event()
        if self.world.due(self.now):
            moment = max(self.now, self._soonest())
            return moment if event is None else min(event, moment)
        while (wakes := self.world.wakes_at()) is not None and wakes > self.now:
            moment = max(wakes, self._soonest())
            if event is not None and event <= moment:
                break
            self._heed()
            if moment > until or not self.world.in_vain(moment):
                return moment
            self.now = self._last_round = moment
            self.world.tell(moment)
        return event

    def _soonest(self) -> int:
        if self._last_round is None:
            return self.world.scenario.start
        return self._last_round + self.world.scenario.round_every

    def _heed(self) -> None:
        if self._stop():
            raise Stopped
