"""Instants as integers: microseconds since 1970, so that ties are exact."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """``at`` in microseconds since the epoch."""
    gap = at - _EPOCH
    return gap.days * 86_400_000_000 + gap.seconds * 1_000_000 + gap.microseconds


@lru_cache(maxsize=4096)
def at(value: int) -> datetime:
    """The instant ``value`` microseconds after the epoch, in UTC. Cached: whatever happens at one instant says so."""
    return _EPOCH + value * _MICRO
