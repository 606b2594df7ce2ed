"""A plugin of pytest (``-p tests.mutants.reach``): writes down what each test runs, or runs chosen tests in order.

Its inputs are environment variables, as a plugin has no other: MUTANTS_RECORD names a file to write, MUTANTS_CHOSEN one
with the names of tests, a line each.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import Phase, settings

RECORD, CHOSEN = os.environ.get("MUTANTS_RECORD"), os.environ.get("MUTANTS_CHOSEN")
ROOT = Path(__file__).parents[2]
APP = f"{ROOT / 'app'}{os.sep}"

_codes: dict[CodeType, None] = {}
_reached: dict[str, dict[str, Any]] = {}
_failed: set[str] = set()


def _trace(frame: FrameType, event: str, argument: Any) -> None:
    """Called for every call; returns None, so that no line of the function is traced."""
    _codes[frame.f_code] = None


def pytest_configure(config: pytest.Config) -> None:
    # A law that breaks has done its work: no time for the smallest example, and none is kept for a next run.
    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None)
    settings.load_profile("mutants")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if CHOSEN is None:
        return
    place = {name: i for i, name in enumerate(Path(CHOSEN).read_text().splitlines())}
    items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if RECORD is None:
        return (yield)
    _codes.clear()
    begun = time.perf_counter()
    threading.settrace(_trace)
    sys.settrace(_trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # pyright: ignore[reportArgumentType]
        functions = sorted({_name(code) for code in _codes if code.co_filename.startswith(APP)})
        _reached[item.nodeid] = {"seconds": time.perf_counter() - begun, "functions": functions}


def _name(code: CodeType) -> str:
    return f"{code.co_filename[len(APP) - 4 :]}:{code.co_firstlineno}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if RECORD is not None:
        found = {name: {**test, "passed": name not in _failed} for name, test in _reached.items()}
        Path(RECORD).write_text(json.dumps(found))
