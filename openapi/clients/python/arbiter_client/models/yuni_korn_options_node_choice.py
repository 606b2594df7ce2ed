from typing import Literal

YuniKornOptionsNodeChoice = Literal["first", "scored"]

YUNI_KORN_OPTIONS_NODE_CHOICE_VALUES: set[YuniKornOptionsNodeChoice] = {
    "first",
    "scored",
}


def check_yuni_korn_options_node_choice(value: str) -> YuniKornOptionsNodeChoice:
    if value in YUNI_KORN_OPTIONS_NODE_CHOICE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {YUNI_KORN_OPTIONS_NODE_CHOICE_VALUES!r}")
