"""The wheel, installed where there is no checkout: it migrates, serves, shows its documentation and decides."""

import json
import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.live import ADDRESS, ROOT, environment_of, welcome

pytestmark = pytest.mark.slow
UV = Path(sys.executable).parent / "uv"


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=environment_of({"UV_SYSTEM_CERTS": "true", **environment}),
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


def did(*command: object, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the backend that is installed: building needs no network."""
    folder = tmp_path_factory.mktemp("dist")
    did(UV, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def arbiter(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, in an environment of its own: what the wheel asks for, in the versions of the lock file, from uv's
    cache where it has them."""
    folder = tmp_path_factory.mktemp("installed")
    versions = folder / "versions.txt"
    versions.write_text(
        did(UV, "export", "--locked", "--no-emit-project", "--no-hashes", "--no-dev", "--all-extras", cwd=ROOT)
    )
    did(UV, "venv", "--python", sys.executable, folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    did(UV, "pip", "install", "--python", python, "--constraints", versions, wheel, cwd=folder)
    return folder / "venv" / "bin" / "arbiter"


@pytest.fixture
def address(arbiter: Path, new_database: Callable[[], str], tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """Of a service of the wheel on an empty database, and what it said."""
    given = environment_of({"DATABASE_URL": new_database(), "DATA_DIR": str(tmp_path / "data"), "PORT": "0"})
    process = subprocess.Popen([arbiter, "serve"], cwd=tmp_path, env=given, stdout=subprocess.PIPE, text=True)
    said = welcome(process)
    found = ADDRESS.search("\n".join(said))
    yield found[0] if found else "", said
    process.terminate()
    process.communicate(timeout=30)


def get(url: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(
        urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=20
    ) as answer:
        return answer.read()


def test_it_serves_without_the_checkout(address: tuple[str, list[str]], tmp_path: Path) -> None:
    where, said = address
    assert json.loads(get(f"{where}/readyz"))["status"] == "ready"
    assert b"<html" in get(f"{where}/docs").lower()
    first = get(f"{where}/").decode()
    assert "<h1>Overview</h1>" in first
    for asset in re.findall(r'(?:href|src)="(/assets/[^"]+)"', first):
        assert get(where + asset)
    assert [item["name"] for item in json.loads(get(f"{where}/v1/configurations"))["items"]] == ["example"]
    named = re.search(r"-d @(\S+)", "\n".join(said))
    assert named is not None
    example = tmp_path / named[1]
    assert not example.is_relative_to(ROOT)
    decided = json.loads(get(f"{where}/v1/decisions", example.read_bytes()))
    assert decided["decisions"][0]["outcome"] == "preempt"


def test_it_says_its_version_and_what_it_lacks(arbiter: Path, wheel: Path, tmp_path: Path) -> None:
    assert run(arbiter, "--version", cwd=tmp_path).stdout.split() == ["arbiter", wheel.name.split("-")[1]]
    for command in (("serve",), ("database", "upgrade"), ("token", "list")):
        done = run(arbiter, *command, cwd=tmp_path, DATA_DIR=str(tmp_path / "data"), PORT="0")
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert "arbiter-preemption[embedded]" in done.stdout + done.stderr
        assert "DATABASE_URL" in done.stdout + done.stderr


def test_it_holds_the_license_and_nothing_of_the_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        described = archive.read(metadata).decode()
    assert {name.split("/")[0] for name in names} == {"app", metadata.split("/")[0]}
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0" in described
    assert [line for line in described.splitlines() if "pgserver" in line and "extra ==" not in line] == []
