"""One scheduling cycle: the actions in the order that the settings give, on one session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.solver.engines.kai.compile.state import CompiledState
from app.solver.engines.kai.decide.actions.signatures import Failed, Signatures
from app.solver.engines.kai.decide.budget import Budget
from app.solver.engines.kai.decide.order.pending_order import PendingOrder
from app.solver.engines.kai.decide.order.queue_order import QueueOrder
from app.solver.engines.kai.decide.order.victim_order import VictimTable
from app.solver.engines.kai.decide.overlay import Session
from app.solver.engines.kai.decide.placing.placer import Placer
from app.solver.engines.kai.decide.search.protection import Protection
from app.solver.engines.kai.decide.search.solver import Tools
from app.solver.engines.kai.decide.search.validators import VictimFilter, refused_victim
from app.solver.engines.kai.report.trail import Trail
from app.solver.model.state import Ask
from app.solver.stopping import safe_point


@dataclass(slots=True)
class Cycle:
    """What the actions share. ``taken``: jobs in the order in which an action first took them; ``starts``: jobs that
    start now, as KAI's allocate action records it."""

    tools: Tools
    protection: Protection
    signatures: Signatures
    taken: dict[int, None] = field(default_factory=dict[int, None])
    starts: set[int] = field(default_factory=set[int])

    @property
    def session(self) -> Session:
        """The session that everything happens in."""
        return self.tools.session

    def pending(self, *, preemptible_only: bool = False) -> PendingOrder:
        """Jobs with pending pods and enough pods for their gang, in KAI's order."""
        session = self.session
        order = PendingOrder(session, self.tools.order)
        order.add_all(
            j
            for j in sorted(session.pending_jobs())
            if session.leaf[j] and session.ready(j) and (session.jobs.preemptible[j] or not preemptible_only)
        )
        return order

    def passes(self, filters: Sequence[VictimFilter], job: int, victim: int) -> bool:
        """Whether every victim filter lets the victim be taken; a refusal is recorded."""
        refusal = refused_victim(filters, job, victim)
        if refusal is not None:
            self.tools.trail.spare(victim, refusal)
        return refusal is None

    def each(
        self,
        action: str,
        attempt: Callable[[int], bool],
        *,
        by_queue: bool,
        preemptible_only: bool = False,
        gate: Callable[[int], bool] | None = None,
    ) -> None:
        """Attempt every pending job once that passes ``gate``; commit what succeeds. With signatures on, a job that
        is no easier than one of its like that failed (of its queue, with ``by_queue``) is skipped."""
        session, trail = self.session, self.tools.trail
        failed: dict[int, Failed] = {}
        order = self.pending(preemptible_only=preemptible_only)
        use_signatures = session.state.configuration.policy.use_scheduling_signatures
        while (job := order.pop()) is not None:
            safe_point()
            self.taken.setdefault(job)
            trail.begin(job, action)
            if not session.ready(job) or (gate is not None and not gate(job)):
                continue
            of_like = failed.setdefault(session.jobs.queue[job] if by_queue else -1, Failed(session, self.signatures))
            if use_signatures and not of_like.easier(job):
                trail.note("no-easier", "a job of the same constraints that is no harder failed before it")
            elif attempt(job):
                trail.found(session)
                session.commit(action, job)
            else:
                of_like.add(job)


def begin(state: CompiledState, asks: Sequence[Ask], now: int, budget: Budget, *, explain: bool, strict: bool) -> Cycle:
    """A fresh cycle. ``strict``: no bookkeeping habit may overfill a node."""
    session = Session(state, asks, now, strict=strict)
    order = QueueOrder(session)
    tools = Tools(session, order, Placer(session, order), budget, Trail(on=explain), VictimTable(session))
    return Cycle(tools, Protection(session), Signatures(session))
