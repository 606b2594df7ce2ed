from typing import Literal

KueueSorting = Literal["ByLongestRuntime", "ByLowestPriority", "ByLowestRuntime"]

KUEUE_SORTING_VALUES: set[KueueSorting] = {
    "ByLongestRuntime",
    "ByLowestPriority",
    "ByLowestRuntime",
}


def check_kueue_sorting(value: str) -> KueueSorting:
    if value in KUEUE_SORTING_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KUEUE_SORTING_VALUES!r}")
