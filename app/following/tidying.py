"""How Python runs a process that does nothing but follow.

What was read stays, so that looking through all of it for garbage, again and again, takes longer than changes do: only
what is new since the last look is looked through, and then stays out of it. Nothing that is kept of a cluster goes
round in circles, so that what is replaced later is freed without.

While one thread translates, others hear of changes, and wait for a turn after each piece that they read: with Python's
usual 5 ms they would hear of two hundred a second.
"""

import gc
import sys
import time

_LOOK_SECONDS = 5.0
_TURN_SECONDS = 0.0005


class Tidy:
    """For a whole process; to be called now and then."""

    def __init__(self) -> None:
        gc.disable()
        sys.setswitchinterval(_TURN_SECONDS)
        self._looked = time.monotonic()

    def __call__(self) -> None:
        """Look for garbage if it is time."""
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            gc.collect()
            gc.freeze()
            self._looked = time.monotonic()
