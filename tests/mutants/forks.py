"""A plugin of pytest (``-p tests.mutants.forks``): collects tests once, then meets one mutant after another in forks.

The environment variable MUTANTS_FORKS names two descriptors: requests come on the first, a line of JSON each, answers
go out on the second. A fork has the mutant's code put into the functions that are there already, so nothing is imported
or collected again; ``stale`` is answered where the changed function is not among them.
"""

import gc
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

FORKS = os.environ.get("MUTANTS_FORKS")
ROOT = Path(__file__).parents[2]
_NAP = 0.01
_SURVIVED, _KILLED, _STALE = 0, 1, 3


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if FORKS is None:
        return None
    requests, answers = (int(number) for number in FORKS.split(","))
    items = {item.nodeid: item for item in session.items}
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
    with os.fdopen(requests) as asked, os.fdopen(answers, "w", buffering=1) as said:
        print("ready", file=said)
        for line in asked:
            request = json.loads(line)
            chosen = [items[name] for name in request["tests"] if name in items]
            print(_verdict(session, chosen, request, functions), file=said)
    return True


def _verdict(
    session: pytest.Session, items: Sequence[pytest.Item], request: Mapping[str, Any], functions: Sequence[FunctionType]
) -> str:
    """``killed``, ``survived``, ``timed out`` or ``stale``: how the tests end in a fork with the mutant's code."""
    child = os.fork()
    if child == 0:
        _meet(session, items, request, functions)
    end = time.monotonic() + request["limit"]
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {_SURVIVED: "survived", _STALE: "stale"}.get(code, "killed")
        time.sleep(_NAP)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def _meet(
    session: pytest.Session, items: Sequence[pytest.Item], request: Mapping[str, Any], functions: Sequence[FunctionType]
) -> None:
    """Run the tests up to the first failure and leave this process."""
    code = _KILLED
    try:
        os.setsid()
        if not put_in(request, functions):
            code = _STALE
            return
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return
        code = _SURVIVED
    finally:
        os._exit(code)


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
