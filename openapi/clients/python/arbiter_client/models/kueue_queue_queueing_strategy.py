from typing import Literal

KueueQueueQueueingStrategy = Literal["BestEffortFIFO", "StrictFIFO"]

KUEUE_QUEUE_QUEUEING_STRATEGY_VALUES: set[KueueQueueQueueingStrategy] = {
    "BestEffortFIFO",
    "StrictFIFO",
}


def check_kueue_queue_queueing_strategy(value: str) -> KueueQueueQueueingStrategy:
    if value in KUEUE_QUEUE_QUEUEING_STRATEGY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KUEUE_QUEUE_QUEUEING_STRATEGY_VALUES!r}")
