from typing import Literal

GroupVerdict = Literal["moved", "not-needed", "out-of-reach", "protected", "put-back", "victim"]

GROUP_VERDICT_VALUES: set[GroupVerdict] = {
    "moved",
    "not-needed",
    "out-of-reach",
    "protected",
    "put-back",
    "victim",
}


def check_group_verdict(value: str) -> GroupVerdict:
    if value in GROUP_VERDICT_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {GROUP_VERDICT_VALUES!r}")
