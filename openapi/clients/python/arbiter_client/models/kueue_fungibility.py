from typing import Literal

KueueFungibility = Literal["MayStopSearch", "TryNextFlavor"]

KUEUE_FUNGIBILITY_VALUES: set[KueueFungibility] = {
    "MayStopSearch",
    "TryNextFlavor",
}


def check_kueue_fungibility(value: str) -> KueueFungibility:
    if value in KUEUE_FUNGIBILITY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KUEUE_FUNGIBILITY_VALUES!r}")
