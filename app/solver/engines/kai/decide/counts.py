"""How many pods jobs have in which state, and what queues hold: the only writers of either."""

from collections.abc import Sequence

from app.solver.engines.kai.compile.jobs import Jobs
from app.solver.engines.kai.compile.resident import Baseline
from app.solver.engines.kai.compile.resources import Share, Vector
from app.solver.engines.kai.decide.division import Division
from app.solver.journal import Journal


class JobCounts:
    """Pods by job: ``active`` (they have a place), ``used`` (those being released too), ``pending``.

    Released KAI's own count of what runs goes wrong where pods are evicted twice: ``miscounted`` is by how much as long
    as the statement stands, ``drift`` what stays of it when one is undone.
    """

    def __init__(self, journal: Journal, jobs: Jobs, base: Baseline, new: Sequence[int]) -> None:
        """``new``: the job of each pod that came with an ask."""
        more = [0] * (len(jobs.id) - len(base.active))
        self._add = journal.add
        self.active, self.used = base.active + more, base.used + more
        self.pending, self.miscounted, self.drift = ([0] * len(jobs.id) for _ in range(3))
        for j in new:
            self.pending[j] += 1

    def evicted(self, j: int) -> None:
        """An active pod is being released."""
        self._add(self.active, j, -1)

    def back(self, j: int) -> None:
        """A pod that was being released is active again."""
        self._add(self.active, j, 1)

    def placed(self, j: int) -> None:
        """A pending pod has a place."""
        self._add(self.active, j, 1)
        self._add(self.pending, j, -1)
        self._add(self.used, j, 1)

    def counted_twice(self, j: int) -> None:
        """KAI counts a pod out that it has counted out before."""
        self._add(self.miscounted, j, -1)

    def drifts(self, j: int) -> None:
        """KAI counts a pod back in that it has not counted out again; no rollback undoes it."""
        self.drift[j] += 1

    def seems_active(self, j: int) -> bool:
        """Whether the job runs something by KAI's count, which double evictions upset."""
        return self.active[j] + self.miscounted[j] + self.drift[j] != 0


class QueueUse:
    """What queues hold by resource and queue, those below included: ``allocated``, and ``fixed`` of it by pods that
    can't be preempted."""

    def __init__(self, journal: Journal, division: Division, paths: list[list[int]], jobs: Jobs) -> None:
        self._spread = journal.spread
        self._paths = paths
        self._queue, self._preemptible = jobs.queue, jobs.preemptible
        self.allocated = [list(column) for column in zip(*division.allocated, strict=True)] or [[], [], []]
        self.fixed = [list(column) for column in zip(*division.non_preemptible, strict=True)] or [[], [], []]

    def charge(self, j: int, request: Vector | Share, sign: int) -> None:
        """Count a pod of job j in, or out of, what its queue and every queue above holds."""
        spread = self._spread
        fixed = not self._preemptible[j]
        for q in self._paths[self._queue[j]]:
            spread(self.allocated, q, request, sign)
            if fixed:
                spread(self.fixed, q, request, sign)
