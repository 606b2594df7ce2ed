"""Whoever guesses at tokens is slowed down, by the address that the guesses come from."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from starlette.types import Scope

from app.base.errors import TooManyRequests

_AT_ONCE = 10.0
_SECONDS_EACH = 6.0
"""So long until one more may be wrong."""
_MOST_ADDRESSES = 10_000
_NETWORK = 4
"""Groups of an IPv6 address that tell networks apart: whoever has one address has all that share them."""


class Guesses:
    """Wrong tokens by address: ten at once, then ten a minute. ``clock``: seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def check(self, address: str) -> None:
        """Raises TooManyRequests where too many were wrong: then nothing is looked up, right or not."""
        with self._lock:
            left = self._now(address)
        if left < 1:
            raise TooManyRequests(
                "too many wrong tokens came from this address", retry_after=math.ceil((1 - left) * _SECONDS_EACH)
            )

    def wrong(self, address: str) -> None:
        """One more was."""
        with self._lock:
            self._left[address] = (self._now(address) - 1, self._clock())
            self._left.move_to_end(address)
            while len(self._left) > _MOST_ADDRESSES:
                self._left.popitem(last=False)

    def _now(self, address: str) -> float:
        left, at = self._left.get(address, (_AT_ONCE, self._clock()))
        return min(left + (self._clock() - at) / _SECONDS_EACH, _AT_ONCE)


def address_of(scope: Scope) -> str:
    """Where a request comes from: its address, or the network of one of IPv6."""
    client = scope.get("client")
    address = str(client[0]) if client else ""
    return ":".join(address.split(":")[:_NETWORK]) if address.count(":") > 1 else address
