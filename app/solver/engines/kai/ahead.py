"""Sums of a run that nobody watches, change by change: what is free on nodes, what queues hold, and which jobs wait
and run; and where each pod goes of a job that asks alone, if all of it starts.

Then no order of queues or jobs decides anything, and nobody waits after the first action. Source: ``placing``, whose
rules these are; what is free is idle, for nothing is on its way out.
"""

from bisect import insort
from collections import Counter
from collections.abc import Sequence
from operator import add, le
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver.compiled import ResourceIndex, Unlogged
from app.solver.engines.kai.fair_share import divided
from app.solver.engines.kai.jobs import (
    BOUNDLESS,
    CPU,
    GPU,
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
    total,
    with_shares,
)
from app.solver.engines.kai.nodes import WHOLE, GpuShares
from app.solver.engines.kai.queue_order import Bounds, Comparison, Entry, put_in_line
from app.solver.engines.kai.state import CompiledState, Key, is_plain, layout
from app.solver.model.base import Quantity, micros
from app.solver.model.state import Ask, Task, Workload

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LARGE = 2**50
"""Steps of one pod that are counted exactly with those of many others."""
_NONE = -1
_FEW, _LONG = 16, 4096
"""Changes of nodes that are looked at one by one, and those that are remembered."""


class Request(NamedTuple):
    """What a pod asks for; ``portion``: its share of one GPU, None for whole ones."""

    vector: Vector
    portion: Portion | None

    @property
    def want(self) -> Share:
        """Of it what queues count."""
        return self.vector[CPU], self.vector[MEMORY], self.vector[GPU]


class _Shared(NamedTuple):
    """A pod with a share of one GPU: its place among all, and the devices that it says it is on."""

    place: tuple[int, int]
    portion: Portion
    group: str | None


class Sums:
    """What nodes have free and queues hold. Nodes go by the order of their names. ``free``: by resource and node;
    ``_whole``: GPUs that nobody takes whole; ``_room``: MiB that the emptiest shared device of each node has, below 0
    where none has any; ``_shared``: pods with shares, by node; ``held``: what runs, each with its place in the state,
    ``odd``: of that what can't be counted; ``_over``: nodes that are promised too much; ``moved``: who did lately;
    ``changes``: nodes of which somebody took or gave back, one after the other."""

    def __init__(self, state: CompiledState) -> None:
        nodes, tree = layout(state), state.configuration.tree
        order = nodes.by_name
        self.names = [state.node_name[n] for n in order]
        self.held, self._number = dict[str, tuple[int, Workload]](), 0
        self.state, self._configuration = state, state.configuration
        self.place = {name: place for place, name in enumerate(self.names)}
        self.paths = [tree.path(q) for q in range(len(tree))]
        self.allocated, self.fixed = ([[0] * len(tree) for _ in range(GPU + 1)] for _ in range(2))
        self._columns = Columns(ResourceIndex(state.resources.names), state.configuration.policy.release)
        self._readable, self._needs = Readable(), dict[Portion, Ints]()
        self._requests: dict[tuple[tuple[str, Quantity], ...], Request | None] = {}
        self._shared: dict[int, dict[tuple[str, str], _Shared]] = {}
        self.odd, self.moved, self._over = set[str](), set[str](), set[int]()
        self.changes, self._rooms = list[int](), dict[Vector, tuple[Flags, int, int]]()
        self._bounds = Bounds(self._configuration, self.paths, self.allocated, self.fixed)
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
        if len(self.changes) > _LONG:
            self.changes.clear()
            self._rooms.clear()
        number, before = self.held.pop(name, (self._number, None))
        if before is None:
            self._number += 1
        elif name not in self.odd:
            if after is not None and self._goes_on(number, before, after):
                self.held[name] = number, after
                return
            self._count(number, before, before.tasks, -1)
        self.odd.discard(name)
        if after is not None:
            self.held[name] = number, after
            if not after.evicted and self._counts(after.tasks):
                self._count(number, after, after.tasks, 1)
            else:
                self.odd.add(name)

    def _goes_on(self, number: int, before: Workload, after: Workload) -> bool:
        """Whether only some pods of it went or came, which are counted then. Not where pods have shares of GPUs: these
        go by their place in the job."""
        if self._shared or after.evicted or (before.queue, before.preemptible) != (after.queue, after.preemptible):
            return False
        new = _apart(after.tasks, before.tasks)
        if not self._counts(new) or any(request.portion is not None for request in map(self.request, new) if request):
            return False
        self._count(number, before, _apart(before.tasks, after.tasks), -1)
        self._count(number, after, new, 1)
        return True

    def _counts(self, tasks: Sequence[Task]) -> bool:
        """Whether all of them run on some node and ask for what can be told."""
        return all(task.state == "running" and task.node is not None and self.request(task) for task in tasks)

    def _count(self, number: int, workload: Workload, tasks: Sequence[Task], sign: int) -> None:
        queue, preemptible = self._configuration.tree.index[workload.queue], workload.preemptible
        for i, task in enumerate(tasks):
            request = self.request(task)
            assert request is not None
            assert task.node is not None
            vector, place = request.vector, self.place[task.node]
            self.hold(queue, vector, sign, preemptible=preemptible)
            self.take(place, vector, sign)
            shared = None if request.portion is None else _Shared((number, i), request.portion, task.gpu_group)
            self._seat(place, (workload.id, task.name), vector[GPU] if shared is None else shared, sign)

    def hold(self, queue: int, amounts: Sequence[int], times: int, *, preemptible: bool) -> None:
        """The queue and those above it hold so many times these amounts more."""
        self.book(self.allocated, queue, amounts, times)
        if not preemptible:
            self.book(self.fixed, queue, amounts, times)

    def book(self, table: list[list[int]], queue: int, amounts: Sequence[int], times: int) -> None:
        """The same in any table by resource and queue."""
        of_cpu, of_memory, of_gpu = table
        cpu, memory, gpu = amounts[CPU] * times, amounts[MEMORY] * times, amounts[GPU] * times
        for q in self.paths[queue]:
            of_cpu[q] += cpu
            of_memory[q] += memory
            of_gpu[q] += gpu

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
        queue = self._configuration.tree.index[ask.queue]
        want = total([request.vector for request in requests], range(len(requests)))
        over = self._bounds.passed(queue, want, preemptible=ask.preemptible is not False) is not None
        if lacks or (shares and len(pods) > 1) or over:
            return None
        places: list[int] = []
        for request in requests:
            place = self.best(request, shares=shares or bool(self._shared))
            if place is None:
                break
            places.append(place)
            self.take(place, request.vector, 1)
        for request, place in zip(requests, places, strict=False):
            self.take(place, request.vector, -1)
        return list(zip(pods, places, strict=True)) if len(places) == len(pods) else None

    def plain(self, ask: Ask) -> bool:
        """Whether the ask may go to any node, and there is nothing to it but its pods, which wait to be placed."""
        tree = self._configuration.tree
        queue = tree.index.get(ask.queue)
        return bool(
            queue is not None and tree.is_leaf(queue) and ask.tasks and ask.workload is None
            and is_plain(ask, self._readable)
            and all(task.state != "gated" and not constraints(task, ask) for task in ask.tasks)
        )  # fmt: skip

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

    def take(self, place: int, vector: Vector, sign: int) -> None:
        """A pod that takes so much comes to the node, or leaves it."""
        for r, amount in enumerate(vector):
            if amount:
                self.free[r, place] -= sign * amount
        self.changes.append(place)

    def takes(self, place: int, vector: Vector) -> bool:
        """Whether the node takes a pod of that."""
        return bool(self.open[place]) and all(map(le, vector, self.free[:, place].tolist()))

    def with_room(self, vector: Vector) -> tuple[Flags, int]:
        """Which nodes take it, and how many do. Those that changed since the last look are looked at again."""
        fits, count, seen = self._rooms.get(vector, (None, 0, 0))
        if fits is None or len(self.changes) - seen > _FEW:
            fits = self._fit(vector)
            count = int(np.count_nonzero(fits))
        for place in set(self.changes[seen:]) if seen < len(self.changes) <= seen + _FEW else ():
            count -= int(fits[place])
            fits[place] = self.takes(place, vector)
            count += int(fits[place])
        self._rooms[vector] = fits, count, len(self.changes)
        return fits, count

    def _fit(self, vector: Vector, *, shared: bool = False) -> Flags:
        """``shared``: GPUs are not looked at."""
        fits = self.open.copy()
        for r, (amount, free) in enumerate(zip(vector, self.free, strict=True)):
            if amount and not (shared and r == GPU):
                fits &= free >= amount
        return fits

    def room(self) -> list[int]:
        """What nodes that take pods have free in all, by resource."""
        return self.free[: GPU + 1].dot(self._ready).tolist()

    def best(self, request: Request, *, shares: bool) -> int | None:
        """Where the pod goes. ``shares``: whether anybody has, or asks for, a share of a GPU."""
        vector, portion = request
        need = None if portion is None else self._needs[portion]
        if need is None:
            fits, _ = self.with_room(vector)
        else:
            fits = self._fit(vector, shared=True)
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


def _is_like(job: Ask | Workload | None, other: Ask | Workload | None) -> bool:
    """Whether there is no more to it than to the other but its pods."""
    return job is None or (other is not None and bool(job.tasks) and replace(job, tasks=other.tasks) == other)


def _apart(tasks: list[Task], others: list[Task]) -> list[Task]:
    """Those that are none of the others."""
    ids = set(map(id, others))
    return [task for task in tasks if id(task) not in ids]


def _in_order(tasks: list[Task], before: list[Task]) -> tuple[list[Task], list[Task]]:
    """They in task order, and the new ones. ``before``: in that order already."""
    new, are = _apart(tasks, before), set(map(id, tasks))
    ordered = [task for task in before if id(task) in are]
    for task in new:
        insort(ordered, task, key=task_key)
    return ordered, new


def _is_of(ask: Ask, running: Workload) -> bool:
    """Whether what runs is a job as the ask has it, which the ask grows."""
    mine = ask.queue, ask.preemptible is not False, ask.min_available or 1
    return running.sub_groups is None and mine == (running.queue, running.preemptible, running.min_available or 1)


Kind = tuple[int, Request, bool]  # queue, what each pod wants, whether it can be preempted


class Job(NamedTuple):
    """One whose pods are alike and each placed by itself. ``want``: what each asks for of what queues count;
    ``asked``: an ask of it that was looked at, with all that wait; ``waits`` and ``runs``: pods, in task order;
    ``started``: 0 where it does not run, or nobody knows since when."""

    name: str
    queue: int
    key: Key
    request: Request
    want: Share
    asked: Ask | None
    running: Workload | None
    waits: list[Task]
    runs: list[Task]
    started: int
    preemptible: bool


def ranked(key: Key, by: int) -> Key:
    """The same job's with another rank."""
    return key[0], by, key[2], key[3], key[4]


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
        of = before, after
        wait = [(job.queue, job.key) if job is not None and job.waits else None for job in of]
        may_go = [(job.queue, job.key) if job is not None and job.runs and job.preemptible else None for job in of]
        for lines, (was, now) in ((self.lines, wait), (self.victims, may_go)):
            stays = was[1] if was is not None and now is not None and was[0] == now[0] else None
            if was is not None and stays is None:
                put_in_line(lines, was[0], number, was[1], None)
            if now is not None and was != now:
                put_in_line(lines, now[0], number, stays, now[1])
        self._count(before, -1)
        self._count(after, 1)

    def _count(self, job: Job | None, sign: int) -> None:
        if job is None or not job.waits:
            return
        kind = job.queue, job.request, job.preemptible
        self.kinds[kind] += sign
        if not self.kinds[kind]:
            del self.kinds[kind]
        self.sums.book(self._wants, job.queue, job.want, sign * len(job.waits))

    def _read(self, number: int, ask: Ask | None, running: Workload | None, before: Job | None) -> Job | None:
        """None: its pods are not alike, or there is more to it. ``before``: pods of it are sound and alike."""
        owner, sums = running or ask, self.sums
        asked, waited, ran = (None, [], []) if before is None else (before.asked, before.waits, before.runs)
        again = before is not None and _is_like(ask, asked) and _is_like(running, before.running)
        if owner is None or not (again or all(job is None or self._is_simple(job) for job in (ask, running))):
            return None
        if running is not None and (running.id in sums.odd or not (ask is None or _is_of(ask, running))):
            return None
        waits, new = _in_order([] if ask is None else ask.tasks, waited)
        runs, others = _in_order([] if running is None else running.tasks, ran)
        if ask is not None and not (again and asked is not None and not _apart(new, asked.tasks)):
            if not sums.plain(ask):
                return None
            asked, others = ask, [*waits, *runs]
        requests = set(map(sums.request, others))
        first, *more = requests | {before.request} if before is not None else requests
        if first is None or more or first.portion is not None:
            return None
        created = OLDEST if owner.created_at is None else micros(owner.created_at)
        started = 0 if running is None or running.started_at is None else micros(running.started_at)
        key = -(owner.priority or 0), rank(len(runs), 1), created, owner.id, number
        queue, of = self.tree.index[owner.queue], (asked, running, waits, runs)
        return Job(owner.id, queue, key, first, first.want, *of, started, owner.preemptible is not False)

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
