"""Which attempts the classical algorithm makes: seen on asks for which every attempt fails."""

from typing import Any

import pytest

from tests.unit.solver.engines.kueue.cluster import asks, configuration, one, queue, runs

OWN = {"within_cluster_queue": "LowerPriority"}
RECLAIM = {"reclaim_within_cohort": "LowerPriority"}
BORROW = RECLAIM | {"borrow_within_cohort": {"policy": "LowerPriority"}}


def attempts(preemption: dict[str, Any], used: float, asked: float, other: float = 1) -> list[bool]:
    """``borrowing`` of each attempt of an ask in q, which owns 4 of 12 and runs ``used``, against a workload that may
    go and borrows ``other``; everything else runs on what is not preemptible."""
    of = configuration(queue("co", 8), queue("q", 4, "co", preemption=preemption), queue("r", 0, "co"))
    running = [runs("mine", "q", used, preemptible=False), runs("fixed", "r", 11 - used, preemptible=False)]
    if other:
        running.append(runs("loan", "r", other))
    ask = asks("x", "q", asked, 5, flavors={"cpu": "default"})
    steps = one(of, running, ask, explain="full")["explanation"]["steps"]
    return [step["numbers"]["borrowing"] for step in steps if step["rule"] == "attempt"]


@pytest.mark.parametrize(
    ("preemption", "used", "asked", "expected"),
    [
        pytest.param(RECLAIM, 1, 2, [True, False], id="hierarchical: the request is within nominal quota"),
        pytest.param(RECLAIM, 1, 5, [False, True], id="priority only, below nominal"),
        pytest.param(RECLAIM, 4, 5, [True], id="at nominal it may not reclaim at all"),
        pytest.param(RECLAIM, 5, 5, [True], id="above nominal likewise"),
        pytest.param(BORROW, 1, 5, [True, False], id="borrow_within_cohort, below nominal"),
        pytest.param(BORROW, 4, 5, [True, False], id="borrow_within_cohort, at nominal"),
        pytest.param(OWN, 1, 5, [True], id="nobody of another queue"),
    ],
)
def test_attempts(preemption: dict[str, Any], used: float, asked: float, expected: list[bool]) -> None:
    assert attempts(preemption, used, asked) == expected


def test_strictly_below_nominal_in_everything_contested() -> None:
    """cpu is at its nominal quota of 1, gpu below: both are contested, and one is enough to forbid the reclaim."""

    def pair(name: str, cpu: int, gpu: int, **more: Any) -> dict[str, Any]:
        return queue(name, **more) | {"quota": {"cpu": {"guaranteed": cpu}, "gpu": {"guaranteed": gpu}}}

    def work(name: str, queue_name: str, **requests: int) -> dict[str, Any]:
        task = {"name": "main", "requests": requests, "flavors": dict.fromkeys(requests, "default")}
        return runs(name, queue_name, 0) | {"tasks": [task]}

    def outcome(mine: int) -> str:
        of = configuration(
            pair("co", 1, 1), pair("q", 1, 2, parent="co", preemption=RECLAIM), pair("r", 0, 0, parent="co")
        )
        running = [work("mine", "q", cpu=mine), work("loan", "r", cpu=2 - mine, gpu=3)]
        task = {"name": "main", "requests": {"cpu": 1, "gpu": 2}, "flavors": {"cpu": "default", "gpu": "default"}}
        return one(of, running, asks("x", "q", 0, 5) | {"tasks": [task]})["outcome"]

    assert (outcome(0), outcome(1)) == ("preempt", "wait")
