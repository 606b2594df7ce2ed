"""Who is not tried at all, and who is evicted although nobody needs it: queues that are stopped or not active.

Source: Kueue ``pkg/scheduler/scheduler.go`` (nominate), ``pkg/cache/scheduler/snapshot.go`` (skipInactiveCQReason: what
runs in such a ClusterQueue uses its quota and is nobody's candidate), ``pkg/controller/core/workload_controller.go``
(reconcileOnClusterQueueActiveState, reconcileOnLocalQueueActiveState), ``pkg/cache/queue/cluster_queue.go``
(backoffWaitingTimeExpired).
"""

from collections.abc import Sequence

from msgspec.structs import replace

from app.solver.engines.kueue.cycle import inadmissible
from app.solver.engines.kueue.explain import explain
from app.solver.engines.kueue.state import CompiledState
from app.solver.model.decision import Condition, Decision, PlannedEviction, Result
from app.solver.model.instant import at
from app.solver.model.state import Ask
from app.solver.question import Question


def kept_waiting(state: CompiledState, question: Question) -> dict[str, Decision]:
    """The decisions on asks that are not nominated, by ask."""
    found: dict[str, Decision] = {}
    for ask in question.asks:
        why = inadmissible(state.configuration, ask, question.now)
        if why is None:
            continue
        record = explain(question.why())
        record.inadmissible(ask, why)
        condition = Condition(
            type="QuotaReserved", status="False", reason="Inadmissible", message=why,
            last_transition_time=at(question.now),
        )  # fmt: skip
        found[ask.id] = Decision(
            ask=ask.id, outcome="wait", victims=[], conditions=[condition], explanation=record.explanation()
        )
    return found


def drained(state: CompiledState) -> list[PlannedEviction]:
    """What runs in queues that are drained and is not on its way out yet, in the order of the state."""
    configuration = state.configuration
    if not configuration.drains and not state.evicted:
        return []
    found: list[PlannedEviction] = []
    for workload, node in zip(state.workloads, state.queue.tolist(), strict=True):
        stopped = "ClusterQueueStopped" if node in configuration.drains else None
        if stopped is None and workload.kueue is not None and workload.kueue.drained:
            stopped = "LocalQueueStopped"
        if stopped is not None and not workload.evicted:
            found.append(PlannedEviction(workload=workload.id, queue=workload.queue, reason=stopped))
    return found


def together(
    result: Result, asks: Sequence[Ask], waiting: dict[str, Decision], evictions: list[PlannedEviction]
) -> Result:
    """``result`` with the decisions on asks ``waiting`` and with ``evictions`` before those of its plan."""
    decided = {decision.ask: decision for decision in result.decisions} | waiting
    known = {eviction.workload for eviction in evictions}
    rest = [eviction for eviction in result.plan.evictions if eviction.workload not in known]
    return replace(
        result, decisions=[decided[ask.id] for ask in asks],
        plan=replace(result.plan, evictions=[*evictions, *rest]),
    )  # fmt: skip
