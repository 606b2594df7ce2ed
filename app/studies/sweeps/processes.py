"""The processes that runs are played in: forked from one that has read their code, which is read only once and while
the trace is read. Where that can't be, each reads it for itself."""

import os
from collections.abc import Iterable
from multiprocessing import get_context, parent_process
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running
from tempfile import gettempdir
from threading import Thread

_LONGEST = 59
"""Bytes of a folder in which a socket `/pymp-12345678/listener-12345678` has a path that every system takes: 92."""


def context_at(folder: str) -> BaseContext:
    """How processes are started whose sockets lie in ``folder``."""
    return get_context("forkserver" if len(os.fsencode(folder)) <= _LONGEST else "spawn")


CONTEXT = context_at(gettempdir())


def begin(modules: Iterable[str] = ()) -> None:
    """Start the process that others are forked from; it reads the code of runs and ``modules``."""
    if CONTEXT.get_start_method() == "forkserver":
        CONTEXT.set_forkserver_preload([*modules, "app.studies.sweeps.executors"])
        ensure_running()


def outlive_nobody() -> None:
    """In such a process: end with the one that it works for, even if that is killed."""
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
