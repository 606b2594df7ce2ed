"""What runs at the start, and what an administrator does during a run."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.unit.simulations.running import job, played, request_for, rounds_of, told_again
from tests.unit.simulations.test_kueue_run import two_queues
from tests.unit.simulations.test_law import LATER, answer, nothing_stored
from tests.unit.simulations.test_placed_runs import NODES, configuration, queue


def problems(*args: Any, **more: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        played(*args, **more)
    return {problem.pointer: problem.detail for problem in refused.value.problems}


def test_a_quota_that_grows_lets_a_waiting_job_act_and_counts_from_then_on() -> None:
    changes = [{"at": 5, "queues": {"a": {"quota": {"cpu": {"guaranteed": 6}}}}}]
    told = played(two_queues(), [job("big", "a", 8, 0, 10)], changes)
    assert told.said() == [
        "0 submitted big", "5 configuration", "5 started big", "15 finished big",
    ]  # fmt: skip
    assert told.summary is not None
    assert told.summary.total.utilisation == {"cpu": 80 / (5 * 4 + 10 * 8)}


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus"])
def test_what_runs_on_a_node_that_goes_runs_again_elsewhere_and_the_rounds_still_hold(engine: str) -> None:
    jobs = [job("one", queue(engine, "a"), 4, 0, 20), job("two", queue(engine, "a"), 4, 0, 20)]
    changes = [
        {"at": 8, "nodes": {"remove": ["n0"]}},
        {"at": 10, "nodes": {"add": [{"name": "n2", "capacity": {"cpu": 4, "gpu": 4}}]}},
    ]
    request = request_for(configuration(engine), jobs, changes, state=NODES, grace=5)
    told = played(configuration(engine), jobs, changes, state=NODES, grace=5)
    gone = [event for event in told.events if event.kind == "evicted"]
    assert [(event.rule, event.lost) for event in gone] == [("NodeRemoved", 8)]
    assert [line for line in told.said() if "started" in line][-1] == f"10 started {gone[0].job}"
    assert told.said()[-1] == f"30 finished {gone[0].job}"
    rounds = rounds_of(request)
    for asked in rounds:
        assert answer(asked.request(), LATER, nothing_stored()).body == asked.answer()
    assert told_again(request, told) == [asked.request() for asked in rounds]


def test_what_runs_at_the_start_goes_on_for_what_remains_and_may_be_evicted() -> None:
    running = {
        "id": "old", "queue": "a", "started_at": "1999-12-31T23:59:50Z",
        "tasks": [{"name": "main", "requests": {"cpu": 4}, "flavors": {"cpu": "default"}}],
    }  # fmt: skip
    own = job("own", "b", 2, 3, 5)
    told = played(two_queues(), [own], state={"workloads": [running]}, remaining={"old": 10})
    assert told.said() == [
        "0 submitted old", "0 started old", "3 submitted own", "3 evicted old", "3 released old", "3 started own",
        "8 finished own", "8 started old", "18 finished old",
    ]  # fmt: skip
    asked = job("old", "a", 4, 0, 30)
    told = played(two_queues(), [asked], state={"workloads": [running]})
    assert told.said()[-1] == "20 finished old"  # it ran ten of its thirty seconds before
    assert problems(two_queues(), [own], state={"workloads": [running]}) == {
        "/state/workloads/0/id": "'old' runs, and neither trace nor `remaining` says how long"
    }


def test_everything_that_is_wrong_is_named_before_the_run() -> None:
    jobs = [
        job("a", "a", 1, "tomorrow", 0), job("a", "nobody", 1, 0, -1), job("b", "a", 1, 9, 1, cancelled_at=9),
        job("c", "a", 1, 0, 1, after=["b", "c"], checkpoint={"every": 0}), job("d", "a", 9, 0, 1e12),
    ]  # fmt: skip
    found = problems(two_queues(), jobs, [{"at": "x"}])
    assert list(found) == ["/trace/changes/0/at"]
    found = problems(two_queues(), jobs, until="never", remaining={"x": 1}, round_every=0)
    assert set(found) >= {
        "/trace/jobs/0/submitted_at", "/trace/jobs/0/duration", "/trace/jobs/1/ask/id", "/trace/jobs/1/ask/queue",
        "/trace/jobs/1/duration", "/trace/jobs/2/cancelled_at", "/trace/jobs/3/after/0", "/trace/jobs/3/after/1",
        "/trace/jobs/3/checkpoint/every", "/trace/jobs/4/duration", "/trace/jobs/4/ask", "/until", "/remaining/x",
        "/round_every",
    }  # fmt: skip
