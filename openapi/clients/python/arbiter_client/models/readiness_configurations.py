from typing import Literal

ReadinessConfigurations = Literal["current", "stale", "unknown"]

READINESS_CONFIGURATIONS_VALUES: set[ReadinessConfigurations] = {
    "current",
    "stale",
    "unknown",
}


def check_readiness_configurations(value: str) -> ReadinessConfigurations:
    if value in READINESS_CONFIGURATIONS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {READINESS_CONFIGURATIONS_VALUES!r}")
