"""What KAI 0.17 does wrong as shipped: each is named where it decides, and documented rules mend what no rule asks
for."""

from typing import Any

import pytest

from app.solver.engines.kai.job_order import VictimOrder
from app.solver.engines.kai.queue_order import QueueOrder, Standing
from app.solver.engines.kai.scenario import Group
from app.solver.engines.kai.search import Prefix
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

ROOT = queue("root", gpu="unlimited")
BOTH = pytest.mark.parametrize("rules", ["shipped", "documented"])


def decided(rules: str, *given: Any, release: str = "0.17", **more: Any) -> Case:
    return Case(*given, release=release, rules=rules, explain="summary", **more)


def steps(case: Case, name: str) -> set[str]:
    return {step["rule"] for step in case.decisions[name]["explanation"]["steps"]}


@pytest.mark.parametrize(("rules", "needed", "forgotten"), [
    ("shipped", 1, True), ("documented", 1, False), ("shipped", 2, False),
])  # fmt: skip
def test_a_solved_gang_that_can_do_without_a_member_is_forgotten(rules: str, needed: int, *, forgotten: bool) -> None:
    """Of two sub groups, one pod each, one is needed; or both, of which there are pods. Whoever comes next finds the
    room taken all the same, by nobody that runs."""
    groups = [{"name": "x", "min_available": 1}, {"name": "y", "min_available": 1}]
    first = ask("p", "b", pods=needed, sub_groups=groups, min_sub_group=needed)
    for task, group in zip(first["tasks"], groups, strict=False):
        task["sub_group"] = group["name"]
    running = [workload(f"w{i}", "a", "n") for i in range(2)]
    queues = [ROOT, queue("a", "root", gpu=0), queue("b", "root", gpu=2)]
    case = decided(rules, queues, [node("n", gpu=2)], running, first, actions=["reclaim"])
    assert ("statement-forgotten" in steps(case, "p")) == forgotten
    assert len(case.evicted) == (0 if forgotten else needed)
    assert case.outcome("p") == ("wait" if forgotten else "preempt")


@BOTH
@pytest.mark.parametrize("actions", [["allocate"], ["allocate", "consolidation", "reclaim", "preempt"]])
def test_a_gang_whose_first_member_has_no_pods_places_nothing(rules: str, actions: list[str]) -> None:
    """``x`` needs one of its two members, of which ``a`` comes first by name and has nobody."""
    waits = ask("p", "b", sub_groups=[
        {"name": "x", "min_sub_group": 1}, {"name": "y"},
        {"name": "a", "parent": "x"}, {"name": "b", "parent": "x", "min_available": 2}, {"name": "c", "parent": "y"},
    ], min_sub_group=1)  # fmt: skip
    waits["tasks"][0]["sub_group"] = "c"
    case = decided(rules, [ROOT, queue("b", "root", gpu=2)], [node("n", gpu=2)], [], waits, actions=actions)
    assert case.placed == {}
    assert "search-cut-short" not in steps(case, "p")
    (step,) = (step for step in case.decisions["p"]["explanation"]["steps"] if step["rule"] == "no-room")
    assert "has no pods left" in step["detail"]


@BOTH
def test_the_second_search_takes_whole_nodes_and_makes_nothing_smaller(rules: str) -> None:
    """A limit of 2 is passed by 5 GPUs on three nodes: two jobs of 2 would be enough. A rule says so, in both."""
    queues = [queue("d", gpu=5, gpus={"limit": 2}), queue("q", "d", gpu=5)]
    running = [
        workload(f"w{i}", "q", f"n{i}", gpu=gpu, priority=40, created_at=f"2026-01-0{i + 1}T00:00:00Z")
        for i, gpu in enumerate((2, 2, 1))
    ]
    given = queues, [node("n0", gpu=2), node("n1", gpu=2), node("n2", gpu=1)], running, ask("p", "q")
    assert sorted(decided(rules, *given, actions=["preempt"]).evicted) == ["w0-0", "w1-0", "w2-0"]
    assert decided(rules, *given, actions=["preempt"], release="0.13").evicted == []


@pytest.mark.parametrize(("rules", "chance"), [("shipped", True), ("documented", False)])
def test_whether_reclaim_may_take_two_gangs_hangs_on_which_comes_last(rules: str, *, chance: bool) -> None:
    """``q1`` may keep 2 of its 8: the gang of 6 and then that of 2 leaves it 2 before the last, the other way 6."""
    running = [
        workload("own", "q0", "n0", "n2", gpu=2), workload("small", "q1", "n1", "n0"),
        workload("large", "q1", "n2", "n2", "n1", gpu=2),
    ]  # fmt: skip
    queues = [queue("d", gpu=16), queue("q0", "d", gpu=8), queue("q1", "d", gpu=2, weight=0.5)]
    nodes = [node("n0", gpu=4), node("n1", gpu=4), node("n2", gpu=8)]
    case = decided(rules, queues, nodes, running, ask("p", "q0", pods=2, gpu=4), actions=["reclaim"],
                   allow_consolidating_reclaim=False)  # fmt: skip
    assert ("chance" in case.answer["plan"]) == chance


def test_a_pod_that_is_recorded_twice_lets_every_prefix_through() -> None:
    """No node could hold the four GPUs, whoever goes."""
    overlay = open_overlay(
        {
            "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z", "asks": [ask("p", "b", gpu=4)],
            "configuration": {"queues": [ROOT, queue("a", "root"), queue("b", "root")]},
            "state": {"nodes": [node("n", gpu=2)], "workloads": [workload("w", "a", "n", "n")]},
        }
    )  # fmt: skip
    order = VictimOrder(overlay, Standing(QueueOrder(overlay).frozen()), {})
    for chunks, passes in (([[0], [1]], False), ([[0, 1], [1]], True)):
        recorded = [Group(0, tasks) for tasks in chunks]
        assert Prefix(overlay, overlay.jobs.of_ask[0], [2], recorded, order).enough() == passes


@BOTH
def test_reclaim_places_nobody_in_free_room_where_nobody_is_left_to_take_from(rules: str) -> None:
    """One of four GPUs is free; ``b`` is within what it deserves, or ``c`` holds what it does not deserve."""
    queues = [queue("d", gpu=8), queue("a", "d", gpu=2), queue("b", "d", gpu=4), queue("c", "d", gpu=0)]
    within, over = workload("w", "b", "n", "n", "n"), workload("w", "c", "n", "n", "n")
    alone = decided(rules, queues, [node("n")], [within], ask("p", "a"), actions=["reclaim"])
    assert (alone.placed, "no-victims" in steps(alone, "p")) == ({}, True)
    beside = decided(rules, queues, [node("n")], [over], ask("p", "a"), actions=["reclaim"])
    assert beside.placed.get("p-0") == "n"


@pytest.mark.parametrize(("rules", "evicted"), [("shipped", 2), ("documented", 0)])
def test_pods_that_go_already_count_as_running_for_a_protected_gang(rules: str, evicted: int) -> None:
    """It needs 2 of 4 pods, of which two are being released."""
    elastic: Json = workload("w", "a", "n", "n", "m", "m", min_available=2, started_at="2027-01-15T07:59:00Z")
    for task in elastic["tasks"][2:]:
        task["state"] = "releasing"
    queues = [ROOT, queue("a", "root", gpu=0), queue("b", "root", gpu=2)]
    case = decided(rules, queues, [node("n", gpu=2), node("m", gpu=2, schedulable=False)], [elastic], ask("p", "b"),
                   actions=["reclaim"], default_reclaim_min_runtime="1h")  # fmt: skip
    assert len(case.evicted) == evicted
    assert ("reclaim-min-runtime-gang" in steps(case, "p")) == (not evicted)


@BOTH
@pytest.mark.parametrize("pods", [1, 2])
@pytest.mark.parametrize("release", ["0.13", "0.17"])
def test_a_job_of_which_nothing_is_left_is_down_for_the_pods_that_went(rules: str, release: str, pods: int) -> None:
    """``p`` takes a GPU of v's node, whose waiting pods could have those of w: b deserves all, c nothing. But v was
    looked up while its pods had just lost their places, be it that one of two could have come back."""
    growing = ask("v", "b", pods, workload="v")
    for i, task in enumerate(growing["tasks"]):
        task["name"] = f"v-{pods + i}"
    queues = [ROOT, queue("b", "root", gpu=4), queue("c", "root")]
    running = [workload("v", "b", *["n"] * pods), workload("w", "c", *["m"] * pods)]
    case = decided(rules, queues, [node("n", gpu=pods), node("m", gpu=pods)], running, ask("p", "b", priority=100),
                   growing, actions=["preempt", "reclaim"], release=release)  # fmt: skip
    gone, come = [f"v-{i}" for i in range(pods)], {f"v-{pods + i}" for i in range(pods)}
    shipped = rules == "shipped"
    assert ("down-for-gone" in steps(case, "v")) == shipped
    assert sorted(case.evicted) == (gone if shipped else [*gone, *(f"w-{i}" for i in range(pods))])
    assert case.placed.keys() == {"p-0"} | (set() if shipped else come)
