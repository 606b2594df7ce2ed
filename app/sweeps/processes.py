"""The processes that runs are played in: forked from one that has read their code, which is read only once and while
the trace is read."""

import os
from collections.abc import Iterable
from multiprocessing import get_context, parent_process
from multiprocessing.forkserver import ensure_running
from threading import Thread

CONTEXT = get_context("forkserver")


def begin(modules: Iterable[str] = ()) -> None:
    """Start the process that others are forked from; it reads the code of runs and ``modules``."""
    CONTEXT.set_forkserver_preload([*modules, "app.sweeps.executors"])
    ensure_running()


def outlive_nobody() -> None:
    """In such a process: end with the one that it works for, even if that is killed."""
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
