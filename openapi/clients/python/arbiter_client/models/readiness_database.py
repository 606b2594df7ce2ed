from typing import Literal

ReadinessDatabase = Literal["ok", "unreachable"]

READINESS_DATABASE_VALUES: set[ReadinessDatabase] = {
    "ok",
    "unreachable",
}


def check_readiness_database(value: str) -> ReadinessDatabase:
    if value in READINESS_DATABASE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {READINESS_DATABASE_VALUES!r}")
