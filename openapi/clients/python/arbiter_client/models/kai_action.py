from typing import Literal

KaiAction = Literal["allocate", "consolidation", "preempt", "reclaim"]

KAI_ACTION_VALUES: set[KaiAction] = {
    "allocate",
    "consolidation",
    "preempt",
    "reclaim",
}


def check_kai_action(value: str) -> KaiAction:
    if value in KAI_ACTION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KAI_ACTION_VALUES!r}")
