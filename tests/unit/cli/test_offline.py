import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.cli import run
from app.solver.model.base import to_datetime
from tests.support.instead import Instead, Machine

EXAMPLE = Path(__file__).parents[3] / "examples" / "kueue-classic.json"


def situation(**changes: Any) -> dict[str, Any]:
    return {**json.loads(EXAMPLE.read_bytes()), **changes}


def write(folder: Path, document: Any) -> str:
    file = folder / "request.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(file)


def ask(**changes: Any) -> dict[str, Any]:
    return {**situation()["asks"][0], **changes}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("explain", "--full"), ("decide",), ("decide", "-")])
def test_a_reader_that_leaves_early_is_no_trouble(arguments: tuple[str, ...]) -> None:
    many = [ask(id=f"a{number}") for number in range(300)]
    command = [sys.executable, "-m", "app.cli", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        assert asked.stderr is not None
        asked.stdout.close()
        asked.stdin.write(json.dumps(situation(asks=many)).encode())
        asked.stdin.close()
        assert asked.stderr.read() == b""
    assert asked.returncode == 141


@pytest.mark.parametrize("named", [[], ["-"]])
@pytest.mark.parametrize(
    "command",
    ["decide", "explain", "compare", "import", "export", "starvation", "plan", "simulate", "trace", "sweep --out out"],
)
def test_without_a_file_standard_input_is_read(
    command: str, named: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.reads(b"{")
    run([*command.split(), *named])
    said = "".join(capsys.readouterr())
    assert "requires an argument" not in said
    assert "Unknown option" not in said
    assert sys.stdin.buffer.read() == b""


def test_kubectl_pipes_into_decide(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = EXAMPLE.parents[1] / "tests" / "manifests" / "kueue-workloads.json"
    machine.reads(manifest.read_bytes())
    assert run(["decide"]) == 3
    assert capsys.readouterr().out.startswith("ns/waiting: wait")


@pytest.mark.parametrize(("command", "code"), [("decide", 1), ("explain", 1), ("simulate", 3), ("compare", 3)])
def test_a_terminal_is_told_what_is_waited_for(
    command: str, code: int, machine: Machine, instead: Instead, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.TextIOWrapper(io.BytesIO(EXAMPLE.read_bytes()))
    instead(typed, isatty=lambda: True)
    machine.reads(typed)
    assert run([command]) == code
    assert "reading standard input" in capsys.readouterr().err


def test_somebody_would_be_evicted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", str(EXAMPLE)]) == 1
    said = capsys.readouterr().out
    assert "embeddings-rollout: preempt" in said
    row = next(line for line in said.splitlines() if line.split()[:1] == ["sweep-17"])
    assert row.split()[1:] == ["research", "nvidia.com/gpu", "2", "InCohortReclamation"]
    assert "9d1f0c58-6b1e-4a52-8f3d-0a6a4be0c005" in said
    assert "why" not in said


def test_nothing_to_evict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", write(tmp_path, situation(state={}))]) == 0
    assert "embeddings-rollout: admit" in capsys.readouterr().out


def test_where_nothing_waits_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", write(tmp_path, situation(asks=[]))]) == 0
    assert capsys.readouterr().out == "nothing waits: there is no ask in it\n"


def test_an_ask_that_can_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [{**ask()["tasks"][0], "count": 100}]
    assert run(["decide", write(tmp_path, situation(asks=[ask(tasks=tasks)]))]) == 2
    said = capsys.readouterr().out
    assert "infeasible" in said or "wait" in said
    assert "short of" in said


def test_evictions_outweigh_asks_that_can_not_run(tmp_path: Path) -> None:
    never = ask(id="never", tasks=[{**ask()["tasks"][0], "count": 100}])
    assert run(["decide", write(tmp_path, situation(asks=[ask(), never]))]) == 1


def test_json_is_what_the_service_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", str(EXAMPLE), "--json"]) == 1
    assert (
        capsys.readouterr().out.encode() == answer(EXAMPLE.read_bytes(), to_datetime(0), nothing_stored()).body + b"\n"
    )


def test_standard_input(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.reads(EXAMPLE.read_bytes())
    assert run(["decide", "-"]) == 1
    assert "sweep-17" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("{", "not JSON"),
        ({"state": {}}, "/configuration: missing field"),
        (situation(asks=[ask(queue="nowhere")]), "/asks/0/queue"),
        (situation(configuration="main"), "/configuration: nothing is stored here"),
        (situation(state={"snapshot": "s"}), "/state/snapshot: nothing is stored here"),
    ],
)
@pytest.mark.parametrize("command", ["decide", "explain"])
def test_bad_input_names_the_field(
    command: str, document: Any, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, write(tmp_path, document)]) == 3
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", "/nowhere/request.json"]) == 3
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["decide"], ["decide", str(EXAMPLE), "--colour"], ["undecide"]])
def test_bad_usage_is_bad_input_too(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 3
    assert capfd.readouterr().err


def test_help_is_not_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "decide" in capfd.readouterr().out


def test_explain_says_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, situation(explain="none"))
    assert run(["explain", file]) == 1
    summary = capsys.readouterr().out
    assert run(["explain", "--full", file]) == 1
    full = capsys.readouterr().out
    assert run(["decide", file]) == 1
    bare = capsys.readouterr().out
    assert len(bare) < len(summary)
    assert "sweep-18" in full
    assert "sweep-18" not in bare


def test_explain_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["explain", write(tmp_path, situation(explain="none")), "--full", "--json"])
    assert json.loads(capsys.readouterr().out)["decisions"][0]["explanation"]["level"] == "full"


def variants(*given: dict[str, Any]) -> dict[str, Any]:
    return situation(variants=list(given))


def test_compare_shows_where_variants_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = json.loads(json.dumps(situation()["configuration"]))
    for queue in other["queues"]:
        queue.pop("kueue", None)
    file = write(tmp_path, variants({"name": "today"}, {"name": "gentle", "configuration": other}))
    assert run(["compare", file]) == 1
    said = capsys.readouterr().out
    assert "embeddings-rollout: outcome" in said
    assert ["today", "sweep-17"] in [line.split() for line in said.splitlines()]
    assert ["gentle", "nobody"] in [line.split() for line in said.splitlines()]
    assert run(["compare", file, "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["variants"]) == 2


def test_compare_of_releases_keeps_the_other_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0.17 does not reclaim from a queue within its share, and so places nothing beside it either."""
    gpus = {name: {"gpu": {"guaranteed": of}} for name, of in (("root", "unlimited"), ("a", 2), ("b", 4))}
    queues = [{"name": name, "quota": quota} | ({"parent": "root"} if name != "root" else {})
              for name, quota in gpus.items()]  # fmt: skip
    running = [{"name": f"w-{t}", "node": "n", "requests": {"gpu": 1}} for t in range(3)]
    body = {
        "engine": "kai",
        "configuration": {"settings": {"kai": {"actions": ["reclaim"]}}, "queues": queues},
        "state": {
            "nodes": [{"name": "n", "capacity": {"cpu": 4, "gpu": 4}}],
            "workloads": [{"id": "w", "queue": "b", "min_available": 1, "tasks": running}],
        },
        "asks": [{"id": "p", "queue": "a", "tasks": [{"name": "p-0", "requests": {"gpu": 1}}]}],
    }
    file = write(tmp_path, body)
    assert run(["compare", file, "--release", "0.13", "--release", "0.17", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert [variant["name"] for variant in said["variants"]] == ["0.13", "0.17"]
    by = {"rules": ["reclaim-victim-filter"]}
    assert {"ask": "p", "field": "node", "values": {"0.13": "n", "0.17": None}, **by} in said["differences"]
    assert run(["compare", file, "--release", "0.13", "--release", "0.17"]) == 1
    assert "by reclaim-victim-filter" in capsys.readouterr().out
    assert run(["compare", file, "--release", "0.1"]) == 3
    capsys.readouterr()
    nobodys = write(tmp_path, {name: body[name] for name in ("configuration", "state", "asks")} | {
        "configuration": {"queues": queues}
    })  # fmt: skip
    assert run(["compare", nobodys, "--release", "0.17"]) == 3
    assert (
        "/engine: variant '0.17': neither the request nor its configuration names an engine" in capsys.readouterr().err
    )


def test_compare_without_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", write(tmp_path, variants({"name": "a"}, {"name": "b"}))]) == 0
    assert "no differences" in capsys.readouterr().out


def test_deciding_loads_neither_the_server_nor_the_database() -> None:
    code = (
        "import sys; from app.cli import run; run(['decide', sys.argv[1]]); "
        "sys.exit(any(name in sys.modules for name in ('fastapi', 'sqlalchemy', 'pydantic', 'uvicorn')))"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("ARBITER_")}
    done = subprocess.run([sys.executable, "-c", code, str(EXAMPLE)], cwd=EXAMPLE.parents[1], env=plain, check=False)
    assert done.returncode == 0


def test_following_loads_neither_the_server_nor_the_database() -> None:
    code = (
        "import sys, app.following.follower, app.following.shadowing, app.following.simulating; "
        "sys.exit(any(name in sys.modules for name in ('fastapi', 'sqlalchemy', 'uvicorn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=EXAMPLE.parents[1], check=False).returncode == 0


def test_the_command_line_loads_no_engine_before_it_knows_the_command() -> None:
    code = (
        "import sys, app.cli; sys.exit(any(n == 'numpy' or n.startswith('app.solver.engines.') for n in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=EXAMPLE.parents[1], check=False).returncode == 0


def test_several_asks_are_a_cycle_unless_somebody_says_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    several = situation(asks=[ask(id="a", uid="a"), ask(id="b", uid="b")])

    def decided(document: Any, *options: str) -> dict[str, Any]:
        run(["decide", write(tmp_path, document), "--json", *options])
        return json.loads(capsys.readouterr().out)

    assert "order" in decided(several)
    alone = decided(several, "--mode", "independent")
    assert alone == decided({**several, "mode": "independent"})
    assert "order" in decided({**several, "mode": "independent"}, "--mode", "cycle")
    assert alone["plan"] == {"evictions": [], "placements": []}
    assert all(one["plan"]["evictions"] for one in alone["decisions"])
    assert "order" not in decided(situation())
    assert run(["explain", write(tmp_path, several), "--mode", "independent"]) == 1
    assert "each ask as if it were alone: their plans exclude one another" in capsys.readouterr().out
    assert run(["decide", write(tmp_path, several), "--mode", "both"]) == 3


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_its_words(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("decide", "starvation", "--configuration"))
    if shell == "bash" and (bash := shutil.which("bash")):
        assert subprocess.run([bash, "-n"], input=said.encode(), check=False).returncode == 0


@pytest.mark.parametrize("command", [["decide", str(EXAMPLE)], ["import", str(EXAMPLE)], ["configuration", "list"]])
def test_every_command_refuses_a_misspelt_variable(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARBITER_TOKENS", "secret")
    assert run(command) == 3
    assert capsys.readouterr() == ("", "ARBITER_TOKENS: there is no such setting; the nearest is ARBITER_TOKEN\n")


def test_compare_takes_several_manifests_and_says_what_is_wrong_with_them(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = EXAMPLE.parents[1] / "tests" / "manifests" / "kueue-workloads.json"
    assert run(["compare", "-f", str(manifest), "--set", "queues.cq.priority=3", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert "error" in {finding["severity"] for finding in said["findings"]}
    assert len(said["variants"]) == 2


def test_starvation_reads_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLE.parent / "ytsaurus-starvation.json"
    file = tmp_path / "situation.yaml"
    file.write_text(yaml.safe_dump(json.loads(example.read_text())))
    assert run(["starvation", str(example), "--times", "2"]) == 0
    said = capsys.readouterr().out
    assert run(["starvation", str(file), "--times", "2"]) == 0
    assert capsys.readouterr().out == said
