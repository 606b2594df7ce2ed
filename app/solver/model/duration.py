"""Durations: a number of seconds, or a string as Go spells it (time.ParseDuration). Every dialect is read here.

The rules are those of Go's ``time.ParseDuration``: a sign, then parts of a decimal number and a unit, in any order and
as often as one likes; a bare ``0`` needs no unit; a fraction is computed as a double, and what is finer than a
nanosecond falls away. Dialects differ in their units and in how long a duration may be. More than 256 characters are
refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from app.solver.model.base import Duration

_INT64 = 2**63 - 1
_SECOND = 10**9
_GO = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_DAY = 24 * 3600 * _SECOND
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h|d|w)")
_LONGEST = 256


class DurationError(ValueError):
    """A duration that is malformed or out of range; the text says which."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """Who spells a duration so. ``units`` in nanoseconds; ``limit``: the longest one, in nanoseconds, either way."""

    units: Mapping[str, int]
    limit: int


WIRE = Dialect(_GO, limit=10**12 * _SECOND)
"""Arbiter's own: Go's units, and as many seconds as a number may name."""
GO = Dialect(_GO, limit=_INT64)
"""Go's time.Duration, an int64 of nanoseconds: 292 years. YuniKorn's properties."""
GO_WITH_DAYS = Dialect(_GO | {"d": _DAY, "w": 7 * _DAY}, limit=_INT64)
"""The same with days of 24 hours and weeks: KAI's plugin arguments (str2duration)."""


@lru_cache(maxsize=4096, typed=True)
def parse(value: Duration, dialect: Dialect = WIRE) -> int:
    """``value`` in microseconds, possibly negative; a text's rest below one falls away. Raises DurationError."""
    if isinstance(value, bool):
        raise DurationError("a boolean is not a duration")
    if isinstance(value, str):
        nanos = nanoseconds(value, dialect)
        return nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    if value != value or abs(value) > dialect.limit // _SECOND:
        raise DurationError("out of range")
    return value * 10**6 if isinstance(value, int) else round(Decimal(repr(value)) * 10**6)


def nanoseconds(text: str, dialect: Dialect = GO) -> int:
    """A duration string in nanoseconds, possibly negative. Raises DurationError."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, at = 0, 0
    while at < len(body) <= _LONGEST:
        part = _PART.match(body, at)
        if part is None or not (part[1] or part[2]) or part[3] not in dialect.units:
            break
        unit = dialect.units[part[3]]
        total += int(part[1] or 0) * unit + _fraction(part[2] or "", unit)
        at = part.end()
    if at == 0 or at < len(body):
        raise DurationError(f"{text[:64]!r} is not a duration")
    negative = text[0] == "-"
    if total > dialect.limit + (negative and dialect.limit == _INT64):
        raise DurationError(f"{text[:64]!r} is out of range: at most {seconds(dialect.limit // 1000):g} s")
    return -total if negative else total


def _fraction(digits: str, unit: int) -> int:
    """``0.digits`` of ``unit``: Go leaves out digits that an int64 has no room for, then multiplies doubles."""
    found, scale = 0, 1.0
    for digit in digits:
        longer = found * 10 + int(digit)
        if longer > 2**63:
            break
        found, scale = longer, scale * 10
    return int(found * (unit / scale))


def seconds(micros: int) -> int | float:
    """Microseconds as answers show them: seconds."""
    whole, rest = divmod(micros, 10**6)
    return whole if rest == 0 else micros / 10**6
