from typing import Literal

FlavorFungibilityPreferenceType0 = Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"]

FLAVOR_FUNGIBILITY_PREFERENCE_TYPE_0_VALUES: set[FlavorFungibilityPreferenceType0] = {
    "BorrowingOverPreemption",
    "PreemptionOverBorrowing",
}


def check_flavor_fungibility_preference_type_0(value: str) -> FlavorFungibilityPreferenceType0:
    if value in FLAVOR_FUNGIBILITY_PREFERENCE_TYPE_0_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FLAVOR_FUNGIBILITY_PREFERENCE_TYPE_0_VALUES!r}")
