"""Rounds of Kueue: the heads of the ClusterQueues, again and again while that leads somewhere.

Source: Kueue ``pkg/scheduler/scheduler.go`` (requeueAndUpdate); what waits is the queue manager's. Where time alone
lets an ask preempt or somebody be preempted (the knobs that KEP-83 deferred), it comes back at that time.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from app.solver.apply import admitted_tasks
from app.solver.engines.kueue.admission_sharing import Consumed, assigned, local_queue, requested
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import OTHERS, OUTRUN, OVERLAP
from app.solver.engines.kueue.failed_nodes import marked
from app.solver.engines.kueue.knobs import ask_turns, victim_turns
from app.solver.engines.kueue.queue_manager import QueueManager
from app.solver.engines.kueue.state import CompiledState
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, PlannedEviction, Result
from app.solver.model.duration import parse as span
from app.solver.model.instant import at, micros
from app.solver.model.kueue import Preemption, TopologyAssignment
from app.solver.model.kueue import RunOptions as KueueRun
from app.solver.model.kueue import Workload as WorkloadBlock
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, QueueState, State, Task, Workload
from app.solver.question import Question
from app.solver.rounds import Holds, Rounds, Spare, Start, Turn, Unit, Wakes

_NO_OPTIONS = Options()
_NOMINATED = (OUTRUN, OVERLAP, OTHERS)


class KueueRounds(Rounds[CompiledConfiguration, CompiledState]):
    """See the module. ``_wakes``: when time matters, by job that waits or runs; ``_running``: queue, priority and start
    of what runs where priorities fall with time; ``_known``: whether that is all; ``_drains``: whether queues are
    drained that no round has seen yet; ``_moved``: whether nodes are others than at the last round; ``_workloads``:
    what ran then."""

    unit: ClassVar[Unit] = "job"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        del configuration  # a round asks nothing of it that is not compiled
        self._configuration = configured
        self._queues = QueueManager(configured, span((options.kueue or KueueRun()).requeue_batch_period))
        self._wakes = Wakes()
        self._running: dict[str, tuple[str, int, int]] = {}
        self._known = False
        self._drains = bool(configured.drains)
        self._moved = False
        self._workloads: Sequence[Workload] = ()

    def arrive(self, ask: Ask) -> None:
        self._queues.arrive(ask)
        if ask.kueue is not None and ask.kueue.requeue_at is not None:
            self._wakes.set(ask.id, micros(ask.kueue.requeue_at))

    def leave(self, job: str) -> None:
        self._queues.leave(job)
        self._running.pop(job, None)
        self._wakes.set(job, None)

    def released(self, job: str, now: int) -> None:
        if self._queues.ledger is not None:
            self._queues.ledger.released(job, now)

    def freed(self, queue: str) -> None:
        self._queues.freed(queue)

    def stopping(self, queue: str) -> None:
        """An eviction brings nobody back: what is released does."""
        self._queues.touched(queue)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        del configuration, nodes
        self._moved = bool(configured.topologies)
        self._configuration, self._known = configured, False
        self._drains = bool(configured.drains)
        self._queues.changed(configured)

    def due(self, now: int) -> bool:
        self._queues.time_passes(now)
        for job in self._wakes.passed(now):
            self._time_passed(job, now)
        self._queues.sample(now)
        return self._drains or self._moved or (self._queues.due and bool(self._queues.heads))

    def wakes_at(self) -> int | None:
        changes = list(self._queues.changes())
        if not changes:
            return None
        return min((at for at in (self._wakes.first(), *changes) if at is not None), default=None)

    def carried(self) -> tuple[Hashable, Hashable]:
        return self._queues.carried()

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """What runs that no round started is taken note of; what LocalQueues have consumed is carried over."""
        if not self._known:
            self._known = True
            self._running.clear()
            if self._configuration.penalises:
                for workload in state.workloads:
                    if workload.started_at is not None and not workload.evicted:
                        self._runs(
                            workload.id, workload.queue, workload.priority or 0, micros(workload.started_at), now
                        )
        lost, ledger = self._on_lost_nodes(loaded, state), self._queues.ledger
        if ledger is None:
            return Turn(workloads=lost) if lost else None
        if not ledger.begun:
            ledger.begin(loaded, now)
        self._queues.sample(now)
        news = ledger.news(loaded.local_queues)
        queues = {name: QueueState(kueue=of) for name, of in news.items()}
        return Turn(queues=queues, workloads=lost) if queues or lost else None

    def _on_lost_nodes(self, loaded: CompiledState, state: State) -> list[Workload]:
        """What runs on hosts that went, as Kueue marks it."""
        self._workloads = state.workloads
        return marked(state, loaded.rooms) if self._moved and loaded.rooms is not None else []

    def spare(self, loaded: CompiledState) -> Spare:
        """Of what a flavor has quota for."""
        if loaded.rooms is None:
            return {}
        found: Spare = {}
        for flavor in loaded.rooms.forests:
            resources = sorted({resource for name, resource in self._configuration.quotas.frs if name == flavor})
            found |= {(flavor, level): of for level, of in loaded.rooms.spare(flavor, resources).items()}
        return found

    def question(self, now: int, holds: Holds) -> Question:
        del holds
        return Question(now, self._queues.asks(), "cycle", _NO_OPTIONS)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        self._drains = self._moved = False
        self._queues.cycle_ends()
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        turn.more = bool(turn.evicted)
        when, asks = at(question.now), {ask.id: ask for ask in question.asks}
        decisions = {decision.ask: decision for decision in result.decisions}
        if replaced := (result.notes or {}).get("topology_assignments"):
            turn.workloads = [_elsewhere(of, replaced[of.id]) for of in self._workloads if of.id in replaced]
        for name in result.order or ():
            ask, decision = asks[name], decisions[name]
            if decision.outcome == "admit":
                tasks = admitted_tasks(ask, decision, when)
                turn.started.append(Start(name, tasks))
                self._charge(ask, tasks, question.now)
                self.leave(name)
                self._queues.touched(ask.queue)
                self._runs(name, ask.queue, ask.priority or 0, question.now, question.now)
                turn.more = True
                continue
            self._wakes.set(name, ask_turns(self._preemption(ask.queue), ask, question.now))
            scan = decision.kueue.flavor_scan if decision.kueue is not None else None
            turn.more |= self._queues.requeued(
                ask, scan, pending=_pending(decision), inadmissible=_inadmissible(decision)
            )
        self._queues.due = turn.more
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
        if running is None:
            self._queues.wakes(job)
        else:
            self.freed(running[0])
            self._runs(job, *running, now)

    def _charge(self, ask: Ask, tasks: Sequence[Task], now: int) -> None:
        """It was admitted: its LocalQueue is charged for it."""
        if self._queues.ledger is not None and self._queues.usage_based(ask.queue):
            self._queues.ledger.admitted(ask.id, local_queue(ask), assigned(tasks), self._counted(ask), now)

    def _counted(self, ask: Ask) -> Consumed:
        """What it asks for, without what is not counted."""
        found = requested(ask.tasks)
        if not self._configuration.ignores_undeclared:
            return found
        covered = self._configuration.covering[self._configuration.tree.index[ask.queue]]
        return {resource: amount for resource, amount in found.items() if resource in covered}

    def _preemption(self, queue: str) -> Preemption:
        return self._configuration.policy[self._configuration.tree.index[queue]].preemption


def _elsewhere(workload: Workload, assignments: Mapping[str, TopologyAssignment]) -> Workload:
    """With the hosts that replace failed ones."""
    tasks = [
        replace(task, topology_assignment=assignments.get(task.name, task.topology_assignment))
        for task in workload.tasks
    ]
    return replace(workload, tasks=tasks, kueue=replace(workload.kueue or WorkloadBlock(), unhealthy_nodes=[]))


def _pending(decision: Decision) -> bool:
    """Whether it goes on once somebody has stopped, for it or for another."""
    return decision.outcome == "preempt" or decision.conditions[0].message.startswith(OTHERS)


def _inadmissible(decision: Decision) -> bool:
    """Whether nomination itself found no way; a head that other heads outran, or that preempts, stays head."""
    if decision.outcome == "infeasible":
        return True
    return decision.outcome == "wait" and not decision.conditions[0].message.startswith(_NOMINATED)
