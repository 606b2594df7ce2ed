from typing import Literal

AskPreemptionPolicy = Literal["Never", "PreemptLowerPriority"]

ASK_PREEMPTION_POLICY_VALUES: set[AskPreemptionPolicy] = {
    "Never",
    "PreemptLowerPriority",
}


def check_ask_preemption_policy(value: str) -> AskPreemptionPolicy:
    if value in ASK_PREEMPTION_POLICY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ASK_PREEMPTION_POLICY_VALUES!r}")
