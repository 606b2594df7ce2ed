"""``make clients``: what is missing is said, what fails fails, and everything that is fetched is pinned."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from openapi.refresh import CLIENTS, RECIPES
from tests.clients import __main__ as clients
from tests.clients import programs as running
from tests.clients.__main__ import OPENAPI, main
from tests.clients.programs import Failed, Skipped, fetch, needs, run
from tests.support.bounds import Bounded
from tests.support.instead import Instead


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounded: Bounded) -> Path:
    """A folder with all programs that there are, and no pauses."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    bounded(running, PAUSES=(0.0, 0.0))
    return folder


@pytest.fixture
def unserved(instead: Instead) -> None:
    """Steps get along without a service."""

    @contextmanager
    def nowhere(_: Path) -> Generator[dict[str, str]]:
        yield {}

    instead(clients, service=nowhere)


def program(folder: Path, name: str, script: str) -> Path:
    """A program that writes down each call of it in the file that is given back."""
    calls = folder.parent / f"{name}.calls"
    (folder / name).write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
    (folder / name).chmod(0o755)
    return calls


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
@pytest.mark.usefixtures("programs", "unserved")
def test_without_toolchains_every_step_is_skipped_and_says_why(
    ci: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    assert main(["lint", "typescript", "go", "java"]) == status
    said = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in said] == [
        "lint: skipped: there is no node; 20.19 or newer would do",
        "typescript: skipped: there is no node; 20.19 or newer would do",
        "go: skipped: there is no go; 1.24 or newer would do",
        "java: skipped: there is no javac; 17 or newer would do",
    ]


@pytest.mark.usefixtures("unserved")
def test_a_step_that_fails_fails_the_check_and_the_others_run(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(programs, "node", "echo v22.1.0")
    program(programs, "npm", '[ "$1" = ci ] || { echo "no good"; exit 3; }')
    program(programs, "go", "echo go version go1.26.8 linux/amd64; exit 0")
    assert main(["lint", "java"]) == 1
    said = capsys.readouterr().out
    assert "lint: FAILED: npm run lint\nno good" in said
    assert "java: skipped" in said


def test_versions_are_compared_as_numbers(programs: Path) -> None:
    program(programs, "node", "echo v20.9.0")
    with pytest.raises(Skipped, match=r"node is 20\.9\.0; 20\.19 or newer would do"):
        needs("node", "20.19", "--version")
    needs("node", "20.9", "--version")
    program(programs, "go", "echo go version go1.100 linux/amd64")
    needs("go", "1.24", "version")
    program(programs, "javac", "echo Picked up a hint")
    with pytest.raises(Skipped, match="javac is Picked up a hint"):
        needs("javac", "17", "-version")


def test_a_registry_that_is_away_for_a_moment_is_asked_again(programs: Path) -> None:
    away = programs.parent / "away"
    calls = program(programs, "npm", f"[ -e {away} ] || {{ : > {away}; echo ETIMEDOUT; exit 1; }}")
    fetch(programs, str(programs / "npm"), "ci")
    assert calls.read_text() == "ci\nci\n"


def test_a_registry_that_stays_away_fails_clearly(programs: Path) -> None:
    calls = program(programs, "npm", "echo ETIMEDOUT; exit 1")
    with pytest.raises(Failed, match=r"(?s)tried 3 times: .*npm ci\nETIMEDOUT"):
        fetch(programs, str(programs / "npm"), "ci")
    assert calls.read_text() == "ci\n" * 3


def test_a_program_without_end_is_ended(programs: Path, bounded: Bounded) -> None:
    bounded(running, MOST_SECONDS=0.2)
    program(programs, "npm", "while :; do :; done")
    with pytest.raises(Failed, match=r"no end after 0\.2 s"):
        run(programs, str(programs / "npm"))


@pytest.mark.parametrize("package", [OPENAPI / "lint", CLIENTS / "typescript"], ids=lambda path: path.name)
def test_npm_packages_are_locked_with_digests_and_name_no_registry(package: Path) -> None:
    stated = json.loads((package / "package.json").read_text())
    locked = json.loads((package / "package-lock.json").read_text())["packages"]
    asked = stated.get("dependencies", {}) | stated["devDependencies"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in asked} == asked
    for name, entry in locked.items():
        assert not name or entry["integrity"].startswith("sha512-"), name
        assert "resolved" not in entry, name


def test_go_modules_are_locked() -> None:
    for stem in ("go", "generator"):
        sums = (CLIENTS / "go" / f"{stem}.sum").read_text()
        required = re.findall(r"^\s+(\S+) (v\S+)", (CLIENTS / "go" / f"{stem}.mod").read_text(), re.MULTILINE)
        assert required
        assert [name for name, version in required if f"{name} {version} h1:" not in sums] == []


def test_maven_artifacts_have_exact_versions_and_no_repository() -> None:
    pom = (CLIENTS / "java" / "pom.xml").read_text()
    assert "repositor" not in pom.lower()
    parts = re.findall(r"<(dependency|plugin)>(.*?)</\1>", pom, re.DOTALL)
    assert len(parts) >= 8
    for _, part in parts:
        (version,) = re.findall(r"<version>(.*?)</version>", part)
        assert re.fullmatch(r"[0-9]+(\.[0-9]+)+|\$\{jackson\.version\}", version)


def test_the_recipes_are_there_and_complete() -> None:
    assert all((CLIENTS / recipe).is_file() for recipe in RECIPES)
    locks = {f"{path.parent.name}/{path.name}" for path in CLIENTS.glob("*/*") if path.suffix in (".mod", ".sum")}
    assert locks <= set(RECIPES)
