"""What nodes have room for while a cycle goes on: the only writer of free and idle amounts."""

from collections.abc import Sequence

from app.solver.engines.kai.compile.jobs import ALLOCATED, NOWHERE, PIPELINED, RELEASING, RUNNING
from app.solver.engines.kai.compile.resident import Baseline
from app.solver.engines.kai.compile.resources import GPU, Vector
from app.solver.engines.kai.decide.placing.gpu_share import GpuShares
from app.solver.journal import Journal

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
                if self.gpus.share[t] and n != NOWHERE and s in (RUNNING, RELEASING):
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
