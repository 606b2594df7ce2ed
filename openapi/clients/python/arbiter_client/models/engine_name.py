from typing import Literal

EngineName = Literal["kai", "kueue", "ytsaurus", "yunikorn"]

ENGINE_NAME_VALUES: set[EngineName] = {
    "kai",
    "kueue",
    "ytsaurus",
    "yunikorn",
}


def check_engine_name(value: str) -> EngineName:
    if value in ENGINE_NAME_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ENGINE_NAME_VALUES!r}")
