"""Tests that never end, and tests that are skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
