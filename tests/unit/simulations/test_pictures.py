"""The numbers behind the pictures."""

from typing import Any

import msgspec
from msgspec.structs import replace

from app.simulations.core.sink import FIRST, time_of
from app.simulations.plots import (
    OTHERS,
    Evictions,
    Waits,
    drawn_queues,
    evictions_of,
    resource_of,
    usage_of,
    waits_by_variant,
    waits_of,
)
from app.simulations.results import levels_of
from app.simulations.schemas import Summary, Totals
from tests.support.kueue_run import two_queues
from tests.support.levels import run
from tests.unit.simulations.running import job, request_for


def lines(*items: Any) -> list[bytes]:
    return [msgspec.json.encode(item) for item in items]


def test_usage_is_the_mean_of_each_interval_against_the_guarantee() -> None:
    summary, told = run(request_for(two_queues(), [job("one", "a", 3, 0, 240), job("two", "b", 1, 0, 120)]))
    assert (resource_of(summary, None), resource_of(summary, "gpu")) == ("cpu", "gpu")
    assert drawn_queues(summary, "cpu") == (["a", "b"], 0)  # `all` used what all queues together did
    found = usage_of(summary, "cpu", lambda queue: levels_of(told, queue))
    assert [panel.name for panel in found.panels] == ["", "a", "b"]
    assert (found.panels[0].usage[0], found.panels[0].usage[-1]) == (4, 3)
    assert set(found.panels[1].guarantee) == {2}
    assert found.at == [946_684_800 + second for second in range(241)]


def test_waits_are_those_of_the_largest_queues_and_of_variants() -> None:
    jobs = lines({"queue": "a", "wait": 3}, {"queue": "b"}, {"queue": "a", "wait": 0}, {"queue": "c", "wait": 1.5})
    assert waits_of(jobs) == Waits({"all queues": [0, 1.5, 3], "a": [0, 3], "c": [1.5]}, 1)
    assert waits_by_variant({"x": jobs, "y": []}) == Waits({"x": [0, 1.5, 3], "y": []})


def test_evictions_count_from_queue_to_queue_and_many_queues_fold() -> None:
    events = [{"kind": "submitted", "job": f"j{i}", "queue": f"q{i:02}"} for i in range(20)]
    events += [
        {"kind": "evicted", "job": f"j{i}", "queue": f"q{i:02}", "by": "j1"} for i in range(2, 20) for _ in range(i)
    ]
    events += [{"kind": "evicted", "job": "j1", "queue": "q01"}]
    found = evictions_of(lines(*events))
    assert len(found.counts) == 17
    assert (found.counts["q19"], found.counts[OTHERS]) == ({"q01": 19}, {"": 1, "q01": 2 + 3})
    assert evictions_of([]) == Evictions({})


def summary_of(used: dict[str, float], shares: dict[str, float] | None = None, whole: float | None = None) -> Summary:
    """``used``: cpu by queue; ``whole``: of all together, else their sum."""
    total = sum(used.values()) if whole is None else whole
    at = time_of(FIRST)
    return Summary(
        engine="kueue", start=at, end=at, makespan=0, rounds=0,
        total=Totals(used={"cpu": total} if used else {}, utilisation=shares or {}),
        queues={name: Totals(used={"cpu": amount}) for name, amount in used.items()},
    )  # fmt: skip


def test_the_resource_that_was_used_most_of_what_there_is_is_drawn() -> None:
    assert resource_of(summary_of({}, {"z": 0.25, "gpu": 0.75, "cpu": 0.75, "a": 0.5}), None) == "cpu"
    assert resource_of(summary_of({"q": 3}), None) == "cpu"
    assert resource_of(replace(summary_of({}), total=Totals(used={"y": 3, "x": 1})), None) == "x"
    assert resource_of(summary_of({}), None) == "cpu"


def test_the_twelve_queues_that_used_most_are_drawn_in_order_of_name() -> None:
    used = {f"q{i:02}": float(i * 7 % 15) for i in range(15)} | {"all": 105.0}
    found, left_out = drawn_queues(summary_of(used, whole=105.0), "cpu")
    assert left_out == 2  # of the sixteen one used nothing and one used all
    assert found == sorted(name for name in used if name != "all" and used[name] >= 3)
    assert drawn_queues(summary_of({"b": 1, "a": 1, "none": 0}), "cpu") == (["a", "b"], 0)
    assert drawn_queues(summary_of({"only": 4}), "cpu") == (["only"], 0)
    assert drawn_queues(summary_of({"only": 0}), "cpu") == ([], 0)
    assert drawn_queues(summary_of({"one": 4, "none": 0}), "cpu") == ([], 0)
    assert drawn_queues(summary_of({"a": 1, "b": 2}), "gpu") == ([], 0)
    tied = {f"q{i:02}": 1.0 for i in reversed(range(14))}
    assert drawn_queues(summary_of(tied), "cpu") == ([f"q{i:02}" for i in range(12)], 2)


def test_the_queues_with_the_most_starts_have_lines_of_their_own() -> None:
    jobs = [{"queue": f"q{i}", "wait": k} for i in range(10) for k in range(2 + i % 5)]
    found = waits_of(lines(*reversed(jobs))).lines
    assert list(found) == ["all queues", "q4", "q9", "q3", "q8", "q2", "q7", "q1"]
    assert (found["q1"], len(found["all queues"])) == ([0, 1, 2], len(jobs))
    assert waits_of(lines({"queue": "a", "wait": 1})).lines == {"all queues": [1]}
    many = {f"v{i}": lines({"queue": "a", "wait": i}, {"queue": "a"}) for i in range(10)}
    assert waits_by_variant(many) == Waits({f"v{i}": [i] for i in range(8)})


def test_sixteen_queues_are_told_apart_on_each_side_and_the_rest_are_others() -> None:
    """Each of 18 evicts from the next as often as its number; q00 for nobody."""
    events: list[dict[str, Any]] = [{"kind": "submitted", "job": f"j{i:02}", "queue": f"q{i:02}"} for i in range(19)]
    for i in range(1, 19):
        events += [{"kind": "evicted", "queue": f"q{i % 18 + 1:02}", "by": f"j{i:02}"}] * i
    events += [{"kind": "evicted", "queue": "q05"}, {"kind": "evicted", "queue": "q05", "by": "unknown"}]
    events += [{"kind": "started", "queue": "q05"}, {"kind": "submitted", "job": "j01"}]
    found = evictions_of(lines(*events)).counts
    assert list(found) == ["q01", *(f"q{i:02}" for i in range(4, 19)), OTHERS]
    assert found["q01"] == {"q18": 18}
    assert found["q05"] == {"q04": 4, "": 2}
    assert found["q04"] == {"q03": 3}
    assert found[OTHERS] == {OTHERS: 1 + 2}
