from typing import Literal

Explain = Literal["full", "none", "summary"]

EXPLAIN_VALUES: set[Explain] = {
    "full",
    "none",
    "summary",
}


def check_explain(value: str) -> Explain:
    if value in EXPLAIN_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EXPLAIN_VALUES!r}")
