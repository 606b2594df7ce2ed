"""Sums that go ahead of the compiled state in a run that nobody watches: what is free on nodes, what queues hold, and
which jobs wait and run, change by change; and where each pod goes of a job that asks alone, if all of it starts.

Then no order of queues or jobs decides anything, and nobody waits after the first action. Source: ``placing``, whose
rules these are; what is free is idle, for nothing is on its way out.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import add
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver import rounds
from app.solver.compiled import ResourceIndex, Unlogged
from app.solver.engines.kai.fair_share import divided
from app.solver.engines.kai.jobs import (
    BOUNDLESS,
    CPU,
    GPU,
    KAI_UNLIMITED,
    MEMORY,
    OLDEST,
    RUNNING,
    Columns,
    GpuNodes,
    Portion,
    Readable,
    Share,
    Vector,
    constraints,
    is_gpu,
    is_numbered,
    portion_of,
    rank,
    task_key,
    with_shares,
)
from app.solver.engines.kai.nodes import WHOLE, GpuShares
from app.solver.engines.kai.queue_order import Comparison, Entry, put_in_line
from app.solver.engines.kai.state import CompiledState, Key, is_plain, layout
from app.solver.model.base import Quantity, micros
from app.solver.model.state import Ask, Task, Workload

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LARGE = 2**50
"""Steps of one pod that are counted exactly with those of many others."""
_NONE = -1


class Request(NamedTuple):
    """What a pod asks for; ``portion``: its share of one GPU, None for whole ones."""

    vector: Vector
    portion: Portion | None


class Ahead(rounds.Ahead[CompiledState]):
    """See ``rounds.Ahead``. Changes are counted once a round may be plain; sums are made anew of a state that has
    followed where that is less. ``_gone``: what went since the last round."""

    def __init__(self, loaded: CompiledState) -> None:
        self._loaded = loaded
        self._moves: list[tuple[str, Workload | None]] = []
        self._gone: set[str] = set()
        self._sums: Sums | None = None
        self._lost = False

    def moved(self, name: str, after: Workload | None) -> bool:
        if after is None:
            self._gone.add(name)
        elif name in self._gone:  # there is no telling whether it comes last now or where it was
            self._lost = True
        self._moves.append((name, after))
        return True

    def state(self, follow: Callable[[], CompiledState]) -> CompiledState | None:
        self._gone.clear()
        loaded = follow()
        if self._sums is None or self._lost or len(self._moves) > len(loaded.workloads):
            self._loaded, self._sums, self._lost = loaded, None, False
            self._moves.clear()
        return loaded

    def sums(self) -> "Sums | None":
        """As of a round; None: they can't be told."""
        self._gone.clear()
        if self._lost:
            return None
        if self._sums is None:
            self._sums = Sums(self._loaded)
        latest: dict[str, Workload | None] = {}
        for name, after in self._moves:
            if after is not None and latest.get(name, after) is None:
                self._sums.move(name, None)  # it comes last now
            latest[name] = after
        for name, after in latest.items():
            self._sums.move(name, after)
        self._moves.clear()
        return self._sums if self._sums.known else None


class _Shared(NamedTuple):
    """A pod with a share of one GPU: its place among all, and the devices that it says it is on."""

    place: tuple[int, int]
    portion: Portion
    group: str | None


class Sums:
    """What nodes have free and queues hold. Nodes go by the order of their names. ``free``: by resource and node;
    ``_whole``: GPUs that nobody takes whole; ``_room``: MiB that the emptiest shared device of each node has, below 0
    where none has any; ``_shared``: pods with shares, by node; ``held``: what runs, each with its place in the state,
    ``odd``: of that what can't be counted; ``_over``: nodes that are promised too much; ``moved``: who did lately."""

    def __init__(self, state: CompiledState) -> None:
        nodes, tree = layout(state), state.configuration.tree
        order = nodes.by_name
        self.names = [state.node_name[n] for n in order]
        self.held: dict[str, tuple[int, Workload]] = {}
        self._number = 0
        self._configuration = state.configuration
        self.place = {name: place for place, name in enumerate(self.names)}
        self.paths = [tree.path(q) for q in range(len(tree))]
        self.state = state
        self.allocated, self.fixed = ([[0] * len(tree) for _ in range(GPU + 1)] for _ in range(2))
        self.moved: set[str] = set()
        self._columns = Columns(ResourceIndex(state.resources.names), state.configuration.policy.release)
        self._readable = Readable()
        self._requests: dict[tuple[tuple[str, Quantity], ...], Request | None] = {}
        self._needs: dict[Portion, Ints] = {}
        self._shared: dict[int, dict[tuple[str, str], _Shared]] = {}
        self.odd, self._over = set[str](), set[int]()
        self._able = bool(order) and len(state.resources) == state.named_by_nodes and not any(
            v[GPU] % WHOLE or max(v) > BOUNDLESS or min(v) < 0 for v in state.capacity
        )  # fmt: skip
        if not self._able:
            return
        self.free: Ints = np.array([state.capacity[n] for n in order], np.int64).T.copy()
        self._whole: Ints = self.free[GPU].copy()
        self._memory: Ints = np.array([nodes.gpu_memory[n] for n in order], np.int64)
        self._gpus, self._pods = [nodes.gpus[n] for n in order], nodes.pods
        self.open: Flags = np.array([nodes.open[n] for n in order], bool)
        self._ready: Ints = np.array([state.nodes[n].schedulable for n in order], np.int64)
        self._has_cpu, self._has_gpu = self.free[CPU] > 0, self.free[GPU] > 0
        self._room: Ints = np.full(len(order), _NONE, np.int64)
        for workload in state.workloads:
            self.move(workload.id, workload)

    @property
    def known(self) -> bool:
        """Whether all that runs is counted, runs on, and has its place."""
        return self._able and not self.odd and not self._over

    def move(self, name: str, after: Workload | None) -> None:
        """The workload is ``after`` now, or gone. Who comes again is the last in the state."""
        if not self._able:
            return
        self.moved.add(name)
        number, before = self.held.pop(name, (self._number, None))
        if before is None:
            self._number += 1
        elif name not in self.odd:
            if after is not None and self._goes_on(number, before, after):
                self.held[name] = number, after
                return
            self._count(number, before, -1)
        self.odd.discard(name)
        if after is not None:
            self.held[name] = number, after
            if not after.evicted and self._counts(after.tasks):
                self._count(number, after, 1)
            else:
                self.odd.add(name)

    def _goes_on(self, number: int, before: Workload, after: Workload) -> bool:
        """Whether only some pods of it went or came, which are counted then. Not where pods have shares of GPUs: these
        go by their place in the job."""
        if self._shared or after.evicted or (before.queue, before.preemptible) != (after.queue, after.preemptible):
            return False
        were, are = set(map(id, before.tasks)), set(map(id, after.tasks))
        new = [task for task in after.tasks if id(task) not in were]
        if not self._counts(new) or any(request.portion is not None for request in map(self.request, new) if request):
            return False
        if gone := [task for task in before.tasks if id(task) not in are]:
            self._count(number, replace(before, tasks=gone), -1)
        if new:
            self._count(number, replace(after, tasks=new), 1)
        return True

    def _counts(self, tasks: Sequence[Task]) -> bool:
        """Whether all of them run on some node and ask for what can be told."""
        return all(
            task.state == "running" and task.node is not None and self.request(task) is not None for task in tasks
        )

    def _count(self, number: int, workload: Workload, sign: int) -> None:
        held = [0, 0, 0]
        for i, task in enumerate(workload.tasks):
            request = self.request(task)
            assert request is not None
            assert task.node is not None
            vector, place = request.vector, self.place[task.node]
            for r, amount in enumerate(vector):
                if r < len(held):
                    held[r] += sign * amount
                if amount and r != GPU:
                    self.free[r, place] -= sign * amount
            shared = None if request.portion is None else _Shared((number, i), request.portion, task.gpu_group)
            self._seat(place, (workload.id, task.name), vector[GPU] if shared is None else shared, sign)
        for q in self.paths[self._configuration.tree.index[workload.queue]]:
            for table in (self.allocated,) if workload.preemptible else (self.allocated, self.fixed):
                for column, amount in zip(table, held, strict=True):
                    column[q] += amount

    def _seat(self, place: int, pod: tuple[str, str], takes: "int | _Shared", sign: int) -> None:
        """Whole GPUs that a pod takes, or its share, and what that leaves of the node's."""
        pods = self._shared.setdefault(place, {})
        if isinstance(takes, int):
            self._whole[place] -= sign * takes
        elif sign > 0:
            pods[pod] = takes
        else:
            del pods[pod]
        if pods:
            self.free[GPU, place], self._room[place] = self._devices(place, sorted(pods.values()))
        else:
            del self._shared[place]
            self.free[GPU, place], self._room[place] = self._whole[place], _NONE
        (self._over.add if min(self.free[:, place].tolist()) < 0 else self._over.discard)(place)

    def _devices(self, place: int, pods: list[_Shared]) -> tuple[int, int]:
        """What of a node's GPUs nobody is on, once its pods with shares have theirs as a decision would give them; and
        the most that one of the shared ones has left, in MiB."""
        size, left = int(self._memory[place]), int(self._whole[place])
        gpus, free = self._gpus[place], [left]
        nodes = GpuNodes([size], [gpus], [gpus * WHOLE - left], [pod.portion for pod in pods])
        books = GpuShares(Unlogged(), Unlogged(), nodes, free, [left])
        used: dict[int, int] = {}
        for t, pod in enumerate(pods):
            books.seed(t, 0, RUNNING, pod.group)
            for device in books.on(t):
                used[device] = used.get(device, 0) + books.need(t, 0)
        return free[0], size - min(used.values())

    def starts(self, ask: Ask) -> list[tuple[Task, int]] | None:
        """The pods of the only ask, in the order in which they start, and where; None: not all do, or nobody can tell
        yet."""
        _, running = self.held.get(ask.id, (0, None))
        if not self.plain(ask) or not (running is None or _is_of(ask, running)):
            return None
        pods, holds = sorted(ask.tasks, key=task_key), 0 if running is None else len(running.tasks)
        requests = [request for task in pods if (request := self.request(task)) is not None]
        shares = any(request.portion is not None for request in requests)
        lacks = len(pods) + holds < (ask.min_available or 1) or len(requests) < len(pods)
        if lacks or (shares and len(pods) > 1) or not self._within_bounds(ask, requests):
            return None
        places: list[int] = []
        for request in requests:
            place = self.best(request, shares=shares or bool(self._shared))
            if place is None:
                break
            places.append(place)
            if len(pods) > 1:
                self.free[:, place] -= request.vector
        if len(pods) > 1:
            for request, place in zip(requests, places, strict=False):
                self.free[:, place] += request.vector
        return list(zip(pods, places, strict=True)) if len(places) == len(pods) else None

    def plain(self, ask: Ask) -> bool:
        """Whether the ask may go to any node, and there is nothing to it but its pods, which wait to be placed."""
        tree = self._configuration.tree
        queue = tree.index.get(ask.queue)
        return (
            queue is not None
            and tree.is_leaf(queue)
            and bool(ask.tasks)
            and ask.workload is None
            and is_plain(ask, self._readable)
            and all(task.state != "gated" and not constraints(task, ask) for task in ask.tasks)
        )

    def request(self, task: Task) -> Request | None:
        """What a pod asks for; None: it can't be told here."""
        if task.gpu_devices or task.gpu_memory or task.count != 1 or (task.gpu_group and is_numbered(task.gpu_group)):
            return None
        key = tuple(task.requests.items())
        if key not in self._requests:
            self._requests[key] = self._read(task)
        return self._requests[key]

    def _read(self, task: Task) -> Request | None:
        known = self._columns.resources.index
        if not self._readable(task.requests) or not all(name in known or is_gpu(name) for name in task.requests):
            return None
        vector = self._columns(task.requests, pod=True)
        portion = portion_of(task, vector[GPU])
        if max(vector) >= _LARGE or min(vector) < 0 or (portion is None and vector[GPU] % WHOLE):
            return None
        if portion is not None and portion not in self._needs:
            needs = [portion.memory_on(size) for size in self._memory.tolist()]
            if min(needs) <= 0:
                return None
            self._needs[portion] = np.array(needs, np.int64)
        return Request(with_shares(vector, portion, None), portion)

    def _within_bounds(self, ask: Ask, requests: Sequence[Request]) -> bool:
        """Whether the job passes no limit and, where it can't be preempted, no deserved quota on its way up."""
        configuration = self._configuration
        fixed = ask.preemptible is False
        for r in range(GPU + 1):
            want = sum(request.vector[r] for request in requests)
            for q in self.paths[configuration.tree.index[ask.queue]] if want else ():
                if KAI_UNLIMITED != configuration.limit[q][r] < self.allocated[r][q] + want:
                    return False
                if fixed and KAI_UNLIMITED != configuration.deserved[q][r] < self.fixed[r][q] + want:
                    return False
        return True

    def fits_somewhere(self, vector: Vector) -> bool:
        """Whether some node has room for a pod that takes so much."""
        return bool(self._with_room(vector).any())

    def _with_room(self, vector: Vector, *, shared: bool = False) -> Flags:
        """The nodes that take the pod. ``shared``: GPUs are not looked at."""
        fits = self.open.copy()
        for r, (amount, free) in enumerate(zip(vector, self.free, strict=True)):
            if amount and not (shared and r == GPU):
                fits &= free >= amount
        return fits

    def room(self) -> list[int]:
        """What nodes that take pods have free in all, by resource."""
        return list(map(int, self.free[: GPU + 1] @ self._ready))

    def best(self, request: Request, *, shares: bool) -> int | None:
        """Where the pod goes. ``shares``: whether anybody has, or asks for, a share of a GPU."""
        vector, portion = request
        fits = self._with_room(vector, shared=portion is not None)
        need = None if portion is None else self._needs[portion]
        if need is not None:
            fits &= (need <= self._memory) & ((self.free[GPU] >= WHOLE) | (need <= self._room))
            if self._pods is not None:
                fits &= self.free[self._pods] > 1
        best = np.flatnonzero(fits)
        if len(best) < 2:
            return int(best[0]) if len(best) else None
        gpu = bool(vector[GPU])
        if gpu and need is None:
            return int(best[self.free[GPU][best].argmin()])
        if need is not None or (shares and not gpu):
            best = _rather(best, self._room[best] >= (0 if need is None else need[best]))
        if not gpu:
            best = _rather(best, ~self._has_gpu[best])
        has, free = (self._has_gpu, self.free[GPU]) if gpu else (self._has_cpu, self.free[CPU])
        counts, held = has[best], free[best]
        if counts.all() and held.max() > 0:
            return int(best[held.argmin()])
        counted = free[has]
        most = int(counted.max()) if len(counted) else 0
        if most <= 0:
            return int(best[0])
        if counted.min() == most:
            return int(_rather(best, counts)[0])
        return int(best[np.where(counts, most - held, 0).argmax()])


def _rather(nodes: Ints, these: Flags) -> Ints:
    """Those of ``nodes``, if there are any."""
    some = nodes[these]
    return some if len(some) else nodes


def _is_of(ask: Ask, running: Workload) -> bool:
    """Whether what runs is a job as the ask has it, which the ask grows."""
    mine = ask.queue, ask.preemptible is not False, ask.min_available or 1
    return running.sub_groups is None and mine == (running.queue, running.preemptible, running.min_available or 1)


Kind = tuple[int, Request, bool]  # queue, what each pod wants, whether it can be preempted


class Job(NamedTuple):
    """One whose pods are alike and each placed by itself. ``waits`` and ``runs``: they, in task order; ``want``: what
    each asks for of what queues count; ``started``: 0 where it does not run, or nobody knows since when."""

    name: str
    queue: int
    key: Key
    request: Request
    want: Share
    waits: list[Task]
    runs: list[Task]
    started: int
    preemptible: bool


class Crowd:
    """Jobs whose pods are alike, followed as each comes, changes and goes. ``odd``: others; ``lines``: those that wait,
    by queue, the best first; ``victims``: those that run and can be preempted, likewise; ``kinds``: how many of each
    wait; ``protects``: whether anything has a minimum runtime. Numbers stay."""

    def __init__(self, sums: Sums) -> None:
        self.sums, self.configuration = sums, (configuration := sums.state.configuration)
        self.tree = configuration.tree
        self.jobs, self.odd = dict[int, Job](), set[str]()
        self.lines, self.victims = dict[int, list[Entry]](), dict[int, list[Entry]]()
        self.kinds = Counter[Kind]()
        self.protects = any(any(configuration.min_runtimes.lengths(q)) for q in range(len(self.tree)))
        self._numbers, self._latest = dict[str, int](), 0
        self._wants = [[0] * len(self.tree) for _ in range(GPU + 1)]
        self._order: tuple[list[Share], Comparison] | None = None

    def look(self, name: str, ask: Ask | None, running: Workload | None) -> None:
        """The job waits with ``ask`` now and runs as ``running``, or does neither."""
        number = self._numbers.pop(name, self._latest)
        self._latest += number == self._latest
        before, after = self.jobs.pop(number, None), None
        self.odd.discard(name)
        if ask is not None or running is not None:
            self._numbers[name] = number
            if (after := self._read(number, ask, running, before)) is None:
                self.odd.add(name)
            else:
                self.jobs[number] = after
        for lines, was, now in (
            (self.lines, _waits(before), _waits(after)), (self.victims, _may_go(before), _may_go(after)),
        ):  # fmt: skip
            if was is not None and was != now:
                put_in_line(lines, was[0], number, was[1], None)
            if now is not None and was != now:
                put_in_line(lines, now[0], number, None, now[1])
        self._count(before, -1)
        self._count(after, 1)

    def _count(self, job: Job | None, sign: int) -> None:
        if job is None or not job.waits:
            return
        kind, pods = (job.queue, job.request, job.preemptible), sign * len(job.waits)
        self.kinds[kind] += sign
        if not self.kinds[kind]:
            del self.kinds[kind]
        for q in self.sums.paths[job.queue]:
            for column, amount in zip(self._wants, job.want, strict=True):
                column[q] += pods * amount

    def _read(self, number: int, ask: Ask | None, running: Workload | None, before: Job | None) -> Job | None:
        """None: its pods are not alike, or there is more to it. ``before``: pods of it are sound and alike."""
        owner, sums = running or ask, self.sums
        waits = [] if ask is None else sorted(ask.tasks, key=task_key)
        runs = [] if running is None else sorted(running.tasks, key=task_key)
        known = set[int]() if before is None else set(map(id, (*before.waits, *before.runs)))
        new = [task for task in waits if id(task) not in known]
        if owner is None or not all(job is None or self._is_simple(job) for job in (ask, running)):
            return None
        sound = running is None or (running.id not in sums.odd and (ask is None or _is_of(ask, running)))
        if not sound or (ask is not None and not sums.plain(replace(ask, tasks=new or waits[:1]))):
            return None
        requests = {sums.request(task) for task in (*new, *runs) if id(task) not in known}
        first, *others = requests | {before.request} if before is not None else requests
        if first is None or others or first.portion is not None:
            return None
        created = OLDEST if owner.created_at is None else micros(owner.created_at)
        started = 0 if running is None or running.started_at is None else micros(running.started_at)
        key = -(owner.priority or 0), rank(len(runs), 1), created, owner.id, number
        want, queue = (first.vector[CPU], first.vector[MEMORY], first.vector[GPU]), self.tree.index[owner.queue]
        return Job(owner.id, queue, key, first, want, waits, runs, started, owner.preemptible is not False)

    def _is_simple(self, job: Ask | Workload) -> bool:
        queue = self.tree.index.get(job.queue)
        return bool(
            job.tasks and job.min_available in (None, 1) and job.uid is None and job.sub_groups is None
            and job.preemption_delay is None and queue is not None and self.tree.is_leaf(queue)
        )  # fmt: skip

    def order(self) -> Comparison:
        """How queues compare, on what sums say that they hold from now on; their shares stay those of now."""
        sums = self.sums
        requested = list(zip(*(map(add, *of) for of in zip(sums.allocated, self._wants, strict=True)), strict=True))
        if self._order is None or self._order[0] != requested:
            held, fixed = (list(zip(*table, strict=True)) for table in (sums.allocated, sums.fixed))
            division = divided(sums.state, held, fixed, requested)
            of = self.configuration, sums.paths, sums.allocated, sums.fixed
            self._order = requested, Comparison(*of, lambda: division)
        return self._order[1]


def _waits(job: Job | None) -> tuple[int, Key] | None:
    return (job.queue, job.key) if job is not None and job.waits else None


def _may_go(job: Job | None) -> tuple[int, Key] | None:
    return (job.queue, job.key) if job is not None and job.preemptible and job.runs else None
