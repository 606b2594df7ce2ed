"""What a ClusterQueue's Kueue block comes to, with Kueue's defaults in place."""

from dataclasses import dataclass

import msgspec

from app.solver.model import kueue as model
from app.solver.model.configuration import Queue

NO_FUNGIBILITY = model.FlavorFungibility()
NO_PREEMPTION = model.Preemption()
DEFAULT_STRATEGIES: tuple[model.Strategy, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a ClusterQueue may preempt, with Kueue's defaults in place. ``threshold`` None: no threshold."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: bool = False
    threshold: int | None = None
    fungibility: model.FlavorFungibility = NO_FUNGIBILITY
    strict_fifo: bool = False
    preemption: model.Preemption = NO_PREEMPTION


def policies(queues: list[Queue]) -> list[Policy]:
    """Queues share few policies between them: equal blocks are recognised by their encoding."""
    encode = msgspec.msgpack.Encoder().encode
    known: dict[bytes, Policy] = {}
    out: list[Policy] = []
    for queue in queues:
        key = encode(queue.kueue)
        policy = known.get(key)
        if policy is None:
            policy = known[key] = Policy() if queue.kueue is None else _policy(queue.kueue)
        out.append(policy)
    return out


def _policy(block: model.Queue) -> Policy:
    preemption = block.preemption or NO_PREEMPTION
    borrow = preemption.borrow_within_cohort or model.BorrowWithinCohort()
    return Policy(
        within_cluster_queue=preemption.within_cluster_queue,
        reclaim_within_cohort=preemption.reclaim_within_cohort,
        borrow_within_cohort=borrow.policy == "LowerPriority",
        threshold=borrow.max_priority_threshold,
        fungibility=block.flavor_fungibility or NO_FUNGIBILITY,
        strict_fifo=block.queueing_strategy == "StrictFIFO",
        preemption=preemption,
    )
