"""KAI Scheduler as an engine: decisions by one cycle over all asks or for every ask alone, rounds, and the wiring."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import ClassVar

from msgspec.structs import replace

from app.solver import kubernetes
from app.solver.engine import Engine
from app.solver.engines.kai import FACTS
from app.solver.engines.kai.actions import Cycle, allocate, begin, consolidation, preempt, reclaim, stale_gang_eviction
from app.solver.engines.kai.answer import Draw, answer, shares
from app.solver.engines.kai.chance import DRAWS, MOST_STEPS, Chance
from app.solver.engines.kai.configuration import (
    CompiledConfiguration,
    changed,
    compile_configuration,
    undone,
    unprotected_from,
)
from app.solver.engines.kai.explain import Recorder
from app.solver.engines.kai.findings import effective_settings, findings
from app.solver.engines.kai.jobs import job_problems, task_problems
from app.solver.engines.kai.preemptibility import judge, preemptibility
from app.solver.engines.kai.rule_sets import RULES
from app.solver.engines.kai.solver import Budget, Trail
from app.solver.engines.kai.state import CompiledState, baseline, compile_state
from app.solver.engines.kai.update import update
from app.solver.model.base import at, micros, parse_duration
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, Plan, PlannedEviction, Result, each_alone
from app.solver.model.kai import Action
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, State, Workload
from app.solver.question import Question, safe_point
from app.solver.rounds import Holds, PlacedRounds, Turn, Unit, Wakes


class KaiRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. Victims are ``releasing`` until their grace is over; room that is being released is room.

    ``_since``: queue and start of what runs, by job; ``_known``: whether that is all that runs; ``_evicted``: when a
    job was last evicted; ``_delays``: when those that wait may make somebody go."""

    unit: ClassVar[Unit] = "gang"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._since: dict[str, tuple[str, int]] = {}
        self._wakes = Wakes()
        self._known = False
        self._evicted: dict[str, int] = {}
        self._delays = Wakes()

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        delays = self.configured.policy.release.delays_preemption
        if delays and ask.preemption_delay is not None and ask.created_at is not None:
            since = max(micros(ask.created_at), self._evicted.get(ask.id, 0))
            self._delays.set(ask.id, since + parse_duration(ask.preemption_delay))

    def leave(self, job: str) -> None:
        super().leave(job)
        self._gone(job)
        self._delays.set(job, None)
        self._evicted.pop(job, None)

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        evicted = self._evicted.get(ask.id) if ask.preemption_delay is not None else None
        return super().asked(ask if evicted is None else replace(ask, last_evicted_at=at(evicted)), holds)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        self._known = False

    def wakes_at(self) -> int | None:
        first = [when for when in (self._wakes.first(), self._delays.first()) if when is not None]
        return min(first, default=None) if self.waiting else None

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """Nothing is carried over; what runs that no round started is taken note of."""
        if not self._known:
            self._known = True
            self._since.clear()
            self._wakes.clear()
            for workload in state.workloads:
                running = any(task.state == "running" for task in workload.tasks)
                if workload.started_at is not None and running:
                    self._runs(workload.id, workload.queue, micros(workload.started_at), now)
        return None

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        queues = {ask.id: ask.queue for ask in question.asks}
        turn = super().answered(question, result, leaving)
        for start in turn.started:
            if start.job not in self._since:
                self._runs(start.job, queues[start.job], question.now, question.now)
        for job in self._wakes.passed(question.now):
            self._runs(job, *self._since[job], question.now)
        self._delays.passed(question.now)
        for start in turn.started:
            if start.job not in self.waiting:
                self._delays.set(start.job, None)
        self._evicted |= dict.fromkeys((eviction.workload for eviction in turn.evicted), question.now)
        return turn

    def carried(self) -> tuple[Hashable, Hashable]:
        """Whose delay is not over; when that is moves on with time."""
        return (), tuple(job for job in sorted(self.waiting) if self._delays.has(job))

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        after = super().evicting(workload, task)
        if not any(one.state == "running" for one in after.tasks):
            self._gone(workload.id)
        return after

    def _runs(self, job: str, queue: str, since: int, now: int) -> None:
        """It runs; it may be unprotected at some later time."""
        self._since[job] = queue, since
        configured = self.configured
        lengths = configured.min_runtimes.lengths(configured.tree.index[queue])
        ends = (unprotected_from(since, length, configured.policy.rules) for length in lengths)
        self._wakes.set(job, min((at for at in ends if at > now), default=None))

    def _gone(self, job: str) -> None:
        self._since.pop(job, None)
        self._wakes.set(job, None)


_ACTIONS: dict[Action, Callable[[Cycle], None]] = {
    "allocate": allocate, "consolidation": consolidation, "reclaim": reclaim, "preempt": preempt,
    "stalegangeviction": stale_gang_eviction,
}  # fmt: skip


def plan(state: CompiledState, question: Question) -> Result:
    """Decide. Raises InvalidInput for pods that KAI can't read or Kubernetes would refuse, and for running ones without
    a node."""
    _check(state, question.asks)
    if question.mode == "cycle":
        return _cycle(state, question)
    return _each_alone(state, question)


def _cycle(state: CompiledState, question: Question) -> Result:
    return answer(*draws(state, question.asks, question, Budget()), question)


def _each_alone(state: CompiledState, question: Question) -> Result:
    decided: list[tuple[Decision, Plan]] = []
    budget = Budget()
    for ask in question.asks:
        safe_point()
        alone = answer(*draws(state, [ask], question, budget), question)
        decided.append((alone.decisions[0], alone.plan))
    return each_alone(decided)


def draws(
    state: CompiledState, asks: Sequence[Ask], question: Question, budget: Budget
) -> tuple[list[Draw], int | None]:
    """What the cycle can come to, the likeliest first, and how many draws tell so: None where nothing hangs on the
    order of a map, 0 where the question wants no draws or they take too long, and the likeliest orders decide."""
    chance = Chance()
    first = run(state, asks, question, budget, chance)
    if not chance.matters:
        return [Draw(first, 1)], None
    found: dict[Hashable, Draw] = {}
    steps = Budget(MOST_STEPS)
    number = DRAWS if question.draws else 0
    for seed in range(number):
        cycle = run(state, asks, question, steps, Chance(seed))
        if steps.spent:
            number = 0
            break
        draw = found.setdefault(cycle.outcome(), Draw(cycle, 0))
        draw.times += 1
    drawn = sorted(found.values(), key=lambda draw: -draw.times)
    return (drawn, number) if number else ([Draw(first, 1)], 0)


def run(state: CompiledState, asks: Sequence[Ask], question: Question, budget: Budget, chance: Chance) -> Cycle:
    """One cycle. Where a bookkeeping habit of KAI's would end in an overfull node, the cycle runs without it."""
    cycle = _run(state, asks, question, budget, chance, strict=False)
    if cycle.overlay.overfilled():
        cycle = _run(state, asks, question, budget, chance, strict=True)
    return cycle


def _run(
    state: CompiledState, asks: Sequence[Ask], question: Question, budget: Budget, chance: Chance, *, strict: bool
) -> Cycle:
    cycle = begin(state, asks, question.now, budget, _trail(question), chance, strict=strict)
    for action in state.configuration.policy.actions:
        _ACTIONS[action](cycle)
    return cycle


def _trail(question: Question) -> Trail:
    return Trail() if question.explain == "none" else Recorder()


def _check(state: CompiledState, asks: Sequence[Ask]) -> None:
    problems: list[Problem] = []
    for a, ask in enumerate(asks):
        problems += job_problems(ask, ("asks", a))
        problems += _strangers(state, ask, ("asks", a))
        problems += task_problems(ask.tasks, ("asks", a))
        for t, task in enumerate(ask.tasks):
            problems += kubernetes.problems(task, ("asks", a, "tasks", t))
    homeless = baseline(state).homeless
    place = {w.id: at for at, w in enumerate(state.workloads)} if homeless else {}
    for j, i in homeless:
        at = pointer("state", "workloads", place[state.jobs.id[j]], "tasks", i, "node")
        problems.append(Problem(pointer=at, detail="a running pod is on a node: say which"))
    if problems:
        raise InvalidInput(problems)


def _strangers(state: CompiledState, ask: Ask, at: tuple[str | int, ...]) -> Iterator[Problem]:
    """Pods of an ask that are in none of the sub groups of the workload that it grows."""
    j = state.jobs.by_id.get(ask.workload) if ask.workload is not None else None
    gang = None if j is None else state.jobs.gang[j]
    if gang is None:
        return
    names = {one.name for one in gang.pod_sets}
    for t, task in enumerate(ask.tasks):
        if task.sub_group not in names:
            detail = (
                "its workload has sub groups: say which" if task.sub_group is None else "its workload has none of it"
            )
            yield Problem(pointer=pointer(*at, "tasks", t, "sub_group"), detail=detail)


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KaiRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    changed=changed,
    undone=undone,
    effective_settings=effective_settings,
    findings=findings,
)
"""Queues with deserved quotas, fair shares, minimum runtimes; actions on nodes with whole GPUs."""
