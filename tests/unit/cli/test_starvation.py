import json
from pathlib import Path

import pytest

from app.cli import run
from app.cli.output import BAD_INPUT

EXAMPLE = Path(__file__).parents[3] / "examples" / "ytsaurus-starvation.json"


def test_what_changes_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["starvation", str(EXAMPLE), "--every", "10s", "--times", "15"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    told = [(row[0], *row[4:]) for row in rows if "hourly-report" in row]
    since = "2026-03-02T09:00:00Z"
    assert told == [
        ("2026-03-02T09:00:00Z", "non_starving", since),
        ("2026-03-02T09:00:40Z", "starving", since),
        ("2026-03-02T09:02:10Z", "aggressively_starving", since),
    ]


def test_the_request_in_the_end_can_be_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", str(EXAMPLE)]) == 2
    assert run(["starvation", str(EXAMPLE), "--every", "31s", "--times", "2", "--json"]) == 0
    file = tmp_path / "later.json"
    file.write_text(capsys.readouterr().out.splitlines()[-1])
    assert json.loads(file.read_text())["now"] == "2026-03-02T09:00:31Z"
    assert run(["decide", str(file)]) == 1
    assert "grid-search/trial-4" in capsys.readouterr().out


def test_volumes_are_carried_from_update_to_update(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth of 10 cpu for two of the three updates, 5 s each: the first knows of none before it."""
    integral = {"guarantee_type": "relaxed", "resource_flow": {"cpu": 1}}
    request = {
        "engine": "ytsaurus", "now": "2026-03-02T09:00:00Z", "asks": [],
        "configuration": {"queues": [{"name": "p", "ytsaurus": {"integral_guarantees": integral}}]},
        "state": {"nodes": [{"name": "n", "capacity": {"cpu": 10}}], "workloads": []},
    }  # fmt: skip
    file = tmp_path / "volumes.json"
    file.write_text(json.dumps(request))
    assert run(["starvation", str(file), "--every", "5s", "--times", "3", "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["state"]["queues"]["p"]["ytsaurus"] == {
        "starvation": "non_starving", "accumulated_volume": {"cpu": 10.0}, "last_share_ratio": 0.0,
    }  # fmt: skip
    assert last["options"] == {"ytsaurus": {"last_update_at": "2026-03-02T09:00:10Z"}}


@pytest.mark.parametrize(
    "arguments", [["--every", "soon"], ["--times", "0"], ["--every", "1s", "--times", "100000000"]]
)
def test_bad_usage(arguments: list[str]) -> None:
    assert run(["starvation", str(EXAMPLE), *arguments]) == BAD_INPUT


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(EXAMPLE.read_text())
    document["configuration"]["settings"]["ytsaurus"]["preemption_satisfaction_threshold"] = -1
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(document))
    assert run(["starvation", str(file)]) == BAD_INPUT
    assert "/configuration/settings/ytsaurus/preemption_satisfaction_threshold" in capsys.readouterr().err
    file.write_text("{")
    assert run(["starvation", str(file)]) == BAD_INPUT
