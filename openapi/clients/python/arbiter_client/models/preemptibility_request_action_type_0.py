from typing import Literal

PreemptibilityRequestActionType0 = Literal["preempt", "reclaim"]

PREEMPTIBILITY_REQUEST_ACTION_TYPE_0_VALUES: set[PreemptibilityRequestActionType0] = {
    "preempt",
    "reclaim",
}


def check_preemptibility_request_action_type_0(value: str) -> PreemptibilityRequestActionType0:
    if value in PREEMPTIBILITY_REQUEST_ACTION_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PREEMPTIBILITY_REQUEST_ACTION_TYPE_0_VALUES!r}")
