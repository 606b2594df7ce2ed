from typing import Literal

FindingSeverity = Literal["error", "info", "warning"]

FINDING_SEVERITY_VALUES: set[FindingSeverity] = {
    "error",
    "info",
    "warning",
}


def check_finding_severity(value: str) -> FindingSeverity:
    if value in FINDING_SEVERITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {FINDING_SEVERITY_VALUES!r}")
