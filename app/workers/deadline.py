"""Stop solving when its time is up, without the pure solver knowing of time."""

import ctypes
import signal
import threading
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
    disarm = _arm_signal(seconds) if _signals() else _arm_thread(seconds)
    try:
        yield
    except _TimeIsUp:
        raise DeadlinePassed(seconds) from None
    finally:
        disarm()


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


def _arm_thread(seconds: float) -> Callable[[], None]:
    runner = threading.get_ident()
    lock, done = threading.Lock(), False

    def ring() -> None:
        with lock:
            if not done:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(runner), ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(max(seconds, 0), ring)
    timer.daemon = True
    timer.start()

    def disarm() -> None:
        nonlocal done
        with lock:
            done = True
        timer.cancel()

    return disarm
