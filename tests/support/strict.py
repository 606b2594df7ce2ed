"""What holds for every test: it has an end, in CI it is not skipped, and no other test's event loop runs around it.

``faulthandler_timeout`` in pyproject.toml is the limit of a test with its fixtures: every thread's stack is printed and
the process ends, whoever holds the interpreter's lock; pytest-xdist reports the test and goes on with the next one.
"""

import asyncio
import faulthandler
import os
from collections.abc import Generator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What an earlier test left running in this thread would break the first test that needs a loop, wherever the
    order of tests puts it: said here, of every test, in any order. Those in a browser may find Playwright's loop."""
    if "browser" not in item.path.parts:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """pytest takes the limit off when a test fails, though what it leaves behind can be just what never ends. 0 is no
    limit, as with pytest."""
    seconds = float(item.config.getini("faulthandler_timeout"))
    if seconds > 0:
        faulthandler.dump_traceback_later(seconds, file=item.config.stash[fault_handler_stderr_fd_key], exit=True)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """CI's machine has what tests need, or gets it (``.ci/tools``): a skip there would hide that it hasn't."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI must not: {report.longrepr}"
    return report
