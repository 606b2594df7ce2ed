"""A cycle's mutable side: where every pod is, what nodes have free, what queues hold; evict, place, undo, commit."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from app.solver.compiled import Journal, Unlogged
from app.solver.engines.kai.fair_share import Division, JobCounts, QueueUse, by_memory, divide
from app.solver.engines.kai.jobs import (
    ALLOCATED,
    GPU,
    NOWHERE,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    STUCK,
    Share,
    constraints,
    rank,
    task_key,
    total,
    with_shares,
)
from app.solver.engines.kai.nodes import WHOLE, Nodes
from app.solver.engines.kai.state import CompiledState, baseline, layout, with_asks
from app.solver.model.state import Ask

ACTIVE = (RUNNING, ALLOCATED, PIPELINED)
USED = (*ACTIVE, RELEASING, STUCK)
EVICT, PLACE, RESTORE = range(3)
NO_ASK = -1
Mark = tuple[int, int]


class Operation(NamedTuple):
    """One step of a statement. ``status`` and ``node``: the pod's before it; ``other``: the node that it goes to.

    An eviction ``again`` of a pod that the statement evicted already is ``counted`` once more by KAI while its job
    runs others. ``devices``: those that it had shares of before. ``replaced``: the node that it goes to listed it.
    """

    kind: int
    task: int
    status: int
    node: int
    other: int = NOWHERE
    again: bool = False
    counted: bool = False
    devices: tuple[int, ...] = ()
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Eviction:
    """A committed eviction: the action that did it, the ask that it was done for, the number of the statement, and the
    node that the pod had then."""

    task: int
    action: str
    ask: int
    statement: int
    node: int


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How a cycle stood between two statements, as far as its journal does not say."""

    writes: int
    evictions: dict[int, Eviction]
    placed: dict[int, None]
    committed: int
    settled: int
    counts: tuple[list[int], list[bool]]


class Overlay:
    """One scheduling cycle. Tables are lists by task, node, job or queue number; ``free`` is idle plus releasing."""

    def __init__(self, state: CompiledState, asks: Sequence[Ask], now: int, *, strict: bool = False) -> None:
        jobs, resources = with_asks(state, asks)
        width = len(resources)
        self.state, self.asks, self.now = state, asks, now
        self.jobs, self.resources = jobs, resources
        self.running_tasks = len(state.jobs.task_name)
        self.exact = state.configuration.policy.rules.exact
        self.strict = strict or self.exact
        self.width = width
        tree = state.configuration.tree
        self.paths = [tree.path(q) for q in range(len(tree))]
        self.parent_queue = tree.parent
        self.journal = Journal()
        self.status: list[int] = jobs.task_state.copy()
        self.node: list[int] = jobs.task_node.copy()
        self.virtual = [0] * len(self.status)
        self.ghost = [0] * len(self.status)  # bit n: also listed on node n, which it left in this cycle
        self.request = jobs.task_request
        base = baseline(state)
        taken = base.columns + jobs.ask_columns
        self._memory = layout(state).gpu_memory
        shares = jobs.task_portion.count(None) < len(jobs.task_portion)
        self.by_steps = shares and not self.strict
        self.in_doubles = shares and not self.exact
        books = Unlogged() if self.by_steps else self.journal
        self.nodes = Nodes(self.journal, books, base, jobs, taken, width, layout(state))
        self._unlisted: set[int] = set()
        as_sent = (t for w in state.workloads for t in state.jobs.tasks[jobs.by_id[w.id]])
        self.nodes.seed(as_sent, self.status, self.node, jobs.task_wire)
        self.wants, self.bounded = by_memory(state, jobs)
        self.counts = JobCounts(self.journal, len(jobs.id), base.active, base.used, jobs.waiting)
        self.queues = QueueUse(self.journal, base, self.paths, jobs)
        self._show_tables()
        self.started = list(jobs.started)
        self.evicted_at = list(jobs.evicted_at)
        self._waiting = [j for j, count in enumerate(self.pending) if count]
        self.node_names = state.node_name
        self._first_of_ask = list(accumulate([len(ask.tasks) for ask in asks], initial=self.running_tasks))
        self.leaf = list(map([tree.is_leaf(q) for q in range(len(tree))].__getitem__, jobs.queue))
        self._ordered = jobs.in_order
        self.version = [0] * len(jobs.id)  # by job: the last statement that touched it, as ``closed`` counts them
        self.settled: list[int] = []  # jobs that statements touched, one after the other
        self.ops: list[Operation] = []
        self.undone: list[int] = []
        self._evicted_by: dict[int, list[int]] = {}
        self._wanted: dict[int, tuple[list[int], Share]] = {}
        self.evictions: dict[int, Eviction] = {}
        self.placed: dict[int, None] = {}
        self._committed = 0
        self.closed = 0  # statements: between two of them all stands still

    @cached_property
    def division(self) -> Division:
        """The cluster divided between queues; only where somebody compares them."""
        return divide(self.state, self.jobs)

    def _show_tables(self) -> None:
        """What everybody reads, and only the owner of a table writes."""
        nodes, counts, queues = self.nodes, self.counts, self.queues
        self.free, self.idle, self.gpus, self.touched = nodes.free, nodes.idle, nodes.gpus, nodes.touched
        self.fits, self.fits_idle = nodes.fits, nodes.fits_idle
        self.active, self.used, self.pending = counts.active, counts.used, counts.pending
        self.seems_active = counts.seems_active
        self.allocated, self.fixed = queues.allocated, queues.fixed

    # Jobs.

    def queue_name(self, q: int) -> str:
        """The name of a queue."""
        return self.state.configuration.tree.names[q]

    def pending_jobs(self) -> set[int]:
        """Jobs with a pending pod."""
        return {j for j in self._waiting if self.pending[j]}

    def ask_of_task(self, t: int) -> Ask | None:
        """The ask that a pod came with; None for a pod of the state."""
        return self.asks[self.number_of_ask(t)] if t >= self.running_tasks else None

    def number_of_ask(self, t: int) -> int:
        """Of the ask that a pod came with."""
        return bisect_right(self._first_of_ask, t) - 1

    def constraints(self, t: int) -> str:
        """The constraints of a pod."""
        first, jobs = self.running_tasks, self.jobs
        return jobs.ask_constraints[t - first] if t >= first else constraints(jobs.task_wire[t], None)

    def pods_of(self, a: int) -> list[int]:
        """The pods that came with ask number ``a``."""
        return list(range(self._first_of_ask[a], self._first_of_ask[a + 1]))

    def gpus_of(self, t: int) -> float:
        """What the filters count of the pod: GPUs where they add up ``in_doubles``, as released KAI does where GPUs are
        shared, else thousandths."""
        return self.request[t][GPU] / WHOLE if self.in_doubles else self.request[t][GPU]

    def in_order(self, job: int, *, running: bool = False) -> list[int]:
        """The pods of a job in task order; ``running``: those alone that did not come with an ask."""
        resident, of_state = self.state.resident.order, self.state.jobs.tasks
        orders, tasks = (resident, of_state) if running or self.jobs.ask[job] < 0 else (self._ordered, self.jobs.tasks)
        ordered, wires = orders.get(job), self.jobs.task_wire
        if ordered is None:
            ordered = orders[job] = sorted(tasks[job], key=lambda t: task_key(wires[t]))
        return ordered

    def wanted(self, job: int) -> tuple[list[int], Share]:
        """The pods that the job would place next, and their sum: what its gang lacks, else one more.

        Pending pods, and those evicted by the statement in hand.
        """
        wanted = self._wanted.get(job)
        if wanted is None:
            status, virtual = self.status, self.virtual
            # where nothing of it is being released, only pods that came with its ask are able
            pods = self.jobs.asked.get(job) if self.used[job] == self.active[job] else None
            pods = self.in_order(job) if pods is None else pods
            able = (t for t in pods if status[t] == PENDING or (status[t] == RELEASING and virtual[t]))
            gang = self.jobs.gang[job]
            if gang is None:
                tasks = list(islice(able, self.lacks(job)))
            else:
                tasks = gang.next_pods(self.active_pods(job), self.jobs.by_pod_set(able))
            wanted = self._wanted[job] = (tasks, total(self.wants, tasks))
        return wanted

    def lacks(self, job: int) -> int:
        """How many pods the job's gang lacks; 1 where it lacks none."""
        return max(1, self.jobs.min_available[job] - self.active[job])

    def ready(self, job: int) -> bool:
        """Enough pods alive for the gang. An earlier attempt of the same action may have evicted some."""
        gang, status = self.jobs.gang[job], self.status
        if gang is None:
            return self.active[job] + self.pending[job] >= self.jobs.min_available[job]
        alive = (t for t in self.jobs.tasks[job] if status[t] in ACTIVE or status[t] == PENDING)
        return gang.satisfied(self.jobs.by_pod_set(alive))

    def active_pods(self, job: int) -> dict[str, list[int]]:
        """The pods of a job with sub groups that have a place, by pod set."""
        return self.jobs.by_pod_set(t for t in self.jobs.tasks[job] if self.status[t] in ACTIVE)

    def used_pods(self, job: int) -> dict[str, list[int]]:
        """Those, and those that are going."""
        return self.jobs.by_pod_set(t for t in self.jobs.tasks[job] if self.status[t] in USED)

    def elastic_rank(self, job: int) -> int:
        """See ``rank``."""
        gang = self.jobs.gang[job]
        if gang is not None:
            return gang.rank(self.active_pods(job))
        return rank(self.active[job], self.jobs.min_available[job])

    def status_before(self, t: int) -> int:
        """The pod's status before the statement in hand took it, if it did."""
        earlier = self._evicted_by.get(t)
        return self.ops[earlier[0]].status if earlier else self.status[t]

    def node_before(self, t: int) -> int:
        """Where the pod was before the statement in hand took it, if it did."""
        earlier = self._evicted_by.get(t)
        return self.ops[earlier[0]].node if earlier else self.node[t]

    def evictions_of(self, t: int) -> int:
        """How often the statement in hand evicts the pod."""
        return sum(not self.undone[op] for op in self._evicted_by.get(t, ()))

    def stays_evicted(self, t: int) -> bool:
        """Whether the statement in hand evicts the pod in the end, be it for another place."""
        return self.evictions_of(t) > 0

    def asking(self, job: int) -> int:
        """The ask that the statement in hand is for: that of the first of the job's pods that it placed."""
        task_job, first = self.jobs.task_job, self.running_tasks
        placed = (op.task for op in self.ops if op.kind == PLACE and task_job[op.task] == job and op.task >= first)
        return next((self.number_of_ask(t) for t in placed), self.jobs.ask[job])

    # Statements.

    def checkpoint(self) -> Mark:
        """A mark to roll back to."""
        return self.journal.checkpoint(), len(self.ops)

    def rollback(self, mark: Mark) -> None:
        """Undo everything since ``mark``."""
        writes, count = mark
        lost = self._step_back(count) if self.by_steps else ()
        self.journal.rollback(writes)
        for t, n in lost:
            self.ghost[t] &= ~(1 << n)
        ops = self.ops
        while len(ops) > count:
            op = ops.pop()
            self.undone.pop()
            self.touched += (op.node, op.other)
            self._wanted.pop(self.jobs.task_job[op.task], None)
            self.counts.taken[self.jobs.task_job[op.task]] = False
            if op.kind == EVICT:
                self._evicted_by[op.task].pop()
                if op.again and not op.counted:
                    self.counts.drifts(self.jobs.task_job[op.task])

    def _step_back(self, count: int) -> list[tuple[int, int]]:
        """Take back on nodes what operations did, from the last one to number ``count``, each by one in the other
        direction, as KAI does: its books of shared GPUs need not be then what they were. A pod that went to other
        devices of a node which listed it is listed there no more, so that its eviction, taken back, lists it a second
        time. Pods and nodes which they had left before, and that list them no more."""
        nodes, unlisted = self.nodes, self._unlisted
        status: dict[int, int] = {}
        held: dict[int, tuple[int, ...]] = {}
        lost: list[tuple[int, int]] = []
        for op in reversed(self.ops[count:]):
            t = op.task
            now = status.get(t, self.status[t])
            devices = held.get(t, self.gpus.on(t))
            if op.kind == PLACE:
                nodes.unlist(t, op.other, now, devices)
                if op.replaced and op.other == op.node:
                    unlisted.add(t)
                elif op.replaced:
                    lost.append((t, op.other))
                status[t], held[t] = op.status, op.devices
            elif op.kind == RESTORE:
                nodes.change(t, op.node, now, RELEASING, devices)
                status[t] = RELEASING
            else:
                if t in unlisted:
                    nodes.list_again(t, op.node, op.status, devices)
                    unlisted.remove(t)
                    status[t] = op.status
                elif now != op.status and self._evicted_by[t][0] >= count:
                    nodes.change(t, op.node, now, op.status, devices)
                    status[t] = op.status
        return lost

    def evict(self, t: int) -> None:
        """Release a pod. One that the statement evicted already is taken from its queue once more, unless exact."""
        put = self.journal.put
        before, n, j = self.status[t], self.node[t], self.jobs.task_job[t]
        earlier = self._evicted_by.setdefault(t, [])
        if before == RELEASING:
            if self.exact:
                return
            recorded, again = self.ops[earlier[0]].status, True
            counted = any(self.status[other] == recorded for other in self.jobs.tasks[j])
            if counted:
                self.counts.counted_twice(j)
        else:
            again = counted = False
            recorded = before
            put(self.status, t, RELEASING)
            put(self.virtual, t, 1)
            self.counts.evicted(j)
            self.nodes.change(t, n, before, RELEASING)
        self.queues.charge(j, self.request[t], -1)
        earlier.append(len(self.ops))
        self._note(Operation(EVICT, t, recorded, n, again=again, counted=counted))

    def restore(self, t: int) -> bool:
        """Take back the earliest eviction of the statement in hand: the pod stays where it was. False without one."""
        number = next((number for number in self._evicted_by.get(t, ()) if not self.undone[number]), None)
        if number is None:
            return False
        op, put = self.ops[number], self.journal.put
        j = self.jobs.task_job[t]
        if self.status[t] == RELEASING:
            put(self.status, t, op.status)
            put(self.virtual, t, 0)
            self.counts.back(j)
            self.nodes.change(t, op.node, RELEASING, op.status)
        self.queues.charge(j, self.request[t], 1)
        put(self.undone, number, 1)
        self._note(Operation(RESTORE, t, RELEASING, op.node))
        return True

    def pipeline(self, t: int, n: int) -> bool:
        """Give a pod a place that may still have to be released; on a node that lists it already, restore it."""
        if self.status[t] == RELEASING:
            was = self.node[t]
            if was == n:
                return self.restore(t)
            if was != n and self.ghost[t] >> n & 1:
                # It left this node earlier in the cycle: KAI takes it for already there and puts it back where it
                # moved to. Released code forgets to ask whether that place is still free.
                return (not self.strict or self.fits(t, was)) and self.restore(t)
        self._place(t, n, PIPELINED)
        return True

    def place_share(self, t: int, n: int, *, bind: bool) -> bool:
        """Give a pod shares of GPUs of node n: at once if ``bind`` and it need not wait. On the very devices with which
        the node lists it already, it is restored; on others of the same node it moves."""
        chosen = self.gpus.choose(t, n, now=bind and self.nodes.fits_idle(t, n))
        if chosen is None:
            return False
        devices, waits = chosen
        replaced = False
        if not waits:
            self._place(t, n, ALLOCATED, devices)
            return True
        if self.status[t] == RELEASING:
            was = self.node[t]
            own = was == n and t not in self._unlisted
            here = self.gpus.on(t) if own else self.gpus.listed(t, n) if self.ghost[t] >> n & 1 else None
            replaced = here is not None
            if here == devices:
                free = was == n or not self.strict or (self.fits(t, was) and self.nodes.may_return(t, was))
                return free and self.restore(t)
        self._place(t, n, PIPELINED, devices, replaced=replaced)
        return True

    def allocate(self, t: int, n: int) -> None:
        """Give a pending pod a place that is idle."""
        self._place(t, n, ALLOCATED)

    def _place(
        self, t: int, n: int, status: int, devices: tuple[int, ...] = (), *, replaced: bool = False
    ) -> None:  # fmt: skip
        put, had = self.journal.put, self.gpus.on(t)
        before, j, was = self.status[t], self.jobs.task_job[t], self.node[t]
        if before == RELEASING:
            put(self.ghost, t, self.ghost[t] | 1 << was)
            if devices:
                self.gpus.leave(t, was)
            self.counts.back(j)
        else:
            self.counts.placed(j)
        put(self.status, t, status)
        put(self.node, t, n)
        if self.gpus.share[t] and (portion := self.jobs.task_portion[t]) is not None and portion.memory:
            self.journal.put_any(self.request, t, with_shares(self.request[t], portion, self._memory[n]))
        self.nodes.enter(t, n, status, devices)
        self.queues.charge(j, self.request[t], 1)
        self._note(Operation(PLACE, t, before, was, n, devices=had, replaced=replaced))

    def make_pipelined(self) -> None:
        """Pods placed idle by the statement wait with the rest of their gang instead; not those of earlier ones."""
        for t in (op.task for op in self.ops if op.kind == PLACE):
            if self.status[t] == ALLOCATED:
                n = self.node[t]
                self.journal.put(self.status, t, PIPELINED)
                self.nodes.change(t, n, ALLOCATED, PIPELINED)
                self.touched.append(n)

    def commit(self, action: str, job: int) -> None:
        """Make the statement final."""
        ask = self.asking(job)
        self._committed += 1
        for number, op in enumerate(self.ops):
            if self.undone[number]:
                continue
            if op.kind == EVICT:
                self.journal.put(self.virtual, op.task, 0)
                self.evictions[op.task] = Eviction(op.task, action, ask, self._committed, op.node)
                self.journal.put_any(self.evicted_at, self.jobs.task_job[op.task], self.now)
            elif op.kind == PLACE:
                self.placed.setdefault(op.task)
            self._touch(op)
        self._close()

    def forget(self) -> None:
        """Neither final nor undone: nobody hears of the statement, and the rest of the cycle takes it as done."""
        for op in self.ops:
            self._touch(op)
        self._close()

    def _touch(self, op: Operation) -> None:
        job = self.jobs.task_job[op.task]
        self._wanted.pop(job, None)
        self.counts.taken[job] = op.kind == EVICT
        self.journal.put(self.version, job, self.closed + 1)
        self.settled.append(job)

    def settled_since(self, mark: int) -> set[int]:
        """The jobs touched by statements since there were so many in ``settled``."""
        return set(self.settled[mark:])

    def _close(self) -> None:
        self.closed += 1
        self.ops.clear()
        self.undone = []  # the journal remembers what was written to the other one
        self._evicted_by.clear()

    def evict_stale(self, tasks: Iterable[int], action: str) -> None:
        """Release pods of a gang for good; no ask is the reason."""
        for t in tasks:
            self.evict(t)
        self._committed += 1
        for op in self.ops:
            self.journal.put(self.virtual, op.task, 0)
            self.evictions[op.task] = Eviction(op.task, action, NO_ASK, self._committed, op.node)
            self._touch(op)
        self._close()

    def keep(self) -> Bookmark:
        """What ``go_back`` needs, between two statements of a cycle that does not keep books by steps."""
        return Bookmark(
            self.journal.checkpoint(), self.evictions.copy(), self.placed.copy(), self._committed,
            len(self.settled), self.counts.keep(),
        )  # fmt: skip

    def go_back(self, bookmark: Bookmark) -> None:
        """Take back all statements since then."""
        self.journal.rollback(bookmark.writes)
        self.evictions, self.placed = bookmark.evictions.copy(), bookmark.placed.copy()
        self._committed = bookmark.committed
        self.settled += self.settled_since(bookmark.settled)  # they are again what they were
        self.counts.go_back(bookmark.counts)
        self._wanted.clear()
        self.touched += self.nodes.changed
        self._close()

    def _note(self, op: Operation) -> None:
        self.ops.append(op)
        self.undone.append(0)
        self.touched += (op.node, op.other)
        self._wanted.pop(self.jobs.task_job[op.task], None)
