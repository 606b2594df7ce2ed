"""Work that takes the processor for long: off the event loop, with the garbage collector out of the way.

Decoding allocates hundreds of thousands of containers that live until the answer is written; a collector that
looks at them over and over doubles the time and frees nothing. While any solve runs the collector is paused;
between solves, and at the latest after a few seconds of unbroken load, it gets its turn.
"""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

_LONGEST_PAUSE = 5.0
# A pool of its own: threads that wait for the database never take the place of those that solve.
_pool = ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) + 1, thread_name_prefix="solve")


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


async def solve(function: Callable[..., T], *args: Any) -> T:
    """``function(*args)`` in a thread of the small pool for solving. Raises what it raises."""
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pool, partial(context.run, _paused, function, *args))


def _paused(function: Callable[..., T], *args: Any) -> T:
    with collector_paused():
        return function(*args)
