from typing import Literal

TolerationOperator = Literal["Equal", "Exists"]

TOLERATION_OPERATOR_VALUES: set[TolerationOperator] = {
    "Equal",
    "Exists",
}


def check_toleration_operator(value: str) -> TolerationOperator:
    if value in TOLERATION_OPERATOR_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {TOLERATION_OPERATOR_VALUES!r}")
