from typing import Literal

YtsaurusPreemptionMode = Literal["graceful", "normal"]

YTSAURUS_PREEMPTION_MODE_VALUES: set[YtsaurusPreemptionMode] = {
    "graceful",
    "normal",
}


def check_ytsaurus_preemption_mode(value: str) -> YtsaurusPreemptionMode:
    if value in YTSAURUS_PREEMPTION_MODE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {YTSAURUS_PREEMPTION_MODE_VALUES!r}")
