"""What nodes have room for while a cycle goes on, the only writer of free and idle amounts; and for shares of one GPU
which device of a node every pod sits on.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from app.solver.compiled import Journal
from app.solver.engines.kai.jobs import (
    ALLOCATED,
    GPU,
    NOWHERE,
    PIPELINED,
    RELEASING,
    RUNNING,
    STUCK,
    GpuNodes,
    Jobs,
    counted,
    holds,
    hundredths,
    is_numbered,
)
from app.solver.engines.kai.state import Baseline, Layout
from app.solver.model.state import Task
from app.solver.question import safe_point

WHOLE = 1000
_NONE = -1


class GpuShares:
    """Which GPUs of which node pods have shares of. Devices are numbered across nodes; ``share[t]`` says whether a pod
    wants shares at all. Amounts are MiB: of every GPU of a node, ``used`` by everybody listed, ``allocated`` by all but
    those that wait for it, ``releasing`` by those that leave, less those that wait. Whole GPUs of the node follow.
    ``known``: whether somebody was ever given it at once: KAI takes the others for devices that nobody is on yet.

    Source: KAI-Scheduler ``api/node_info/gpu_sharing_node_info.go``, whose books these are.
    """

    def __init__(
        self, journal: Journal, books: Journal, nodes: GpuNodes, free: list[int], idle: list[int],
        pods: list[int] | None = None,
    ) -> None:  # fmt: skip
        """``books``: the journal of amounts. ``free`` and ``idle``: whole GPUs by node in thousandths, which follow the
        devices. ``pods``: by node how many more it takes; None: any number."""
        portions = nodes.portions
        self.share = [portion is not None for portion in portions]
        self.any = any(self.share)
        self._portions = portions
        self._nodes = nodes
        self._journal, self._books = journal, books
        self._free, self._idle = free, idle
        self._held = [_NONE] * len(portions)
        self._first: list[int] = []
        self._sets: list[tuple[int, ...]] = []
        self._left: dict[tuple[int, int], tuple[int, ...]] = {}
        self._of_node, self._node = dict[int, list[int]](), list[int]()
        self._used: list[int] = []
        self._allocated: list[int] = []
        self._releasing: list[int] = []
        self._leaving: list[int] = []
        self._known: list[int] = []
        self._named: dict[tuple[int, str], int] = {}
        self._numbered, self._pods = set[int](), pods

    def seed(self, t: int, n: int, status: int, group: str | None) -> None:
        """Put a pod of the state on devices: those of these names, with commas between, else the first ones with
        room."""
        portion = self._portions[t]
        assert portion is not None
        if group is not None:
            devices: list[int] = []
            for name in dict.fromkeys(group.split(",")):
                safe_point()
                device = self._named.get((n, name))
                if device is None:
                    device = self._named[n, name] = self._fresh(n, 1, but=devices)[0]
                    if is_numbered(name):
                        self._numbered.add(device)
                devices.append(device)
        else:
            need, size = self.need(t, n), self._nodes.memory[n]
            devices = [d for d in self._of_node.get(n, ()) if self._used[d] + need <= size][: portion.devices]
        devices += self._fresh(n, portion.devices - len(devices), but=devices)
        self.enter(t, n, status, tuple(devices))

    def seeded(self) -> None:
        """All pods of the state have their devices."""
        self._first = self._held.copy()

    def need(self, t: int, n: int) -> int:
        """MiB of each of its devices that the pod wants on node n."""
        portion = self._portions[t]
        return 0 if portion is None else portion.memory_on(self._nodes.memory[n])

    def by_memory(self, t: int) -> bool:
        """Whether the pod asks for memory of GPUs."""
        return (portion := self._portions[t]) is not None and portion.memory > 0

    def _with_room(self, t: int, n: int) -> list[int]:
        """Shared devices that hold the pod once what leaves is gone; not those that everybody leaves."""
        need, size = self.need(t, n), self._nodes.memory[n]
        allocated, releasing = self._allocated, self._releasing
        return [
            d
            for d in self._of_node.get(n, ())
            if self._used[d] and allocated[d] != releasing[d] and size - allocated[d] + releasing[d] >= need
        ]

    def _enough(self, t: int, n: int, whole: int) -> bool:
        portion = self._portions[t]
        assert portion is not None
        if self.need(t, n) > self._nodes.memory[n]:
            return False
        return whole // WHOLE >= portion.devices or (
            n in self._of_node and whole // WHOLE + len(self._with_room(t, n)[: portion.devices]) >= portion.devices
        )

    def fits(self, t: int, n: int) -> bool:
        """Whether node n has the devices for the pod once releases are done."""
        return self._enough(t, n, self._free[n])

    def fits_idle(self, t: int, n: int) -> bool:
        """Whether it has them as the released scheduler sees it now: shared ones with room later count."""
        return self._enough(t, n, self._idle[n])

    def fitting(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits`` holds for, in their order."""
        return self._with_enough(t, nodes, self._free)

    def fitting_idle(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits_idle`` holds for, in their order."""
        return self._with_enough(t, nodes, self._idle)

    def _with_enough(self, t: int, nodes: list[int], whole: list[int]) -> list[int]:
        """What ``_enough`` says of many nodes: those with enough whole devices need no look at shared ones."""
        portion, memory, shared = self._portions[t], self._nodes.memory, self._of_node
        assert portion is not None
        least, size = portion.devices * WHOLE, portion.memory
        return [
            n
            for n in nodes
            if (whole[n] >= least and size <= memory[n]) or (n in shared and self._enough(t, n, whole[n]))
        ]

    def fitting_shared(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` with room on some device that is shared already, in their order."""
        return [n for n in nodes if n in self._of_node and self._with_room(t, n)]

    def choose(self, t: int, n: int, *, now: bool) -> tuple[tuple[int, ...], bool] | None:
        """Devices for a pod on node n, the fullest shared ones first, then whole ones; and whether it must wait for
        some of them. ``now``: the node has all it needs idle. None where there are too few."""
        portion = self._portions[t]
        assert portion is not None
        need, size = self.need(t, n), self._nodes.memory[n]
        shared = sorted(self._with_room(t, n), key=lambda d: (-self._used[d], d))[: portion.devices]
        idle, releasing = self._idle[n], self._free[n] - self._idle[n]
        whole = (idle + releasing) // WHOLE if idle > 0 or releasing > 0 else 0
        if len(shared) + whole < portion.devices or not self._takes_keeper(n, shared, portion.devices):
            return None
        waits = not now or any(size - self._allocated[d] < need or not self._known[d] for d in shared)
        return (*shared, *self._fresh(n, portion.devices - len(shared))), waits

    def _takes_keeper(self, n: int, shared: list[int], count: int) -> bool:
        """Whether the node takes two pods more, the other one to keep a new device: ``count`` are wanted, ``shared``
        are there. KAI takes these for new too, unless their names are numbers."""
        room = self._pods is None or self._pods[n] > 1
        return room or (len(shared) == count and self._numbered.issuperset(shared))

    def listed(self, t: int, n: int) -> tuple[int, ...] | None:
        """The devices of node n with which a pod that is being released there, or that left it, is listed."""
        return self._left.get((t, n))

    def on(self, t: int) -> tuple[int, ...]:
        """The devices of the pod, if it has any."""
        held = self._held[t]
        return () if held == _NONE else self._sets[held]

    def first_on(self, t: int) -> tuple[int, ...]:
        """The devices that it had at the start, if any."""
        held = self._first[t] if t < len(self._first) else _NONE
        return () if held == _NONE else self._sets[held]

    def leave(self, t: int, n: int) -> None:
        """The pod goes to other devices; what it had on node n stays listed there as being released."""
        self._left[t, n] = self.on(t)

    def enter(self, t: int, n: int, status: int, devices: tuple[int, ...]) -> None:
        """The pod comes to these devices of node n."""
        self._sets.append(devices)
        self._journal.put(self._held, t, len(self._sets) - 1)
        self.count(t, n, devices, status)

    def change(self, t: int, n: int, before: int, after: int, devices: tuple[int, ...] | None = None) -> None:
        """A pod's status changed where it is; ``devices``: where it was then, if not where it is now."""
        devices = self.on(t) if devices is None else devices
        self.uncount(t, n, devices, before)
        self.count(t, n, devices, after)

    def may_return(self, t: int, n: int) -> bool:
        """Whether the devices that the pod is leaving still have room for it, and are still devices to be had."""
        need, size = self.need(t, n), self._nodes.memory[n]
        held = [self._allocated[d] - self._releasing[d] for d in self.on(t)]
        fresh = sum(not taken for taken in held)
        return all(taken + need <= size for taken in held) and self._free[n] >= fresh * WHOLE

    def overfilled(self) -> bool:
        """Whether some device is promised more than it has."""
        memory = self._nodes.memory
        return any(a - r > memory[n] for a, r, n in zip(self._allocated, self._releasing, self._node, strict=True))

    def room(self, n: int) -> tuple[float, float]:
        """What shared devices of node n have idle, and what of them is being released, in GPUs, added up in doubles as
        released KAI does: devices that everybody leaves count as idle less what is held, and whole elsewhere."""
        size = self._nodes.memory[n]
        idle = releasing = 0.0
        for d in self._of_node.get(n, ()):
            held, leaves = self._allocated[d], self._releasing[d]
            if held > 0:
                idle += 1 - hundredths(held, size) / WHOLE
            if leaves > 0 and not (self._used[d] and leaves == self._used[d]):
                releasing += hundredths(leaves, size) / WHOLE
        return idle, releasing

    def held_for_good(self, n: int) -> dict[int, int] | None:
        """MiB by shared device of those who stay. None where books may give back more than was taken."""
        if self._nodes.gpus[n] > self._all_taken(n):
            return None
        stays = ((d, self._allocated[d] - self._releasing[d]) for d in self._of_node.get(n, ()) if self._used[d])
        return {d: held for d, held in stays if held}

    def memory_left(self, n: int) -> int:
        """The same in MiB."""
        size, left = self._nodes.memory[n], 0
        for d in self._of_node.get(n, ()):
            held, leaves = self._allocated[d], self._releasing[d]
            left += size - held if held > 0 else 0
            left += leaves if leaves > 0 and not (self._used[d] and leaves == self._used[d]) else 0
        return left

    def _fresh(self, n: int, count: int, but: Iterable[int] = ()) -> list[int]:
        """So many devices that nobody is listed on."""
        others, used, allocated = set(but), self._used, self._allocated
        unlisted = (
            d for d in self._of_node.get(n, ())
            if not (used[d] or allocated[d] or self._releasing[d] or self._leaving[d]) and d not in others
        )  # fmt: skip
        fresh = list(islice(unlisted, max(count, 0)))
        for d in fresh:
            self._books.put(self._known, d, 0)
        for _ in range(count - len(fresh)):
            fresh.append(len(used))
            for table in (used, allocated, self._releasing, self._leaving, self._known):
                table.append(0)
            self._node.append(n)
            self._of_node.setdefault(n, []).append(fresh[-1])
        return fresh

    def _all_taken(self, n: int) -> int:
        """GPUs of the node that are idle, taken whole, or shared, counted as released KAI counts them."""
        shared = sum(self._used[d] > 0 for d in self._of_node.get(n, ()))
        return self._idle[n] // WHOLE + self._nodes.whole[n] // WHOLE + shared

    def _idle_by(self, n: int, gpus: int) -> None:
        self._books.add(self._idle, n, gpus * WHOLE)
        self._books.add(self._free, n, gpus * WHOLE)

    def _leave_by(self, n: int, d: int, gpus: int, *, marked: bool | None = None) -> None:
        self._books.add(self._free, n, gpus * WHOLE)
        if marked is not None:
            self._books.put(self._leaving, d, marked)

    def count(self, t: int, n: int, devices: tuple[int, ...], status: int) -> None:
        """List the pod with these devices of node n."""
        add, need, gpus = self._books.add, self.need(t, n), self._nodes.gpus[n]
        used, releasing = self._used, self._releasing
        for d in devices:
            add(used, d, need)
            if status != PIPELINED and not self._known[d]:
                self._books.put(self._known, d, 1)
            if status == RELEASING:
                add(releasing, d, need)
                add(self._allocated, d, need)
                if used[d] == releasing[d]:
                    if not self._leaving[d]:
                        self._leave_by(n, d, 1, marked=True)
                    if gpus < self._all_taken(n):
                        self._idle_by(n, -1)
            elif status == PIPELINED:
                add(releasing, d, -need)
                if used[d] - need == releasing[d] + need:
                    self._leave_by(n, d, -1)
            else:
                add(self._allocated, d, need)
                if used[d] <= need and gpus < self._all_taken(n):
                    self._idle_by(n, -1)
                if self._leaving[d]:
                    self._leave_by(n, d, -1, marked=False)

    def uncount(self, t: int, n: int, devices: tuple[int, ...], status: int) -> None:
        """List it no more."""
        add, need, gpus = self._books.add, self.need(t, n), self._nodes.gpus[n]
        used, releasing = self._used, self._releasing
        for d in devices:
            add(used, d, -need)
            if status == RELEASING:
                add(releasing, d, -need)
                add(self._allocated, d, -need)
                if used[d] <= 0:
                    if gpus >= self._all_taken(n):
                        self._idle_by(n, 1)
                    if self._leaving[d]:
                        self._leave_by(n, d, -1, marked=False)
            elif status == PIPELINED:
                add(releasing, d, need)
                if used[d] + need == releasing[d] - need or not (used[d] or releasing[d]):
                    self._leave_by(n, d, 1)
            else:
                add(self._allocated, d, -need)
                if used[d] <= 0 and gpus >= self._all_taken(n):
                    self._idle_by(n, 1)
                if used[d] and releasing[d] == used[d] and not self._leaving[d]:
                    self._leave_by(n, d, 1, marked=True)


TAKES_FREE = (RUNNING, ALLOCATED, PIPELINED, STUCK)
_TAKES_IDLE = (RUNNING, ALLOCATED, RELEASING, STUCK)


class Nodes:
    """``free`` and ``idle`` by resource and node: what nobody takes for good, and what nobody is on now. ``touched``:
    nodes changed since somebody last looked; ``changed``: those that may differ from how the cycle found them, or that
    have shared GPUs."""

    def __init__(
        self, journal: Journal, books: Journal, base: Baseline, jobs: Jobs,
        columns: list[tuple[tuple[int, int], ...]], width: int, layout: Layout,
    ) -> None:  # fmt: skip
        """``books``: the journal of amounts, ``Unlogged`` where every step is taken back by one in the other direction.
        ``jobs``: with requests of ``width`` columns. ``columns``: what each pod takes, shares of a GPU left out."""
        nothing, wider = [0] * len(base.free[0]), width - len(base.free)
        self.free = [column.copy() for column in (*base.free, *[nothing] * wider)]
        self.idle = [column.copy() for column in (*base.idle, *[nothing] * wider)]
        self.touched: list[int] = []
        self.changed: set[int] = set()
        self._whole, self._memory = [0] * len(layout.gpus), layout.gpu_memory
        gpus = GpuNodes(layout.gpu_memory, layout.gpus, self._whole, jobs.task_portion)
        pods = None if layout.pods is None else self.free[layout.pods]
        self.gpus = GpuShares(journal, books, gpus, self.free[GPU], self.idle[GPU], pods)
        self._lacking, self._only_asked = layout.lacking, layout.only_asked
        self._request, self.columns = jobs.task_request, columns
        self._add = books.add
        self._queue_only = width == GPU + 1
        self._free = self.free[0], self.free[1], self.free[2]
        self._idle = self.idle[0], self.idle[1], self.idle[2]
        self._before = [*base.free, *[nothing] * wider]

    def seed(self, pods: Iterable[int], status: Sequence[int], node: Sequence[int], wires: Sequence[Task]) -> None:
        """Put the pods of the state that hold shares of GPUs on devices, in the order given. Others are counted."""
        if not self.gpus.any:
            return
        for t, (s, n) in enumerate(zip(status, node, strict=True)):
            if n != NOWHERE and s in _TAKES_IDLE and not self.gpus.share[t] and GPU not in self._lacking[n]:
                self._whole[n] += self._request[t][GPU]
        for t in pods:
            safe_point()
            s, n = status[t], node[t]
            if self.gpus.share[t] and n != NOWHERE and s in _TAKES_IDLE:
                self.changed.add(n)
                self.gpus.seed(t, n, s, wires[t].gpu_group)
        self.gpus.seeded()

    def enter(self, t: int, n: int, status: int, devices: tuple[int, ...]) -> None:
        """Pod t comes to node n; ``devices``: those that it has shares of."""
        self._take(t, n, status, 1)
        if self.gpus.share[t]:
            self.gpus.enter(t, n, status, devices)

    def list_again(self, t: int, n: int, status: int, devices: tuple[int, ...]) -> None:
        """Pod t, which has these devices of node n, counts there once more."""
        self._take(t, n, status, 1)
        self.gpus.count(t, n, devices, status)

    def unlist(self, t: int, n: int, status: int, devices: tuple[int, ...]) -> None:
        """Pod t counts on node n no more."""
        self._take(t, n, status, -1)
        if self.gpus.share[t]:
            self.gpus.uncount(t, n, devices, status)

    def _take(self, t: int, n: int, status: int, sign: int) -> None:
        add, lacking = self._add, self._lacking[n]
        self.changed.add(n)
        if self.gpus.any and not self.gpus.share[t] and GPU not in lacking:
            add(self._whole, n, sign * self._request[t][GPU])
        free, idle = status in TAKES_FREE, status in _TAKES_IDLE
        for r, amount in counted(self.columns[t], lacking):
            if free:
                add(self.free[r], n, -sign * amount)
            if idle:
                add(self.idle[r], n, -sign * amount)

    def change(self, t: int, n: int, before: int, after: int, devices: tuple[int, ...] | None = None) -> None:
        """Pod t stays on node n with another status; ``devices``: those that it had then, if not those of now."""
        free = (before in TAKES_FREE) - (after in TAKES_FREE)
        idle = (before in _TAKES_IDLE) - (after in _TAKES_IDLE)
        add, lacking = self._add, self._lacking[n]
        self.changed.add(n)
        for r, amount in counted(self.columns[t], lacking):
            if free:
                add(self.free[r], n, free * amount)
            if idle:
                add(self.idle[r], n, idle * amount)
        if self.gpus.share[t]:
            self.gpus.change(t, n, before, after, devices)

    def may_return(self, t: int, n: int) -> bool:
        """Whether the device that pod t is leaving on node n can have it back; always for whole GPUs."""
        return not self.gpus.share[t] or self.gpus.may_return(t, n)

    def gpu_free(self) -> list[int]:
        """Thousandths of GPUs by node, idle or being released, parts of shared devices included."""
        free = self.free[GPU]
        return [round(sum(self.gpu_room(n)) * WHOLE) for n in range(len(free))] if self.gpus.any else free

    def gpu_room(self, n: int) -> tuple[float, float]:
        """The same of node n in GPUs, idle and being released."""
        free, idle = self._free[GPU][n], self._idle[GPU][n]
        now, later = self.gpus.room(n) if self.gpus.any else (0.0, 0.0)
        return now + idle / WHOLE, later + (free - idle) / WHOLE

    def gpu_memory(self) -> int:
        """MiB of GPUs of all nodes, idle or being released."""
        whole = self.free[GPU]
        return sum(whole[n] // WHOLE * memory + self.gpus.memory_left(n) for n, memory in enumerate(self._memory))

    def overfilled(self) -> bool:
        """Whether some node is promised more than it has, which was not so at the start."""
        return self.gpus.overfilled() or any(
            column[n] < 0 <= before[n]
            for column, before in zip(self.free, self._before, strict=True)
            for n in self.changed
        )

    def fits(self, t: int, n: int) -> bool:
        """Whether node n could take the pod once what is being released is gone."""
        request = self._request[t]
        if self.gpus.share[t]:
            return self._fits(request, self.free, n, skip=GPU) and self.gpus.fits(t, n)
        cpu, memory, gpu = self._free
        return (
            request[2] <= gpu[n]
            and request[0] <= cpu[n]
            and request[1] <= memory[n]
            and (self._queue_only or self._fits(request, self.free, n))
        )

    def fitting(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits`` holds for, in their order."""
        request, (cpus, memories, gpus) = self._request[t], self._free
        cpu, memory, gpu = request[0], request[1], request[2]
        if self.gpus.share[t]:
            suited = self.gpus.fitting(t, [n for n in nodes if cpu <= cpus[n] and memory <= memories[n]])
        else:
            suited = [n for n in nodes if gpu <= gpus[n] and cpu <= cpus[n] and memory <= memories[n]]
        return suited if self._queue_only else self._fitting_others(request, self.free, suited)

    def fitting_idle(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits_idle`` holds for, in their order."""
        request, (cpus, memories, gpus) = self._request[t], self._idle
        cpu, memory, gpu = request[0], request[1], request[2]
        if self.gpus.share[t]:
            suited = self.gpus.fitting_idle(t, [n for n in nodes if cpu <= cpus[n] and memory <= memories[n]])
            return suited if self._queue_only else self._fitting_others(request, self.idle, suited)
        if not (cpu or memory or gpu):
            return [n for n in nodes if self.fits_idle(t, n)]
        suited = [n for n in nodes if gpu <= gpus[n] and cpu <= cpus[n] and memory <= memories[n]]
        return suited if self._queue_only else self._fitting_others(request, self.idle, suited)

    def fits_idle(self, t: int, n: int) -> bool:
        """Whether node n can take the pod now."""
        request = self._request[t]
        if self.gpus.share[t]:
            return self._fits(request, self.idle, n, skip=GPU) and self.gpus.fits_idle(t, n)
        cpu, memory, gpu = self._idle
        if request[2] <= gpu[n] and request[0] <= cpu[n] and request[1] <= memory[n]:
            return self._queue_only or self._fits(request, self.idle, n)
        return max(request) <= 0

    def _fitting_others(self, request: Sequence[int], have: list[list[int]], nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that have enough of everything but CPU, memory and GPUs."""
        for amount, column in zip(request[GPU + 1 :], have[GPU + 1 :], strict=True):
            if amount or not self._only_asked:
                nodes = [n for n in nodes if holds(column[n], amount)]
        return nodes

    def _fits(self, request: Sequence[int], have: list[list[int]], n: int, *, skip: int = -1) -> bool:
        always = GPU if self._only_asked else len(request)
        return all(r == skip or holds(have[r][n], a) or (r > always and not a) for r, a in enumerate(request))
