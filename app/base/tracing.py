"""Where the time of a request goes, a stage at a time, told to whoever wants to know. Where nobody does, a look at a
context variable is all that it costs."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

import msgspec


class Stage(msgspec.Struct, frozen=True):
    """``begin`` and ``end``: instants of ``time.perf_counter()``, which all processes of a machine share. ``failed``:
    the class of what it ended with, empty where all went well."""

    name: str
    begin: float
    end: float
    failed: str = ""
    process: int = 0


Listener = Callable[[Stage], None]
_listening: ContextVar[Listener | None] = ContextVar("listening", default=None)


def listener() -> Listener | None:
    """Who is told of the stages of what is done now; None: nobody wants to know."""
    return _listening.get()


@contextmanager
def told(listening: Listener | None) -> Generator[None]:
    """Tell ``listening`` of what is done inside."""
    token = _listening.set(listening)
    try:
        yield
    finally:
        _listening.reset(token)


@contextmanager
def stage(name: str) -> Generator[None]:
    """Something that is worth telling."""
    listening = _listening.get()
    if listening is None:
        yield
        return
    begin, failed = perf_counter(), ""
    try:
        yield
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        since(name, begin, listening, failed)


def since(name: str, begin: float, listening: Listener, failed: str = "") -> None:
    """Tell of a stage that began at ``begin`` and ends now."""
    listening(Stage(name, begin, perf_counter(), failed, os.getpid()))
