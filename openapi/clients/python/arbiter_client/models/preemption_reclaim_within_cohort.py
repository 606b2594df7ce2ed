from typing import Literal

PreemptionReclaimWithinCohort = Literal["Any", "LowerPriority", "Never"]

PREEMPTION_RECLAIM_WITHIN_COHORT_VALUES: set[PreemptionReclaimWithinCohort] = {
    "Any",
    "LowerPriority",
    "Never",
}


def check_preemption_reclaim_within_cohort(value: str) -> PreemptionReclaimWithinCohort:
    if value in PREEMPTION_RECLAIM_WITHIN_COHORT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PREEMPTION_RECLAIM_WITHIN_COHORT_VALUES!r}")
