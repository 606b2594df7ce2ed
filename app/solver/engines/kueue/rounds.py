"""Rounds of Kueue: the heads of the ClusterQueues, again and again while that leads somewhere; work on failed nodes.

Source: Kueue ``pkg/scheduler/scheduler.go`` (requeueAndUpdate); what waits is the queue manager's. Where time alone
lets an ask preempt or somebody be preempted (the knobs that KEP-83 deferred), it comes back at that time.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from app.solver.apply import admitted_tasks
from app.solver.engines.kueue.admission_sharing import Consumed, assigned, local_queue, requested
from app.solver.engines.kueue.ahead import Ahead, PlainCycle, Wish, cycle, order
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import INADMISSIBLE, inadmissible
from app.solver.engines.kueue.knobs import any_set, ask_turns, victim_turns
from app.solver.engines.kueue.queue_manager import QueueManager, is_inadmissible, is_pending
from app.solver.engines.kueue.state import CompiledState, instant
from app.solver.engines.kueue.topology import Domain, Forest
from app.solver.engines.kueue.topology.placement import Placement, PodSet, Wanted, layers_of, wanted_of
from app.solver.engines.kueue.topology.room import Rooms, Usage
from app.solver.kubernetes import HOSTNAME
from app.solver.model.base import micros, parse_duration, to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, PlannedEviction, Result
from app.solver.model.decision import Placement as PlannedPlacement
from app.solver.model.kueue import Preemption, TopologyAssignment, TopologyDomain, TopologyRequest
from app.solver.model.kueue import RunOptions as KueueRun
from app.solver.model.kueue import Workload as Block
from app.solver.model.kueue import Workload as WorkloadBlock
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, QueueState, State, Task, Workload
from app.solver.question import Question
from app.solver.rounds import Ahead as AnyAhead
from app.solver.rounds import Holds, Outcome, Rounds, Spare, Start, Turn, Unit, Wakes

REASON = "NodeFailures"
_MOST = 8


@dataclass(frozen=True, slots=True)
class Replaced:
    """``state``: with the hosts that replace failed ones taken; ``assignments``: those of the workloads that go on."""

    state: CompiledState
    evictions: list[PlannedEviction]
    placements: list[PlannedPlacement]
    assignments: dict[str, dict[str, TopologyAssignment]]


def replaced(state: CompiledState, rooms: Rooms) -> Replaced | None:
    """What becomes of running work with failed nodes; None where there is none."""
    hit = [of for of in state.workloads if of.kueue is not None and of.kueue.unhealthy_nodes and not of.evicted]
    if not hit:
        return None
    outcome = Replaced(state, [], [], {})
    now: dict[str, Workload] = {}
    for workload in sorted(hit, key=lambda of: (-of.priority, instant(of.created_at), of.uid or "", of.id)):
        nodes = workload.kueue.unhealthy_nodes if workload.kueue is not None else []
        tasks = _tasks(rooms, workload, nodes[0]) if len(set(nodes)) == 1 else None
        if tasks is None:
            outcome.evictions.append(PlannedEviction(workload=workload.id, queue=workload.queue, reason=REASON))
            continue
        after = now[workload.id] = replace(workload, tasks=tasks)
        rooms = rooms.moved([workload], [after])
        _record(outcome, rooms, workload, after)
    other = copy(state)
    other.rooms, other.workloads = rooms, [now.get(of.id, of) for of in state.workloads]
    return Replaced(other, outcome.evictions, outcome.placements, outcome.assignments)


def marked(state: State, rooms: Rooms) -> list[Workload]:
    """Work on hosts that are there no longer, as Kueue marks it."""
    there, workloads = {node.labels.get(HOSTNAME) for node in state.nodes}, list[Workload]()
    for workload in state.workloads:
        lost = {
            domain.values[-1]
            for task in workload.tasks
            if (flavor := rooms.flavor_of(task)) is not None and rooms.forests[flavor].hosts
            for domain in (task.topology_assignment.domains if task.topology_assignment is not None else ())
            if domain.values[-1] not in there
        }
        if lost and not workload.evicted:
            nodes = sorted(lost)[:_MOST]
            workloads.append(replace(workload, kueue=replace(workload.kueue or Block(), unhealthy_nodes=nodes)))
    return workloads


def _record(outcome: Replaced, rooms: Rooms, before: Workload, after: Workload) -> None:
    """Note where the pods of a workload go that were on the failed node."""
    for was, task in zip(before.tasks, after.tasks, strict=True):
        if task is was or task.topology_assignment is None or was.topology_assignment is None:
            continue
        outcome.assignments.setdefault(after.id, {})[task.name] = task.topology_assignment
        old = {tuple(of.values): of.count for of in was.topology_assignment.domains}
        for of in task.topology_assignment.domains:
            if of.count > old.get(tuple(of.values), 0):
                forest = rooms.forests[rooms.flavor_of(task) or ""]
                node = forest.nodes[forest.index[tuple(of.values)]]
                name = of.values[-1] if node is None else node.name
                outcome.placements.append(
                    PlannedPlacement(workload=after.id, task=task.name, node=name, pipelined=False)
                )  # fmt: skip


def _tasks(rooms: Rooms, workload: Workload, node: str) -> list[Task] | None:
    """Its pod sets with others in place of host ``node``; None where that can't be."""
    out: list[Task] = []
    taken: Usage = {}
    for task in workload.tasks:
        assignment, flavor = task.topology_assignment, rooms.flavor_of(task)
        lost = sum(of.count for of in assignment.domains if of.values[-1] == node) if assignment is not None else 0
        if assignment is None or flavor is None or not rooms.forests[flavor].hosts or not lost:
            out.append(task)
            continue
        rest = {tuple(of.values): of.count for of in assignment.domains if of.values[-1] != node}
        pods = _on_another_node(rooms, flavor, task, lost, rest, taken)
        if pods is None:
            return None
        for values, count in pods.items():
            rest[values] = rest.get(values, 0) + count
        forest = rooms.forests[flavor]
        ordered = sorted(rest, key=lambda values, forest=forest: forest.leaves[forest.index[values]].values)
        domains = [TopologyDomain(values=list(values), count=rest[values]) for values in ordered]
        out.append(replace(task, topology_assignment=replace(assignment, domains=domains)))
    return out


def _on_another_node(
    rooms: Rooms, flavor: str, task: Task, lost: int, rest: Mapping[tuple[str, ...], int], taken: Usage
) -> dict[tuple[str, ...], int] | None:
    """Hosts for the ``lost`` pods, beside the ``rest`` that stay; ``taken``: by pod sets before it, and now by it."""
    forest = rooms.forests[flavor]
    workers = PodSet.of(task, lost)
    wanted = wanted_of(forest, workers, None)
    if isinstance(wanted, str) or any(values not in forest.index for values in rest):
        return None  # what stays is on a host that is gone too
    within = _within(forest, task.topology_request, wanted, lost, rest)
    if within is not None and layers_of(task.topology_request) and lost % wanted.size:
        workers = PodSet.of(replace(task, topology_request=_patched(task.topology_request, lost)), lost)
        wanted = wanted_of(forest, workers, None)
        if isinstance(wanted, str):
            return None

    def left(leaf: int) -> dict[str, int]:
        there, used = rooms.left[flavor][leaf], taken.get((flavor, leaf), {})
        return {name: amount - used.get(name, 0) for name, amount in there.items()}

    placed = Placement(forest, left, workers, None, wanted, within=within).places()
    if isinstance(placed, str):
        return None
    for leaf, count in placed[0].items():
        used = taken.setdefault((flavor, leaf), {})
        for name, amount in workers.requests.items():
            used[name] = used.get(name, 0) + amount * count
    return {forest.key(forest.leaves[leaf].values): count for leaf, count in placed[0].items()} or None


def _within(
    forest: Forest, request: TopologyRequest | None, wanted: Wanted, lost: int, rest: Mapping[tuple[str, ...], int]
) -> Domain | None:
    """The domain that the replacement must be in: that of the slice that it completes, else that which is required.
    None: any. Where several slices could be completed Kueue takes one by chance, this the first."""
    if not rest or request is None:
        return None
    layers = layers_of(request)
    if layers and lost % wanted.size:
        broken = next(((key, size) for key, size in reversed(layers) if size and lost % size), None)
        if len(layers) > 1 and broken is not None:
            return _incomplete(forest, forest.levels.index(broken[0]), broken[1] or 1, lost, rest)
        return _incomplete(forest, wanted.slice_level, wanted.size, lost, rest)
    return _above(forest, next(iter(rest)), wanted.level) if request.required is not None else None


def _incomplete(forest: Forest, level: int, size: int, lost: int, rest: Mapping[tuple[str, ...], int]) -> Domain | None:
    pods: dict[Domain, int] = {}
    for values, count in rest.items():
        domain = _above(forest, values, level)
        pods[domain] = pods.get(domain, 0) + count
    return next((domain for domain, count in pods.items() if (count + lost) % size == 0), None)


def _above(forest: Forest, values: tuple[str, ...], level: int) -> Domain:
    domain = forest.leaves[forest.index[values]]
    while domain.level > level and domain.above is not None:
        domain = domain.above
    return domain


def _patched(request: TopologyRequest | None, lost: int) -> TopologyRequest | None:
    """The innermost layer of slices that the lost pods fill, or none: the rest of it stands already."""
    if request is None:
        return None
    layer = next(((key, size) for key, size in reversed(layers_of(request)) if size and lost % size == 0), None)
    key, size = layer if layer is not None else (None, None)
    return replace(request, slice_layers=None, slice_required=key, slice_size=size)


_NO_OPTIONS = Options()
_MOST_IDLE = 1024
_Plain = tuple[list[tuple[Ask, Wish]], PlainCycle | None]
"""The heads, and what a cycle of them comes to where that is plain."""


class KueueRounds(Rounds[CompiledConfiguration, CompiledState]):
    """See the module. ``_wakes``: when time matters, by job that waits or runs; ``_running``: queue, priority and start
    of what runs where priorities fall with time; ``_known``: whether that is all; ``_drains``: whether queues are
    drained that no round has seen yet; ``_moved``: whether nodes are others than at the last round; ``_workloads``:
    what ran then; ``_next``: what the cycle that ``foreseen`` is asked for now comes to, where ``idle`` found out."""

    unit: ClassVar[Unit] = "job"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        del configuration  # a round asks nothing of it that is not compiled
        self._configuration = configured
        self._queues = QueueManager(configured, parse_duration((options.kueue or KueueRun()).requeue_batch_period))
        self._wakes = Wakes()
        self._running: dict[str, tuple[str, int, int]] = {}
        self._known = False
        self._drains = bool(configured.drains)
        self._moved = False
        self._workloads: Sequence[Workload] = ()
        self._next: _Plain | None = None
        self._knobs = any_set(configured)

    def aside(self, ask: Ask, now: int) -> tuple[str, str] | None:
        why = inadmissible(self._configuration, ask, now)
        return None if why is None else (INADMISSIBLE, why)

    def arrive(self, ask: Ask) -> None:
        self._queues.arrive(ask)
        if ask.kueue is not None and ask.kueue.requeue_at is not None:
            self._wakes.set(ask.id, micros(ask.kueue.requeue_at))

    def leave(self, job: str) -> None:
        self._queues.leave(job)
        self._running.pop(job, None)
        self._wakes.set(job, None)

    def released(self, job: str, now: int) -> None:
        if self._queues.usages is not None:
            self._queues.usages.released(job, now)

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
        self._knobs = any_set(configured)
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
        return min((moment for moment in (self._wakes.first(), *changes) if moment is not None), default=None)

    def carried(self) -> tuple[Hashable, Hashable]:
        return self._queues.carried()

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """What runs that no round started is taken note of; what LocalQueues have consumed is carried over."""
        if not self._known:
            self._known = True
            self._running.clear()
            for workload in state.workloads if self._configuration.penalises else ():
                if workload.started_at is not None and not workload.evicted:
                    self._runs(workload.id, workload.queue, workload.priority or 0, micros(workload.started_at), now)
        lost, usages = self._on_lost_nodes(loaded, state), self._queues.usages
        if usages is None:
            return Turn(workloads=lost) if lost else None
        if not usages.begun:
            usages.begin(loaded, now)
        self._queues.sample(now)
        news = usages.news(loaded.local_queues)
        queues = {name: QueueState(kueue=of) for name, of in news.items()}
        return Turn(queues=queues, workloads=lost) if queues or lost else None

    def ahead(self, loaded: CompiledState) -> Ahead | None:
        """Where nothing but usage counts: no nodes, and nobody's consumption."""
        covered = loaded.quotas is loaded.configuration.quotas
        return Ahead(loaded) if covered and loaded.rooms is None and self._queues.usages is None else None

    def idle(self, ahead: AnyAhead[CompiledState], now: int) -> Iterator[Hashable]:
        """Cycles in which all heads step aside: others of their queues are tried next."""
        for _ in range(_MOST_IDLE):
            if isinstance(ahead, Ahead) and self._plays(ahead, now) and self._wakes.first() is None:
                situation: Hashable = None
                for i in self._queues.all_step_aside(lambda ask: self._waits(ahead, ask), _MOST_IDLE):
                    situation = situation if i else self.carried()[0]
                    # While nobody comes back more and more are aside: none of these is like another.
                    yield (situation, i) if i else situation
                if not self._queues.heads:
                    return
            self._next = of, plain = self._plain(ahead, now)
            if not of or plain is None or plain.fitting or plain.evicting:
                return
            self._next = None
            yield self.carried()[0]
            if not (self._carried_out(plain, [], now).more and self._queues.heads):
                return

    def _waits(self, ahead: Ahead, ask: Ask) -> bool:
        """Whether a head has to wait, whatever becomes of the others."""
        wish = ahead.wish(self._queues.shape(ask), ask)
        return wish is not None and ahead.waits(self._configuration.tree.index[ask.queue], ask, wish)

    def foreseen(self, ahead: AnyAhead[CompiledState], now: int) -> Outcome | None:
        (heads, plain), self._next = self._next or self._plain(ahead, now), None
        if plain is None or not isinstance(ahead, Ahead):
            return None
        evictions = [] if plain.evicting is None else ahead.evictions(plain.evicting)
        return Outcome(
            lambda _: order(ahead, heads),
            lambda leaving: self._carried_out(plain, [of for of in evictions if not leaving(of)], now),
            evictions,
        )

    def _plain(self, ahead: AnyAhead[CompiledState], now: int) -> _Plain:
        heads: list[tuple[Ask, Wish]] = []
        if not isinstance(ahead, Ahead) or not self._plays(ahead, now):
            return heads, None
        for ask in self._queues.first():
            wish = None if self._queues.scanned(ask) else ahead.wish(self._queues.shape(ask), ask)
            if wish is None:
                return heads, None
            heads.append((ask, wish))
        return heads, cycle(ahead, heads)

    def _plays(self, ahead: Ahead, now: int) -> bool:
        """Whether cycles of now may be played on ``ahead``."""
        ahead.now = now
        return not self._drains and not self._knobs and ahead.plain

    def _carried_out(self, plain: PlainCycle, evicted: list[PlannedEviction], now: int) -> Turn:
        self._queues.cycle_ends()
        turn = Turn(evicted=evicted, more=bool(evicted))
        for head in plain.fitting if plain.evicting is None else [plain.evicting]:
            ask = head.ask
            if ask.id in plain.outrun or head.targets:
                self._wakes.set(ask.id, None)
                turn.more |= self._queues.requeued(ask, None, pending=bool(head.targets), inadmissible=False)
                continue
            gets = {ask.tasks[0].name: dict(head.flavors)}
            decision = Decision(ask=ask.id, outcome="admit", assignment=gets, victims=[], conditions=[])
            tasks = admitted_tasks(ask, decision, to_datetime(now))
            turn.started.append(Start(ask.id, tasks))
            self._admitted(ask, tasks, now)
            turn.more = True
        for ask in plain.waiting:
            self._wakes.set(ask.id, None)
            turn.more |= self._queues.requeued(ask, None, pending=False, inadmissible=True)
        self._queues.due = turn.more
        return turn

    def _on_lost_nodes(self, loaded: CompiledState, state: State) -> list[Workload]:
        """What runs on hosts that went, as Kueue marks it."""
        self._workloads = state.workloads
        return marked(state, loaded.rooms) if self._moved and loaded.rooms is not None else []

    def spare(self, loaded: CompiledState) -> Spare:
        """Of what a flavor has quota for."""
        if loaded.rooms is None:
            return {}
        by_level: Spare = {}
        for flavor in loaded.rooms.forests:
            resources = sorted({resource for name, resource in self._configuration.quotas.frs if name == flavor})
            by_level |= {(flavor, level): of for level, of in loaded.rooms.spare(flavor, resources).items()}
        return by_level

    def question(self, now: int, holds: Holds) -> Question:
        del holds
        return Question(now, self._queues.asks(), "cycle", _NO_OPTIONS)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        self._drains = self._moved = False
        self._queues.cycle_ends()
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        turn.more = bool(turn.evicted)
        when, asks = to_datetime(question.now), {ask.id: ask for ask in question.asks}
        decisions = {decision.ask: decision for decision in result.decisions}
        if replaced := (result.notes or {}).get("topology_assignments"):
            turn.workloads = [_elsewhere(of, replaced[of.id]) for of in self._workloads if of.id in replaced]
        for name in result.order or ():
            ask, decision = asks[name], decisions[name]
            if decision.outcome == "admit":
                tasks = admitted_tasks(ask, decision, when)
                turn.started.append(Start(name, tasks))
                self._admitted(ask, tasks, question.now)
                turn.more = True
                continue
            self._wakes.set(name, ask_turns(self._preemption(ask.queue), ask, question.now))
            scan = decision.kueue.flavor_scan if decision.kueue is not None else None
            turn.more |= self._queues.requeued(
                ask, scan, pending=is_pending(decision), inadmissible=is_inadmissible(decision)
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
        nominal: list[dict[str, int]] = [{} for _ in tree.names]
        for node in reversed(tree.top_down):
            for fr, cell in quotas.cells[node].items():
                resource = quotas.frs[fr][1]
                nominal[node][resource] = nominal[node].get(resource, 0) + quotas.nominal[cell]
            if tree.parent[node] >= 0:
                above = nominal[tree.parent[node]]
                for resource, amount in nominal[node].items():
                    above[resource] = above.get(resource, 0) + amount
        return dict(zip(tree.names, nominal, strict=True))

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

    def _admitted(self, ask: Ask, tasks: Sequence[Task], now: int) -> None:
        """It runs from now on, and waits no longer."""
        self._charge(ask, tasks, now)
        self.leave(ask.id)
        self._queues.touched(ask.queue)
        self._runs(ask.id, ask.queue, ask.priority or 0, now, now)

    def _charge(self, ask: Ask, tasks: Sequence[Task], now: int) -> None:
        """It was admitted: its LocalQueue is charged for it."""
        if self._queues.usages is not None and self._queues.usage_based(ask.queue):
            self._queues.usages.admitted(ask.id, local_queue(ask), assigned(tasks), self._counted(ask), now)

    def _counted(self, ask: Ask) -> Consumed:
        """What it asks for, without what is not counted."""
        asked = requested(ask.tasks)
        if not self._configuration.ignores_undeclared:
            return asked
        covered = self._configuration.covering[self._configuration.tree.index[ask.queue]]
        return {resource: amount for resource, amount in asked.items() if resource in covered}

    def _preemption(self, queue: str) -> Preemption:
        return self._configuration.policy[self._configuration.tree.index[queue]].preemption


def _elsewhere(workload: Workload, assignments: Mapping[str, TopologyAssignment]) -> Workload:
    """With the hosts that replace failed ones."""
    tasks = [
        replace(task, topology_assignment=assignments.get(task.name, task.topology_assignment))
        for task in workload.tasks
    ]
    return replace(workload, tasks=tasks, kueue=replace(workload.kueue or WorkloadBlock(), unhealthy_nodes=[]))
