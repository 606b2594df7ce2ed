"""Rounds of Kueue: the heads of the ClusterQueues, again and again while that leads somewhere.

Source: Kueue ``pkg/cache/queue`` (Heads, RequeueWorkload, QueueAssociatedInadmissibleWorkloadsAfter) and
``pkg/scheduler/scheduler.go`` (requeueAndUpdate): a head that was nominated and could not go on stays, one that does
not fit steps aside in a BestEffortFIFO queue with all that are like it, and all of a cohort come back when something in
it changes. Where time alone lets an ask preempt or somebody be preempted (the knobs that KEP-83 deferred), it comes
back at that time.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec.structs import replace

from app.solver.apply import admitted_tasks
from app.solver.engines.kueue.compile.configuration import CompiledConfiguration
from app.solver.engines.kueue.compile.state import CompiledState
from app.solver.engines.kueue.decide.cycle import OTHERS, OUTRUN, OVERLAP
from app.solver.engines.kueue.decide.line import Line, shape_of
from app.solver.engines.kueue.decide.turns import ask_turns, victim_turns
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, PlannedEviction, Result
from app.solver.model.instant import at, micros
from app.solver.model.kueue import Preemption
from app.solver.model.request import Options
from app.solver.model.state import Ask, Node, State, Workload
from app.solver.question import Question
from app.solver.rounds import Holds, Rounds, Start, Turn, Unit, Wakes

_NO_OPTIONS = Options()
_NOMINATED = (OUTRUN, OVERLAP, OTHERS)


class KueueRounds(Rounds[CompiledConfiguration, CompiledState]):
    """See the module. Trees are told apart by their root's node. ``_wakes``: when time matters, by job that waits or
    runs; ``_running``: queue, priority and start of what runs where priorities fall with time; ``_known``: whether that
    is all; ``_own``: classes of asks that are like no other, ``_came``: how many there were."""

    unit: ClassVar[Unit] = "job"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration) -> None:
        del configuration  # a round asks nothing of it that is not compiled
        self._configuration = configured
        self._lines: dict[str, Line] = {}
        self._waiting: dict[str, Ask] = {}
        self._aside: dict[int, dict[str, None]] = {}
        self._heads: dict[str, Ask] = {}
        self._due = False
        self._wakes = Wakes()
        self._own: dict[str, bytes] = {}
        self._came = 0
        self._running: dict[str, tuple[str, int, int]] = {}
        self._known = False

    def arrive(self, ask: Ask) -> None:
        self._waiting[ask.id] = ask
        line = self._lines.get(ask.queue)
        if line is None:
            line = self._lines[ask.queue] = Line(self._waiting)
        shape = shape_of(ask) if self._has_likes(ask.queue) else self._alone(ask)
        line.arrive(ask, shape)
        self._find_head(ask.queue)

    def leave(self, job: str) -> None:
        found = self._waiting.pop(job, None)
        self._own.pop(job, None)
        self._running.pop(job, None)
        self._wakes.set(job, None)
        if found is not None and self._heads.get(found.queue) is found:
            self._find_head(found.queue)

    def freed(self, queue: str) -> None:
        root = self._root(queue)
        for name in self._aside.pop(root, ()):
            self._lines[name].come_back()
            self._find_head(name)
        if not self._due:
            self._due = any(self._root(name) == root for name in self._heads)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        del configuration, nodes
        self._configuration, self._known = configured, False
        self._lines, self._aside, self._heads = {}, {}, {}
        for ask in list(self._waiting.values()):
            self.arrive(ask)
        self._due = bool(self._heads)

    def due(self, now: int) -> bool:
        for job in self._wakes.passed(now):
            self._time_passed(job, now)
        return self._due and bool(self._heads)

    def wakes_at(self) -> int | None:
        return self._wakes.first() if self._waiting else None

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """Nothing is carried over; what runs that no round started is taken note of."""
        del loaded
        if not self._known:
            self._known = True
            self._running.clear()
            if self._configuration.penalises:
                for workload in state.workloads:
                    if workload.started_at is not None and not workload.evicted:
                        self._runs(
                            workload.id, workload.queue, workload.priority or 0, micros(workload.started_at), now
                        )
        return None

    def question(self, now: int, holds: Holds) -> Question:
        del holds
        return Question(now, sorted(self._heads.values(), key=_id), "cycle", _NO_OPTIONS)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        self._due = False
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        turn.more = bool(turn.evicted)
        when, asks = at(question.now), {ask.id: ask for ask in question.asks}
        decisions = {decision.ask: decision for decision in result.decisions}
        for name in result.order or ():
            ask, decision = asks[name], decisions[name]
            if decision.outcome == "admit":
                turn.started.append(Start(name, admitted_tasks(ask, decision, when)))
                self.leave(name)
                self._runs(name, ask.queue, ask.priority or 0, question.now, question.now)
                turn.more = True
                continue
            self._wakes.set(name, ask_turns(self._preemption(ask.queue), ask, question.now))
            if _inadmissible(decision) and not self._strict(ask.queue):
                self._step_aside(ask)
                turn.more = True
        self._due = turn.more
        return turn

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        del task
        self._running.pop(workload.id, None)
        self._wakes.set(workload.id, None)
        return replace(workload, evicted=True)

    def guarantees(self) -> dict[str, dict[str, int]]:
        """Nominal quota over all flavors; a cohort's includes that of everything below it."""
        tree, quotas = self._configuration.tree, self._configuration.quotas
        found: list[dict[str, int]] = [{} for _ in tree.names]
        for node in reversed(tree.top_down):
            for fr, cell in quotas.cells[node].items():
                resource = quotas.frs[fr][1]
                found[node][resource] = found[node].get(resource, 0) + quotas.nominal[cell]
            if tree.parent[node] >= 0:
                above = found[tree.parent[node]]
                for resource, amount in found[node].items():
                    above[resource] = above.get(resource, 0) + amount
        return dict(zip(tree.names, found, strict=True))

    def capacity(self, nodes: Sequence[Node]) -> dict[str, int]:
        """Nominal quota of all trees."""
        del nodes
        total: dict[str, int] = {}
        guarantees, tree = self.guarantees(), self._configuration.tree
        for node, name in enumerate(tree.names):
            if tree.parent[node] < 0:
                for resource, amount in guarantees[name].items():
                    total[resource] = total.get(resource, 0) + amount
        return total

    def _runs(self, job: str, queue: str, priority: int, since: int, now: int) -> None:
        """It runs; where priorities fall with time it may be somebody's victim at some later time."""
        penalty = self._preemption(queue).long_runner_penalty
        if penalty is not None:
            self._running[job] = queue, priority, since
            self._wakes.set(job, victim_turns(penalty, priority, since, now))

    def _time_passed(self, job: str, now: int) -> None:
        """An ask may do what it could not do before, or something that runs counts for less."""
        running = self._running.get(job)
        if running is not None:
            self.freed(running[0])
            self._runs(job, *running, now)
            return
        ask = self._waiting[job]
        self._lines[ask.queue].come_back(self._own[job])
        self._find_head(ask.queue)
        self._due = self._due or self._heads.get(ask.queue) is ask

    def _preemption(self, queue: str) -> Preemption:
        return self._configuration.policy[self._configuration.tree.index[queue]].preemption

    def _step_aside(self, ask: Ask) -> None:
        self._lines[ask.queue].step_aside()
        self._aside.setdefault(self._root(ask.queue), {})[ask.queue] = None
        self._find_head(ask.queue)

    def _find_head(self, queue: str) -> None:
        head = self._lines[queue].head()
        if head is None:
            self._heads.pop(queue, None)
        elif self._heads.get(queue) is not head:
            self._heads[queue] = head
            self._due = True

    def _has_likes(self, queue: str) -> bool:
        """Whether asks go the way of those they are like: not in a StrictFIFO queue, nor where it matters how long each
        has waited (the knobs that KEP-83 deferred)."""
        block = self._preemption(queue)
        waits = block.trigger_after_workload_waiting_seconds is not None or block.waiting_boost is not None
        return not waits and not self._strict(queue)

    def _alone(self, ask: Ask) -> bytes:
        """The class of an ask that is like no other, nor like itself when it came before."""
        self._came += 1
        shape = self._own[ask.id] = b"%d" % self._came
        return shape

    def _strict(self, queue: str) -> bool:
        return self._configuration.policy[self._configuration.tree.index[queue]].strict_fifo

    def _root(self, queue: str) -> int:
        return self._configuration.root[self._configuration.tree.index[queue]]


def _id(ask: Ask) -> str:
    return ask.id


def _inadmissible(decision: Decision) -> bool:
    """Whether nomination itself found no way; a head that other heads outran, or that preempts, stays head."""
    if decision.outcome == "infeasible":
        return True
    return decision.outcome == "wait" and not decision.conditions[0].message.startswith(_NOMINATED)
