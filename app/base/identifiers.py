"""Names that people give, and ids that sort by time: UUID version 7, strictly increasing within a process."""

import os
import threading
from datetime import datetime
from uuid import UUID

from app.solver.model.base import micros

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""What people may call a configuration, a snapshot, a cluster or a trace."""
_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62
_RANDOM_BITS = 62


def _stamp(time: datetime) -> int:
    """60 bits: 48 of milliseconds since 1970, 12 of the fraction of a millisecond."""
    milliseconds, fraction = divmod(max(micros(time), 0), 1000)
    return milliseconds << 12 | fraction * 4096 // 1000


def _uuid(stamp: int, random: int) -> UUID:
    return UUID(int=stamp >> 12 << 80 | _VERSION | (stamp & 0xFFF) << 64 | _VARIANT | random)


def earliest(time: datetime) -> UUID:
    """The smallest id of the instant ``time``: ids of that instant and later are not below it."""
    return _uuid(_stamp(time), 0)


class Identifiers:
    """Makes ids; two of the same instant still come in the order in which they were made."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def new(self, time: datetime) -> UUID:
        """The id of something that happened ``time``."""
        with self._lock:
            self._last = stamp = max(_stamp(time), self._last + 1)
        return _uuid(stamp, int.from_bytes(os.urandom(8), "big") >> (64 - _RANDOM_BITS))
