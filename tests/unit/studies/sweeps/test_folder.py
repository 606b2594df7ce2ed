"""A sweep's folder and its table: what is done, what is told while it goes on, and each figure in its column."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from app.simulations.core.sink import FIRST, time_of
from app.simulations.schemas import Spread, Summary, Totals
from app.studies import sweeps as module
from app.studies.sweep_executors import Point, Ran, rows
from app.studies.sweeps import Folder
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead

WAIT = Spread(mean=1.5, p50=1, p90=2, p99=3, max=4)
SUMMARY = Summary(
    engine="kai", start=time_of(FIRST), end=time_of(FIRST), makespan=12, rounds=9, loops=1,
    total=Totals(jobs=7, finished=6, cancelled=1, evictions=5, most_evictions=3, wait=WAIT,
                 work_done={"gpu": 2, "cpu": 1.5}, work_lost={"cpu": 3}, used={"cpu": 4}, utilisation={"cpu": 0.5},
                 shortfall={"cpu": 6}),
    queues={"b": Totals(jobs=1), "a": Totals(jobs=6)},
)  # fmt: skip


def point(key: str, **values: Any) -> Point:
    return Point("c", "t", 3, values, b"{}", key)


def ran(of: Point, makespan: float = 12) -> Ran:
    return Ran(of, msgspec.json.encode(msgspec.structs.replace(SUMMARY, makespan=makespan)))


def test_a_run_is_a_row_for_all_and_one_for_each_queue_by_name() -> None:
    found = rows(point("k", b=1, a=[2]), SUMMARY)
    assert [(row["queue"], row["jobs"]) for row in found] == [("", 7), ("a", 6), ("b", 1)]
    assert found[0] == {
        "key": "k", "configuration": "c", "trace": "t", "seed": 3, "settings": '{"a":[2],"b":1}', "engine": "kai",
        "queue": "", "rounds": 9, "loops": 1, "makespan": 12.0, "jobs": 7, "finished": 6, "cancelled": 1,
        "evictions": 5, "most_evictions": 3, "wait_mean": 1.5, "wait_p50": 1.0, "wait_p90": 2.0, "wait_p99": 3.0,
        "wait_max": 4.0, **{f"{of}_{at}": None for of in ("completion", "slowdown") for at in WAIT.__struct_fields__},
        "work_done": [("cpu", 1.5), ("gpu", 2.0)], "work_lost": [("cpu", 3.0)], "used": [("cpu", 4.0)],
        "utilisation": [("cpu", 0.5)], "shortfall": [("cpu", 6.0)],
    }  # fmt: skip


def manifest(path: Path) -> list[dict[str, Any]]:
    return json.loads((path / "manifest.json").read_text())["runs"]


def test_the_manifest_follows_but_takes_little_of_the_time(tmp_path: Path, clock: Clock, instead: Instead) -> None:
    clock.drives(module)
    given = [point(name) for name in "abcd"]
    of = Folder(tmp_path, given)
    formatted = msgspec.json.format

    def slow(document: bytes) -> bytes:
        """The manifest takes three seconds."""
        clock.now += 3
        return formatted(document)

    instead(msgspec.json, format=slow)
    of.keep(ran(given[0]))
    assert [run["status"] for run in manifest(tmp_path)] == ["done", "waiting", "waiting", "waiting"]
    clock.now = 20 * 3 - 1.0
    of.keep(ran(given[1]))
    assert manifest(tmp_path)[1]["status"] == "waiting", "it was written a moment ago"
    clock.now += 1
    of.keep(Ran(given[2], None, "no room"))
    assert [run["status"] for run in manifest(tmp_path)] == ["done", "done", "failed", "waiting"]
    assert dict(of.errors) == {"c": "no room"}


def test_what_is_there_is_done_and_what_failed_may_be_tried_again(tmp_path: Path, bounded: Bounded) -> None:
    bounded(module, PATIENCE=0)
    given = [point("a"), point("b"), point("a", again=1)]
    of = Folder(tmp_path, given)
    assert [one.key for one in of.left()] == ["a", "b"]
    of.keep(Ran(given[0], None, "no room"))
    of.keep(ran(given[0]))
    of.keep(Ran(given[1], None, "no luck"))
    assert list(of.errors) == [("b", "no luck")]
    assert [one.key for one in Folder(tmp_path, given).left()] == ["b"]
    entry, failed, again = manifest(tmp_path)
    assert entry == {
        "key": "a", "configuration": "c", "trace": "t", "seed": 3, "settings": {}, "status": "done",
        "sha256": entry["sha256"],
    }  # fmt: skip
    assert (failed["status"], failed["error"], again["sha256"]) == ("failed", "no luck", entry["sha256"])
    of.keep(ran(given[0], makespan=40))
    of.keep(ran(given[1]))
    assert manifest(tmp_path)[0]["sha256"] != entry["sha256"], "as it is now"
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "a.json", "a.parquet", "b.json", "b.parquet"
    ]  # fmt: skip


def test_the_table_has_what_is_done_in_the_order_of_the_grid(tmp_path: Path) -> None:
    given = [point(name) for name in "zya"]
    of = Folder(tmp_path, given)
    of.keep(ran(given[2], 3))
    of.keep(ran(given[0], 1))
    (tmp_path / "manifest.json").unlink()
    assert [(one.key, summary.makespan) for one, summary in of.finish()] == [("z", 1), ("a", 3)]
    table = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert [(row["key"], row["queue"]) for row in table] == [(key, queue) for key in "za" for queue in ("", "a", "b")]
    assert (table[0]["wait_p90"], table[0]["completion_p50"], table[0]["work_done"]) == (
        2.0, None, [("cpu", 1.5), ("gpu", 2.0)]
    )  # fmt: skip
    assert [run["status"] for run in manifest(tmp_path)] == ["done", "waiting", "done"], "told once more in the end"
