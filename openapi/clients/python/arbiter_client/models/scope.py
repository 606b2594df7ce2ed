from typing import Literal

Scope = Literal["admin", "decide", "read"]

SCOPE_VALUES: set[Scope] = {
    "admin",
    "decide",
    "read",
}


def check_scope(value: str) -> Scope:
    if value in SCOPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SCOPE_VALUES!r}")
