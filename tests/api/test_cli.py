"""The commands that talk to a service, against one that runs."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from app.base.settings import Settings
from app.cli import run
from app.cli.remote import Service
from app.db.database import Database
from tests.support.instead import Machine
from tests.support.live import ROOT, serving

DOCUMENT: dict[str, Any] = {
    "engine": "kueue",
    "queues": [{"name": "all"}, {"name": "a", "parent": "all", "quota": {"cpu": {"guaranteed": 4}}}],
}


@pytest.fixture(scope="module")
def address(migrated_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(migrated_database(), tmp_path_factory.mktemp("data")) as (found, _):
        yield found


@pytest.fixture
def arbiter(address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line against the service: its exit code, output and complaints."""
    monkeypatch.setenv("ARBITER_URL", address)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["configuration", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_yaml_and_standard_input_are_applied_too(arbiter: Any, tmp_path: Path, machine: Machine) -> None:
    text = yaml.safe_dump(DOCUMENT)
    assert arbiter("apply", write(tmp_path, text, "written.yaml")) == (0, "written: revision 1\n", "")
    assert arbiter("diff", "written", write(tmp_path, text, "again.yml")) == (0, "", "")
    for said, expected in ((text, 0), (json.dumps(DOCUMENT), 0)):
        machine.reads(said.encode())
        assert arbiter("apply", "-", "piped")[0] == expected
    code, _, complaints = arbiter("apply", "-")
    assert code == 3
    assert "standard input has no name" in complaints


def write(folder: Path, document: Any, name: str = "team.json") -> str:
    file = folder / name
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(file)


def test_apply_get_list_and_diff(arbiter: Any, tmp_path: Path) -> None:
    file = write(tmp_path, DOCUMENT, "life.json")
    assert arbiter("apply", file) == (0, "life: revision 1\n", "")
    assert arbiter("apply", file) == (0, "life: unchanged at revision 1\n", "")
    code, said, _ = arbiter("get", "life")
    assert code == 0
    assert json.loads(said)["queues"] == DOCUMENT["queues"]
    assert arbiter("diff", "life", file) == (0, "", "")
    defaults_written_out = write(tmp_path, DOCUMENT | {"flavors": []})
    assert arbiter("diff", "life", defaults_written_out) == (0, "", "")
    other = json.loads(json.dumps(DOCUMENT))
    other["queues"][1]["quota"]["cpu"]["guaranteed"] = 5
    changed = write(tmp_path, other, "changed.json")
    code, said, _ = arbiter("diff", "life", changed)
    assert code == 1
    assert [line for line in said.splitlines() if line[:1] in "+-"][2:] == [
        '-          "guaranteed": 4', '+          "guaranteed": 5',
    ]  # fmt: skip
    assert arbiter("apply", changed, "life")[:2] == (0, "life: revision 2\n")
    assert json.loads(arbiter("get", "life@1")[1])["queues"] == DOCUMENT["queues"]
    code, said, _ = arbiter("list")
    assert ["life", "2"] in [line.split()[:2] for line in said.splitlines()]


def test_a_dry_run_stores_nothing(arbiter: Any, tmp_path: Path) -> None:
    file = write(tmp_path, DOCUMENT, "dry.json")
    assert arbiter("apply", file, "--dry-run")[:2] == (0, "dry: would be revision 1\n")
    assert arbiter("get", "dry")[0] == 3


def test_history_differences_and_restoring(arbiter: Any, tmp_path: Path) -> None:
    file = write(tmp_path, DOCUMENT, "past.json")
    assert arbiter("apply", file, "--comment", "größer")[0] == 0
    other = json.loads(json.dumps(DOCUMENT))
    other["queues"][1]["quota"]["cpu"]["guaranteed"] = 5
    other["queues"].append({"name": "b"})
    other["settings"] = {"kueue": {"fair_sharing": True}}
    assert arbiter("apply", write(tmp_path, other, "other.json"), "past")[0] == 0
    code, said, _ = arbiter("diff", "past@2")
    assert code == 1
    assert said.splitlines() == [
        "past: revision 1 -> 2",
        '~ /settings: (default) -> {"kueue": {"fair_sharing": true}}',
        "+ queue b",
        "~ queue a",
        "    /queues/1/quota/cpu/guaranteed: 4 -> 5",
    ]
    assert arbiter("diff", "past", "--against", "1")[1] == said
    assert "- queue b" in arbiter("diff", "past@1", "--against", "2")[1]
    assert arbiter("diff", "past@2", "--against", "2") == (0, "", "")
    assert arbiter("restore", "past@1", "--comment", "no")[:2] == (0, "past: revision 3\n")
    assert arbiter("restore", "past@1")[:2] == (0, "past: unchanged at revision 3\n")
    assert arbiter("diff", "past", file) == (0, "", "")
    code, said, _ = arbiter("history", "past")
    assert code == 0
    rows = [line.split() for line in said.splitlines()]
    assert rows[0] == ["REVISION", "SINCE", "AUTHOR", "COMMENT"]
    assert [row[0] for row in rows[1:]] == ["3", "2", "1"]
    assert (rows[1][3:], rows[3][3:]) == (["restores", "1:", "no"], ["größer"])


def test_labels(arbiter: Any, tmp_path: Path) -> None:
    arbiter("apply", write(tmp_path, DOCUMENT, "tagged.json"))
    assert arbiter("label", "tagged", "stable", "1", "--comment", "go") == (0, "tagged@stable: revision 1\n", "")
    assert arbiter("label", "tagged", "stable") == (0, "tagged@stable: revision 1\n", "")
    assert json.loads(arbiter("get", "tagged@stable")[1])["queues"] == DOCUMENT["queues"]
    assert arbiter("labels", "tagged")[1].splitlines()[1].split()[:2] == ["stable", "1"]
    assert arbiter("history", "tagged")[1].splitlines()[1].split()[3] == "stable"
    assert arbiter("label", "tagged", "stable", "9")[0] == 3
    assert arbiter("label", "tagged", "stable", "--delete") == (0, "tagged@stable: taken off\n", "")
    assert arbiter("label", "tagged", "stable")[0] == 3
    assert arbiter("label", "tagged", "stable", "--delete")[0] == 3
    assert arbiter("get", "tagged@stable")[0] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        *(("history", "none"), ("labels", "none"), ("restore", "none@1"), ("restore", "none"), ("diff", "none")),
        *(("diff", "none@x"), ("restore", "none@x"), ("label", "none", "stable", "1")),
    ],
)
def test_history_of_what_is_not_there(arbiter: Any, arguments: tuple[str, ...]) -> None:
    code, said, complaints = arbiter(*arguments)
    assert (code, said) == (3, "")
    assert "none" in complaints


def test_what_the_service_refuses_is_said_by_field(arbiter: Any, tmp_path: Path) -> None:
    cyclic = {"engine": "kueue", "queues": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}
    code, said, complaints = arbiter("apply", write(tmp_path, cyclic))
    assert (code, said) == (3, "")
    assert "/queues/0/parent" in complaints
    assert "/queues/1/parent" in complaints
    assert arbiter("apply", write(tmp_path, "{"))[0] == 3
    assert arbiter("apply", str(tmp_path / "missing.json"))[0] == 3


def test_what_is_not_there(arbiter: Any, tmp_path: Path) -> None:
    file = write(tmp_path, DOCUMENT)
    assert arbiter("get", "nothing")[0] == 3
    assert arbiter("get", "nothing@3")[0] == 3
    assert arbiter("diff", "nothing", file)[0] == 3


def test_diff_of_a_file_that_is_no_configuration(arbiter: Any, tmp_path: Path) -> None:
    arbiter("apply", write(tmp_path, DOCUMENT, "good.json"))
    code, said, complaints = arbiter("diff", "good", write(tmp_path, {"queue": []}))
    assert (code, said) == (3, "")
    assert "/queue: unknown field" in complaints


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc/passwd", "nowhere"])
def test_an_address_where_nobody_answers(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["configuration", "list", "--url", url]) == 4
    assert url in capsys.readouterr().err


def test_database_upgrade(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = new_database()
    monkeypatch.setenv("DATABASE_URL", url)
    assert run(["database", "upgrade"]) == 0
    assert capsys.readouterr().out.startswith("from an empty database to ")
    assert run(["database", "upgrade"]) == 0
    assert capsys.readouterr().out.startswith("already at ")
    database = Database(url, Settings())
    at, needed = database.migration_state()
    database.close()
    assert at == needed


def test_database_upgrade_without_a_database(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert run(["database", "upgrade"]) == 4
    assert "can't be reached" in capsys.readouterr().err


def test_serve_refuses_settings_that_make_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--port", "99999"]) == 3
    assert run(["serve", "--workers", "65"]) == 3
    assert "port" in capsys.readouterr().err


def test_a_logged_decision_is_explained_by_its_id(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def explained(*arguments: str) -> tuple[int, str]:
        return run(["explain", *arguments]), capsys.readouterr().out

    example = json.loads((ROOT / "examples" / "kueue-classic.json").read_bytes())
    client = Service(address)
    put = {"configuration": {"engine": "kueue", **example["configuration"]}, "state": example["state"]}
    assert client.put("/v1/snapshots/asked", json.dumps(put).encode(), {}).ok
    question = {"state": {"snapshot": "asked"}, "asks": example["asks"], "now": example["now"]}
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{address}/v1/decisions", json.dumps(question).encode(), headers), timeout=30) as answer:
        decided = json.load(answer)
    gone = {"generation": 1, "workloads": {"remove": [decided["decisions"][0]["victims"][0]["workload"]]}}
    with urlopen(Request(f"{address}/v1/snapshots/asked/deltas", json.dumps(gone).encode(), headers), timeout=30):
        pass
    code, out = explained("--decision", decided["id"], "--url", address)
    assert (code, out) == explained(write(tmp_path, example))
    assert (code, "  why: " in out) == (1, True)
    assert explained("--decision", "01a20205-ffb2-7e49-82bc-494f4d885505", "--url", address)[0] == 3
