"""Statements step by step: what jobs want, whom a statement is for, what committing and undoing leave behind."""

from typing import Any

import pytest

from app.solver.engines.kai.jobs import ALLOCATED, PIPELINED, RELEASING, RUNNING
from app.solver.engines.kai.overlay import NO_ASK, Eviction, Overlay
from app.solver.engines.kai.placing import Placer
from app.solver.engines.kai.queue_order import QueueOrder
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import ask, node, queue, workload

NODES = [node("m", gpu=4), node("n", gpu=2)]


def opened(workloads: list[Json], *asks: Json, rules: str = "shipped") -> Overlay:
    queues = [queue("root", gpu=9), queue("q", "root", gpu=9)]
    return open_overlay(
        {
            "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z", "asks": list(asks),
            "configuration": {"settings": {"kai": {"rules": rules}}, "queues": queues},
            "state": {"nodes": NODES, "workloads": workloads},
        }
    )  # fmt: skip


def pod(name: str, **more: Any) -> Json:
    return {"name": name, "requests": {"cpu": 1}, **more}


def test_pods_come_by_priority_then_age_then_name() -> None:
    late, early = {"created_at": "2027-01-02T00:00:00Z"}, {"created_at": "2027-01-01T00:00:00Z"}
    tasks = [
        pod("low", priority=-1), pod("late", **late), pod("early", **early), pod("z"), pod("y"),
        pod("high", priority=1), pod("first", created_at="1969-01-01T00:00:00Z"),
    ]  # fmt: skip
    gang = ask("p", "q") | {"tasks": tasks}
    grown = workload("w", "q") | {"tasks": [one | {"node": "m"} for one in tasks]}
    for overlay, job in ((opened([], gang), 0), (opened([grown]), 0)):
        names = [overlay.jobs.task_name[t] for t in overlay.in_order(job)]
        assert names == ["high", "y", "z", "first", "early", "late", "low"], "one without an age is the oldest"
        assert overlay.in_order(job) is overlay.in_order(job)


def test_the_order_of_a_job_that_an_ask_grows_is_not_that_of_the_state() -> None:
    grown = opened([workload("w", "q", "m", "m")], ask("p", "q", workload="w"))
    names = [grown.jobs.task_name[t] for t in grown.in_order(0)]
    alone = Overlay(grown.state, [], grown.now)
    assert (names, alone.in_order(0)) == (["p-0", "w-0", "w-1"], [0, 1])
    assert Overlay(grown.state, [], grown.now).in_order(0) is alone.in_order(0), "kept with the state"


def test_a_job_wants_what_its_gang_lacks_and_then_one_pod_more() -> None:
    overlay = opened([workload("w", "q", "m", min_available=2)], ask("p", "q", 4, workload="w", min_available=2))
    (job,) = range(len(overlay.jobs.id))
    assert (overlay.lacks(job), overlay.ready(job), overlay.elastic_rank(job)) == (1, True, 0)
    assert overlay.wanted(job) == ([1], (1000, 2**30, 1000))
    overlay.evict(0)
    assert (overlay.lacks(job), overlay.elastic_rank(job)) == (2, 0)
    assert overlay.wanted(job) == ([1, 2], (2000, 2 * 2**30, 2000)), "p-0 and p-1 come before w-0 by name"
    overlay.pipeline(1, 1)
    overlay.pipeline(2, 1)
    assert (overlay.lacks(job), overlay.elastic_rank(job), overlay.wanted(job)[0]) == (1, 1, [3])
    overlay.pipeline(3, 0)
    assert (overlay.lacks(job), overlay.elastic_rank(job), overlay.wanted(job)[0]) == (1, 2, [4])
    overlay.pipeline(4, 0)
    assert overlay.wanted(job)[0] == [0], "the statement that evicted it may put it back"
    overlay.commit("reclaim", job)
    assert overlay.wanted(job) == ([], (0, 0, 0)), "once it is final it is gone"


@pytest.mark.parametrize(("gone", "ready"), [(0, True), (1, True), (2, False)])
def test_a_gang_of_which_too_few_are_alive_is_not_ready(gone: int, ready: bool) -> None:
    overlay = opened([workload("w", "q", "m", "m")], ask("p", "q", 1, workload="w"))
    overlay.jobs.min_available[0] = 2
    for t in range(gone):
        overlay.evict(t)
    assert overlay.ready(0) is ready


def test_what_was_before_the_statement_is_told_by_its_first_eviction() -> None:
    overlay = opened([workload("w", "q", "m", "n")], ask("p", "q"))
    assert (overlay.status_before(0), overlay.node_before(0), overlay.evictions_of(0)) == (RUNNING, 0, 0)
    assert not overlay.stays_evicted(0)
    overlay.evict(0)
    overlay.pipeline(0, 1)
    assert (overlay.status[0], overlay.node[0]) == (PIPELINED, 1)
    overlay.evict(0)
    assert (overlay.status_before(0), overlay.node_before(0), overlay.evictions_of(0)) == (RUNNING, 0, 2)
    assert (overlay.status_before(1), overlay.node_before(1), overlay.evictions_of(1)) == (RUNNING, 1, 0)
    assert overlay.stays_evicted(0)
    assert not overlay.stays_evicted(1)


def test_a_statement_is_for_the_ask_whose_pod_it_placed_first() -> None:
    """Two asks grow one workload, and each has pods of its own."""
    asks = [ask("p", "q", workload="w"), ask("o", "q"), ask("s", "q", 2, workload="w")]
    overlay = opened([workload("v", "q", "m"), workload("w", "q", "m")], *asks)
    assert [overlay.pods_of(a) for a in range(3)] == [[2], [3], [4, 5]]
    assert [ask and ask.id for ask in map(overlay.ask_of_task, range(6))] == [None, None, "p", "o", "s", "s"]
    assert [overlay.asking(job) for job in range(3)] == [NO_ASK, 0, 1], "nothing is placed: the first ask of the job"
    overlay.evict(1)
    overlay.pipeline(1, 1)
    overlay.pipeline(3, 0)
    assert overlay.asking(1) == 0, "neither a pod that runs nor one of another job says whom it is for"
    overlay.pipeline(5, 0)
    overlay.pipeline(2, 0)
    assert overlay.asking(1) == 2
    other = opened([workload("v", "q", "m"), workload("w", "q", "m")], *asks)
    for t in (2, 5):
        other.pipeline(t, 0)
    assert other.asking(1) == 0, "the first pod of all asks is one of them"


def test_committed_evictions_say_what_did_them_for_whom_and_in_which_turn() -> None:
    overlay = opened([workload("v", "q", "m", "m"), workload("w", "q", "m")], ask("p", "q"), ask("s", "q"))
    overlay.evict(0)
    overlay.evict(1)
    overlay.restore(1)
    overlay.pipeline(3, 1)
    overlay.commit("reclaim", 2)
    assert (overlay.evictions, list(overlay.placed)) == ({0: Eviction(0, "reclaim", 0, 1, 0)}, [3])
    assert (overlay.virtual[:2], overlay.status[:2]) == ([0, 0], [RELEASING, RUNNING])
    assert [version > 0 for version in overlay.version] == [True, False, True, False], "known victims are out of date"
    assert (overlay.ops, overlay.undone, overlay.evictions_of(0)) == ([], [], 0)
    overlay.evict(2)
    overlay.allocate(4, 1)
    overlay.commit("preempt", 3)
    assert overlay.evictions[2] == Eviction(2, "preempt", 1, 2, 0)
    assert list(overlay.placed) == [3, 4]
    assert min(overlay.version) > 0


def test_whatever_happens_on_a_node_is_heard_of() -> None:
    """Those who sort nodes by what they have free look again at these, and clear the list."""
    overlay = opened([workload("w", "q", "m")], ask("p", "q"))

    def heard() -> set[int]:
        found = {n for n in overlay.touched if n >= 0}
        overlay.touched.clear()
        return found

    heard()
    start = overlay.checkpoint()
    overlay.evict(0)
    assert heard() == {0}
    overlay.restore(0)
    assert heard() == {0}
    overlay.evict(0)
    heard()
    overlay.pipeline(0, 1)
    assert heard() == {0, 1}
    overlay.allocate(1, 1)
    assert heard() == {1}
    overlay.make_pipelined()
    assert heard() == {1}, "what waited already is where it was"
    assert [overlay.status[t] for t in (0, 1)] == [PIPELINED, PIPELINED]
    overlay.rollback(start)
    assert heard() == {0, 1}
    assert (overlay.status[0], overlay.node[0]) == (RUNNING, 0)


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_a_pod_aimed_at_a_node_that_lists_it_goes_back_to_where_it_moved(rules: str) -> None:
    """It moved from m to n, is evicted there, and aimed at m again. Released code puts it back on n whatever that has
    left; the documented rules only while n has room."""
    for taken in (0, 2):
        overlay = opened([workload("w", "q", "m")], ask("p", "q", 2), rules=rules)
        overlay.evict(0)
        assert overlay.pipeline(0, 1)
        overlay.commit("consolidation", 1)
        overlay.evict(0)
        for t in (1, 2)[:taken]:
            overlay.pipeline(t, 1)
        back = rules == "shipped" or not taken
        assert overlay.pipeline(0, 0) is back
        assert (overlay.status[0], overlay.node[0]) == (PIPELINED if back else RELEASING, 1)


def test_a_pod_that_leaves_may_come_back_or_move_on() -> None:
    overlay = opened([workload("w", "q", "m", "m")], ask("p", "q"))
    overlay.evict(0)
    overlay.evict(1)
    assert overlay.pipeline(0, 0)
    assert (overlay.status[0], overlay.virtual[0], overlay.stays_evicted(0)) == (RUNNING, 0, False)
    assert overlay.pipeline(1, 1)
    assert (overlay.status[1], overlay.node[1], overlay.stays_evicted(1)) == (PIPELINED, 1, True)
    assert overlay.ghost[1] == 1, "node 0 lists it still"
    overlay.allocate(2, 0)
    assert (overlay.status[2], overlay.node[2], overlay.ghost[2]) == (ALLOCATED, 0, 0)
    assert overlay.pending_jobs() == set()


def test_jobs_with_pending_pods_are_told_as_these_find_places() -> None:
    overlay = opened([workload("w", "q", "m")], ask("p", "q"), ask("s", "q"))
    assert overlay.pending_jobs() == {1, 2}
    overlay.pipeline(1, 0)
    assert overlay.pending_jobs() == {2}


@pytest.mark.parametrize(("pods", "placed"), [(4, True), (5, False)])
def test_a_gang_does_not_take_the_place_that_one_of_its_pods_went_back_to(pods: int, placed: bool) -> None:
    """w-1 moved from m to n, which has one GPU. Aimed at m, it goes back to n: m has room for w-0 and two more."""
    queues = [queue("root", gpu=9), queue("q", "root", gpu=9)]
    overlay = open_overlay(
        {
            "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z", "asks": [ask("p", "q", 3, workload="w")],
            "configuration": {"settings": {"kai": {"rules": "shipped"}}, "queues": queues},
            "state": {"nodes": [node("n", gpu=1), node("m", gpu=3)], "workloads": [workload("w", "q", "m", "m")]},
        }
    )  # fmt: skip
    overlay.evict(1)
    overlay.pipeline(1, 0)
    overlay.commit("consolidation", 0)
    overlay.evict(0)
    overlay.evict(1)
    placer = Placer(overlay, QueueOrder(overlay))
    assert placer.place_job(0, list(range(pods)), placer.everywhere, bind=False) is placed
    assert overlay.node[:4] == ([1, 0, 1, 1] if placed else [1, 0, -1, -1])
