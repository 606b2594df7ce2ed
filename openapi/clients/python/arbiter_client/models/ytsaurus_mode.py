from typing import Literal

YtsaurusMode = Literal["fair_share", "fifo"]

YTSAURUS_MODE_VALUES: set[YtsaurusMode] = {
    "fair_share",
    "fifo",
}


def check_ytsaurus_mode(value: str) -> YtsaurusMode:
    if value in YTSAURUS_MODE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {YTSAURUS_MODE_VALUES!r}")
