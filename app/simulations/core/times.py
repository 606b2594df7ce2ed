"""Times of a request as microseconds since 1970: exact, so that ties are ties."""

from datetime import UTC, datetime

import msgspec

from app.simulations.schemas import Instant
from app.solver.model.base import Duration, Time
from app.solver.model.duration import DurationError
from app.solver.model.duration import parse as parse_duration
from app.solver.model.instant import at, micros

FIRST = micros(datetime(2000, 1, 1, tzinfo=UTC))
"""Where a run starts that nobody gave a time."""
LATEST = micros(datetime(9000, 1, 1, tzinfo=UTC))
"""No instant lies past this: every answer can still be written as a time."""


def span(value: Duration) -> int:
    """A length, 0 or more. Raises DurationError."""
    length = parse_duration(value)
    if length < 0:
        raise DurationError("negative")
    return length


def is_time(value: Instant) -> bool:
    """Whether ``value`` is a time of day and not a length from the start."""
    return isinstance(value, str) and "T" in value.upper()


def moment(value: Instant, start: int) -> int:
    """An instant; lengths count from ``start``. Raises DurationError."""
    if is_time(value):
        try:
            found = micros(msgspec.convert(value, Time))
        except msgspec.ValidationError:
            raise DurationError(f"{str(value)[:64]!r} is no RFC 3339 time with an offset") from None
    else:
        found = start + parse_duration(value)
    if found > LATEST:
        raise DurationError("out of range")
    return found


def time_of(value: int) -> datetime:
    """An instant as the wire has it."""
    return at(value)
