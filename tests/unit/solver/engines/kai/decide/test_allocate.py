"""The allocate action: who goes first, where pods go, gangs and growth."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

ROOT = queue("root", gpu="unlimited")
ONE = [ROOT, queue("a", "root", gpu=8)]
TWO = [ROOT, queue("a", "root", gpu=4), queue("b", "root", gpu=4)]


def test_what_fits_starts_now() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 2))
    decision = case.decisions["p"]
    assert decision["outcome"] == "admit"
    assert decision["node"] == "n"
    assert decision["placements"] == {"p-0": "n", "p-1": "n"}
    assert decision["starts"] == ["p"]
    assert decision["conditions"][0]["reason"] == "Allocated"


def test_pods_pack_onto_the_fullest_node_by_gpus_then_by_name() -> None:
    nodes = [node("n3"), node("n2"), node("n1")]
    case = Case(ONE, nodes, [workload("w", "a", "n2")], ask("p", "a", gpu=1), ask("q", "a", gpu=4))
    assert case.placed == {"p-0": "n2", "q-0": "n1"}


def test_pods_without_gpu_stay_off_gpu_nodes() -> None:
    case = Case(ONE, [node("a", gpu=1), node("b", gpu=0)], [], ask("p", "a", gpu=0))
    assert case.placed == {"p-0": "b"}


def test_a_node_whose_gpus_others_hold_is_one_with_gpus() -> None:
    nodes = [node("a", gpu=1, occupied={"gpu": 1}), node("b", gpu=0)]
    case = Case(ONE, nodes, [], ask("p", "a", gpu=0))
    assert case.placed == {"p-0": "b"}


@pytest.mark.parametrize(
    ("gpus", "held_by", "before", "now"),
    [(1, "others", {}, {}), (0, "others", {}, {"p-0": "n"}), (1, "pods", {}, {}), (0, "pods", {}, {"p-0": "n"})],
)
def test_a_node_of_which_is_held_more_than_it_has_takes_nobody(
    gpus: int, held_by: str, before: dict[str, str], now: dict[str, str]
) -> None:
    """A pod without GPU neither, where it is GPUs; but since 0.17 what a node has nothing of is not counted there."""
    others = held_by == "others"
    full = [node("n", gpu=gpus) | ({"occupied": {"gpu": 2}} if others else {})]
    running = [] if others else [workload("w", "a", "n", gpu=2)]
    for release, placed in (("0.13", before), ("0.17", now)):
        pending = ask("p", "a", gpu=0)
        assert Case(ONE, full, running, pending, actions=["allocate"], release=release).placed == placed


@pytest.mark.parametrize("release", ["0.13", "0.17"])
def test_what_a_node_has_nothing_of_is_free_of_nobody_who_leaves(release: str) -> None:
    """The CPU that the victim leaves there is; in 0.13 its GPU too was held, so that less than none is left before."""
    queues, where = [queue("a", gpu="unlimited")], [node("n", gpu=0, cpu=4)]
    for gpu, cpu, placed in ((1, 1, {}), (0, 4, {"p-0": "n"})):
        running, pending = [workload("w", "a", "n")], ask("p", "a", gpu=gpu, cpu=cpu, priority=90)
        case = Case(queues, where, running, pending, actions=["preempt"], release=release)
        assert (case.placed, case.evicted) == (placed, ["w-0"] if placed else [])


@pytest.mark.parametrize(("release", "placed"), [("0.13", {"p-0": "n"}), ("0.17", {})])
def test_a_node_that_is_overfull_of_something_else_takes_who_does_not_ask_for_it_until_0_17(
    release: str, placed: dict[str, str]
) -> None:
    full = [node("n", capacity={"x/nic": 1}, occupied={"x/nic": 2})]
    assert Case(ONE, full, [], ask("p", "a"), release=release).placed == placed
    pending = ask("p", "a")
    pending["tasks"][0]["requests"]["x/nic"] = 1
    assert not Case(ONE, full, [], pending, release=release).placed


@pytest.mark.parametrize(
    ("capacity", "held", "old"),
    [({}, 0, False), ({"x/nic": 1}, 0, True), ({"x/nic": 1}, 1, False), ({"x/nic": 2}, 1, True)],
)
def test_until_0_17_of_what_is_named_with_0_some_must_be_left(
    capacity: dict[str, int], held: int, *, old: bool
) -> None:
    running, pending = workload("w", "a", "n"), ask("p", "a")
    if held:
        running["tasks"][0]["requests"]["x/nic"] = held
    pending["tasks"][0]["requests"]["x/nic"] = 0
    for release, placed in (("0.13", old), ("0.17", True)):
        nodes = [node("n", capacity=capacity)]
        assert bool(Case(ONE, nodes, [running], pending, actions=["allocate"], release=release).placed) == placed
        assert Case(ONE, nodes, [running], ask("p", "a"), actions=["allocate"], release=release).placed


def test_in_0_13_a_job_that_names_more_is_no_easier() -> None:
    """Nobody has room for the first; the other is smaller, but names what the first does not, or the other way."""
    for named, easier in (("second", False), ("first", True)):
        first, second = ask("p", "a", gpu=3), ask("q", "a", gpu=2)
        for pending, name in ((first, "first"), (second, "second")):
            if name == named:
                pending["tasks"][0]["requests"]["x/nic"] = 0
        nodes, running = [node("n", gpu=2, capacity={"x/nic": 1})], [workload("w", "a", "n", gpu=2, priority=40)]
        case = Case([queue("a", gpu=8)], nodes, running, first, second, actions=["preempt"], release="0.13",
                    use_scheduling_signatures=True)  # fmt: skip
        assert bool(case.placed) == easier


def test_pods_without_gpu_pack_by_cpu() -> None:
    nodes = [node("a", gpu=0), node("b", gpu=0), node("c", gpu=0)]
    case = Case(ONE, nodes, [workload("w", "a", "b", gpu=0, cpu=4)], ask("p", "a", gpu=0))
    assert case.placed == {"p-0": "b"}


def test_a_gang_with_one_pod_too_many_stays_out_whole() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 5))
    assert case.outcome("p") == "wait"
    assert not case.placed
    assert case.reason("p") == "NoVictims"
    only = Case(ONE, [node("n")], [], ask("p", "a", 5), actions=["allocate"])
    assert only.reason("p") == "NoRoom"


def test_a_job_grows_pod_by_pod_above_its_gang() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 6, min_available=2))
    assert set(case.placed) == {"p-0", "p-1", "p-2", "p-3"}
    assert case.decisions["p"]["starts"] == ["p"]


def test_growth_comes_after_other_gangs() -> None:
    case = Case(ONE, [node("n")], [], ask("p", "a", 4, min_available=1), ask("q", "a", 2))
    assert set(case.placed) == {"p-0", "p-1", "q-0", "q-1"}


def test_higher_priority_then_older_goes_first() -> None:
    asks = [
        ask("late", "a", 2, created_at="2027-01-14T02:00:00Z"),
        ask("early", "a", 2, created_at="2027-01-14T01:00:00Z"),
        ask("high", "a", 2, created_at="2027-01-14T03:00:00Z", priority=60),
    ]
    case = Case(ONE, [node("n")], [], *asks)
    assert [case.outcome(name) for name in ("high", "early", "late")] == ["admit", "admit", "wait"]
    assert case.answer["order"] == ["high", "early", "late"]


def test_the_queue_with_the_smaller_share_goes_first() -> None:
    case = Case(TWO, [node("n")], [workload("w", "a", "n", "n")], ask("p", "a", 2), ask("q", "b", 2))
    assert case.answer["order"] == ["q", "p"]
    assert [case.outcome("p"), case.outcome("q")] == ["wait", "admit"]


def test_what_is_being_released_is_promised_but_not_started() -> None:
    leaving = workload("w", "a", "n", "n", "n")
    for task in leaving["tasks"]:
        task["state"] = "releasing"
    case = Case(ONE, [node("n")], [leaving], ask("p", "a", 3), explain="summary")
    decision = case.decisions["p"]
    assert decision["outcome"] == "wait"
    assert case.waiting == {"p-0", "p-1", "p-2"}
    assert "starts" not in decision
    assert decision["conditions"][0]["reason"] == "Pipelined"
    assert decision["explanation"]["blocker"] == "3 of 3 pods have a place that is still being released"


def test_a_gang_that_must_wait_for_one_pod_waits_whole() -> None:
    leaving = workload("w", "a", "n")
    leaving["tasks"][0]["state"] = "releasing"
    case = Case(ONE, [node("n")], [leaving], ask("p", "a", 4))
    assert case.waiting == set(case.placed) == {"p-0", "p-1", "p-2", "p-3"}


def test_a_growing_workload_keeps_its_start() -> None:
    more = ask("w", "a", 1, workload="w", min_available=1) | {"tasks": [{"name": "w-more", "requests": {"gpu": 1}}]}
    case = Case(ONE, [node("n")], [workload("w", "a", "n")], more)
    assert case.placed == {"w-more": "n"}
    assert case.outcome("w") == "admit"
    assert "starts" not in case.decisions["w"]


def test_two_asks_for_one_workload_grow_it_together() -> None:
    first = ask("x", "a", workload="w")
    second = ask("y", "a", workload="w")
    case = Case(ONE, [node("n")], [workload("w", "a", "n", min_available=1)], first, second)
    assert case.placed == {"x-0": "n", "y-0": "n"}
    assert case.decisions["x"]["placements"] == {"x-0": "n"}
    assert case.decisions["y"]["placements"] == {"y-0": "n"}


def test_limits_bind() -> None:
    queues = [ROOT, queue("a", "root", gpu=8, gpus={"limit": 3})]
    case = Case(queues, [node("n")], [], ask("p", "a", 3), ask("q", "a", 1), ask("r", "a", 4))
    assert [case.outcome(name) for name in "pqr"] == ["admit", "wait", "infeasible"]
    assert case.reason("q") == "OverLimit"
    assert case.reason("r") == "OverLimit"


def test_jobs_that_are_not_preemptible_stay_within_the_deserved_quota() -> None:
    fixed = ask("p", "a", 2, preemptible=False)
    case = Case([ROOT, queue("a", "root", gpu=1)], [node("n")], [], fixed)
    assert case.outcome("p") == "infeasible"
    assert case.reason("p") == "NonPreemptibleOverQuota"
    held = workload("w", "a", "n", preemptible=False)
    case = Case([ROOT, queue("a", "root", gpu=2)], [node("n")], [held], fixed)
    assert case.outcome("p") == "wait"
    assert case.reason("p") == "NonPreemptibleOverQuota"


def test_labels_taints_and_names_of_nodes_bind() -> None:
    nodes = [
        node("n0", labels={"zone": "a", "size": "3"}),
        node("n1", labels={"zone": "b", "size": "20"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
        node("n2", schedulable=False),
    ]

    def lands(**task: Any) -> Any:
        return Case(ONE, nodes, [], ask("p", "a", task=task)).placed.get("p-0")

    tolerates = [{"key": "k", "operator": "Equal", "value": "v"}]
    assert lands() == "n0"
    assert lands(node_selector={"zone": "b"}) is None
    assert lands(node_selector={"zone": "b"}, tolerations=tolerates) == "n1"
    assert lands(node_selector={"zone": "b"}, tolerations=[{"operator": "Exists"}]) == "n1"
    assert lands(node_selector={"zone": "b"}, tolerations=[{"key": "k", "operator": "Equal", "value": "x"}]) is None
    assert lands(required_node="n2") is None
    assert lands(required_node="n0") == "n0"

    def matching(key: str, operator: str, *values: str) -> Any:
        expression = {"key": key, "operator": operator, "values": list(values)}
        return lands(node_affinity=[[expression]], tolerations=tolerates)

    assert matching("zone", "In", "b", "c") == "n1"
    assert matching("zone", "NotIn", "b") == "n0"
    assert matching("zone", "DoesNotExist") is None
    assert matching("other", "Exists") is None
    assert matching("size", "Gt", "3") == "n1"
    assert matching("size", "Lt", "4") == "n0"
    assert matching("zone", "Gt", "3") is None
    assert lands(node_affinity=[[]]) is None
    assert lands(node_affinity=[]) == "n0"


@pytest.mark.parametrize("text", ["1_0", " 10", "１０", "1e1", "10 "])
def test_labels_that_only_look_like_numbers_have_no_order(text: str) -> None:
    """Kubernetes compares what Go parses: ASCII digits with a sign, nothing else."""
    larger: Json = {"task": {"node_affinity": [[{"key": "size", "operator": "Gt", "values": ["3"]}]]}}
    case = Case(ONE, [node("n", labels={"size": text})], [], ask("p", "a", **larger))
    assert (case.outcome("p"), case.reason("p")) == ("infeasible", "NoNodeAllowed")


def test_constraints_that_kubernetes_refuses_are_refused() -> None:
    task: Json = {
        "node_affinity": [[{"key": "size", "operator": "Lt", "values": ["1_0"]}]],
        "tolerations": [{"operator": "Equal", "value": "v"}],
    }
    with pytest.raises(InvalidInput) as refused:
        Case(ONE, [node("n")], [], ask("p", "a", task=task))
    assert [p.pointer for p in refused.value.problems] == [
        "/asks/0/tasks/0/tolerations/0/operator", "/asks/0/tasks/0/node_affinity/0/0/values"
    ]  # fmt: skip


def test_only_feasible_nodes_of_an_ask_are_open() -> None:
    case = Case(ONE, [node("n0"), node("n1")], [], ask("p", "a", feasible_nodes=["n1"]))
    assert case.placed == {"p-0": "n1"}


def test_other_resources_and_occupied_parts_bind_on_nodes() -> None:
    nodes = [node("n0", capacity={"x/fpga": 1}), node("n1", occupied={"cpu": 16})]
    case = Case(ONE, nodes, [], ask("p", "a", 2, task={"requests": {"x/fpga": 1, "cpu": 1}}))
    assert case.outcome("p") == "wait"
    case = Case(ONE, nodes, [], ask("p", "a", 1, task={"requests": {"x/fpga": 1, "cpu": 1}}))
    assert case.placed == {"p-0": "n0"}


def test_pods_are_counted_where_nodes_name_them() -> None:
    case = Case(ONE, [node("n", capacity={"pods": 2})], [workload("w", "a", "n")], ask("p", "a"), ask("q", "a"))
    assert sorted([case.outcome("p"), case.outcome("q")]) == ["admit", "wait"]


def test_a_node_that_names_no_pods_takes_any_number_of_them() -> None:
    """One node that counts pods says nothing about the others."""
    nodes = [node("full", capacity={"pods": 1}), node("n")]
    held = workload("w", "a", "full", gpu=0)
    case = Case(ONE, nodes, [held], ask("p", "a", 3, gpu=1))
    assert case.placed == {"p-0": "n", "p-1": "n", "p-2": "n"}
    counted = [node("full", capacity={"pods": 1})]
    case = Case(ONE, counted, [held], ask("p", "a", gpu=1, preemptible=False), actions=["allocate"])
    assert case.outcome("p") == "wait"


def test_pods_that_others_occupy_count_where_some_node_counts_pods() -> None:
    assert Case(ONE, [node("n", occupied={"pods": 3})], [], ask("p", "a")).placed == {"p-0": "n"}
    counted = [node("n", capacity={"pods": 3}, occupied={"pods": 3})]
    assert not Case(ONE, counted, [], ask("p", "a")).placed


def test_a_node_that_names_no_pods_keeps_its_own_capacity() -> None:
    nodes = [node("small", gpu=1, capacity={"pods": 9}), node("large", gpu=8, cpu=32), node("none", gpu=0)]
    case = Case(ONE, nodes, [], ask("p", "a", gpu=8, cpu=32), ask("q", "a", 2, gpu=1, priority=40))
    assert (case.placed, case.outcome("q")) == ({"p-0": "large"}, "wait")


def test_a_pod_is_one_pod_whatever_it_asks_for() -> None:
    task: Json = {"requests": {"cpu": 1, "gpu": 1, "pods": 3}}
    case = Case(ONE, [node("n", capacity={"pods": 2})], [], ask("p", "a", 2, task=task))
    assert case.outcome("p") == "admit"
    case = Case(ONE, [node("n")], [], ask("p", "a", 2, task=task))
    assert case.outcome("p") == "admit"


def test_shares_of_a_gpu_join_a_shared_device_first() -> None:
    nodes = [node("n0", gpu=2), node("n1", gpu=2)]
    held = workload("w", "a", "n1", gpu="500m")
    case = Case(ONE, nodes, [held], ask("p", "a", gpu="500m"), ask("q", "a", gpu=2), ask("r", "a", gpu=1))
    assert case.placed == {"p-0": "n1", "q-0": "n0", "r-0": "n1"}


def test_two_shares_that_exceed_one_device_take_two() -> None:
    case = Case(ONE, [node("n", gpu=1)], [], ask("p", "a", gpu="600m"), ask("q", "a", gpu="600m"))
    assert sorted([case.outcome("p"), case.outcome("q")]) == ["admit", "wait"]
    case = Case(ONE, [node("n", gpu=2)], [], ask("p", "a", gpu="600m"), ask("q", "a", gpu="600m"))
    assert [case.outcome("p"), case.outcome("q")] == ["admit", "admit"]


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ({"nvidia.com/mig-1g.5gb": 1}, "MIG"),
        ({"gpu-memory": "2Gi"}, "GPU memory"),
        ({"gpu": "1500m"}, "whole GPUs, or a share of one"),
    ],
)
def test_what_kai_cannot_place_here_is_refused(requests: dict[str, Any], words: str) -> None:
    for workloads, asks in (
        ([], [ask("p", "a", task={"requests": requests})]),
        ([workload("w", "a", "n") | {"tasks": [{"name": "t", "node": "n", "requests": requests}]}], [ask("p", "a")]),
    ):
        with pytest.raises(InvalidInput) as refused:
            Case(ONE, [node("n")], workloads, *asks)
        (problem,) = refused.value.problems
        assert words in problem.detail
        assert problem.pointer.endswith(f"/tasks/0/requests/{next(iter(requests)).replace('/', '~1')}")


def test_running_pods_have_a_node_and_a_task_is_one_pod() -> None:
    lost = workload("w", "a", "n")
    del lost["tasks"][0]["node"]
    with pytest.raises(InvalidInput) as refused:
        Case(ONE, [node("n")], [lost], ask("p", "a", task={"count": 2}))
    assert [p.pointer for p in refused.value.problems] == ["/asks/0/tasks/0/count", "/state/workloads/0/tasks/0/node"]


def test_how_little_cpu_is_free_speaks_for_a_node_that_has_any() -> None:
    """A pod that asks for nothing: m is alone in having CPU, so that it is the fullest of those in question (9)."""
    nodes = [node("a", gpu=0, cpu=0), node("m", gpu=0, cpu=4)]
    nothing = ask("p", "a", gpu=0, cpu=0)
    case = Case([queue("a", gpu=4)], nodes, [], nothing)
    assert case.placed == {"p-0": "m"}
    assert Case([queue("a", gpu=4)], [nodes[0], node("m", gpu=0, cpu=0)], [], nothing).placed == {"p-0": "a"}


def test_in_0_13_pods_below_a_sub_group_are_placed_before_those_beside_it() -> None:
    """Which of them come next is told by name, a first."""
    gang = ask("p", "a", 2, sub_groups=[{"name": "a"}, {"name": "z", "parent": "s"}, {"name": "s"}])
    for task, member in zip(gang["tasks"], "az", strict=True):
        task["sub_group"] = member
    case = Case(ONE, [node("m", gpu=1), node("n", gpu=1)], [], gang, actions=["allocate"], release="0.13")
    assert case.placed == {"p-1": "m", "p-0": "n"}


def test_a_member_that_waits_holds_back_nobody_who_started_before() -> None:
    """Member a is enough for the gang and starts; of b, which comes next, one pod has to wait, so that both do."""
    leaving = workload("w", "a", "n")
    leaving["tasks"][0]["state"] = "releasing"
    gang = ask("p", "a", 3, sub_groups=[{"name": "a", "min_available": 1}, {"name": "b", "min_available": 2}],
               min_sub_group=1)  # fmt: skip
    for task, member in zip(gang["tasks"], "abb", strict=True):
        task["sub_group"] = member
    case = Case(ONE, [node("n", gpu=3)], [leaving], gang, actions=["allocate"], release="0.17")
    assert case.placed == {"p-0": "n", "p-1": "n", "p-2": "n"}
    assert case.waiting == {"p-1", "p-2"}
    assert case.decisions["p"]["starts"] == ["p"]
