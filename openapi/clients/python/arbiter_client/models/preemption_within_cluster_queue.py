from typing import Literal

PreemptionWithinClusterQueue = Literal["LowerOrNewerEqualPriority", "LowerPriority", "Never"]

PREEMPTION_WITHIN_CLUSTER_QUEUE_VALUES: set[PreemptionWithinClusterQueue] = {
    "LowerOrNewerEqualPriority",
    "LowerPriority",
    "Never",
}


def check_preemption_within_cluster_queue(value: str) -> PreemptionWithinClusterQueue:
    if value in PREEMPTION_WITHIN_CLUSTER_QUEUE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PREEMPTION_WITHIN_CLUSTER_QUEUE_VALUES!r}")
