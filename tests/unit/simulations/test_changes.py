"""What runs at the start, and what an administrator does during a run."""

from typing import Any

import pytest

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.solver.model.problems import InvalidInput
from tests.support.kueue_run import two_queues
from tests.support.law import LATER
from tests.support.placed_runs import NODES, configuration, queue
from tests.unit.simulations.running import Told, job, played, request_for, rounds_of, told_again


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


def test_what_runs_and_waits_meanwhile_counts_once_before_a_change_and_after() -> None:
    """Big holds 3 cpu for ten seconds, of 4 and then of 5; then more does for two. Own waits with 2 from 1 to 4."""
    changes = [{"at": 4, "queues": {"a": {"quota": {"cpu": {"guaranteed": 3}}}}}]
    never = two_queues(preemption={})
    told = played(never, [job("big", "a", 3, 0, 10), job("more", "a", 3, 0, 2), job("own", "b", 2, 1, 5)], changes)
    assert told.summary is not None
    total, queues = told.summary.total, told.summary.queues
    assert (total.used, queues["a"].used, queues["b"].used) == ({"cpu": 46}, {"cpu": 36}, {"cpu": 10})
    assert queues["b"].shortfall == {"cpu": 2 * 3}
    assert total.utilisation == {"cpu": 46 / (4 * 4 + 8 * 5)}


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
    alone = played(two_queues(), [], state={"workloads": [running]}, remaining={"old": 10}).summary
    assert alone is not None
    assert (alone.total.finished, alone.total.wait, alone.total.completion) == (1, None, None), "it is not known"
    asked = job("old", "a", 4, 0, 30)
    told = played(two_queues(), [asked], state={"workloads": [running]})
    assert told.said()[-1] == "20 finished old"  # it ran ten of its thirty seconds before
    # Evicted after thirteen seconds: the ten before are lost as well, but for what a checkpoint has kept.
    for every, end, lost in ((0, 8 + 30, 3), (8, 8 + 22, 3), (4, 8 + 18, 1), (3, 8 + 18, 1)):
        checkpoint = {"checkpoint": {"every": every}} if every else {}
        told = played(two_queues(), [asked | checkpoint, own], state={"workloads": [running]})
        assert told.said()[-2:] == ["8 started old", f"{end} finished old"]
        assert told.of("old").lost == lost
    assert problems(two_queues(), [own], state={"workloads": [running]}) == {
        "/state/workloads/0/id": "'old' runs, and neither trace nor `remaining` says how long"
    }


@pytest.mark.parametrize(("engine", "ends"), [("yunikorn", (20, 30)), ("ytsaurus", (20, 30)), ("kai", (20,))])
def test_what_waits_of_a_job_that_runs_in_part_has_run_nothing_yet(engine: str, ends: tuple[int, ...]) -> None:
    """One of two tasks has run for 10 of 30 s: for itself, or for its gang, which has come as far as that."""
    asked = job("old", queue(engine, "a"), 4, 0, 30)
    asked["ask"]["tasks"][0]["count"] = 2
    running = {
        "id": "old", "queue": queue(engine, "a"), "started_at": "1999-12-31T23:59:50Z",
        "tasks": [{"name": "main-0", "requests": {"cpu": 4}, "node": "n0"}],
    }  # fmt: skip
    told = played(configuration(engine), [asked], state={**NODES, "workloads": [running]})
    assert [(e.kind, e.task, e.node) for e in told.events][:3] == [
        ("submitted", None, None), ("started", "main-0", "n0"), ("started", "main-1", "n1")
    ]  # fmt: skip
    assert told.said()[3:] == [f"{at} finished old" for at in ends]
    assert told.of("old").ran == sum(ends)


@pytest.mark.parametrize("engine", ["yunikorn", "ytsaurus", "kai"])
@pytest.mark.parametrize("all_of_it", [True, False])
def test_what_is_on_its_way_out_at_the_start_is_released_after_the_grace(engine: str, *, all_of_it: bool) -> None:
    tasks = [{"name": name, "requests": {"cpu": 2}, "node": "n0"} for name in "xy"]
    tasks[0] |= {} if all_of_it else {"state": "preempted"}
    running = {"id": "old", "queue": queue(engine, "a"), "tasks": tasks, "evicted": all_of_it}
    small = {"nodes": [{"name": "n0", "capacity": {"cpu": 4, "gpu": 4}}], "workloads": [running]}
    told = played(configuration(engine), [], state=small, remaining={"old": 30}, grace=3)
    again = ["x", "y"] if all_of_it else ["x"]
    assert [(e.at.second, e.kind, e.task, e.node) for e in told.events][:-2 if engine != "kai" else -1] == [
        (0, "submitted", None, None), (0, "started", "x", "n0"), (0, "started", "y", "n0"),
        (3, "released", None if all_of_it else "x", None), *((3, "started", name, "n0") for name in again),
    ]  # fmt: skip
    assert told.said()[-1] == "33 finished old"
    assert told.of("old").evictions == told.of("old").lost == 0
    assert told.summary is not None
    assert told.summary.total.used == {"cpu": 2 * 33 + 2 * (33 if all_of_it or engine == "kai" else 30)}


def taken_back(*changes: Any) -> Told:
    """YTsaurus: half of what a runs on two nodes goes at second 35 and holds its nodes for ten more."""
    jobs = [job("a", "a", 1, 0, 100), job("b", "b", 4, 5, 10)]
    jobs[0]["ask"]["tasks"][0]["count"] = 8
    return played(configuration("ytsaurus"), jobs, changes, state=NODES, grace=10)


def test_what_is_on_its_way_out_is_no_less_of_the_capacity() -> None:
    told = taken_back({"at": 37, "queues": {"a": {"weight": 2}}})
    assert told.summary is not None
    lasted = (told.summary.end - told.summary.start).total_seconds()
    total = told.summary.total
    assert total.used["cpu"] > 8 * 100, "something held its place while it went"
    assert total.utilisation["cpu"] == pytest.approx(total.used["cpu"] / (8 * lasted))


def test_a_node_that_changes_keeps_what_is_on_its_way_out_there() -> None:
    same = [line for line in taken_back({"at": 37, "nodes": {"change": NODES["nodes"]}}).said() if "node" not in line]
    assert "45 released a" in same
    assert same == taken_back().said()


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
