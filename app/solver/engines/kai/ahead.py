"""Sums of a run that nobody watches, change by change: what is free on nodes, what queues hold, and which jobs wait
and run; and where each pod goes of a job that asks alone, if all of it starts.

Then no order of queues or jobs decides anything, and nobody waits after the first action. Source: ``placing``, whose
rules these are; what is free is idle, for nothing is on its way out.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import le
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.solver import rounds
from app.solver.compiled import ResourceIndex, Unlogged
from app.solver.engines.kai.jobs import (
    BOUNDLESS,
    CPU,
    GPU,
    MEMORY,
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
    task_key,
    total,
    with_shares,
)
from app.solver.engines.kai.nodes import WHOLE, GpuShares
from app.solver.engines.kai.queue_order import Bounds
from app.solver.engines.kai.state import CompiledState, Key, is_plain, layout
from app.solver.model.base import Quantity
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
    ``changes``: nodes of which somebody took or gave back, one after the other; ``played``: what a cycle has moved (see
    ``play``), ``_counted``: those that were carried out, by pod."""

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
        self.played, self._unsure = list[tuple[Job, int, int]](), False
        self._counted: dict[int, tuple[Task, tuple[Job, int, int]]] = {}
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
        gone, new = parted(before.tasks, after.tasks)
        if not self._counts(new) or any(request.portion is not None for request in map(self.request, new) if request):
            return False
        self._count(number, before, gone, -1)
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
            if self._counted.pop(id(task), None) is None:
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
        if isinstance(takes, int):
            self._whole[place] -= sign * takes
            if place not in self._shared:  # the node's own books have it already
                if sign > 0 or place in self._over:
                    self._look(place)
                return
        self._unsure |= bool(self._counted)  # these count as room that the node's devices do not have
        pods = self._shared.setdefault(place, {})
        if isinstance(takes, int):
            pass
        elif sign > 0:
            pods[pod] = takes
        else:
            del pods[pod]
        if pods:
            self.free[GPU, place], self._room[place] = self._devices(place, sorted(pods.values()))
        else:
            del self._shared[place]
            self.free[GPU, place], self._room[place] = self._whole[place], _NONE
        self._look(place)

    def _look(self, place: int) -> None:
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
        if not self.plain(ask) or not (running is None or is_of(ask, running)):
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

    def play(self, job: "Job", place: int, times: int) -> None:
        """A pod of the job comes to the node, or leaves it (-1), in a cycle that nobody has carried out yet."""
        self.take(place, job.request.vector, times)
        self.hold(job.queue, job.want, times, preemptible=job.preemptible)
        self.played.append((job, place, times))

    def settle(self) -> None:
        """What is played is taken back."""
        for job, place, times in self.played:
            self.take(place, job.request.vector, -times)
            self.hold(job.queue, job.want, -times, preemptible=job.preemptible)
        self.played.clear()

    def keep(self, pods: Iterable[Task | None]) -> None:
        """What is played was carried out, and is not counted again once these pods come and go: one a move, None where
        nothing came of it."""
        back = list[tuple[Job, int, int]]()
        for task, move in zip(pods, self.played, strict=False):
            if task is None:
                back.append(move)
            else:
                self._counted[id(task)] = task, move
        self.played[:] = back
        self.settle()

    def caught_up(self) -> bool:
        """All workloads have followed: what came or went is no longer what was played. False: that can't be told."""
        self.played += [move for _, move in self._counted.values()]
        self._counted.clear()
        self.settle()
        return not self._unsure

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
        known, number = self._rooms.get(vector), len(self.changes)
        if known is not None and known[2] == number:
            return known[0], known[1]
        if known is None or number - known[2] > _FEW:
            fits = self._fit(vector)
            count = int(np.count_nonzero(fits))
        else:
            fits, count, seen = known
            for place in self.changes[seen:]:
                if fits[place] != (takes := self.takes(place, vector)):
                    fits[place] = takes
                    count += 1 if takes else -1
        self._rooms[vector] = fits, count, number
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


def apart(tasks: list[Task], others: list[Task]) -> list[Task]:
    """Those that are none of the others."""
    ids = set(map(id, others))
    return [task for task in tasks if id(task) not in ids]


def parted(before: list[Task], now: list[Task]) -> tuple[list[Task], list[Task]]:
    """Those that went, and those that came: mostly at one place."""
    first = last = 0
    least = min(len(before), len(now))
    while first < least and before[first] is now[first]:
        first += 1
    while last < least - first and before[-1 - last] is now[-1 - last]:
        last += 1
    gone, new = before[first : len(before) - last], now[first : len(now) - last]
    return (apart(gone, new), apart(new, gone)) if gone and new else (gone, new)


def is_of(ask: Ask, running: Workload) -> bool:
    """Whether what runs is a job as the ask has it, which the ask grows."""
    mine = ask.queue, ask.preemptible is not False, ask.min_available or 1
    return running.sub_groups is None and mine == (running.queue, running.preemptible, running.min_available or 1)


Kind = tuple[int, Request, bool]  # queue, what each pod wants, whether it can be preempted


class Job(NamedTuple):
    """One whose pods are alike and each placed by itself. ``want``: what each asks for of what queues count;
    ``asked``: an ask of it that was looked at, with all that wait; ``waits`` and ``runs``: pods, in task order, those
    of ``ask`` and ``running``; ``started``: 0 where it does not run, or nobody knows since when."""

    name: str
    queue: int
    key: Key
    request: Request
    want: Share
    asked: Ask | None
    ask: Ask | None
    running: Workload | None
    waits: list[Task]
    runs: list[Task]
    started: int
    preemptible: bool


def ranked(key: Key, by: int) -> Key:
    """The same job's with another rank."""
    return key[0], by, key[2], key[3], key[4]


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

    def sums(self) -> Sums | None:
        """As of a round; None: they can't be told."""
        self._gone.clear()
        if self._lost:
            return None
        if self._sums is None:
            self._sums = Sums(self._loaded)
        sums, latest = self._sums, dict[str, Workload | None]()
        sums.settle()
        for name, after in self._moves:
            if after is not None and latest.get(name, after) is None:
                sums.move(name, None)  # it comes last now
            latest[name] = after
        for name, after in latest.items():
            sums.move(name, after)
        self._moves.clear()
        self._lost = not sums.caught_up()
        return sums if sums.known and not self._lost else None
