"""How Python runs a process that does nothing but follow.

What was read stays, so that looking through all of it for garbage takes seconds, and finds nothing: nothing that is
kept of a cluster goes round in circles, and what is replaced is freed without. So only what is new is looked through, a
little at a time, and all of it once in an hour.

While one thread translates, others hear of changes, and wait for a turn after each piece that they read: with Python's
usual 5 ms they would hear of two hundred a second.
"""

import gc
import sys
import time

_LOOK_SECONDS = 3600.0
_NEW, _TIMES, _NEVER = 10_000, 20, 1_000_000_000
_TURN_SECONDS = 0.0005


class Tidy:
    """For a whole process; to be called now and then."""

    def __init__(self) -> None:
        gc.set_threshold(_NEW, _TIMES, _NEVER)
        sys.setswitchinterval(_TURN_SECONDS)
        self._looked = time.monotonic()

    def __call__(self) -> None:
        """Look through everything if it is time."""
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            gc.collect()
            self._looked = time.monotonic()
