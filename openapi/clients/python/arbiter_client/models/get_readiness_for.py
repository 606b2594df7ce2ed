from typing import Literal

GetReadinessFor = Literal["decisions", "everything"]

GET_READINESS_FOR_VALUES: set[GetReadinessFor] = {
    "decisions",
    "everything",
}


def check_get_readiness_for(value: str) -> GetReadinessFor:
    if value in GET_READINESS_FOR_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {GET_READINESS_FOR_VALUES!r}")
