"""Processes that end with whoever started them, however that one ends: a test run that is killed leaves nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
_BEFORE = f"""
import ctypes, os, sys
given, parent = map(int, sys.argv[1:3])
ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, given)
if os.getppid() == parent:
    os.execv(sys.argv[3], sys.argv[3:])
"""
"""The kernel keeps the signal over an exec. Who was orphaned before asking for it never begins. A process in between
and not ``preexec_fn``, which may lock up where other threads run."""


def mortal(command: Sequence[str | os.PathLike[str]], end: signal.Signals, **options: Any) -> subprocess.Popen[Any]:
    """Start ``command``, whose first word is a path; it gets ``end`` when the thread that called this is gone, which is
    at the latest when its process is. Elsewhere than on Linux it is started as any other."""
    words = [os.fspath(word) for word in command]
    if sys.platform == "linux":
        words = [sys.executable, "-I", "-S", "-c", _BEFORE, str(int(end)), str(os.getpid()), *words]
    return subprocess.Popen(words, **options)
