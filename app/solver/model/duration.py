"""Durations: a number of seconds, or a Go duration string (time.ParseDuration). Parsed to microseconds."""

import re
from decimal import Decimal
from functools import lru_cache

from app.solver.model.base import Duration

_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_MICROS = {
    "ns": Decimal("0.001"), "us": Decimal(1), "µs": Decimal(1), "μs": Decimal(1), "ms": Decimal(1000),
    "s": Decimal(10**6), "m": Decimal(60 * 10**6), "h": Decimal(3600 * 10**6),
}  # fmt: skip
_MAX = 2**62


class DurationError(ValueError):
    """A duration that is malformed or out of range; the text says which."""


@lru_cache(maxsize=4096, typed=True)
def parse(value: Duration) -> int:
    """``value`` in microseconds, possibly negative. Raises DurationError."""
    if isinstance(value, bool):
        raise DurationError("a boolean is not a duration")
    if isinstance(value, (int, float)):
        if value != value or abs(value) > 1e12:
            raise DurationError("out of range")
        return round(Decimal(repr(value)) * 10**6)
    return _go(value)


def _go(text: str) -> int:
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, position = Decimal(0), 0
    while position < len(body):
        match = _PART.match(body, position)
        if match is None:
            raise DurationError(f"{text[:64]!r} is not a duration")
        total += Decimal(match[1]) * _MICROS[match[2]]
        position = match.end()
    if position == 0 or total > _MAX:
        raise DurationError(f"{text[:64]!r} is not a duration")
    return int(-total if text[0] == "-" else total)


def seconds(micros: int) -> int | float:
    """Microseconds as answers show them: seconds."""
    whole, rest = divmod(micros, 10**6)
    return whole if rest == 0 else micros / 10**6
