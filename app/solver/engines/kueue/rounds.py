"""Rounds of Kueue: the heads of the ClusterQueues, again and again while that leads somewhere.

Source: Kueue ``pkg/cache/queue`` (Heads, RequeueWorkload, QueueAssociatedInadmissibleWorkloadsAfter) and
``pkg/scheduler/scheduler.go`` (requeueAndUpdate): a head that was nominated and could not go on stays, one that does
not fit steps aside in a BestEffortFIFO queue with all that are like it, and all of a cohort come back a second after
something in it finished or was released. Whose preemption is pending goes first in its queue. A scan of flavors that
stopped before the last one goes on from there in the next cycle, and its ask does not step aside. Where time alone lets
an ask preempt or somebody be preempted (the knobs that KEP-83 deferred), it comes back at that time.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from app.solver.apply import admitted_tasks
from app.solver.engines.kueue.admission_sharing import (
    Consumed,
    Ledger,
    Rates,
    assigned,
    local_queue,
    rates_of,
    requested,
)
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import OTHERS, OUTRUN, OVERLAP
from app.solver.engines.kueue.failed_nodes import marked
from app.solver.engines.kueue.knobs import ask_turns, victim_turns
from app.solver.engines.kueue.line import Line, SharedLine, shape_of
from app.solver.engines.kueue.state import CompiledState
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, PlannedEviction, Result
from app.solver.model.duration import parse as span
from app.solver.model.instant import at, micros
from app.solver.model.kueue import Ask as AskBlock
from app.solver.model.kueue import FlavorScan, Preemption, TopologyAssignment
from app.solver.model.kueue import RunOptions as KueueRun
from app.solver.model.kueue import Workload as WorkloadBlock
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, QueueState, State, Task, Workload
from app.solver.question import Question
from app.solver.rounds import Holds, Rounds, Start, Turn, Unit, Wakes

_NO_OPTIONS = Options()
_NOMINATED = (OUTRUN, OVERLAP, OTHERS)


class _Scanned(NamedTuple):
    """Where the scan of an ask's flavors stopped, in which cycle, and how often its queue had changed by then."""

    flavors: dict[str, dict[str, int]]
    cycle: int
    generation: int


class KueueRounds(Rounds[CompiledConfiguration, CompiledState]):
    """See the module. Trees are told apart by their root's name. ``_wakes``: when time matters, by job that waits or
    runs; ``_running``: queue, priority and start of what runs where priorities fall with time; ``_known``: whether that
    is all; ``_drains``: whether queues are drained that no round has seen yet; ``_own``: classes of asks that are like
    no other, ``_came``: how many there were; ``_back``: asks that step back for a time after an eviction. ``_freed``:
    trees in which something finished or was released, until who is aside in them comes back at ``_returns``;
    ``_generation``: by queue, how often something came into it, left it, or its quota changed; ``_cycle``: how many
    there were. ``_ledger``: what LocalQueues have consumed, where queues go by it; ``_moved``: whether nodes are others
    than at the last round; ``_workloads``: what ran then."""

    unit: ClassVar[Unit] = "job"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        del configuration  # a round asks nothing of it that is not compiled
        self._period = span((options.kueue or KueueRun()).requeue_batch_period)
        self._configuration = configured
        self._lines: dict[str, Line] = {}
        self._waiting: dict[str, Ask] = {}
        self._aside: dict[str, dict[str, None]] = {}
        self._freed: dict[str, None] = {}
        self._returns: int | None = None
        self._scans: dict[str, _Scanned] = {}
        self._generation: Counter[str] = Counter()
        self._cycle = 0
        self._heads: dict[str, Ask] = {}
        self._due = False
        self._wakes = Wakes()
        self._own: dict[str, bytes] = {}
        self._back: set[str] = set()
        self._came = 0
        self._running: dict[str, tuple[str, int, int]] = {}
        self._known = False
        self._drains = bool(configured.drains)
        self._moved = False
        self._workloads: Sequence[Workload] = ()
        rates = rates_of(configured)
        self._ledger = None if rates is None else Ledger(rates)

    def arrive(self, ask: Ask) -> None:
        block, of = ask.kueue, ask.queue
        line = self._lines.get(of)
        if line is None:
            line = self._lines[of] = self._new_line(of)
        if block is not None and (block.preemption_pending or block.flavor_scan is not None):
            ask = replace(ask, kueue=_without_carried(block))
            if block.preemption_pending and not self._strict(of):
                line.sticky = ask.id
            if (scan := block.flavor_scan) is not None:
                cycle, generation = self._cycle + 1 - scan.cycles, self._generation[of] - scan.changed
                self._scans[ask.id] = _Scanned(scan.flavors, cycle, generation)
        self._waiting[ask.id] = ask
        if block is not None and block.requeue_at is not None:
            self._wakes.set(ask.id, micros(block.requeue_at))
            self._back.add(ask.id)
        else:
            self._line_up(ask)

    def _line_up(self, ask: Ask) -> None:
        """It stands in its queue's line, unless something about itself forbids it."""
        if ask.kueue is None or ask.kueue.inadmissible is None:
            of = ask.queue
            self._lines[of].arrive(ask, shape_of(ask) if self._has_likes(of) else self._alone(ask))
            self._find_head(of)

    def leave(self, job: str) -> None:
        found = self._waiting.pop(job, None)
        self._own.pop(job, None)
        self._running.pop(job, None)
        self._wakes.set(job, None)
        self._scans.pop(job, None)
        self._back.discard(job)
        if found is not None:
            self._lines[found.queue].leave(job)
            if self._heads.get(found.queue) is found:
                self._find_head(found.queue)

    def released(self, job: str, now: int) -> None:
        if self._ledger is not None:
            self._ledger.released(job, now)

    def freed(self, queue: str) -> None:
        root = self._root(queue)
        self._generation[queue] += 1
        if self._period:
            self._freed[root] = None
        else:
            self._come_back(root)
        if not self._due:
            self._due = any(self._root(name) == root for name in self._heads)

    def stopping(self, queue: str) -> None:
        """An eviction brings nobody back: what is released does."""
        self._generation[queue] += 1

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        del configuration, nodes
        self._moved = bool(configured.topologies)
        changed = _changed(self._configuration, configured)
        if not changed and configured.topologies:
            changed = list(self._lines)  # nodes are others, on which pods are placed
        likes = {name: self._told_apart(name) for name in self._lines}
        self._configuration, self._known = configured, False
        self._share(rates_of(configured))
        self._drains = bool(configured.drains)
        aside = [name for names in self._aside.values() for name in names]
        self._aside = {}
        for name in aside:
            self._aside.setdefault(self._root(name), {})[name] = None
        for name in self._lines:
            if likes[name] != self._told_apart(name):
                self._line_up_again(name)
        trees = {self._root(name) for name in changed}
        self._freed |= dict.fromkeys(sorted(trees))
        for name in self._lines:
            self._generation[name] += self._root(name) in trees
        if self._freed and not self._period:
            self._all_come_back()
        for name in self._lines:
            self._find_head(name)
        self._due = bool(self._heads)

    def due(self, now: int) -> bool:
        if self._freed:
            self._returns = self._returns or now + self._period
            if self._returns <= now:
                self._all_come_back()
        for job in self._wakes.passed(now):
            self._time_passed(job, now)
        self._sample(now)
        return self._drains or self._moved or (self._due and bool(self._heads))

    def wakes_at(self) -> int | None:
        if not self._waiting:
            return None
        found = (self._wakes.first(), self._returns, *self._changes_of_order())
        return min((at for at in found if at is not None), default=None)

    def carried(self) -> tuple[Hashable, Hashable]:
        """Who is aside, who is sticky, and where scans of flavors stopped; whether those are older than a cycle, and
        whether their queues have changed since."""
        lines = [(name, line.mark, line.sticky) for name, line in self._lines.items() if line.mark or line.sticky]
        scans = sorted(self._scans.items())
        places = [
            (job, tuple((task, *sorted(of.items())) for task, of in sorted(scan.flavors.items())))
            for job, scan in scans
        ]
        ages = [
            (self._cycle > of.cycle, self._generation[self._waiting[job].queue] > of.generation) for job, of in scans
        ]
        consumed = [] if self._ledger is None else [(name, self._ledger.usage(name)) for name in self._local_queues()]
        return (frozenset(lines), tuple(places), tuple(sorted(self._freed)), tuple(consumed)), tuple(ages)

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
        lost = self._on_lost_nodes(loaded, state)
        if self._ledger is None:
            return Turn(workloads=lost) if lost else None
        if not self._ledger.begun:
            self._ledger.begin(loaded, now)
        self._sample(now)
        news = self._ledger.news(loaded.local_queues)
        queues = {name: QueueState(kueue=of) for name, of in news.items()}
        return Turn(queues=queues, workloads=lost) if queues or lost else None

    def _on_lost_nodes(self, loaded: CompiledState, state: State) -> list[Workload]:
        """What runs on hosts that went, as Kueue marks it."""
        self._workloads = state.workloads
        return marked(state, loaded.rooms) if self._moved and loaded.rooms is not None else []

    def question(self, now: int, holds: Holds) -> Question:
        del holds
        heads = [self._asked(ask) for ask in sorted(self._heads.values(), key=_id)]
        return Question(now, heads, "cycle", _NO_OPTIONS)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        self._due = self._drains = self._moved = False
        self._cycle += 1
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
                self._generation[ask.queue] += 1
                self._runs(name, ask.queue, ask.priority or 0, question.now, question.now)
                turn.more = True
                continue
            self._wakes.set(name, ask_turns(self._preemption(ask.queue), ask, question.now))
            scan = decision.kueue.flavor_scan if decision.kueue is not None else None
            turn.more |= self._scanned(name, ask.queue, scan)
            strict = self._strict(ask.queue)
            if not strict and _pending(decision):
                self._lines[ask.queue].sticky = name
            if _inadmissible(decision) and not strict and scan is None:
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
        if job in self._back:
            self._back.discard(job)
            self._line_up(ask)
            return
        self._lines[ask.queue].come_back(self._own[job])
        self._find_head(ask.queue)
        self._due = self._due or self._heads.get(ask.queue) is ask

    def _share(self, rates: Rates | None) -> None:
        """What LocalQueues have consumed counts so from now on; None: not at all."""
        if rates is None:
            self._ledger = None
        elif self._ledger is None:
            self._ledger = Ledger(rates)
        else:
            self._ledger.rates = rates

    def _charge(self, ask: Ask, tasks: Sequence[Task], now: int) -> None:
        """It was admitted: its LocalQueue is charged for it."""
        if self._ledger is not None and self._usage_based(ask.queue):
            self._ledger.admitted(ask.id, local_queue(ask), assigned(tasks), self._counted(ask), now)

    def _counted(self, ask: Ask) -> Consumed:
        """What it asks for, without what is not counted."""
        found = requested(ask.tasks)
        if not self._configuration.ignores_undeclared:
            return found
        covered = self._configuration.covering[self._configuration.tree.index[ask.queue]]
        return {resource: amount for resource, amount in found.items() if resource in covered}

    def _sample(self, now: int) -> None:
        """What LocalQueues have consumed is sampled: others may go first."""
        if self._ledger is not None:
            self._ledger.sample(now)
            for name, line in self._lines.items():
                if isinstance(line, SharedLine):
                    self._find_head(name)

    def _changes_of_order(self) -> Iterator[int | None]:
        """When a sample could put somebody else at the head of a queue."""
        for name, line in self._lines.items():
            if self._ledger is not None and isinstance(line, SharedLine) and name in self._heads:
                yield self._ledger.turns(local_queue(self._heads[name]), line.firsts())

    def _local_queues(self) -> list[str]:
        return sorted({local_queue(ask) for ask in self._waiting.values() if self._usage_based(ask.queue)})

    def _new_line(self, queue: str) -> Line:
        if self._ledger is None or not self._usage_based(queue):
            return Line(self._waiting)
        return SharedLine(self._waiting, self._ledger.usage)

    def _told_apart(self, queue: str) -> tuple[bool, bool]:
        """By what a queue's asks are lined up."""
        return self._has_likes(queue), self._usage_based(queue)

    def _usage_based(self, queue: str) -> bool:
        return self._configuration.usage_based[self._configuration.tree.index[queue]]

    def _preemption(self, queue: str) -> Preemption:
        return self._configuration.policy[self._configuration.tree.index[queue]].preemption

    def _asked(self, ask: Ask) -> Ask:
        """With what the last cycle left behind for it."""
        scan, sticky = self._scans.get(ask.id), self._lines[ask.queue].sticky == ask.id
        if scan is None and not sticky:
            return ask
        told = None
        if scan is not None:
            changed = self._generation[ask.queue] > scan.generation
            told = FlavorScan(flavors=scan.flavors, cycles=self._cycle + 1 - scan.cycle, changed=changed)
        block = replace(ask.kueue or AskBlock(), preemption_pending=sticky, flavor_scan=told)
        return replace(ask, kueue=block)

    def _scanned(self, job: str, queue: str, scan: FlavorScan | None) -> bool:
        """Take note of where its scan stopped in this cycle; whether that is another place than before. The queue's
        own changes of this cycle are still to come."""
        before = self._scans.pop(job, None)
        if scan is not None:
            self._scans[job] = _Scanned(scan.flavors, self._cycle, self._generation[queue])
        return (None if before is None else before.flavors) != (None if scan is None else scan.flavors)

    def _line_up_again(self, queue: str) -> None:
        """Its asks are told apart in another way from now on; nobody is aside."""
        sticky = self._lines[queue].sticky
        line = self._lines[queue] = self._new_line(queue)
        for ask in self._waiting.values():
            if ask.queue == queue and ask.id not in self._back:
                self._line_up(ask)
        line.sticky = None if self._strict(queue) else sticky
        self._find_head(queue)

    def _all_come_back(self) -> None:
        for root in self._freed:
            self._come_back(root)
        self._freed.clear()
        self._returns = None

    def _come_back(self, root: str) -> None:
        for name in self._aside.pop(root, ()):
            self._lines[name].come_back()
            self._find_head(name)

    def _step_aside(self, ask: Ask) -> None:
        self._lines[ask.queue].step_aside(ask.id)
        self._aside.setdefault(self._root(ask.queue), {})[ask.queue] = None
        self._find_head(ask.queue)

    def _find_head(self, queue: str) -> None:
        index = self._configuration.tree.index
        head = None if self._configuration.inactive[index[queue]] is not None else self._lines[queue].head()
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

    def _root(self, queue: str) -> str:
        tree = self._configuration.tree
        return tree.names[self._configuration.root[tree.index[queue]]]


def _changed(before: CompiledConfiguration, after: CompiledConfiguration) -> list[str]:
    """Queues that are new or have another quota or policy; all of them where a setting is another."""
    known = {queue.name: queue for queue in before.source.queues}
    if before.source.settings != after.source.settings or before.source.flavors != after.source.flavors:
        known = {}
    return [queue.name for queue in after.source.queues if known.get(queue.name) != queue]


def _elsewhere(workload: Workload, assignments: Mapping[str, TopologyAssignment]) -> Workload:
    """With the hosts that replace failed ones."""
    tasks = [
        replace(task, topology_assignment=assignments.get(task.name, task.topology_assignment))
        for task in workload.tasks
    ]
    return replace(workload, tasks=tasks, kueue=replace(workload.kueue or WorkloadBlock(), unhealthy_nodes=[]))


def _id(ask: Ask) -> str:
    return ask.id


def _without_carried(block: AskBlock) -> AskBlock | None:
    rest = replace(block, preemption_pending=False, flavor_scan=None)
    return None if rest == AskBlock() else rest


def _pending(decision: Decision) -> bool:
    """Whether it goes on once somebody has stopped, for it or for another."""
    return decision.outcome == "preempt" or decision.conditions[0].message.startswith(OTHERS)


def _inadmissible(decision: Decision) -> bool:
    """Whether nomination itself found no way; a head that other heads outran, or that preempts, stays head."""
    if decision.outcome == "infeasible":
        return True
    return decision.outcome == "wait" and not decision.conditions[0].message.startswith(_NOMINATED)
