"""Rounds that only time brings about: minimum runtimes of KAI, and the knobs that KEP-83 deferred."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.simulations.schemas import SimulationRequest
from app.solver.rounds import Wakes
from tests.support.kueue_run import two_queues
from tests.support.placed_runs import NODES, configuration
from tests.unit.simulations.running import job, play, request_for, rounds_of

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def said(request: SimulationRequest) -> list[str]:
    """What happened; every round is what its request is answered."""
    for asked in rounds_of(request):
        assert answer(asked.request(), LATER, nothing_stored()).body == asked.answer()
    return play(request).said()


@pytest.mark.parametrize("rules", ["shipped", "documented"])
@pytest.mark.parametrize("waits", [5, 25])
def test_kai_reclaims_when_a_minimum_runtime_is_over(rules: str, waits: int) -> None:
    own = configuration("kai", kai={"reclaim_min_runtime": "1m"})
    own["settings"] = {"kai": {"rules": rules}}
    jobs = [job("a", "a", 4, 0, 200), job("c", "a", 4, 0, 200), job("b", "b", 4, waits, 10)]
    for one in jobs:
        one["ask"]["preemptible"] = True
    told = said(request_for(own, jobs, state=NODES))
    assert [line for line in told if "evicted" in line] == ["60 evicted c"]


def test_kai_knows_what_ran_at_the_start() -> None:
    own = configuration("kai", kai={"reclaim_min_runtime": "1m"})
    running = {"nodes": NODES["nodes"], "workloads": [
        {"id": name, "queue": "a", "preemptible": True, "started_at": f"1999-12-31T23:59:{second}Z",
         "tasks": [{"name": "main", "requests": {"cpu": 4}, "node": node}]}
        for name, second, node in (("a", 40, "n0"), ("c", 50, "n1"))
    ]}  # fmt: skip
    told = said(request_for(own, [job("b", "b", 4, 5, 10)], state=running, remaining={"a": 500, "c": 500}))
    assert [line for line in told if "evicted" in line] == ["40 evicted a"]


def knob(**preemption: Any) -> dict[str, Any]:
    found = two_queues()
    for queue in found["queues"][1:]:
        queue["kueue"] = {"preemption": {**queue["kueue"]["preemption"], **preemption}}
    return found


def test_kueue_preempts_once_an_ask_has_waited_long_enough() -> None:
    jobs = [job("big", "a", 4, 0, 500), job("own", "b", 2, 6, 5), job("behind", "b", 1, 7, 5)]
    told = said(request_for(knob(trigger_after_workload_waiting_seconds=30.5), jobs))
    assert told[:6] == ["0 submitted big", "0 started big", "6 submitted own", "7 submitted behind", "36.5 evicted big",
                        "36.5 released big"]  # fmt: skip
    assert told[6] == "36.5 started own"


def test_kueue_preempts_once_waiting_has_raised_a_priority() -> None:
    boost = {"grace": "10m", "rate_per_hour": 60, "ceiling": 9}
    jobs = [job("low", "a", 4, 0, 5000, priority=2), job("lower", "b", 2, 10, 5, priority=0)]
    told = said(request_for(knob(waiting_boost=boost, reclaim_within_cohort="LowerPriority"), jobs))
    # It counts one point more each minute after ten, and is above 2 with the third.
    assert told[3:6] == ["790 evicted low", "790 released low", "790 started lower"]


def test_kueue_preempts_once_a_long_runner_counts_for_less() -> None:
    penalty = {"grace": 100, "rate_per_hour": 3600, "floor": 0}
    knobs = knob(long_runner_penalty=penalty, reclaim_within_cohort="LowerPriority")
    jobs = [job("runs", "a", 4, 0, 5000, priority=3), job("waits", "b", 2, 1, 5, priority=2)]
    told = said(request_for(knobs, jobs))
    assert told[3:6] == ["102 evicted runs", "102 released runs", "102 started waits"]
    quiet = [job("runs", "a", 4, 0, 5000, priority=3), job("waits", "b", 2, 1, 5, priority=0)]
    assert "evicted" not in " ".join(said(request_for(knobs, quiet)))


def test_wakes_forget_what_was_replaced() -> None:
    wakes = Wakes()
    for i in range(1000):
        wakes.set("a", 1000 - i)
        wakes.set(f"b{i}", 5000 + i)
        wakes.set(f"b{i}", None)
    wakes.set("c", 7)
    assert (wakes.first(), wakes.passed(0), wakes.passed(7)) == (1, [], ["a", "c"])
    assert (wakes.first(), wakes.passed(10**6)) == (None, [])
