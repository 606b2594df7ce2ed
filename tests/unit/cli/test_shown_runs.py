"""Runs and sweeps as people read them: tables, lines of progress, and what went wrong."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.answering.comparison import Difference
from app.base.errors import BadInput, NotFound, TooLarge
from app.cli import run, simulate, sweep
from app.cli.simulate import Spool
from app.simulations.core.sink import hears
from app.simulations.schemas import Parted, Summary
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput, Problem
from app.studies.sweep_executors import Point, Ran
from tests.support.instead import Clock, Instead, Machine
from tests.support.remote import Captured, said

Json = dict[str, Any]
START = datetime(2000, 1, 1, tzinfo=UTC)
SPREAD = {"mean": 119.4, "p50": 120, "p90": 7199, "p99": 7200, "max": 90000}
TOTAL: Json = {
    "jobs": 7, "finished": 6, "wait": SPREAD, "slowdown": {**SPREAD, "p90": 1.2345}, "evictions": 5,
    "most_evictions": 4, "work_lost": {"cpu": 12345.6, "gpu": 2}, "utilisation": {"cpu": 0.51234, "gpu": 1},
}  # fmt: skip


def summary(**more: Any) -> Summary:
    loops = [
        {"at": START.isoformat(), "first": i, "second": i + 2, "jobs": ["x", "y"], "evictions": []} for i in range(4)
    ]
    made = {
        "engine": "kai", "start": START.isoformat(), "end": (START + timedelta(days=1.5)).isoformat(), "makespan": 1,
        "rounds": 9, "total": TOTAL, "queues": {"q": {"jobs": 1}}, "loops": 4, "first_loops": loops, **more,
    }  # fmt: skip
    return msgspec.convert(made, Summary)


def test_a_run_is_a_table_with_its_first_loops(capsys: Captured) -> None:
    simulate._shown({"": summary()}, {}, json=False)  # pyright: ignore
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kai: 1.5 days, 9 rounds, loops: 4"
    assert [" ".join(line.split()) for line in lines[1:4]] == [
        "queue jobs finished wait mean p50 p90 p99 max slowdown p90 evictions most lost utilisation",
        "(all) 7 6 119s 2m 120m 2h 25h 1.23 5 4 cpu 1.235e+04 s, gpu 2 s cpu 51.2 %, gpu 100.0 %",
        "q 1 0 - - - - - - 0 0",
    ]
    assert lines[4:] == [f"  loop at 2000-01-01 00:00:00, rounds {i} and {i + 2}: x, y" for i in range(3)]
    one, other = Difference(ask="x", field="node", values={}, rules=["r", "s"]), Difference(field="moves", values={})
    drawn = Difference(ask="y", field="outcome", values={}, rules=[])
    parted = {"b": Parted(round=3, at=START, differences=[one, drawn, other])}
    both = {"a": summary(queues={}, first_loops=[]), "b": summary()}
    simulate._shown(both, parted, json=False)  # pyright: ignore
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[4]) == ("a:", "b:")
    assert lines[-4:] == [
        "  parts from a in round 3, at 2000-01-01 00:00:00:", "    x: node, by r, s", "    y: outcome, by chance",
        "    beside the asks: moves",
    ]  # fmt: skip
    simulate._shown(both, parted, json=True)  # pyright: ignore
    assert msgspec.json.decode(capsys.readouterr().out)["parted"]["b"]["round"] == 3


def test_a_run_is_told_as_json_by_itself_or_by_variant(capsys: Captured) -> None:
    simulate._shown({"": summary()}, {}, json=True)  # pyright: ignore
    one = msgspec.json.decode(capsys.readouterr().out)
    assert one["rounds"] == 9
    simulate._shown({"a": summary(), "b": summary()}, {}, json=True)  # pyright: ignore
    assert msgspec.json.decode(capsys.readouterr().out) == {"variants": {"a": one, "b": one}}
    simulate._shown({"a": summary()}, {}, json=True)  # pyright: ignore
    assert msgspec.json.decode(capsys.readouterr().out) == {"variants": {"a": one}}


class Terminal(StringIO):
    def __init__(self, *, shows: bool) -> None:
        super().__init__()
        self._shows = shows

    def isatty(self) -> bool:
        return self._shows


def test_progress_is_shown_to_a_terminal_once_in_a_second(machine: Machine, clock: Clock) -> None:
    clock.drives(simulate)
    clock.now = 10.0
    now = micros(START)
    for shows in (True, False):
        machine.shows(terminal := Terminal(shows=shows))
        files: Any = simulate._Files("", {}, None)  # pyright: ignore
        for seconds, total in ((0.9375, 8), (0.0625, 8), (0.5, None), (0.5, None), (1.0, 0)):
            clock.now += seconds
            files.progress(now, 2, total, 5)
        files.close()
        said = "run: 2000-01-01 00:00:00, 2 jobs ended"
        expected = "".join(f"\r\x1b[K{said}{of}, 5 rounds" for of in (" of 8 (25 %)", "", " of 0 (200 %)"))
        assert terminal.getvalue() == (expected + "\r\x1b[K" if shows else "")
    machine.shows(terminal := Terminal(shows=True))
    files = simulate._Files("v", {}, None)  # pyright: ignore
    clock.now += 1.0
    files.progress(now, 2, None, 5)
    assert "v: 2000" in terminal.getvalue()


def test_who_draws_is_told_levels_and_who_writes_rounds_their_digests() -> None:
    plain: Any = simulate._Files("", {}, None)  # pyright: ignore
    assert (plain.leveled, plain.digested) == (False, False)
    plain.level("q", 0, {}, {}, {})
    with Spool() as spool:
        drawing: Any = simulate._Files("", {"round": None}, spool)  # pyright: ignore
        assert (drawing.leveled, drawing.digested) == (True, True)
        found = [{what for what in ("event", "job", "round") if hears(of, what)} for of in (plain, drawing)]
        assert found == [set(), {"event", "job", "round"}], "what is written nowhere is not made"


def test_all_lines_go_to_their_files(tmp_path: Path, capsys: Captured) -> None:
    body = Path(__file__).parents[3] / "examples" / "loops" / "kueue-fair-sharing.json"
    files = {kind: tmp_path / kind for kind in ("events", "rounds", "jobs")}
    words = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    assert run(["simulate", str(body), *words, "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    lines = {
        kind: [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] for kind, file in files.items()
    }
    assert len(lines["rounds"]) == found["rounds"]
    assert len(lines["jobs"]) == found["total"]["jobs"]
    assert all("variant" not in line for of in lines.values() for line in of)
    assert [line["kind"] for line in lines["events"]].count("evicted") == found["total"]["evictions"]


def test_a_spool_keeps_of_events_what_pictures_need() -> None:
    with Spool() as spool:
        for kind in ("submitted", "started", "evicted", "finished"):
            spool.event(SimpleNamespace(kind=kind) if kind in ("started", "finished") else _event(kind))  # type: ignore[arg-type]
        assert [msgspec.json.decode(line)["kind"] for line in spool._lines("events")] == ["submitted", "evicted"]  # pyright: ignore
        files = list(spool._files.values())  # pyright: ignore
        assert len(files) == 3
    assert all(file.closed for file in files)


def _event(kind: str) -> Any:
    class Event(msgspec.Struct):
        kind: str

    return Event(kind)


def point(key: str, **values: Any) -> Point:
    return Point("conf", "tr", 3, values, b"", key)


def test_a_sweep_is_a_table_of_its_runs(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def swept(*of: Any) -> Any:
        asked.append(of)
        return [(point("k1", a=1, b="x"), summary()), (point("k2"), summary(total={"jobs": 1}))], {}

    Instead(monkeypatch)(sweep, swept_in=swept)
    code, lines, _ = said(capsys, "sweep", "grid.yaml", "--out", "results", "--workers", "3", "--ray", "auto")
    assert asked == [("grid.yaml", Path("results"), 3, "auto")]
    assert [" ".join(line.split()) for line in lines] == [
        "run configuration trace seed settings finished mean wait p99 evictions",
        "k1 conf tr 3 a=1 b=x 6 119 s 7,200 s 5", "k2 conf tr 3 0 - - 0", "", "2 runs in results/results.parquet",
    ]  # fmt: skip
    assert code == 0
    Instead(monkeypatch)(sweep, swept_in=lambda *_: ([], {"k": "why"}))
    code, lines, _ = said(capsys, "sweep", "--out", "results")
    assert (code, lines[-1]) == (1, "0 runs in results/results.parquet")


@pytest.mark.parametrize(
    ("error", "complaints"),
    [
        (ImportError(name="ray"), ["ray is not installed: uv tool install 'arbiter-preemption[sweep]'"]),
        (FileNotFoundError(2, "No such file", "g"), ["g: No such file"]),
        (OSError("odd"), ["f: odd"]),
        (InvalidInput([Problem(pointer="/a", detail="b")]), ["f: 1 problem", "  /a: b"]),
        (BadInput([Problem(pointer="/a", detail="b")]), ["f: 1 problem", "  /a: b"]),
        (NotFound("there is none"), ["f: there is none"]),
        (TooLarge("too large"), ["f: too large"]),
    ],
)
def test_what_is_wrong_with_a_sweep_is_said(
    error: Exception, complaints: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swept(*_: Any) -> Any:
        raise error

    Instead(monkeypatch)(sweep, swept_in=swept)
    assert said(capsys, "sweep", "f", "--out", "o") == (3, [], complaints)


def test_a_sweep_needs_its_extras(capsys: Captured, instead: Instead) -> None:
    instead(sweep, find_spec=lambda name: None if name == "pyarrow" else 1)
    for words, extra in (((), "sweep"), (("--ray", "auto"), "ray")):
        assert said(capsys, "sweep", "f", "--out", "o", *words) == (
            3, [], [f"pyarrow is not installed: uv tool install 'arbiter-preemption[{extra}]'"],
        )  # fmt: skip


def test_each_run_is_told_when_it_is_over(capsys: Captured) -> None:
    sweep._tell(Ran(point("k"), b"{}"), 4)  # pyright: ignore
    sweep._tell(Ran(point("k"), None, "boom"), 0)  # pyright: ignore
    assert capsys.readouterr().err == "k conf tr done (4 left)\nk conf tr failed: boom (0 left)\n"
    assert [sweep._seconds(value) for value in (None, 0, 1234.5)] == ["-", "0 s", "1,234 s"]  # pyright: ignore


@pytest.mark.parametrize(
    ("workers", "cores", "points", "most"),
    [(3, 8, 2, 2), (3, 8, 5, 3), (None, 8, 5, 5), (None, None, 5, 1), (0, 2, 5, 2)],
)
def test_a_sweep_has_no_more_processes_than_it_is_given_or_has_use_for(
    workers: int | None, cores: int | None, points: int, most: int, instead: Instead
) -> None:
    made: list[Any] = []

    class Local:
        def __init__(self, *of: Any) -> None:
            made.append(of)

        def __enter__(self) -> str:
            return "runner"

        def __exit__(self, *_: object) -> None:
            made.append("over")

    instead(sweep, read=lambda file: b"grid")
    instead(sweep.os, cpu_count=lambda: cores)
    instead(
        "app.studies.sweeps",
        read=lambda body: body,
        engines=lambda grid, folder: [str(folder)],
        sweep=lambda *of: of,
    )
    instead(
        "app.studies.sweep_executors",
        size=lambda grid: points,
        Local=Local,
        on_ray=lambda address: f"ray at {address}",
    )
    found = sweep.swept_in("at/grid.yaml", Path("out"), workers, None)  # pyright: ignore
    assert made == [(most, ["at"]), "over"]
    assert found == (b"grid", Path("at"), Path("out"), "runner", sweep._tell)  # pyright: ignore
    found = sweep.swept_in("at/grid.yaml", Path("out"), workers, "auto")  # pyright: ignore
    assert (found[3], len(made)) == ("ray at auto", 2)
