from typing import Literal

WorkloadOnPreemptionType0 = Literal["Requeue", "Terminate"]

WORKLOAD_ON_PREEMPTION_TYPE_0_VALUES: set[WorkloadOnPreemptionType0] = {
    "Requeue",
    "Terminate",
}


def check_workload_on_preemption_type_0(value: str) -> WorkloadOnPreemptionType0:
    if value in WORKLOAD_ON_PREEMPTION_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {WORKLOAD_ON_PREEMPTION_TYPE_0_VALUES!r}")
