from typing import Literal

KueueStrategy = Literal["LessThanInitialShare", "LessThanOrEqualToFinalShare"]

KUEUE_STRATEGY_VALUES: set[KueueStrategy] = {
    "LessThanInitialShare",
    "LessThanOrEqualToFinalShare",
}


def check_kueue_strategy(value: str) -> KueueStrategy:
    if value in KUEUE_STRATEGY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KUEUE_STRATEGY_VALUES!r}")
