"""KAI's rounds: what waits, and when time alone lets it act; and in a run that nobody watches rounds that are plain
before they are asked, since one job asks, alone, and all of it starts.

Then no order of queues or jobs decides anything, and nobody waits after the first action. What is left is where each
pod goes. Sums tell that which go ahead of the compiled state: what is free on nodes and what queues hold, kept up to
date change by change. All else is asked. Source: ``placing``, whose rules these are; what is free is idle, for nothing
is on its way out.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver import rounds
from app.solver.compiled import ResourceIndex, Unlogged
from app.solver.engines.kai.configuration import CompiledConfiguration, unprotected_from
from app.solver.engines.kai.jobs import (
    BOUNDLESS,
    CPU,
    GPU,
    KAI_UNLIMITED,
    RUNNING,
    Columns,
    GpuNodes,
    Portion,
    Readable,
    Vector,
    constraints,
    is_gpu,
    is_numbered,
    portion_of,
    task_key,
    with_shares,
)
from app.solver.engines.kai.nodes import WHOLE, GpuShares
from app.solver.engines.kai.state import CompiledState, is_plain, layout
from app.solver.model.base import Quantity, micros, parse_duration, to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.question import Question
from app.solver.rounds import Holds, Outcome, PlacedRounds, Turn, Unit, Wakes

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
        for name, after in self._moves:
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
    where none has any; ``_shared``: pods with shares, by node; ``held``: what runs, each with its place in the state;
    ``_odd``: of that what can't be counted; ``_over``: nodes that are promised more than they have."""

    def __init__(self, state: CompiledState) -> None:
        nodes, tree = layout(state), state.configuration.tree
        order = nodes.by_name
        self.names = [state.node_name[n] for n in order]
        self.held: dict[str, tuple[int, Workload]] = {}
        self._number = 0
        self._configuration = state.configuration
        self._place = {name: place for place, name in enumerate(self.names)}
        self._paths = [tree.path(q) for q in range(len(tree))]
        self._allocated, self._fixed = ([[0, 0, 0] for _ in tree.names] for _ in range(2))
        self._columns = Columns(ResourceIndex(state.resources.names), state.configuration.policy.release)
        self._readable = Readable()
        self._requests: dict[tuple[tuple[str, Quantity], ...], Request | None] = {}
        self._needs: dict[Portion, Ints] = {}
        self._shared: dict[int, dict[tuple[str, str], _Shared]] = {}
        self._odd: set[str] = set()
        self._over: set[int] = set()
        self._able = bool(order) and len(state.resources) == state.named_by_nodes and not any(
            v[GPU] % WHOLE or max(v) > BOUNDLESS or min(v) < 0 for v in state.capacity
        )  # fmt: skip
        if not self._able:
            return
        self.free: Ints = np.array([state.capacity[n] for n in order], np.int64).T.copy()
        self._whole: Ints = self.free[GPU].copy()
        self._memory: Ints = np.array([nodes.gpu_memory[n] for n in order], np.int64)
        self._gpus, self._pods = [nodes.gpus[n] for n in order], nodes.pods
        self._open: Flags = np.array([nodes.open[n] for n in order], bool)
        self._has_cpu, self._has_gpu = self.free[CPU] > 0, self.free[GPU] > 0
        self._room: Ints = np.full(len(order), _NONE, np.int64)
        for workload in state.workloads:
            self.move(workload.id, workload)

    @property
    def known(self) -> bool:
        """Whether all that runs is counted, runs on, and has its place."""
        return self._able and not self._odd and not self._over

    def move(self, name: str, after: Workload | None) -> None:
        """The workload is ``after`` now, or gone. Who comes again is the last in the state."""
        if not self._able:
            return
        number, before = self.held.pop(name, (self._number, None))
        if before is None:
            self._number += 1
        elif name not in self._odd:
            self._count(number, before, -1)
        self._odd.discard(name)
        if after is not None:
            self.held[name] = number, after
            if self._counts(after):
                self._count(number, after, 1)
            else:
                self._odd.add(name)

    def _counts(self, workload: Workload) -> bool:
        """Whether all of it runs on some node and asks for what can be told."""
        return not workload.evicted and all(
            task.state == "running" and task.node is not None and self._request(task) is not None
            for task in workload.tasks
        )

    def _count(self, number: int, workload: Workload, sign: int) -> None:
        held = [0, 0, 0]
        for i, task in enumerate(workload.tasks):
            request = self._request(task)
            assert request is not None
            assert task.node is not None
            vector, place = request.vector, self._place[task.node]
            for r, amount in enumerate(vector):
                if r < len(held):
                    held[r] += sign * amount
                if amount and r != GPU:
                    self.free[r, place] -= sign * amount
            shared = None if request.portion is None else _Shared((number, i), request.portion, task.gpu_group)
            self._seat(place, (workload.id, task.name), vector[GPU] if shared is None else shared, sign)
        for q in self._paths[self._configuration.tree.index[workload.queue]]:
            for table in (self._allocated,) if workload.preemptible else (self._allocated, self._fixed):
                table[q] = [a + b for a, b in zip(table[q], held, strict=True)]

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
        (self._over.add if self.free[:, place].min() < 0 else self._over.discard)(place)

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
        if not self._plain(ask) or not (running is None or _is_of(ask, running)):
            return None
        pods, holds = sorted(ask.tasks, key=task_key), 0 if running is None else len(running.tasks)
        if len(pods) + holds < (ask.min_available or 1):
            return None
        requests = [request for task in pods if (request := self._request(task)) is not None]
        shares = any(request.portion is not None for request in requests)
        if len(requests) < len(pods) or (shares and len(pods) > 1) or not self._within_bounds(ask, requests):
            return None
        places: list[int] = []
        for request in requests:
            place = self._best(request, shares=shares or bool(self._shared))
            if place is None:
                break
            places.append(place)
            if len(pods) > 1:
                self.free[:, place] -= request.vector
        if len(pods) > 1:
            for request, place in zip(requests, places, strict=False):
                self.free[:, place] += request.vector
        return list(zip(pods, places, strict=True)) if len(places) == len(pods) else None

    def _plain(self, ask: Ask) -> bool:
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

    def _request(self, task: Task) -> Request | None:
        """None: it can't be told here."""
        if task.gpu_devices or task.gpu_memory or task.count != 1 or is_numbered(task.gpu_group or ""):
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
            for q in self._paths[configuration.tree.index[ask.queue]] if want else ():
                if _passes(configuration.limit[q][r], self._allocated[q][r] + want):
                    return False
                if fixed and _passes(configuration.deserved[q][r], self._fixed[q][r] + want):
                    return False
        return True

    def _best(self, request: Request, *, shares: bool) -> int | None:
        """Where the pod goes. ``shares``: whether anybody has, or asks for, a share of a GPU."""
        vector, portion = request
        fits = self._open.copy()
        for r, (amount, free) in enumerate(zip(vector, self.free, strict=True)):
            if portion is None or r != GPU:
                fits &= free >= amount
        need = None if portion is None else self._needs[portion]
        if need is not None:
            fits &= (need <= self._memory) & ((self.free[GPU] >= WHOLE) | (need <= self._room))
            if self._pods is not None:
                fits &= self.free[self._pods] > 1
        best = np.flatnonzero(fits)
        if len(best) < 2:
            return int(best[0]) if len(best) else None
        gpu = bool(vector[GPU])
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


def _passes(bound: int, amount: int) -> bool:
    return bound != KAI_UNLIMITED and bound < amount


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
        return super().asked(ask if evicted is None else replace(ask, last_evicted_at=to_datetime(evicted)), holds)

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

    def ahead(self, loaded: CompiledState) -> Ahead | None:
        """Where the first action starts what it can, and nothing is done for nobody."""
        actions = self.configured.policy.actions
        return Ahead(loaded) if actions[:1] == ("allocate",) and "stalegangeviction" not in actions else None

    def foreseen(self, ahead: rounds.Ahead[CompiledState], now: int) -> Outcome | None:
        """A round in which one job asks, and all of it starts."""
        if not isinstance(ahead, Ahead) or len(self.waiting) != 1:
            return None
        (ask,), sums = self.waiting.values(), ahead.sums()
        places = None if sums is None else sums.starts(ask)
        if sums is None or places is None:
            return None
        when = to_datetime(now)
        tasks = [replace(t, node=sums.names[n], started_at=when, state="running") for t, n in places]
        return Outcome(lambda: ([ask.id], [ask.id]), lambda _: self._all_start(ask, tasks, now))

    def _all_start(self, ask: Ask, tasks: list[Task], now: int) -> Turn:
        turn = Turn()
        self.begin(turn, {ask.id: tasks})
        self.mark_seen(acted=True)
        self._began(turn, {ask.id: ask.queue}, now)
        return turn

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        queues = {ask.id: ask.queue for ask in question.asks}
        turn = super().answered(question, result, leaving)
        self._began(turn, queues, question.now)
        self._evicted |= dict.fromkeys((eviction.workload for eviction in turn.evicted), question.now)
        return turn

    def _began(self, turn: Turn, queues: dict[str, str], now: int) -> None:
        """A round has had its turn at ``now``. ``queues``: of what asked."""
        for start in turn.started:
            if start.job not in self._since:
                self._runs(start.job, queues[start.job], now, now)
        for job in self._wakes.passed(now):
            self._runs(job, *self._since[job], now)
        self._delays.passed(now)
        for start in turn.started:
            if start.job not in self.waiting:
                self._delays.set(start.job, None)

    def carried(self) -> tuple[Hashable, Hashable]:
        """Whose delay is not over; when that is moves on with time."""
        return (), tuple(job for job in sorted(self._delays.keys()) if job in self.waiting)

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        after = super().evicting(workload, task)
        if not any(pod.state == "running" for pod in after.tasks):
            self._gone(workload.id)
        return after

    def _runs(self, job: str, queue: str, since: int, now: int) -> None:
        """It runs; it may be unprotected at some later time."""
        self._since[job] = queue, since
        configured = self.configured
        lengths = configured.min_runtimes.lengths(configured.tree.index[queue])
        ends = (unprotected_from(since, length, configured.policy.rules) for length in lengths)
        self._wakes.set(job, min((end for end in ends if end > now), default=None))

    def _gone(self, job: str) -> None:
        self._since.pop(job, None)
        self._wakes.set(job, None)
