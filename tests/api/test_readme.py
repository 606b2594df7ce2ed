"""What README says works as it stands there: every command is run, every output compared."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.base.decoding import decode
from app.solver import solve
from app.solver.model.configuration import Configuration
from tests.support.live import ROOT, environment_of, serving
from tests.vectors.compare import disagreements

README = (ROOT / "README.md").read_text()
SNAPSHOTS = (ROOT / "docs" / "snapshots.md").read_text()
ADDRESS = "http://127.0.0.1:8080"


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def commands(page: str = README) -> list[tuple[str, str]]:
    """Every ``$ command`` of the console blocks with the output shown below it."""
    found: list[tuple[str, str]] = []
    for block in blocks("console", page):
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            found.append((command, output))
    return found


@pytest.fixture(scope="module")
def live(
    migrated_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[str]]]:
    with serving(migrated_database(), tmp_path_factory.mktemp("data")) as service:
        yield service


def run(command: str, address: str) -> subprocess.CompletedProcess[str]:
    """``command`` as written, but for the address of this service and where the command line is installed."""
    words = shlex.split(command.replace(ADDRESS, address))
    if words[0] == ".venv/bin/arbiter":
        words[:1] = [sys.executable, "-m", "app.cli"]
    environment = environment_of({"ARBITER_URL": address})
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_commands_say_what_the_readme_shows(live: tuple[str, list[str]]) -> None:
    shown = [(command, output) for command, output in commands() if not command.startswith("curl")]
    assert len(shown) >= 4
    for command, output in shown:
        done = run(command, live[0])
        assert done.stderr == ""
        assert done.stdout.rstrip("\n") == output.rstrip("\n"), command


def test_curl_gets_what_the_readme_shows(live: tuple[str, list[str]]) -> None:
    (command,) = [command for command, _ in commands() if command.startswith("curl")]
    done = run(command, live[0])
    (expected,) = blocks("json")
    assert disagreements({"expect": json.loads(expected)}, json.loads(done.stdout)) == []


def test_a_snapshot_from_put_to_decision_goes_as_the_page_says(live: tuple[str, list[str]]) -> None:
    put, decide, apply, delta, get = [command for command, _ in commands(SNAPSHOTS)]
    assert json.loads(run(put, live[0]).stdout)["generation"] == 1
    decided = json.loads(run(decide, live[0]).stdout)
    assert (decided["configuration"]["name"], decided["state"]["generation"]) == ("example", 1)
    assert [victim["workload"] for victim in decided["decisions"][0]["victims"]] == ["sweep-17"]
    assert json.loads(run(apply.replace("ID", decided["id"]), live[0]).stdout)["generation"] == 2
    assert json.loads(run(delta, live[0]).stdout)["generation"] == 3
    status = json.loads(run(get, live[0]).stdout)
    assert (status["generation"], status["counts"]["workloads"]) == (3, 1)


def test_the_curl_line_that_serve_prints_returns_victims(live: tuple[str, list[str]]) -> None:
    address, said = live
    (line,) = [line.strip() for line in said if line.strip().startswith("curl")]
    assert json.loads(run(line, address).stdout)["decisions"][0]["victims"]
    assert any(line.endswith(f"{address}/docs") for line in said)


def test_the_snippet_for_schedulers_works(live: tuple[str, list[str]]) -> None:
    (snippet,) = blocks("python")
    example = json.loads((ROOT / "examples" / "kueue-classic.json").read_bytes())
    stopped: list[tuple[Any, ...]] = []
    names = {"asks": example["asks"], "state": example["state"], "evict": lambda *what: stopped.append(what)}
    exec(compile(snippet.replace(ADDRESS, live[0]), "README.md", "exec"), names)
    assert stopped == [("sweep-17", None, "InCohortReclamation")]


def test_the_exit_codes_are_those_of_the_table(live: tuple[str, list[str]]) -> None:
    assert run(".venv/bin/arbiter decide examples/kueue-classic.json", live[0]).returncode == 1
    assert run(".venv/bin/arbiter decide README.md", live[0]).returncode == 3


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.json")), ids=lambda file: Path(file).name)
def test_every_example_is_accepted(file: Path) -> None:
    document = json.loads(file.read_bytes())
    if "queues" in document:
        assert solve.findings(decode(file.read_bytes(), Configuration)) == []
    else:
        command = "compare" if "variants" in document else "decide"
        assert cli.run([command, str(file)]) in (0, 1, 2)


def test_the_readme_names_every_example() -> None:
    assert [file.name for file in (ROOT / "examples").iterdir() if file.name not in README] == []
