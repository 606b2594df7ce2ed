from typing import Literal

Rules = Literal["documented", "shipped"]

RULES_VALUES: set[Rules] = {
    "documented",
    "shipped",
}


def check_rules(value: str) -> Rules:
    if value in RULES_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {RULES_VALUES!r}")
