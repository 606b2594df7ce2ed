from typing import Literal

YtsaurusPriorityScope = Literal["operation_and_ancestors", "operation_only"]

YTSAURUS_PRIORITY_SCOPE_VALUES: set[YtsaurusPriorityScope] = {
    "operation_and_ancestors",
    "operation_only",
}


def check_ytsaurus_priority_scope(value: str) -> YtsaurusPriorityScope:
    if value in YTSAURUS_PRIORITY_SCOPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {YTSAURUS_PRIORITY_SCOPE_VALUES!r}")
