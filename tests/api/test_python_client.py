"""The committed Python client: as generated, installable, and at home with a live service."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from openapi.refresh import DOCUMENT, PYTHON, files, generate
from tests.live import ROOT, environment_of, serving

README = PYTHON / "README.md"


@pytest.fixture(scope="module")
def reach(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A live service that asks for tokens, and one of them."""
    url = new_database()
    folder = tmp_path_factory.mktemp("data")
    with serving(url, folder, WORKERS="0", ARBITER_AUTHENTICATION="required", ARBITER_LOG_LEVEL="error") as (
        address,
        _,
    ):
        command = [sys.executable, "-m", "app.cli", "token", "create", "client", "--scope", "admin"]
        said = subprocess.run(
            command, cwd=ROOT, env=environment_of({"DATABASE_URL": url}), check=True, capture_output=True, text=True
        )
        yield {"ARBITER_URL": address, "ARBITER_TOKEN": said.stdout.strip()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the client was installed; what it builds on is in our own environment."""
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if uv is None:
        pytest.skip("there is no uv to install with")
    source, target = tmp_path_factory.mktemp("source") / "python", tmp_path_factory.mktemp("installed")
    shutil.copytree(PYTHON, source, ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        uv, "--offline", "--no-cache", "pip", "install", "--python", sys.executable,
        "--no-deps", "--target", str(target), str(source),
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def test_it_is_what_the_document_gives(tmp_path: Path) -> None:
    generate(DOCUMENT, tmp_path / "fresh")
    committed, fresh = dict(files(PYTHON)), dict(files(tmp_path / "fresh"))
    assert sorted(committed) == sorted(fresh), "run `make openapi`"
    assert [name for name, content in committed.items() if fresh[name] != content] == [], "run `make openapi`"


def test_installed_it_puts_decides_and_reads_the_log(installed: Path, reach: Mapping[str, str]) -> None:
    run(installed, (ROOT / "tests" / "clients" / "python_try.py").read_text(), reach)


def test_the_example_of_its_readme_works(installed: Path, reach: Mapping[str, str]) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    code = found[1].replace("http://127.0.0.1:8080", reach["ARBITER_URL"]).replace("arb_…", reach["ARBITER_TOKEN"])
    run(installed, code.replace('"example"', '"readme"'), reach)


def run(installed: Path, code: str, reach: Mapping[str, str]) -> None:
    """Run ``code`` as somebody who has only what is installed."""
    command = [sys.executable, "-c", code]
    environment = environment_of({**reach, "PYTHONPATH": str(installed)})
    done = subprocess.run(command, cwd=installed, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
