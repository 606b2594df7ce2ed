from typing import Literal

TaintEffect = Literal["NoExecute", "NoSchedule", "PreferNoSchedule"]

TAINT_EFFECT_VALUES: set[TaintEffect] = {
    "NoExecute",
    "NoSchedule",
    "PreferNoSchedule",
}


def check_taint_effect(value: str) -> TaintEffect:
    if value in TAINT_EFFECT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TAINT_EFFECT_VALUES!r}")
