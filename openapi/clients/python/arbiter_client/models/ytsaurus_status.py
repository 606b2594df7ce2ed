from typing import Literal

YtsaurusStatus = Literal["below_fair_share", "normal"]

YTSAURUS_STATUS_VALUES: set[YtsaurusStatus] = {
    "below_fair_share",
    "normal",
}


def check_ytsaurus_status(value: str) -> YtsaurusStatus:
    if value in YTSAURUS_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {YTSAURUS_STATUS_VALUES!r}")
