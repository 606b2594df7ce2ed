"""The mutable side of a cycle: where every pod is, what nodes have free, what queues hold; evict, place, undo, commit.

A *statement* is what one attempt does. It is committed or rolled back as a whole, and may be rolled back to any
checkpoint. Released KAI's bookkeeping has habits that decide later attempts, and ``rules: shipped`` keeps them
(docs/engines/kai.md, Bookkeeping): a pod evicted twice in a statement is taken from its queue twice, and put back once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.solver.engines.kai.compile.baseline import baseline, columns
from app.solver.engines.kai.compile.jobs import ALLOCATED, NOWHERE, PENDING, PIPELINED, RELEASING, RUNNING
from app.solver.engines.kai.compile.resident import Baseline
from app.solver.engines.kai.compile.resources import GPU, Share
from app.solver.engines.kai.compile.state import CompiledState, with_asks
from app.solver.engines.kai.decide.division import divide
from app.solver.engines.kai.decide.placing.gpu_share import GpuShares
from app.solver.model.instant import micros
from app.solver.model.state import Ask
from app.solver.overlay import Overlay

EVICT, PLACE, RESTORE = range(3)
NO_ASK = -1
Mark = tuple[int, int]
_RUNS = (RUNNING, ALLOCATED)


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of a statement. ``status`` and ``node``: the pod's before it; ``other``: the node that it goes to.

    An eviction ``again`` of a pod that the statement evicted already is ``counted`` once more by KAI while its job
    runs others.
    """

    kind: int
    task: int
    status: int
    node: int
    other: int = NOWHERE
    again: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Eviction:
    """A committed eviction: the action that did it, the ask that it was done for, and the number of the statement."""

    task: int
    action: str
    ask: int
    statement: int


class Session:
    """One scheduling cycle. Tables are lists by task, node, job or queue number; ``free`` is idle plus releasing."""

    def __init__(self, state: CompiledState, asks: Sequence[Ask], now: int, *, strict: bool = False) -> None:
        jobs, resources = with_asks(state, asks)
        width = len(resources)
        self.state = state
        self.asks = asks
        self.jobs = jobs
        self.resources = resources
        self.running_tasks = len(state.jobs.task_name)
        self.now = now
        self.exact = state.configuration.policy.rules == "documented"
        self.strict = strict or self.exact
        self.width = width
        tree = state.configuration.tree
        self.paths = [tree.path(q) for q in range(len(tree))]
        self.parent_queue = tree.parent
        self.division = divide(state, jobs)
        self.overlay = Overlay()
        self.status: list[int] = jobs.task_state.copy()
        self.node: list[int] = jobs.task_node.copy()
        self.virtual = [0] * len(self.status)
        self.touched: list[int] = []  # nodes changed since somebody last looked
        self.ghost = [0] * len(self.status)  # bit n: also listed on node n, which it left in this cycle
        self.request = jobs.task_request
        self.gpus = GpuShares(self.overlay, [v[GPU] for v in self.request], len(state.nodes))
        base = baseline(state)
        self.columns = [*base.columns, *columns(self.request[self.running_tasks :], {})]
        self.started = list(jobs.started)
        self._set_queues(len(tree))
        self._set_jobs(base)
        self._set_nodes(base)
        self._waiting = [j for j, count in enumerate(self.pending) if count]
        self.node_names = state.node_name
        self._overfull = [[n for n, free in enumerate(column) if free < 0] for column in self.free]
        self._ask_of_task = [a for a, ask in enumerate(asks) for _ in ask.tasks]
        self.leaf = [tree.is_leaf(q) for q in jobs.queue]
        self._ordered: dict[int, list[int]] = {}
        self.version = [0] * len(jobs.id)  # by job, counts commits that touched it
        self.ops: list[Operation] = []
        self.undone: list[int] = []
        self._evicted_by: dict[int, list[int]] = {}
        self._wanted: dict[int, tuple[list[int], Share]] = {}
        self.evictions: dict[int, Eviction] = {}
        self.placed: dict[int, None] = {}
        self._committed = 0

    def _set_queues(self, queues: int) -> None:
        division = self.division
        self.allocated = [[division.allocated[q][r] for q in range(queues)] for r in range(3)]
        self.fixed = [[division.non_preemptible[q][r] for q in range(queues)] for r in range(3)]

    def _set_jobs(self, base: Baseline) -> None:
        """Pods by job: active (allocated or pipelined), used (also releasing), pending; ``held``: job resources."""
        jobs = len(self.jobs.id)
        more = [0] * (jobs - len(base.active))
        self.active, self.used, self.pending = base.active + more, base.used + more, [0] * jobs
        self.miscounted, self.drift = [0] * jobs, [0] * jobs
        self.held = [amounts + more for amounts in base.held]
        for j in self.jobs.task_job[self.running_tasks :]:
            self.pending[j] += 1

    def _set_nodes(self, base: Baseline) -> None:
        nothing = [0] * len(self.state.nodes)
        wider = self.width - len(base.free)
        self.free = [column.copy() for column in (*base.free, *[nothing] * wider)]
        self.idle = [column.copy() for column in (*base.idle, *[nothing] * wider)]
        self._free = self.free[0], self.free[1], self.free[2]
        self._idle = self.idle[0], self.idle[1], self.idle[2]
        if self.gpus.any:
            for t, (n, s) in enumerate(zip(self.node, self.status, strict=True)):
                if self.gpus.share[t] and n != NOWHERE and s in (RUNNING, RELEASING):
                    self.gpus.seed(t, n, s, self.free[GPU], self.idle[GPU])

    # Jobs.

    def queue_name(self, q: int) -> str:
        """The name of a queue."""
        return self.state.configuration.tree.names[q]

    def pending_jobs(self) -> set[int]:
        """Jobs with a pending pod."""
        return {j for j in self._waiting if self.pending[j]}

    def gpu_free(self) -> list[int]:
        """GPUs by node, idle or being released, parts of shared devices included."""
        free = self.free[GPU]
        return [have + self.gpus.unused(n) for n, have in enumerate(free)] if self.gpus.any else free

    def has_gpu_room(self, n: int) -> bool:
        """Whether node n has a GPU, or a part of one, idle or being released."""
        idle = self.idle[GPU][n]
        return idle > 0 or self.free[GPU][n] > idle or self.gpus.has_room(n)

    def ask_of_task(self, t: int) -> Ask | None:
        """The ask that a pod came with; None for a pod of the state."""
        return self.asks[self._ask_of_task[t - self.running_tasks]] if t >= self.running_tasks else None

    def pods_of(self, a: int) -> list[int]:
        """The pods that came with ask number ``a``."""
        first = self.running_tasks
        return [t for t in self.jobs.tasks[self.jobs.of_ask[a]] if t >= first and self._ask_of_task[t - first] == a]

    def in_order(self, job: int) -> list[int]:
        """The pods of a job in task order: priority, age, name."""
        resident = self.state.resident.order if self.jobs.ask[job] < 0 else self._ordered
        found = resident.get(job)
        if found is None:
            wires, names = self.jobs.task_wire, self.jobs.task_name

            def key(t: int) -> tuple[int, int, str]:
                wire = wires[t]
                return -(wire.priority or 0), micros(wire.created_at) if wire.created_at else 0, names[t]

            found = resident[job] = sorted(self.jobs.tasks[job], key=key)
        return found

    def wanted(self, job: int) -> tuple[list[int], Share]:
        """The pods that the job would place next, and their sum: what its gang lacks, else one more.

        Pending pods, and those evicted by the statement in hand.
        """
        found = self._wanted.get(job)
        if found is None:
            status, virtual = self.status, self.virtual
            able = [t for t in self.in_order(job) if status[t] == PENDING or (status[t] == RELEASING and virtual[t])]
            tasks = able[: self.lacks(job)]
            found = self._wanted[job] = (tasks, total(self.request, tasks))
        return found

    def lacks(self, job: int) -> int:
        """How many pods the job's gang lacks; 1 where it lacks none."""
        missing = self.jobs.min_available[job] - self.active[job]
        return missing if missing > 0 else 1

    def ready(self, job: int) -> bool:
        """Enough pods alive for the gang. An earlier attempt of the same action may have evicted some."""
        return self.active[job] + self.pending[job] >= self.jobs.min_available[job]

    def seems_active(self, job: int) -> bool:
        """Whether the job runs something by KAI's count, which double evictions upset."""
        return self.active[job] + self.miscounted[job] + self.drift[job] != 0

    def elastic_rank(self, job: int) -> int:
        """0 below its gang, 1 at it, 2 above it."""
        over = self.active[job] - self.jobs.min_available[job]
        return 0 if over < 0 else 1 if over == 0 else 2

    def overfilled(self) -> bool:
        """Whether some node is promised more than it has, which was not so at the start."""
        return self.gpus.overfilled() or any(
            free < 0 and n not in before
            for column, before in zip(self.free, self._overfull, strict=True)
            for n, free in enumerate(column)
        )

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
        return sum(not self.undone[at] for at in self._evicted_by.get(t, ()))

    def stays_evicted(self, t: int) -> bool:
        """Whether the statement in hand evicts the pod in the end, be it for another place."""
        return self.evictions_of(t) > 0

    def asking(self, job: int) -> int:
        """The ask that the statement in hand is for: that of the first of the job's pods that it placed."""
        task_job, first = self.jobs.task_job, self.running_tasks
        placed = (op.task for op in self.ops if op.kind == PLACE and task_job[op.task] == job and op.task >= first)
        return next((self._ask_of_task[t - first] for t in placed), self.jobs.ask[job])

    # Statements.

    def checkpoint(self) -> Mark:
        """A mark to roll back to."""
        return self.overlay.checkpoint(), len(self.ops)

    def rollback(self, mark: Mark) -> None:
        """Undo everything since ``mark``."""
        writes, count = mark
        self.overlay.rollback(writes)
        ops = self.ops
        while len(ops) > count:
            op = ops.pop()
            self.undone.pop()
            self.touched += (op.node, op.other)
            self._wanted.pop(self.jobs.task_job[op.task], None)
            if op.kind == EVICT:
                self._evicted_by[op.task].pop()
                if op.again and not op.counted:
                    self.drift[self.jobs.task_job[op.task]] += 1

    def evict(self, t: int) -> None:
        """Release a pod. One that the statement evicted already is taken from its queue once more, unless exact."""
        add = self.overlay.add
        before, n, j = self.status[t], self.node[t], self.jobs.task_job[t]
        earlier = self._evicted_by.setdefault(t, [])
        if before == RELEASING:
            if self.exact:
                return
            recorded, again = self.ops[earlier[0]].status, True
            counted = any(self.status[other] == recorded for other in self.jobs.tasks[j])
            if counted:
                add(self.miscounted, j, -1)
        else:
            again = counted = False
            recorded = before
            self.overlay.put(self.status, t, RELEASING)
            self.overlay.put(self.virtual, t, 1)
            add(self.active, j, -1)
            self._hold(j, t, before, -1)
            for r, amount in self.columns[t]:
                add(self.free[r], n, amount)
                if before == PIPELINED:
                    add(self.idle[r], n, -amount)
            if self.gpus.share[t]:
                self.gpus.change(t, n, before, RELEASING, self.free[GPU], self.idle[GPU])
        self._charge(j, t, -1)
        earlier.append(len(self.ops))
        self._note(EVICT, t, recorded, n, again=again, counted=counted)

    def restore(self, t: int) -> bool:
        """Take back the earliest eviction of the statement in hand: the pod stays where it was. False without one."""
        for at in self._evicted_by.get(t, ()):
            if not self.undone[at]:
                break
        else:
            return False
        op, add = self.ops[at], self.overlay.add
        j = self.jobs.task_job[t]
        if self.status[t] == RELEASING:
            self.overlay.put(self.status, t, op.status)
            self.overlay.put(self.virtual, t, 0)
            add(self.active, j, 1)
            self._hold(j, t, op.status, 1)
            for r, amount in self.columns[t]:
                add(self.free[r], op.node, -amount)
                if op.status == PIPELINED:
                    add(self.idle[r], op.node, amount)
            if self.gpus.share[t]:
                self.gpus.change(t, op.node, RELEASING, op.status, self.free[GPU], self.idle[GPU])
        self._charge(j, t, 1)
        self.overlay.put(self.undone, at, 1)
        self._note(RESTORE, t, RELEASING, op.node)
        return True

    def pipeline(self, t: int, n: int) -> bool:
        """Give a pod a place that may still have to be released; on a node that lists it already, restore it."""
        before = self.status[t]
        if before == RELEASING:
            if self.node[t] == n and self._may_return(t):
                return self.restore(t)
            if self.node[t] != n and self.ghost[t] >> n & 1:
                # It left this node earlier in the cycle: KAI takes it for already there and puts it back where it
                # moved to. Released code forgets to ask whether that place is still free.
                return (not self.strict or (self.fits(t, self.node[t]) and self._may_return(t))) and self.restore(t)
        self._place(t, n, PIPELINED)
        return True

    def _may_return(self, t: int) -> bool:
        return not self.gpus.share[t] or self.gpus.may_return(t, self.node[t], self.free[GPU])

    def allocate(self, t: int, n: int) -> None:
        """Give a pending pod a place that is idle."""
        self._place(t, n, ALLOCATED)

    def _place(self, t: int, n: int, status: int) -> None:
        add, put = self.overlay.add, self.overlay.put
        before, j = self.status[t], self.jobs.task_job[t]
        was = self.node[t]
        if before == RELEASING:
            put(self.ghost, t, self.ghost[t] | 1 << was)
            self.gpus.leave_behind(t)
        else:
            add(self.pending, j, -1)
            add(self.used, j, 1)
        put(self.status, t, status)
        put(self.virtual, t, 1)
        put(self.node, t, n)
        add(self.active, j, 1)
        self._hold(j, t, status, 1)
        for r, amount in self.columns[t]:
            add(self.free[r], n, -amount)
            if status == ALLOCATED:
                add(self.idle[r], n, -amount)
        if self.gpus.share[t]:
            self.gpus.enter(t, n, status, self.free[GPU], self.idle[GPU])
        self._charge(j, t, 1)
        self._note(PLACE, t, before, was, other=n)

    def make_pipelined(self, tasks: Iterable[int]) -> None:
        """Pods placed idle by the statement wait with the rest of their gang instead."""
        for t in tasks:
            if self.status[t] == ALLOCATED:
                n, j = self.node[t], self.jobs.task_job[t]
                self._hold(j, t, ALLOCATED, -1)
                self.overlay.put(self.status, t, PIPELINED)
                self.touched.append(n)
                for r, amount in self.columns[t]:
                    self.overlay.add(self.idle[r], n, amount)
                if self.gpus.share[t]:
                    self.gpus.change(t, n, ALLOCATED, PIPELINED, self.free[GPU], self.idle[GPU])

    def commit(self, action: str, job: int) -> None:
        """Make the statement final."""
        ask = self.asking(job)
        self._committed += 1
        for at, op in enumerate(self.ops):
            if self.undone[at]:
                continue
            if op.kind == EVICT:
                self.overlay.put(self.virtual, op.task, 0)
                self.evictions[op.task] = Eviction(op.task, action, ask, self._committed)
            elif op.kind == PLACE:
                self.placed.setdefault(op.task)
            self._wanted.pop(self.jobs.task_job[op.task], None)
            self.version[self.jobs.task_job[op.task]] += 1
        self.ops.clear()
        self.undone.clear()
        self._evicted_by.clear()

    def fits(self, t: int, n: int) -> bool:
        """Whether node n could take the pod once what is being released is gone."""
        request = self.request[t]
        if self.gpus.share[t]:
            return _fits(request, self.free, n, skip=GPU) and self.gpus.fits(t, n, self.free[GPU])
        cpu, memory, gpu = self._free
        return (
            request[2] <= gpu[n]
            and request[0] <= cpu[n]
            and request[1] <= memory[n]
            and (self.width == 3 or _fits(request, self.free, n))
        )

    def fits_idle(self, t: int, n: int) -> bool:
        """Whether node n can take the pod now."""
        request = self.request[t]
        if self.gpus.share[t]:
            return _fits(request, self.idle, n, skip=GPU) and self.gpus.fits_idle(t, n, self.idle[GPU], self.free[GPU])
        cpu, memory, gpu = self._idle
        if request[2] <= gpu[n] and request[0] <= cpu[n] and request[1] <= memory[n]:
            return self.width == 3 or _fits(request, self.idle, n)
        return not any(request)

    def _note(
        self, kind: int, t: int, status: int, node: int, *, other: int = NOWHERE, again: bool = False,
        counted: bool = False,
    ) -> None:  # fmt: skip
        self.ops.append(Operation(kind, t, status, node, other, again, counted))
        self.undone.append(0)
        self.touched += (node, other)
        self._wanted.pop(self.jobs.task_job[t], None)

    def _hold(self, j: int, t: int, status: int, sign: int) -> None:
        if status in _RUNS:
            self.overlay.spread(self.held, j, self.request[t], sign)

    def _charge(self, j: int, t: int, sign: int) -> None:
        """Count the pod in, or out of, what its queue and every queue above holds."""
        spread, request = self.overlay.spread, self.request[t]
        fixed = not self.jobs.preemptible[j]
        for q in self.paths[self.jobs.queue[j]]:
            spread(self.allocated, q, request, sign)
            if fixed:
                spread(self.fixed, q, request, sign)


def _fits(request: Sequence[int], have: list[list[int]], n: int, *, skip: int = -1) -> bool:
    return all(r == skip or amount <= have[r][n] for r, amount in enumerate(request))


def total(requests: list[tuple[int, ...]], tasks: Iterable[int]) -> Share:
    """The sum of the pods' requests, queue resources only."""
    cpu = memory = gpu = 0
    for t in tasks:
        request = requests[t]
        cpu += request[0]
        memory += request[1]
        gpu += request[2]
    return cpu, memory, gpu
