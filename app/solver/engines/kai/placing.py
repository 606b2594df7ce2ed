"""Where a pod goes, and a gang as a whole: KAI's node scores, then all pods of the job or none.

A node must fit what is idle plus what is being released. It scores 100 if what is idle alone fits, up to 9 for how
little it has free (GPUs; CPU for pods without GPU), 10 for keeping a pod without GPU off GPU nodes, and 1000 if a
share of a GPU fits a device that is shared already. Equal scores go to the lower name.
"""

from collections.abc import Iterable, Sequence

from app.solver.engines.kai.compile import CPU, GPU, PIPELINED
from app.solver.engines.kai.predicates import Predicates
from app.solver.engines.kai.queue_order import OverBound, QueueOrder
from app.solver.engines.kai.session import Session, total

_Rank = tuple[int, float, int]


class Placer:
    """Places pods on nodes of one session. ``by_name[i]``: the node that is i-th by name."""

    def __init__(self, session: Session, order: QueueOrder) -> None:
        self._session = session
        self._order = order
        state = session.state
        names = state.node_name
        self.by_name = sorted(range(len(names)), key=names.__getitem__)
        self._place_of_name = {n: i for i, n in enumerate(self.by_name)}
        self._has_gpu = [v[GPU] > 0 for v in state.capacity]
        self._has_cpu = [v[CPU] > 0 for v in state.capacity]
        self._predicates = Predicates(state.nodes)
        self._allowed: dict[int, list[bool] | None] = {}
        self.refused: OverBound | None = None

    def allowed(self, t: int) -> list[bool] | None:
        """Nodes that the pod's constraints allow; None: all."""
        if t not in self._allowed:
            jobs = self._session.jobs
            ask = self._session.ask_of_task(t)
            self._allowed[t] = self._predicates.allowed(jobs.task_wire[t], ask)
        return self._allowed[t]

    def in_name_order(self, nodes: Iterable[int]) -> list[int]:
        """Node numbers sorted by node name."""
        return sorted(nodes, key=self._place_of_name.__getitem__)

    def place_job(self, job: int, tasks: Sequence[int], nodes: Sequence[int], *, bind: bool) -> bool:
        """Place all of ``tasks`` or none on ``nodes`` (in name order). ``bind``: pods that fit what is idle start
        now; otherwise every pod waits for the statement's evictions."""
        session = self._session
        self.refused = self._order.over_bounds(job, total(session.request, tasks))
        if self.refused is not None:
            return False
        mark = session.checkpoint()
        for t in tasks:
            if not self._place(t, nodes, bind=bind):
                session.rollback(mark)
                return False
        return True

    def _place(self, t: int, nodes: Sequence[int], *, bind: bool) -> bool:
        session = self._session
        tried: set[int] = set()
        while (n := self.best(t, nodes, tried)) is not None:
            if bind and session.fits_idle(t, n):
                session.allocate(t, n)
                return True
            if session.pipeline(t, n):
                return True
            tried.add(n)
        return False

    def best(self, t: int, nodes: Sequence[int], tried: set[int]) -> int | None:
        """The best node of ``nodes`` that fits the pod, ``tried`` ones left out; None without any."""
        session, allowed = self._session, self.allowed(t)
        gpu = session.request[t][GPU] > 0
        shared = session.gpus.share[t] > 0
        column = GPU if gpu else CPU
        has, free = (self._has_gpu if gpu else self._has_cpu), session.free[column]
        fitting = [n for n in nodes if session.fits(t, n) and (allowed is None or allowed[n]) and n not in tried]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        counted = [free[n] for n in nodes if has[n]]
        least, most = min(counted, default=0), max(0, max(counted, default=0))
        best: tuple[float, int] | None = None
        for n in fitting:
            score = 100.0 if session.fits_idle(t, n) else 0.0
            if has[n] and most:
                score += 9.0 if least == most else 9.0 * (1 - (free[n] - least) / (most - least))
            if not gpu and not self._has_gpu[n]:
                score += 10.0
            if shared and session.gpus.fits_shared(t, n):
                score += 1000.0
            if best is None or score > best[0]:
                best = (score, n)
        assert best is not None
        return best[1]

    def pipelined(self, tasks: Iterable[int]) -> bool:
        """Whether any of the pods waits for a release."""
        return any(self._session.status[t] == PIPELINED for t in tasks)
