"""One scheduling cycle: the actions in the order that the settings give, on one overlay."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.solver.engines.kai.compile.state import CompiledState
from app.solver.engines.kai.decide.actions.signatures import Failed, Signatures
from app.solver.engines.kai.decide.budget import Budget
from app.solver.engines.kai.decide.order.pending_order import PendingOrder
from app.solver.engines.kai.decide.order.queue_order import QueueOrder
from app.solver.engines.kai.decide.order.victim_order import VictimTable
from app.solver.engines.kai.decide.overlay import Overlay
from app.solver.engines.kai.decide.placing.placer import Placer
from app.solver.engines.kai.decide.search.protection import Protection
from app.solver.engines.kai.decide.search.solver import Tools
from app.solver.engines.kai.decide.search.validators import VictimFilter, refused_victim
from app.solver.engines.kai.decide.trail import Trail
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
    def overlay(self) -> Overlay:
        """The overlay that everything happens in."""
        return self.tools.overlay

    def pending(self, *, preemptible_only: bool = False) -> PendingOrder:
        """Jobs with pending pods and enough pods for their gang, in KAI's order."""
        overlay = self.overlay
        order = PendingOrder(overlay, self.tools.order)
        order.add_all(
            j
            for j in sorted(overlay.pending_jobs())
            if overlay.leaf[j] and overlay.ready(j) and (overlay.jobs.preemptible[j] or not preemptible_only)
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
        overlay, trail = self.overlay, self.tools.trail
        failed: dict[int, Failed] = {}
        order = self.pending(preemptible_only=preemptible_only)
        use_signatures = overlay.state.configuration.policy.use_scheduling_signatures
        while (job := order.pop()) is not None:
            safe_point()
            self.taken.setdefault(job)
            trail.begin(job, action)
            if not overlay.ready(job) or (gate is not None and not gate(job)):
                continue
            of_like = failed.setdefault(overlay.jobs.queue[job] if by_queue else -1, Failed(overlay, self.signatures))
            if use_signatures and not of_like.easier(job):
                trail.note("no-easier", "a job of the same constraints that is no harder failed before it")
            elif attempt(job):
                trail.found(overlay)
                overlay.commit(action, job)
            else:
                of_like.add(job)


def begin(state: CompiledState, asks: Sequence[Ask], now: int, budget: Budget, trail: Trail, *, strict: bool) -> Cycle:
    """A fresh cycle; ``trail`` hears it. ``strict``: no bookkeeping habit may overfill a node."""
    overlay = Overlay(state, asks, now, strict=strict)
    order = QueueOrder(overlay)
    tools = Tools(overlay, order, Placer(overlay, order), budget, trail, VictimTable(overlay))
    return Cycle(tools, Protection(overlay), Signatures(overlay))
