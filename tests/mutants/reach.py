"""A plugin of pytest (``-p tests.mutants.reach``): writes down what each test runs, or runs chosen tests in order.

Its inputs are environment variables, as a plugin has no other: MUTANTS_RECORD names a file to write, MUTANTS_CHOSEN one
with the names of tests, a line each.
"""

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import Phase, settings

RECORD, CHOSEN = os.environ.get("MUTANTS_RECORD"), os.environ.get("MUTANTS_CHOSEN")
ROOT = Path(__file__).parents[2]
_PYTHONS = ("python", "arbiter")
"""How the names of programs begin that run the code under test in a process of their own."""

_watch = Coverage(data_file=None, config_file=False, source=[str(ROOT / "app")]) if RECORD else None
_tests: dict[str, dict[str, Any]] = {}
_failed: set[str] = set()
_started: list[str] = []
"""Programs that the running test has started."""


def pytest_configure(config: pytest.Config) -> None:
    # A law that breaks has done its work: no time for the smallest example, and none is kept for a next run. A busy
    # machine is no reason to call a mutant killed.
    settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None, deadline=None)
    settings.load_profile("mutants")
    if _watch is not None:
        sys.addaudithook(_heard)
        _watch.start()


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        program = arguments[0] or arguments[1][0]
        _started.append(os.path.basename(os.fsdecode(program)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if CHOSEN is None:
        return
    place = {name: i for i, name in enumerate(Path(CHOSEN).read_text().splitlines())}
    items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def _work() -> float:
    """Seconds of the processor so far, of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if _watch is None:
        return (yield)
    _watch.switch_context(item.nodeid)
    _started.clear()
    begun = _work()
    try:
        return (yield)
    finally:
        spent = _work() - begun
        _watch.switch_context("")
        processes = any(program.startswith(_PYTHONS) for program in _started)
        _tests[item.nodeid] = {"seconds": spent, "processes": processes, "lines": {}}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _watch is None or RECORD is None:
        return
    _watch.stop()
    data = _watch.get_data()
    for file in sorted(data.measured_files()):
        path = os.path.relpath(file, ROOT)
        for line, contexts in data.contexts_by_lineno(file).items():
            for name in contexts:
                if name in _tests:
                    _tests[name]["lines"].setdefault(path, []).append(line)
    found = {name: {**test, "passed": name not in _failed} for name, test in _tests.items()}
    Path(RECORD).write_text(json.dumps(found))
