from typing import Literal

VictimOnPreemptionType0 = Literal["Requeue", "Terminate"]

VICTIM_ON_PREEMPTION_TYPE_0_VALUES: set[VictimOnPreemptionType0] = {
    "Requeue",
    "Terminate",
}


def check_victim_on_preemption_type_0(value: str) -> VictimOnPreemptionType0:
    if value in VICTIM_ON_PREEMPTION_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {VICTIM_ON_PREEMPTION_TYPE_0_VALUES!r}")
