"""What released KAI counts of a job's pods where one is evicted twice in a statement, and what stays of it."""

import pytest

from app.solver.engines.kai.overlay import Overlay
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import node, queue, workload


def one_job(pods: int, rules: str = "shipped") -> Overlay:
    configuration: Json = {"settings": {"kai": {"rules": rules}}, "queues": [queue("q", gpu=9)]}
    return open_overlay(
        {
            "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z", "configuration": configuration, "asks": [],
            "state": {"nodes": [node("n")], "workloads": [workload("w", "q", *["n"] * pods)]},
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("evicted", "open_", "undone"),
    [
        ([], True, True), ([0], True, True), ([0, 1], False, True),
        # While another runs the second eviction is counted out once more, and put back with the statement.
        ([0, 0], False, True),
        # Where none runs it is not, and counted back in all the same: one too many from then on.
        ([0, 1, 0], False, True), ([0, 1, 0, 1], False, True),
    ],
)  # fmt: skip
def test_two_pods(evicted: list[int], open_: bool, undone: bool) -> None:
    overlay = one_job(2)
    start = overlay.checkpoint()
    for t in evicted:
        overlay.evict(t)
    assert overlay.seems_active(0) is open_
    overlay.rollback(start)
    assert overlay.seems_active(0) is undone


@pytest.mark.parametrize(("evicted", "drift"), [([0], 0), ([0, 0], 1), ([0, 0, 0], 2)])
def test_a_pod_counted_back_in_too_often_still_counts_once_it_is_gone(evicted: list[int], drift: int) -> None:
    overlay = one_job(1)
    start = overlay.checkpoint()
    for t in evicted:
        overlay.evict(t)
    overlay.rollback(start)
    assert overlay.counts.drift == [drift]
    overlay.evict(0)
    overlay.commit("reclaim", 0)
    assert overlay.active == [0]
    assert overlay.seems_active(0) is (drift > 0)


def test_two_evictions_that_were_counted_leave_nothing_behind() -> None:
    overlay = one_job(3)
    start = overlay.checkpoint()
    for t in (0, 0, 1, 1):
        overlay.evict(t)
    assert (overlay.active, overlay.counts.miscounted) == ([1], [-2])
    overlay.rollback(start)
    assert (overlay.active, overlay.counts.miscounted, overlay.counts.drift) == ([3], [0], [0])


def test_documented_rules_evict_once() -> None:
    overlay = one_job(2, "documented")
    start = overlay.checkpoint()
    for t in (0, 1, 0):
        overlay.evict(t)
    assert (len(overlay.ops), overlay.allocated[2]) == (2, [0])
    overlay.rollback(start)
    assert (overlay.counts.miscounted, overlay.counts.drift, overlay.allocated[2]) == ([0], [0], [2000])


def test_only_what_is_evicted_is_put_back_and_once_for_each_time() -> None:
    overlay = one_job(2)
    assert not overlay.restore(0)
    for t in (0, 0):
        overlay.evict(t)
    held = [column.copy() for column in overlay.allocated]
    assert overlay.restore(0)
    assert (overlay.active, overlay.evictions_of(0), overlay.allocated[2]) == ([2], 1, [held[2][0] + 1000])
    assert overlay.restore(0)
    assert (overlay.active, overlay.evictions_of(0), overlay.allocated[2]) == ([2], 0, [2000])
    assert not overlay.restore(0)
    assert not overlay.restore(1)
    assert (overlay.active, overlay.allocated[2]) == ([2], [2000])
