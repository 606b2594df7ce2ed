from typing import Literal

YtsaurusStarvation = Literal["aggressively_starving", "non_starving", "starving"]

YTSAURUS_STARVATION_VALUES: set[YtsaurusStarvation] = {
    "aggressively_starving",
    "non_starving",
    "starving",
}


def check_ytsaurus_starvation(value: str) -> YtsaurusStarvation:
    if value in YTSAURUS_STARVATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {YTSAURUS_STARVATION_VALUES!r}")
