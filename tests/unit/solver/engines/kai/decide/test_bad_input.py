"""States and asks that no cluster should send, and what is said of asks that can never run."""

from typing import Any

from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

ROOT = queue("root", gpu="unlimited")
ONE = [ROOT, queue("a", "root", gpu=8), queue("b", "root", gpu=8)]


def test_a_pod_larger_than_any_node_can_never_run() -> None:
    case = Case(ONE, [node("n"), node("m", gpu=2)], [], ask("p", "a", 2, gpu=5, cpu=20), explain="full")
    decision = case.decisions["p"]
    assert decision["outcome"] == "infeasible"
    assert case.reason("p") == "LargerThanAnyNode"
    assert decision["shortages"] == [
        {"resource": "cpu", "requested": 20, "available": 16, "short": 4},
        {"resource": "gpu", "requested": 5, "available": 4, "short": 1},
    ]
    assert decision["explanation"]["headline"].startswith("p can never run")


def test_a_gang_that_fits_no_empty_cluster_but_each_pod_some_node_waits() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 2, gpu=3))
    assert case.outcome("p") == "wait"


def test_no_node_allowed() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", feasible_nodes=[]))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "NoNodeAllowed")
    case = Case(ONE, [], [], ask("p", "a"))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "NoNodes")


def test_a_gang_of_more_pods_than_there_are_can_never_run() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 2, min_available=3))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "GangIncomplete")
    grown = ask("p", "a", 1, min_available=9, workload="w")
    case = Case(ONE, [node("n")], [workload("w", "a", "n", min_available=2)], grown)
    assert case.outcome("p") == "admit"


def test_jobs_of_queues_with_queues_below_are_not_scheduled() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "root"))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "QueueNotALeaf")


def test_an_ask_without_pods_waits_for_nothing() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 0))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "NoPods")


def test_running_pods_that_overfill_a_node_leave_nothing_free_there() -> None:
    crowd = [workload(f"w{i}", "b", "n", gpu=2, preemptible=i > 0) for i in range(4)]
    case = Case(ONE, [node("n"), node("m", gpu=1)], crowd, ask("p", "a"))
    assert case.placed == {"p-0": "m"}
    queues = [ROOT, queue("a", "root", gpu=2), queue("b", "root", gpu=2)]
    case = Case(queues, [node("n")], crowd, ask("p", "a", gpu=2))
    assert len(case.evicted) == 3, "three of the four must go before two GPUs are free"
    assert case.placed == {"p-0": "n"}


def test_a_gang_larger_than_the_pods_that_run_is_taken_whole() -> None:
    queues = [ROOT, queue("a", "root", gpu=4), queue("b", "root")]
    case = Case(queues, [node("n", gpu=2)], [workload("w", "b", "n", "n", min_available=7)], ask("p", "a"))
    assert sorted(case.evicted) == ["w-0", "w-1"]


def test_a_start_in_the_future_is_no_start_to_be_proud_of() -> None:
    """It counts as not yet past any minimum runtime, and as running all the same."""
    queues = [ROOT, queue("a", "root", gpu=4), queue("b", "root")]
    ahead = workload("w", "b", "n", started_at="2030-01-01T00:00:00Z")
    free = Case(queues, [node("n", gpu=1)], [ahead], ask("p", "a"))
    assert free.evicted == ["w-0"]
    kept = Case(queues, [node("n", gpu=1)], [ahead], ask("p", "a"), default_reclaim_min_runtime=1)
    assert kept.outcome("p") == "wait"


def test_extreme_numbers_are_only_numbers() -> None:
    huge: dict[str, Any] = {"cpu": 10**15, "gpu": 10**9}
    case = Case(
        [ROOT, queue("a", "root", gpu=10**12, weight=1e9, gpus={"limit": 10**12})], [node("n")], [],
        ask("p", "a", task={"requests": huge}), ask("q", "a", priority=2**31 - 1), ask("r", "a", priority=-(2**31)),
    )  # fmt: skip
    assert [case.outcome(name) for name in "pqr"] == ["infeasible", "admit", "admit"]


def test_an_empty_cluster_answers() -> None:
    case = Case([queue("a")], [], [])
    assert case.answer["decisions"] == []
    assert case.answer["plan"] == {"evictions": [], "placements": []}


def test_the_explanation_collapses_equal_scenarios() -> None:
    queues = [ROOT, queue("a", "root", gpu=4), queue("b", "root", gpu=9)]
    running = [workload(f"w{i}", "b", "n") for i in range(4)]
    case = Case(queues, [node("n")], running, ask("p", "a", 2), actions=["allocate", "reclaim"], explain="full")
    explanation = case.decisions["p"]["explanation"]
    steps = explanation["steps"]
    assert (steps[0]["rule"], steps[0]["numbers"]["action"]) == ("no-room", "allocate")
    assert case.reason("p") == "WithinAllocatableShare"
    assert explanation["blocker"] == "reclaim: b is within its share: nothing more can be reclaimed from it"
    tried = [s for s in steps if s["rule"] == "within-allocatable-share"]
    assert tried[0]["numbers"]["count"] == 4
    assert tried[0]["numbers"]["queue"] == "b"
    assert "waits: reclaim: b is within its share" in explanation["headline"]


def test_a_resource_that_no_node_has_is_short_however_little_is_asked_for() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", task={"requests": {"cpu": 1, "x/fpga": 1}}))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "LargerThanAnyNode")
    assert case.decisions["p"]["shortages"] == [{"resource": "x/fpga", "requested": 1, "available": 0, "short": 1}]
