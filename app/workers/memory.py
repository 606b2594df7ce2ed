"""Memory that a large request needed is kept for the next one.

Half of what decoding a large body costs is the system handing out pages, because everything was given back after the
request before. A process that answers such requests all day keeps them: up to a bound, and resident in any case
already at its peak. All of this is about CPython and glibc; elsewhere it changes nothing.
"""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_BLOCK = 32 << 20
_ARENA_BITS = 20
_SMALL, _BLOCK = 400, 448
"""Bytes of an object that comes out of an arena, not out of malloc, and what it takes there."""
_BYTES_PER_BODY_BYTE = 9
"""Of decoded objects; measured on the bodies of benchmarks/."""


def keep_freed_blocks() -> None:
    """Let malloc keep freed blocks the size of a large body, instead of unmapping each."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, 4 * _LARGEST_BLOCK)


class Reserve:
    """Arenas of small objects that stay mapped: each is pinned by one object of our own that lives in it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._filled = 0
        self._pins: dict[int, bytes] = {}

    def grow(self, body: int) -> None:
        """Keep enough for a body of ``body`` bytes. To be called when its objects are gone."""
        need = body * _BYTES_PER_BODY_BYTE
        if min(need, self._most) <= self._filled:
            return
        # A quarter more than asked for: bodies that grow a little each time must not fill it again each time.
        self._filled = min(need * 5 // 4, self._most)
        filling = [bytes(_SMALL) for _ in range(self._filled // _BLOCK)]
        for one in filling:
            self._pins.setdefault(id(one) >> _ARENA_BITS, one)

    def __len__(self) -> int:
        """Arenas kept."""
        return len(self._pins)
