"""``arbiter simulate``: a table for people, documents for machines, and bad lines by number."""

import gzip
import json
import os
from pathlib import Path

import pytest
import yaml

from app.cli import run
from tests.support.kueue_run import two_queues
from tests.unit.simulations.running import job

LOOPS = Path(__file__).parents[3] / "examples" / "loops"


def test_a_run_is_shown_with_its_loops(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(LOOPS / "kueue-fair-sharing.json")]) == 0
    told = capsys.readouterr().out
    assert "kueue: 0.006944 days, 8 rounds, loops: 1" in told
    assert "loop at 2000-01-01 00:00:02, rounds 5 and 7: red-cpu" in told


def test_the_body_may_be_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example, body = LOOPS / "kueue-fair-sharing.json", tmp_path / "body.yaml"
    assert run(["simulate", str(example)]) == 0
    told = capsys.readouterr().out
    body.write_text(yaml.safe_dump(json.loads(example.read_bytes())))
    assert run(["simulate", str(body)]) == 0
    assert capsys.readouterr().out == told


def test_a_trace_may_be_a_file_and_lines_go_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, body, events = (tmp_path / name for name in ("trace.ndjson", "body.json", "events.ndjson"))
    jobs = [job("one", "a", 3, 0, 10), job("two", "a", 2, 4, 5)]
    trace.write_text("".join(json.dumps(one) + "\n" for one in jobs))
    variants = [{"name": "plain"}, {"name": "fair", "settings": {"kueue": {"fair_sharing": True}}}]
    body.write_text(json.dumps({"configuration": two_queues(), "trace": str(trace), "variants": variants}))
    assert run(["simulate", str(body), "--json", "--events", str(events)]) == 0
    found = json.loads(capsys.readouterr().out)["variants"]
    assert found["plain"] == found["fair"]
    assert found["plain"]["total"]["wait"]["max"] == 7
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert [line["kind"] for line in lines if line["variant"] == "fair"].count("finished") == 2


@pytest.mark.slow
def test_pictures_of_each_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body, plot = tmp_path / "body.json", tmp_path / "out.svg"
    jobs = [job("one", "a", 3, 0, 10), job("two", "b", 2, 4, 5)]
    body.write_text(
        json.dumps({"configuration": two_queues(), "trace": {"jobs": jobs}, "variants": [{"name": "as/is"}]})
    )
    assert run(["simulate", str(body), "--plot", str(plot)]) == 0
    drawn = (tmp_path / "out-as_is.svg").read_text()
    for said in ("kueue: as/is", "Usage of cpu over time", "nobody waited", "Evictions from queue to queue (1)"):
        assert f"<!-- {said} -->" in drawn
    assert run(["simulate", str(body), "--plot", str(tmp_path / "nowhere" / "out.svg")]) == 3
    assert "No such file" in capsys.readouterr().err


def test_bad_lines_are_named_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, body = tmp_path / "trace.ndjson", tmp_path / "body.json"
    body.write_text(json.dumps({"configuration": two_queues(), "trace": str(trace)}))
    bad = [job("one", "a", 3, 5, 0), job("one", "a", 3, 4, 1), job("big", "a", 5, 6, 1, after=["none"])]
    trace.write_text("".join(json.dumps(one) + "\n" for one in bad))
    assert run(["simulate", str(body)]) == 3
    told = capsys.readouterr().err
    for said in (":1/duration: must be above 0", ":2/ask/id: a second job 'one'", ":2/submitted_at: earlier",
                 ":3/ask: can never run", ":3/after/0: no job 'none'"):  # fmt: skip
        assert said in told
    trace.write_text(json.dumps(bad[0]) + "\n{\n")
    assert run(["simulate", str(body)]) == 3
    assert "trace.ndjson:2: Input data was truncated" in capsys.readouterr().err


def test_more_jobs_or_bytes_than_allowed_are_named_by_the_setting_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, named, inline, packed = (tmp_path / name for name in ("trace.ndjson", "named.json", "all.json", "t.ndjson"))
    jobs = [job(f"j{i}", "a", 1, i, 10) for i in range(5)]
    trace.write_text("".join(json.dumps(one) + "\n" for one in jobs))
    named.write_text(json.dumps({"configuration": two_queues(), "trace": str(trace)}))
    inline.write_text(json.dumps({"configuration": two_queues(), "trace": {"jobs": jobs}}))
    packed.write_bytes(gzip.compress(b"\n" * 100_000) + gzip.compress(b"\n" * 100_000))
    monkeypatch.setenv("ARBITER_TRACE_JOBS", "4")
    for command, where in (
        (["simulate", str(named)], f"{trace}:5"), (["simulate", str(inline)], "/trace/jobs"),
        (["trace", str(trace)], "line 5"),
    ):  # fmt: skip
        assert run(command) == 3
        told = capsys.readouterr()
        assert where in told.err
        assert "more than 4 jobs (ARBITER_TRACE_JOBS)" in told.err
        assert told.out == ""
    monkeypatch.setenv("ARBITER_TRACE_BYTES", "150000")
    assert run(["trace", str(packed)]) == 3
    assert "more than 150000 bytes (ARBITER_TRACE_BYTES)" in capsys.readouterr().err
    monkeypatch.setenv("ARBITER_TRACE_BYTES", "many")
    assert run(["trace", str(packed)]) == 3
    assert "trace_bytes" in capsys.readouterr().err.lower()


def test_a_trace_that_never_ends_is_refused_at_its_limit_and_not_after_reading_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, body, grid = tmp_path / "trace.ndjson", tmp_path / "body.json", tmp_path / "grid.json"
    trace.write_text("".join(json.dumps(job(f"j{i}", "a", 1, i, 10)) + "\n" for i in range(5)))
    os.truncate(trace, 1 << 40)  # a terabyte that takes no room: nobody reads it whole
    body.write_text(json.dumps({"configuration": two_queues(), "trace": str(trace)}))
    grid.write_text(json.dumps({"configurations": {"c": two_queues()}, "traces": {"t": str(trace)}}))
    sweep = ["sweep", str(grid), "--out", str(tmp_path / "out")]
    monkeypatch.setenv("ARBITER_TRACE_BYTES", "150000")
    for command in (["simulate", str(body)], ["trace", str(trace)], sweep):
        assert run(command) == 3
        assert "more than 150000 bytes (ARBITER_TRACE_BYTES)" in capsys.readouterr().err
    monkeypatch.setenv("ARBITER_TRACE_JOBS", "4")
    assert run(["simulate", str(body)]) == 3
    assert "more than 4 jobs (ARBITER_TRACE_JOBS)" in capsys.readouterr().err
    body.write_text(json.dumps({"configuration": two_queues(), "trace": "/dev/zero"}))
    assert run(["simulate", str(body)]) == 3
    assert "/dev/zero: jobs are read twice" in capsys.readouterr().err
