from typing import Literal

BorrowWithinCohortPolicy = Literal["LowerPriority", "Never"]

BORROW_WITHIN_COHORT_POLICY_VALUES: set[BorrowWithinCohortPolicy] = {
    "LowerPriority",
    "Never",
}


def check_borrow_within_cohort_policy(value: str) -> BorrowWithinCohortPolicy:
    if value in BORROW_WITHIN_COHORT_POLICY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BORROW_WITHIN_COHORT_POLICY_VALUES!r}")
