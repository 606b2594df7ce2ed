"""One run: a trace of jobs through one engine, round by round, on a virtual clock.

What happens at one instant happens in this order: completions, releases, cancellations, changes, arrivals; equal ones
by job. Then, where something has changed that could let a waiting job act, a round, no sooner than ``round_every``
after the last. A round is a decision request in mode ``cycle`` to the same solver that answers requests; its answer is
carried out, and the next one is asked of what came of it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from app.answering.comparison import Difference, parted
from app.answering.sources import Configurations
from app.simulations.core.scenario import Scenario, scenario_of
from app.simulations.core.sink import LATEST, Carried, Course, Sink, Stopped, Watch, time_of
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
    course: Course | None = None,
) -> Summary:
    """Run a request without variants. ``jobs``: those of its trace, in order of submission, where the trace is no list;
    ``total``: how many. ``stop`` is asked before every round and every instant, ``course`` shown what every round comes
    to.

    Raises Stopped, InvalidInput (nothing has happened then), and what ``configurations`` raises."""
    return run(scenario_of(request, configurations, jobs, total), sink, stop, course=course)


def run(
    scenario: Scenario, sink: Sink, stop: Callable[[], bool], watch: Watch | None = None, course: Course | None = None
) -> Summary:
    """See ``simulate``. ``watch`` is shown every round with its whole answer: each is asked for it."""
    clock = Clock(World(scenario, sink, watch, course), stop)
    clock.run()
    return clock.world.summary(clock.end)


_MOST = 20


class Parting:
    """Where the course of a variant leaves the first one's: in the first round that they decide otherwise. Up to there
    the situation is the same. Follows every round of the first variant before all others."""

    def __init__(self) -> None:
        self.parted: dict[str, Parted] = {}
        self._first = ""
        self._rounds: list[int] = []
        self._configured: list[tuple[int, Configured]] = []

    def first(self, name: str) -> Course:
        """Who follows the first variant."""

        def follow(carried: Carried) -> None:
            self._rounds.append(_outcome(carried))
            if not self._configured or self._configured[-1][1] is not carried.configured:
                self._configured.append((carried.n, carried.configured))

        self._first = name
        return follow

    def other(self, name: str) -> Course:
        """Who follows another."""

        def follow(carried: Carried) -> None:
            n, question = carried.n, carried.question
            if name in self.parted or n > len(self._rounds) or self._rounds[n - 1] == _outcome(carried):
                return
            configured = next(current for since, current in reversed(self._configured) if since <= n)
            differences = list[Difference]()
            if configured.engine is carried.configured.engine:
                whole = replace(question, brief=False, ordered=True)
                before, after = (solve.load(of, carried.state) for of in (configured, carried.configured))
                differences = parted((self._first, (before, whole)), (name, (after, whole)))
            self.parted[name] = Parted(round=n, at=time_of(question.now), differences=differences[:_MOST])

        return follow


def _outcome(carried: Carried) -> int:
    """Equal for rounds of one process that come to the same at the same time."""
    turn = carried.turn
    started = frozenset(
        (start.job, task.name, task.node, tuple(sorted(task.flavors.items())) if task.flavors else ())
        for start in turn.started
        for task in start.tasks
    )
    evicted = frozenset((eviction.workload, eviction.task) for eviction in turn.evicted)
    moved = frozenset((move.job, move.task, move.node) for move in turn.moved)
    reserved = None if turn.reservations is None else frozenset((of.node, of.ask.id) for of in turn.reservations)
    promised = frozenset((of.ask, of.task, of.node) for of in carried.promised)
    return hash((carried.question.now, started, evicted, moved, reserved, promised))


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
