"""Runs of Kueue that are worked out by hand."""

from typing import Any

import pytest

from app.answering.sources import Compiled
from app.simulations.core.run import simulate
from app.solver.model.base import micros
from tests.support.kueue_run import PREEMPTS, two_queues
from tests.unit.simulations.running import (
    START,
    Told,
    as_asked,
    job,
    played,
    request_for,
    told_again,
    unseen,
    watched,
    without_digests,
)


def test_an_empty_trace_is_over_at_once() -> None:
    told = played(two_queues(), [])
    assert told.summary is not None
    assert (told.events, told.rounds, told.summary.makespan, told.summary.total.jobs) == ([], [], 0, 0)


def test_a_makespan_ends_with_the_last_end_of_a_job_and_nothing_without_any() -> None:
    jobs = [job("one", "a", 3, 5, 10), job("two", "b", 1, 6, 100), job("late", "b", 4, 7, 1, cancelled_at=30)]
    spans = [played(two_queues(), jobs, until=until).summary for until in (14, 20, 40)]
    assert [(one.makespan, (one.end - one.start).total_seconds()) for one in spans if one is not None] == [
        (0, 14), (10, 20), (25, 40),
    ]  # fmt: skip


def test_what_happens_at_the_end_still_happens_and_what_comes_after_does_not() -> None:
    jobs = [job("one", "a", 1, 1, 10), job("at", "a", 1, 11, 5), job("after", "a", 1, 11.000001, 5)]
    told = played(two_queues(), jobs, until=11)
    assert told.said()[2:] == ["11 finished one", "11 submitted at", "11 started at"]
    assert told.summary is not None
    assert (told.summary.end - told.summary.start).total_seconds() == 11


def test_a_run_that_is_cut_short_ends_there_and_one_that_is_done_ends_before() -> None:
    one, late = job("one", "a", 1, 0, 10), job("late", "a", 1, 100, 1)
    for jobs, lasted in (([one, late], 50), ([one], 10), ([late], 50), ([], 0)):
        summary = played(two_queues(), jobs, until=50).summary
        assert summary is not None
        assert (summary.end - summary.start).total_seconds() == lasted


def test_a_run_is_over_when_the_last_thing_has_happened() -> None:
    """Not when the evicted would have finished, nor when somebody who has ended would have been given up."""
    jobs = [job("big", "a", 4, 0, 100, cancelled_at=8), job("own", "b", 2, 5, 5, cancelled_at=50)]
    told = played(two_queues(), jobs, grace=1)
    assert told.said()[3:] == ["5 evicted big", "6 released big", "6 started own", "8 cancelled big", "11 finished own"]
    assert told.summary is not None
    assert (told.summary.end - told.summary.start).total_seconds() == 11


def test_progress_counts_everybody_who_will_not_come_back() -> None:
    """Who finished, was cancelled, or given up before it arrived; and rounds."""
    seen: list[tuple[float, int, int | None, int]] = []

    class Watched(Told):
        def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
            seen.append(((now - START) / 10**6, ended, total, rounds))

    jobs = [job("one", "a", 3, 0, 10), job("then", "a", 1, 1, 5, after=["one"], cancelled_at=4),
            job("too", "b", 4, 2, 9, cancelled_at=6), job("last", "b", 1, 3, 9)]  # fmt: skip
    simulate(request_for(two_queues(), jobs), Compiled(None), Watched(), lambda: False)
    assert [one[:3] for one in seen] == [
        (0, 0, 4), (1, 0, 4), (2, 0, 4), (3, 0, 4), (4, 1, 4), (6, 2, 4), (10, 3, 4), (12, 4, 4)
    ]  # fmt: skip
    rounds = [one[3] for one in seen]
    assert rounds[0] == 1
    assert rounds == sorted(rounds)


def test_who_is_alive_in_the_end_is_told_of_last_by_name() -> None:
    jobs = [job(name, "a", 4, at, 10) for at, name in enumerate(("b", "c", "a"), 1)]
    told = played(two_queues(), [job("runs", "a", 3, 0, 2), *jobs], until=5)
    assert [line.job for line in told.jobs] == ["runs", "a", "b", "c"]


def test_a_job_waits_for_another_and_the_summary_counts_it() -> None:
    told = played(two_queues(), [job("one", "a", 3, 0, 10), job("two", "a", 2, 4, 5)])
    assert told.said() == [
        "0 submitted one", "0 started one", "4 submitted two", "10 finished one", "10 started two", "15 finished two",
    ]  # fmt: skip
    assert told.summary is not None
    total = told.summary.total
    assert total.wait is not None
    assert (total.wait.mean, total.wait.p50, total.wait.max) == (3, 0, 6)
    assert total.work_done == {"cpu": 40}
    assert total.utilisation == {"cpu": 40 / 60}
    assert told.summary.makespan == 15


def test_who_lent_takes_back_and_the_victim_runs_again_from_its_checkpoint() -> None:
    saved = {"every": 3, "cost": 1}
    told = played(two_queues(), [job("big", "a", 4, 0, 10, checkpoint=saved), job("own", "b", 2, 6, 5)], grace=2)
    assert told.said() == [
        "0 submitted big", "0 started big", "6 submitted own", "6 evicted big", "8 released big", "8 started own",
        "13 finished own", "13 started big", "22 finished big",
    ]  # fmt: skip
    # 6 s: 3 of progress, 1 of checkpoint, 2 lost; then 7 of progress and two checkpoints.
    line = told.of("big")
    assert (line.ran, line.lost, line.overhead, line.evictions, line.waited) == (15, 2, 3, 1, 5)
    evicted = next(event for event in told.events if event.kind == "evicted")
    assert (evicted.by, evicted.rule, evicted.lost) == ("own", "InCohortReclamation", 2)
    assert told.summary is not None
    assert told.summary.queues["b"].shortfall == {"cpu": 4}
    assert told.summary.total.work_lost == {"cpu": 8}


def test_an_inadmissible_head_steps_aside_and_comes_back_when_its_cohort_changes() -> None:
    jobs = [job("long", "a", 3, 0, 10), job("wide", "a", 2, 1, 5), job("slim", "a", 1, 2, 1)]
    assert played(two_queues(), jobs).said()[3:] == [
        "2 submitted slim", "2 started slim", "3 finished slim", "10 finished long", "10 started wide",
        "15 finished wide",
    ]  # fmt: skip
    strict = played(two_queues(queueing_strategy="StrictFIFO"), jobs).said()
    assert strict.index("10 started wide") < strict.index("10 started slim")


def test_rounds_keep_their_distance_and_a_job_may_come_after_others_or_be_given_up() -> None:
    jobs = [
        job("one", "a", 1, 0, 3), job("two", "a", 1, 0.5, 3), job("then", "b", 1, 1, 1, after=["one", "two"]),
        job("gone", "b", 4, 0, 1, cancelled_at=2),
    ]  # fmt: skip
    told = played(two_queues(), jobs, round_every=2)
    assert told.said() == [
        "0 submitted gone", "0 submitted one", "0 started one", "0.5 submitted two", "2 cancelled gone",
        "2 started two", "3 finished one", "5 finished two", "5 submitted then", "5 started then", "6 finished then",
    ]  # fmt: skip


def test_who_is_like_the_one_that_steps_aside_goes_with_it_and_is_asked_when_its_turn_comes() -> None:
    alike = [job(f"wide-{i}", "a", 3, at, 5) for i, at in enumerate((1, 1, 1, 4))]
    jobs = [job("long", "a", 3, 0, 10), *alike, job("slim", "a", 1, 2, 1)]
    told = played(two_queues(), jobs)
    asked = [(micros(line.at) // 10**6 - START // 10**6, line.asks) for line in told.rounds]
    assert asked[:7] == [
        (0, ["long"]), (1, ["wide-0"]), (2, ["slim"]), (3, ["wide-0"]), (10, ["wide-0"]), (10, ["wide-1"]),
        (15, ["wide-1"]),
    ]  # fmt: skip
    assert [line for line in told.said() if "started wide" in line] == [
        "10 started wide-0", "15 started wide-1", "20 started wide-2", "25 started wide-3",
    ]  # fmt: skip


def test_each_is_asked_where_its_own_age_counts_or_its_queue_is_strict() -> None:
    jobs = [job("long", "a", 3, 0, 10), job("one", "a", 3, 1, 5), job("two", "a", 3, 1, 5)]
    patient = {"preemption": {**PREEMPTS["preemption"], "trigger_after_workload_waiting_seconds": 3}}
    asked = [ask for line in played(two_queues(**patient), jobs).rounds[:4] for ask in line.asks]
    assert asked[:3] == ["long", "one", "two"]
    strict = played(two_queues(queueing_strategy="StrictFIFO"), [*jobs, job("slim", "a", 1, 2, 1)])
    assert strict.of("slim").wait == 13


def test_one_that_is_given_up_while_aside_holds_nobody_of_its_class_back() -> None:
    jobs = [
        job("long", "a", 3, 0, 10), job("one", "a", 3, 1, 5, cancelled_at=4), job("two", "a", 3, 1, 5),
        job("also", "a", 3, 2, 5, cancelled_at=10),
    ]  # fmt: skip
    told = played(two_queues(), jobs)
    assert (told.of("two").wait, told.of("one").status, told.of("also").status) == (9, "cancelled", "cancelled")


def test_rounds_carry_where_pods_are() -> None:
    """Two hosts of 4 cpu: what runs on one keeps a job of 4 on the other, and the third job out, until it ends."""
    host = "kubernetes.io/hostname"
    nodes = [{"name": n, "labels": {host: n}, "capacity": {"cpu": 4, "pods": 9}} for n in "ab"]
    configuration = {
        "engine": "kueue",
        "flavors": [{"name": "f", "topology": "t"}],
        "topologies": [{"name": "t", "levels": [host]}],
        "queues": [
            {
                "name": "q",
                "resource_groups": [
                    {"resources": ["cpu"], "flavors": [{"name": "f", "quota": {"cpu": {"guaranteed": 100}}}]}
                ],
            }
        ],
    }
    jobs = [job("small", "q", 1, 0, 50), job("large", "q", 4, 1, 20), job("next", "q", 4, 2, 5)]
    request = request_for(configuration, jobs, state={"nodes": nodes})
    told, rounds = watched(request)
    assert [line for line in told.said() if "started" in line] == [
        "0 started small",
        "1 started large",
        "21 started next",
    ]
    last = {workload.id: workload.tasks[0].topology_assignment for workload in rounds[-1].loaded.state.workloads}
    assert {name: of and [d.values for d in of.domains] for name, of in last.items()} == {"small": [["a"]]}
    assert told_again(request, told) == [asked.request() for asked in rounds]


HALVES = [job("low", "a", 2, 0, 90), job("high", "a", 2, 0, 90, priority=1)]
EARLY = "1999-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("policies", "jobs", "evicted"),
    [
        (("LowerPriority", "Never"), [*HALVES, job("asks", "a", 2, 5, 9, priority=1)], 1),
        (("LowerPriority", "Never"), [*HALVES, job("asks", "a", 2, 5, 9)], 0),
        (("LowerOrNewerEqualPriority", "Never"), [*HALVES, job("asks", "a", 2, 5, 9, created_at=EARLY)], 1),
        (("Never", "Any"), [job("runs", "a", 4, 0, 90), job("asks", "b", 2, 5, 9)], 1),
        (("Never", "LowerPriority"), [job("runs", "a", 4, 0, 90), job("asks", "b", 2, 5, 9)], 0),
        (("Never", "LowerPriority"), [*HALVES, job("asks", "b", 2, 5, 9, priority=1)], 1),
        (("Never", "Any"), [job("own", "b", 2, 0, 90), job("runs", "a", 2, 0, 90), job("asks", "b", 1, 5, 9)], 0),
    ],
)  # fmt: skip
def test_who_may_just_make_room_goes_whether_or_not_anybody_watches(
    policies: tuple[str, str], jobs: list[Any], evicted: int
) -> None:
    configuration = two_queues()
    block = {"within_cluster_queue": policies[0], "reclaim_within_cohort": policies[1]}
    leaves = [queue | {"kueue": {"preemption": block}} for queue in configuration["queues"][1:]]
    request = request_for({**configuration, "queues": [configuration["queues"][0], *leaves]}, jobs)
    told = unseen(request)
    assert told.summary is not None
    assert told.summary.total.evictions == evicted
    assert told.bytes() == without_digests(as_asked(request))


def test_a_queue_takes_back_what_its_cohort_has_whether_or_not_anybody_watches() -> None:
    configuration = two_queues()
    _, a, b = configuration["queues"]
    half = {"name": "half", "parent": "all", "quota": b["quota"]}
    queues = [configuration["queues"][0], half, a, b | {"parent": "half", "quota": {"cpu": {"guaranteed": 0}}}]
    jobs = [job("runs", "a", 4, 0, 90), job("asks", "b", 2, 5, 9)]
    request = request_for({**configuration, "queues": queues}, jobs)
    assert unseen(request).said()[3:5] == ["5 evicted runs", "5 released runs"]
    as_asked(request)
