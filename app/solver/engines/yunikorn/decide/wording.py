"""Phrases that messages and explanations share."""

from collections.abc import Sequence

_LISTED = 5


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def joined(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; of many the first few."""
    shown = list(names[:_LISTED])
    if len(names) > _LISTED:
        shown.append(f"{len(names) - _LISTED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
