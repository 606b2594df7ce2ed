"""The numbers behind the pictures."""

from typing import Any

import msgspec

from app.plots.data import Evictions, Waits
from app.simulations.levels import levels_of
from app.simulations.pictures import (
    OTHERS,
    drawn_queues,
    evictions_of,
    resource_of,
    usage_of,
    waits_by_variant,
    waits_of,
)
from tests.unit.simulations.running import job, request_for
from tests.unit.simulations.test_kueue_run import two_queues
from tests.unit.simulations.test_levels import run


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
