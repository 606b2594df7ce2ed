"""Tests that never end, tests that are skipped, stand-ins that have drifted from what they stand for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bounds import Bounded
from tests.support.instead import Instead

ROOT = Path(__file__).parents[2]
HANGS = "import time\ndef test_hangs():\n    time.sleep(60)\n"
HANGS_AFTER_FAILING = """
import time, pytest
@pytest.fixture
def slow():
    yield
    time.sleep(60)
def test_hangs(slow):
    assert False
"""
HANGS_WITH_THE_LOCK = "import re\ndef test_hangs():\n    re.match('(a*)*b', 'a' * 40)\n"
SKIPPED = "import pytest\n@pytest.mark.skip(reason='no tool')\ndef test_skipped():\n    pass\n"


def run(folder: Path, code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest on ``code`` with the settings and hooks of this project, and no plugin that takes seconds to load."""
    (folder / "test_it.py").write_text(code + "\ndef test_next():\n    pass\n")
    return subprocess.run(
        [
            sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"),
            "-p", "xdist", "-p", "tests.support.strict", *options, str(folder),
        ],
        cwd=ROOT, env={**os.environ, "CI": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("code", [HANGS, HANGS_AFTER_FAILING, HANGS_WITH_THE_LOCK])
def test_a_test_that_never_ends_is_ended_and_the_next_one_runs(code: str, tmp_path: Path) -> None:
    done = run(tmp_path, code, "-n", "1", "-o", "faulthandler_timeout=1")
    assert done.returncode == 1
    assert "in test_hangs" in done.stdout + done.stderr or "in slow" in done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert 0 < float(pytestconfig.getini("faulthandler_timeout")) <= 300
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True


def test_a_skip_fails_in_ci_only(tmp_path: Path) -> None:
    assert "1 passed, 1 skipped" in run(tmp_path, SKIPPED, "-n", "0").stdout
    done = run(tmp_path, SKIPPED, "-n", "0", CI="true")
    assert done.returncode == 1
    assert "no tool" in done.stdout


class Bench:
    MOST = 3
    NAME = "bench"
    _HIDDEN = 3

    @staticmethod
    def play(trace: bytes, *, seed: int, rounds: int = 9) -> int:
        return len(trace) + seed + rounds


def test_a_stand_in_is_of_what_is_there_and_may_be_called_alike(instead: Instead) -> None:
    for fake in (lambda *_, **__: 0, lambda trace, seed: 0, lambda one, /, *, seed, rounds: 0):
        instead(Bench(), play=fake)
    for fake in (lambda: 0, lambda trace: 0, lambda trace, *, seed, more: 0):
        with pytest.raises(AssertionError, match=r"^play\("):
            instead(Bench(), play=fake)
    with pytest.raises(AttributeError):
        instead(Bench, plays=len)
    with pytest.raises(AssertionError):
        instead(Bench, _HIDDEN=4)


def test_a_bound_is_a_public_number_that_is_there(bounded: Bounded) -> None:
    bounded(Bench, MOST=2)
    assert Bench.MOST == 2
    for wrong in ("NAME", "_HIDDEN", "play"):
        with pytest.raises(AssertionError, match=wrong):
            bounded(Bench, **{wrong: 2})
    with pytest.raises(AttributeError):
        bounded(Bench, MOSTLY=2)
