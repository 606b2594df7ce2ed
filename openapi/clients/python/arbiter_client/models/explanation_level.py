from typing import Literal

ExplanationLevel = Literal["full", "summary"]

EXPLANATION_LEVEL_VALUES: set[ExplanationLevel] = {
    "full",
    "summary",
}


def check_explanation_level(value: str) -> ExplanationLevel:
    if value in EXPLANATION_LEVEL_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EXPLANATION_LEVEL_VALUES!r}")
