"""A plugin of pytest (``-p tests.mutants.forks``): collects tests once, then meets one mutant after another in forks.

The environment variable MUTANTS_FORKS names two descriptors: requests come on the first, a line of JSON each, answers
go out on the second. A fork has the mutant's code put into the functions that are there already, so nothing is imported
or collected again; ``stale`` is answered where the changed function is not among them.
"""

import gc
import json
import os
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

FORKS = os.environ.get("MUTANTS_FORKS")
ROOT = Path(__file__).parents[2]
_SURVIVED, _KILLED, _STALE = 0, 1, 3
_WORK = 10.0
"""Seconds of the processor that a test may take, beside FACTOR times as long as on the code as it is: time in which the
machine does something else doesn't count."""
_WAIT = 60.0
"""Seconds until a test is stopped that only waits, likewise."""
_FACTOR = 5.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if FORKS is None:
        return None
    requests, answers = (int(number) for number in FORKS.split(","))
    items = {item.nodeid: item for item in session.items}
    functions = every_function()
    with os.fdopen(requests) as asked, os.fdopen(answers, "w", buffering=1) as said:
        print("ready", file=said)
        for line in asked:
            request = json.loads(line)
            chosen = [(items[name], seconds) for name, seconds in request["tests"] if name in items]
            print(_verdict(session, chosen, request, functions), file=said)
    return True


def every_function() -> list[FunctionType]:
    """The functions that there are, also those that a service in this process has set aside from the collector."""
    gc.unfreeze()
    return [one for one in gc.get_objects() if isinstance(one, FunctionType)]


Chosen = Sequence[tuple[pytest.Item, float]]
"""Tests in order, each with the seconds that it took on the code as it is."""


def _verdict(
    session: pytest.Session, items: Chosen, request: Mapping[str, Any], functions: Sequence[FunctionType]
) -> str:
    """``killed``, ``survived``, ``endless``, ``waits`` or ``stale``: how the tests end in a fork with the mutant."""
    child = os.fork()
    if child == 0:
        _meet(session, items, request, functions)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started and left
    known = {_SURVIVED: "survived", _STALE: "stale", -signal.SIGXCPU: "endless", -signal.SIGALRM: "waits"}
    return known.get(code, "killed")


def _meet(
    session: pytest.Session, items: Chosen, request: Mapping[str, Any], functions: Sequence[FunctionType]
) -> None:
    """Run the tests up to the first failure and leave this process."""
    code = _KILLED
    try:
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if not put_in(request, functions):
            code = _STALE
            return
        following = [*(item for item, _ in items[1:]), None]
        for (item, seconds), after in zip(items, following, strict=True):
            _limit(seconds)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                return
        code = _SURVIVED
    finally:
        os._exit(code)


def _limit(seconds: float) -> None:
    """Let the kernel end this process when a test takes far longer than the ``seconds`` it is known to take."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    work = ceil(used.ru_utime + used.ru_stime + _WORK + _FACTOR * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (work, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.setitimer(signal.ITIMER_REAL, _WAIT + _FACTOR * seconds)


def put_in(request: Mapping[str, Any], functions: Sequence[FunctionType]) -> bool:
    """Give the functions of the module their code as the mutant has it; whether the changed one was among them."""
    file = str(ROOT / request["path"])
    module = compile(request["source"], file, "exec", dont_inherit=True)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _all_codes(module)}
    found = False
    for function in functions:
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        if old.co_filename == file and new is not None and len(new.co_freevars) == len(old.co_freevars):
            function.__code__ = new
            found = found or old.co_firstlineno == request["line"]
    return found


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _all_codes(one)
