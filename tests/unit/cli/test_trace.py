"""``arbiter trace`` and ``arbiter sweep``, and the commands of the page about simulations."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from app.cli import run
from app.simulations.router import SIMULATION

ROOT = Path(__file__).parents[3]
PAGES = [(ROOT / name).read_text() for name in ("README.md", "docs/simulation.md")]
COMMANDS = sorted(
    {line for page in PAGES for line in re.findall(r"arbiter trace [^|\n`]*\S \| (?=\S*arbiter simulate)", page)}
)
SWF = "; UnixStartTime: 725846400\n; MaxNodes: 4\n" + "".join(
    f"{i} {10 * i} 0 60 {1 + i % 4} -1 -1 {1 + i % 4} -1 -1 1 {i % 3} 1 -1 -1 -1 -1 -1\n" for i in range(1, 9)
)
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,1000,,LS,Running,0,400,0
p-1,6000,1024,1,460,,BE,Running,10,500,12
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,96500,262144,8,V100M16\n"
FILES = {
    "NASA-iPSC-1993-3.1-cln.swf.gz": ("nasa.swf", SWF),
    "openb_pods.csv.gz": ("pods.csv", PODS),
    "openb_nodes.csv.gz": ("nodes.csv", NODES),
    "few.csv": ("few.csv", NODES),
}
"""What the commands name, and something small in its place."""


@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_pages_say_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command.removesuffix(" | "))[1:]
    for i, word in enumerate(words):
        if word in FILES:
            name, content = FILES[word]
            (tmp_path / name).write_text(content)
            words[i] = str(tmp_path / name)
    if "--format" not in words and words[1].endswith("pods.csv"):
        words += ["--format", "alibaba-gpu-2023"]
    assert run(words) == 0
    body = tmp_path / "body.json"
    body.write_bytes(capsysbinary.readouterr().out)
    assert run(["simulate", str(body), "--json"]) == 0
    total = json.loads(capsysbinary.readouterr().out)["total"]
    assert total["jobs"] == total["finished"] == (8 if words[1].endswith("swf") else 2)


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 2


def test_lines_only_and_what_is_wrong_is_named_by_line(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    trace = tmp_path / "t.swf"
    trace.write_text(SWF)
    mapping = str(ROOT / "examples" / "traces" / "nasa-ipsc.yaml")
    assert run(["trace", str(trace), "--mapping", mapping, "--lines"]) == 0
    lines = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [line["ask"]["id"] for line in lines if "ask" in line] == [str(i) for i in range(1, 9)]
    trace.write_text(SWF + "9 1 0 sixty 1 -1 -1 1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n")
    assert run(["trace", str(trace), "--mapping", mapping]) == 3
    assert b"11" in capsysbinary.readouterr().err
    assert run(["trace", str(tmp_path / "none.swf"), "--mapping", mapping]) == 3
    assert b"No such file" in capsysbinary.readouterr().err


def test_a_sweep_prints_a_table_and_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid, out = tmp_path / "grid.yaml", tmp_path / "out"
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(job) + "\n" for job in SIMULATION["trace"]["jobs"]))
    document = {
        "configurations": {"teams": SIMULATION["configuration"]}, "traces": {"t": "t.ndjson"},
        "settings": {"/grace": ["0s", "30s"]},
    }  # fmt: skip
    grid.write_text(yaml.safe_dump(document))
    assert run(["sweep", str(grid), "--out", str(out), "--workers", "1"]) == 0
    told = capsys.readouterr()
    assert "2 runs in" in told.out
    assert "/grace=30s" in told.out
    assert told.err.count(" done (") == 2
    before = (out / "results.parquet").read_bytes()
    assert run(["sweep", str(grid), "--out", str(out), "--workers", "1"]) == 0
    assert capsys.readouterr().err == ""
    assert (out / "results.parquet").read_bytes() == before
    grid.write_text(yaml.safe_dump({**document, "settings": {"/nothing": [1]}}))
    assert run(["sweep", str(grid), "--out", str(out)]) == 3
    assert "nothing" in capsys.readouterr().err
