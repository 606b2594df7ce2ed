from typing import Literal

Outcome = Literal["admit", "infeasible", "preempt", "wait"]

OUTCOME_VALUES: set[Outcome] = {
    "admit",
    "infeasible",
    "preempt",
    "wait",
}


def check_outcome(value: str) -> Outcome:
    if value in OUTCOME_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {OUTCOME_VALUES!r}")
