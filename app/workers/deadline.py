"""Stop solving when its time is up, without the pure solver knowing of time."""

import ctypes
import heapq
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from app.errors import DeadlinePassed


class _TimeIsUp(BaseException):
    """Raised inside whatever runs; not an Exception, so that nothing on the way takes it for its own."""


@contextmanager
def deadline(seconds: float | None) -> Generator[None]:
    """Run what is inside for at most ``seconds``. Raises DeadlinePassed.

    In a main thread by SIGALRM; elsewhere by an asynchronous exception, which reaches Python code only: one
    long call into C finishes first.
    """
    if seconds is None:
        yield
        return
    try:
        disarm = _arm_signal(seconds) if _signals() else _watch.arm(seconds)
        try:
            yield
        finally:
            disarm()
    except _TimeIsUp:
        raise DeadlinePassed(seconds) from None


def _signals() -> bool:
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


def _arm_signal(seconds: float) -> Callable[[], None]:
    def ring(number: int, frame: object) -> None:
        del number, frame
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))

    def disarm() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    return disarm


class _Alarm:
    """One thread's deadline. ``rung``: the exception is on its way."""

    __slots__ = ("done", "rung", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.done = False
        self.rung = False


class _Watch:
    """One thread that rings for all others; started when first needed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, _Alarm]] = []
        self._count = 0
        self._running = False

    def arm(self, seconds: float) -> Callable[[], None]:
        """Ring in this thread after ``seconds``, unless the returned function is called before."""
        alarm, at = _Alarm(), time.monotonic() + max(seconds, 0)
        with self._changed:
            if not self._running:
                threading.Thread(target=self._run, name="deadlines", daemon=True).start()
                self._running = True
            self._count += 1
            heapq.heappush(self._due, (at, self._count, alarm))
            if self._due[0][2] is alarm:
                self._changed.notify()
        return lambda: self._disarm(alarm)

    def _disarm(self, alarm: _Alarm) -> None:
        with self._changed:
            alarm.done = True
            if alarm.rung:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(alarm.thread), None)

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._due and self._due[0][2].done:
                    heapq.heappop(self._due)
                now = time.monotonic()
                if not self._due or self._due[0][0] > now:
                    self._changed.wait(self._due[0][0] - now if self._due else None)
                    continue
                alarm = heapq.heappop(self._due)[2]
                alarm.rung = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(alarm.thread), ctypes.py_object(_TimeIsUp))


_watch = _Watch()
