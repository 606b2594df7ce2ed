"""Work that takes the processor for long: off the event loop, with the garbage collector out of the way.

Decoding allocates hundreds of thousands of containers that live until the answer is written; a collector that
looks at them over and over doubles the time and frees nothing. While any solve runs the collector is paused;
between solves, and at the latest after a few seconds of unbroken load, it gets its turn.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from app.errors import TooManyRequests

T = TypeVar("T")

_LONGEST_PAUSE = 5.0


class _Pause:
    """Who is inside, and since when the collector is off."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.since = 0.0


_pause = _Pause()


@contextmanager
def collector_paused() -> Generator[None]:
    """No garbage collection inside, also when several threads are inside at once."""
    with _pause.lock:
        _pause.inside += 1
        if gc.isenabled():
            _pause.since = time.monotonic()
            gc.disable()
    try:
        yield
    finally:
        with _pause.lock:
            _pause.inside -= 1
            overdue = time.monotonic() - _pause.since > _LONGEST_PAUSE
            if overdue:
                _pause.since = time.monotonic()
            if _pause.inside == 0:
                gc.enable()
        if overdue:
            gc.collect(1)


class Offload:
    """Threads of their own, so that waiting for the database never takes the place of solving.

    ``most`` calls may be inside at once, those that wait for a worker process included; the next is refused.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="solve")
        self._most = most
        self._inside = 0

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """``function(*args)`` in a thread. Raises what it raises, and TooManyRequests."""
        if self._inside >= self._most:
            raise TooManyRequests(f"{self._most} requests are being answered or wait already")
        work = partial(copy_context().run, _paused, function, *args)
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._inside -= 1

    def close(self) -> None:
        """Finish what runs, drop what waits."""
        self._pool.shutdown(cancel_futures=True)


def _paused(function: Callable[..., T], *args: Any) -> T:
    with collector_paused():
        return function(*args)
