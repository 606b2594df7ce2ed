"""Memory for request bodies: one budget for all, so that what is unfinished or waits costs no more than is stated.

The first 64 KiB of each request are free: however many large bodies hang about, small requests get in.
"""

from threading import Lock

from anyio import CapacityLimiter
from starlette.types import Scope

from app.base.errors import TooManyRequests
from app.http.routing import of_scope

FREE = 64 << 10
_INFLATING = 2
_KEY = "arbiter.hold"


class Budget:
    """``most`` bytes for all requests together; ``inflating``: threads for those that are compressed."""

    def __init__(self, most: int) -> None:
        self.inflating = CapacityLimiter(_INFLATING)
        self._most = most
        self._lock = Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        """Bytes in use."""
        return self._taken

    def change(self, size: int) -> None:
        """Take ``size`` bytes, or give them back where it is negative. Raises TooManyRequests."""
        with self._lock:
            if self._taken + size > self._most:
                raise TooManyRequests("request bodies use all the memory that there is for them", retry_after=1)
            self._taken += size


class Hold:
    """What one request holds, from any thread, until it is released."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._size = 0
        self._released = False

    def change(self, size: int) -> None:
        """Hold ``size`` bytes more, or less. Raises TooManyRequests."""
        with self._lock:
            if self._released:
                return
            wanted = self._size + size
            self._budget.change(max(wanted - FREE, 0) - max(self._size - FREE, 0))
            self._size = wanted

    def release(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._released = True
            self._budget.change(-max(self._size - FREE, 0))
            self._size = 0


def hold_of(scope: Scope) -> Hold:
    """What the request of ``scope`` holds."""
    found = scope.get(_KEY)
    if isinstance(found, Hold):
        return found
    made = scope[_KEY] = Hold(of_scope(scope, Budget))
    return made


def release(scope: Scope) -> None:
    """The request of ``scope`` is answered."""
    if isinstance(found := scope.get(_KEY), Hold):
        found.release()
