"""What nodes have room for while a cycle goes on, the only writer of free and idle amounts; and for shares of one GPU
which device of a node every pod sits on.
"""

from collections.abc import Sequence

from app.solver.engines.kai.jobs import ALLOCATED, GPU, NOWHERE, PIPELINED, RELEASING, RUNNING, STUCK, Vector
from app.solver.engines.kai.state import Baseline
from app.solver.journal import Journal

WHOLE = 1000
_NONE = -1


class GpuShares:
    """Devices are numbered across nodes. ``share[t]`` is the pod's part of a device in thousandths, 0 for pods
    that take whole GPUs or none. Per device: thousandths held by running pods, by pods being released, and
    promised to pipelined ones."""

    def __init__(self, journal: Journal, gpu: list[int], free: list[int], idle: list[int]) -> None:
        """``gpu``: what each pod asks for. ``free`` and ``idle``: whole GPUs by node, which follow the devices."""
        self.share = [amount if 0 < amount < WHOLE else 0 for amount in gpu]
        self.any = any(self.share)
        self._journal = journal
        self._free, self._idle = free, idle
        self._device = [_NONE] * len(gpu)
        self._of_node: dict[int, list[int]] = {}
        self._running: list[int] = []
        self._releasing: list[int] = []
        self._promised: list[int] = []

    def seed(self, t: int, n: int, status: int) -> None:
        """Put a running or releasing pod of the state on a device."""
        need = self.share[t]
        for d in self._of_node.get(n, ()):
            if self._running[d] + self._releasing[d] + need <= WHOLE:
                break
        else:
            d = self._new(n)
        self._write(t, n, d, status, 1)

    def fits(self, t: int, n: int) -> bool:
        """Whether some device of node n could take the pod once releases are done."""
        need = self.share[t]
        return self._free[n] >= WHOLE or any(
            self._running[d] + self._promised[d] + need <= WHOLE for d in self._in_use(n, now=False)
        )

    def fits_idle(self, t: int, n: int) -> bool:
        """Whether some device of node n can take the pod now, and is promised to nobody."""
        return (self._idle[n] >= WHOLE and self._free[n] >= WHOLE) or self.fits_shared(t, n)

    def fits_shared(self, t: int, n: int) -> bool:
        """Whether a device that is shared already has room now."""
        return bool(self._with_room_now(t, n))

    def fitting(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits`` holds for, in their order."""
        free, of_node = self._free, self._of_node
        return [n for n in nodes if free[n] >= WHOLE or (n in of_node and self.fits(t, n))]

    def fitting_shared(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits_shared`` holds for, in their order."""
        return [n for n in nodes if n in self._of_node and self.fits_shared(t, n)]

    def _with_room_now(self, t: int, n: int) -> list[int]:
        """Shared devices that can take the pod now. One whose pods all leave must be free to be kept."""
        need = self.share[t]
        return [
            d
            for d in self._in_use(n, now=True)
            if self._load(d) + need <= WHOLE and (self._running[d] or self._promised[d] or self._free[n] >= WHOLE)
        ]

    def has_room(self, n: int) -> bool:
        """Whether a shared device has a part that is not taken for good."""
        return self.any and any(self._running[d] < WHOLE for d in self._in_use(n, now=True))

    def unused(self, n: int) -> int:
        """What shared devices of node n have left once releases are done, in thousandths of a GPU."""
        return sum(WHOLE - self._running[d] - self._promised[d] for d in self._in_use(n, now=False))

    def enter(self, t: int, n: int, status: int) -> None:
        """Choose a device for a pod placed on node n: the fullest shared one that has room, else a whole one."""
        need = self.share[t]
        later = [d for d in self._in_use(n, now=False) if self._running[d] + self._promised[d] + need <= WHOLE]
        now = self._with_room_now(t, n)
        choice = now or ([] if status == ALLOCATED or (self._idle[n] >= WHOLE and self._free[n] >= WHOLE) else later)
        d = max(choice, key=lambda d: (self._load(d), -d)) if choice else self._new(n)
        self._write(t, n, d, status, 1)

    def may_return(self, t: int, n: int) -> bool:
        """Whether the device that the pod is leaving still has room for it, and is still a device to be had."""
        d = self._device[t]
        taken = self._running[d] + self._promised[d]
        return taken + self.share[t] <= WHOLE and (taken > 0 or self._free[n] >= WHOLE)

    def overfilled(self) -> bool:
        """Whether some device is promised more than it has."""
        return any(a + b > WHOLE for a, b in zip(self._running, self._promised, strict=True))

    def change(self, t: int, n: int, before: int, after: int) -> None:
        """A pod's status changed where it is."""
        d = self._device[t]
        self._write(t, n, d, before, -1)
        self._write(t, n, d, after, 1)

    def _load(self, d: int) -> int:
        return self._running[d] + self._releasing[d] + self._promised[d]

    def _in_use(self, n: int, *, now: bool) -> list[int]:
        """Shared devices of a node: those that some pod is on ``now``, being released or not; otherwise those that
        some pod is on, or is promised to be, once releases are done."""
        other = self._releasing if now else self._promised
        return [d for d in self._of_node.get(n, ()) if self._running[d] or other[d]]

    def _new(self, n: int) -> int:
        for d in self._of_node.get(n, ()):
            if not self._load(d):
                return d
        d = len(self._running)
        for table in (self._running, self._releasing, self._promised):
            table.append(0)
        self._of_node.setdefault(n, []).append(d)
        return d

    def _write(self, t: int, n: int, d: int, status: int, sign: int) -> None:
        """Count the pod in or out of device d; whole GPUs of the node follow what the device is now used for."""
        table = {
            RUNNING: self._running,
            ALLOCATED: self._running,
            STUCK: self._running,
            RELEASING: self._releasing,
        }.get(status, self._promised)
        was_free, was_idle = self._takes(d)
        self._journal.add(table, d, sign * self.share[t])
        now_free, now_idle = self._takes(d)
        if now_free != was_free:
            self._journal.add(self._free, n, was_free - now_free)
        if now_idle != was_idle:
            self._journal.add(self._idle, n, was_idle - now_idle)
        if sign > 0:
            self._journal.put(self._device, t, d)

    def _takes(self, d: int) -> tuple[int, int]:
        """What device d takes from the node's GPUs: free (once releases are done) and idle."""
        return (
            WHOLE if self._running[d] or self._promised[d] else 0,
            WHOLE if self._running[d] or self._releasing[d] else 0,
        )


_TAKES_FREE = (RUNNING, ALLOCATED, PIPELINED)
_TAKES_IDLE = (RUNNING, ALLOCATED, RELEASING)


class Nodes:
    """``free`` and ``idle`` by resource and node: what nobody takes for good, and what nobody is on now. ``touched``:
    nodes changed since somebody last looked."""

    def __init__(
        self, journal: Journal, base: Baseline, request: list[Vector],
        columns: list[tuple[tuple[int, int], ...]], width: int,
    ) -> None:  # fmt: skip
        """``request``: by pod, of ``width`` columns. ``columns``: what each pod takes, shares of a GPU left out."""
        nothing = [0] * (len(base.free[0]))
        wider = width - len(base.free)
        self.free = [column.copy() for column in (*base.free, *[nothing] * wider)]
        self.idle = [column.copy() for column in (*base.idle, *[nothing] * wider)]
        self.touched: list[int] = []
        self.gpus = GpuShares(journal, [v[GPU] for v in request], self.free[GPU], self.idle[GPU])
        self._request = request
        self._columns = columns
        self._add = journal.add
        self._queue_only = width == GPU + 1
        self._free = self.free[0], self.free[1], self.free[2]
        self._idle = self.idle[0], self.idle[1], self.idle[2]
        self._before = [*base.free, *[nothing] * wider]

    def seed(self, status: Sequence[int], node: Sequence[int]) -> None:
        """Put the pods of the state that hold a share of a GPU on devices. Amounts have the other pods already."""
        if self.gpus.any:
            for t, (s, n) in enumerate(zip(status, node, strict=True)):
                if self.gpus.share[t] and n != NOWHERE and s in (RUNNING, RELEASING, STUCK):
                    self.gpus.seed(t, n, s)

    def enter(self, t: int, n: int, status: int) -> None:
        """Pod t comes to node n."""
        add = self._add
        for r, amount in self._columns[t]:
            add(self.free[r], n, -amount)
            if status == ALLOCATED:
                add(self.idle[r], n, -amount)
        if self.gpus.share[t]:
            self.gpus.enter(t, n, status)

    def change(self, t: int, n: int, before: int, after: int) -> None:
        """Pod t stays on node n with another status."""
        free = (before in _TAKES_FREE) - (after in _TAKES_FREE)
        idle = (before in _TAKES_IDLE) - (after in _TAKES_IDLE)
        add = self._add
        for r, amount in self._columns[t]:
            if free:
                add(self.free[r], n, free * amount)
            if idle:
                add(self.idle[r], n, idle * amount)
        if self.gpus.share[t]:
            self.gpus.change(t, n, before, after)

    def may_return(self, t: int, n: int) -> bool:
        """Whether the device that pod t is leaving on node n can have it back; always for whole GPUs."""
        return not self.gpus.share[t] or self.gpus.may_return(t, n)

    def gpu_free(self) -> list[int]:
        """GPUs by node, idle or being released, parts of shared devices included."""
        free = self.free[GPU]
        return [have + self.gpus.unused(n) for n, have in enumerate(free)] if self.gpus.any else free

    def has_gpu_room(self, n: int) -> bool:
        """Whether node n has a GPU, or a part of one, idle or being released."""
        idle = self.idle[GPU][n]
        return idle > 0 or self.free[GPU][n] > idle or self.gpus.has_room(n)

    def overfilled(self) -> bool:
        """Whether some node is promised more than it has, which was not so at the start."""
        return self.gpus.overfilled() or any(
            min(column, default=0) < 0 and any(now < 0 <= was for now, was in zip(column, before, strict=True))
            for column, before in zip(self.free, self._before, strict=True)
        )

    def fits(self, t: int, n: int) -> bool:
        """Whether node n could take the pod once what is being released is gone."""
        request = self._request[t]
        if self.gpus.share[t]:
            return _fits(request, self.free, n, skip=GPU) and self.gpus.fits(t, n)
        cpu, memory, gpu = self._free
        return (
            request[2] <= gpu[n]
            and request[0] <= cpu[n]
            and request[1] <= memory[n]
            and (self._queue_only or _fits(request, self.free, n))
        )

    def fitting(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits`` holds for, in their order."""
        request, (cpus, memories, gpus) = self._request[t], self._free
        cpu, memory, gpu = request[0], request[1], request[2]
        if self.gpus.share[t]:
            found = self.gpus.fitting(t, [n for n in nodes if cpu <= cpus[n] and memory <= memories[n]])
        else:
            found = [n for n in nodes if gpu <= gpus[n] and cpu <= cpus[n] and memory <= memories[n]]
        return found if self._queue_only else [n for n in found if self.fits(t, n)]

    def fitting_idle(self, t: int, nodes: list[int]) -> list[int]:
        """Those of ``nodes`` that ``fits_idle`` holds for, in their order."""
        request, (cpus, memories, gpus) = self._request[t], self._idle
        cpu, memory, gpu = request[0], request[1], request[2]
        if self.gpus.share[t]:
            found = [n for n in nodes if cpu <= cpus[n] and memory <= memories[n] and self.gpus.fits_idle(t, n)]
            return found if self._queue_only else [n for n in found if self.fits_idle(t, n)]
        if self._queue_only and (cpu or memory or gpu):
            return [n for n in nodes if gpu <= gpus[n] and cpu <= cpus[n] and memory <= memories[n]]
        return [n for n in nodes if self.fits_idle(t, n)]

    def fits_idle(self, t: int, n: int) -> bool:
        """Whether node n can take the pod now."""
        request = self._request[t]
        if self.gpus.share[t]:
            return _fits(request, self.idle, n, skip=GPU) and self.gpus.fits_idle(t, n)
        cpu, memory, gpu = self._idle
        if request[2] <= gpu[n] and request[0] <= cpu[n] and request[1] <= memory[n]:
            return self._queue_only or _fits(request, self.idle, n)
        return not any(request)


def _fits(request: Sequence[int], have: list[list[int]], n: int, *, skip: int = -1) -> bool:
    return all(r == skip or amount <= have[r][n] for r, amount in enumerate(request))
