"""Fair sharing, rule by rule. Shares are in thousandths of what the cohort can lend: 9 cpu unless said otherwise."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.solver.engines.kueue import fair_preemption as fair_search
from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, one, queue, runs, victims

RECLAIM = {"reclaim_within_cohort": "Any"}
LOWER = {"within_cluster_queue": "LowerPriority"}
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


def ask(queue_name: str, cpu: float, priority: int = 0, **more: Any) -> dict[str, Any]:
    return asks("ask", queue_name, cpu, priority, flavors={"cpu": "default"}, **more)


def fair(*queues: dict[str, Any], strategies: list[str] | None = None) -> dict[str, Any]:
    of = configuration(*queues, fair=True)
    if strategies is not None:
        of["settings"]["kueue"]["preemption_strategies"] = strategies
    return of


def trio(strategies: list[str] | None = None, **more: Any) -> dict[str, Any]:
    """Three queues of 3 cpu each below "all"."""
    return fair(
        queue("all"), queue("a", 3, "all", preemption=RECLAIM, **more), queue("b", 3, "all"), queue("c", 3, "all"),
        strategies=strategies,
    )  # fmt: skip


def units(queue_name: str, number: int, cpu: float = 1, priority: int = 0) -> list[dict[str, Any]]:
    """Workloads of ``cpu`` each; the last started last."""
    return [
        runs(f"{queue_name}{i}", queue_name, cpu, priority, started_at=at(f"10:{i:02}")) for i in range(1, number + 1)
    ]


def reasons(decision: dict[str, Any]) -> list[str]:
    return [v["reason"] for v in decision["victims"]]


def test_within_nominal_quota_it_is_reclaimed_whatever_the_shares() -> None:
    found = one(trio(), [*units("b", 6), *units("c", 3)], ask("a", 3))
    assert victims(found) == ["b6", "b5", "b4"]
    assert set(reasons(found)) == {"InCohortReclamation"}


def test_final_share_lets_the_ask_come_up_to_the_target() -> None:
    """a would borrow 1 (111), b borrows 2 (222) and keeps 111."""
    found = one(trio([FINAL]), [*units("a", 3), *units("b", 5), *units("c", 1)], ask("a", 1))
    assert (victims(found), reasons(found)) == (["b5"], ["InCohortFairSharing"])


def test_final_share_prefers_what_leaves_the_target_high_enough() -> None:
    """b borrows 3 (333). Without its 3 cpu it would be at 0, without its 2 cpu at 111: as high as a with the ask."""
    running = [*units("a", 3), runs("big", "b", 3, started_at=at("10:50")), units("b", 1)[0]]
    running.append(runs("small", "b", 2, started_at=at("10:30")))
    assert victims(one(trio([FINAL]), running, ask("a", 1))) == ["small"]
    assert victims(one(trio([INITIAL]), running, ask("a", 1))) == ["big"]


def test_initial_share_must_be_strictly_higher() -> None:
    """a would borrow 2 (222), as b does; and where b borrows 3, it is as low as that after one of 1 cpu."""
    running = [*units("a", 3), *units("b", 5), *units("c", 1)]
    assert one(trio([INITIAL]), running, ask("a", 2))["outcome"] == "wait"
    assert one(trio([INITIAL]), [*units("a", 3), *units("b", 6)], ask("a", 2))["outcome"] == "wait"
    assert victims(one(trio([INITIAL]), [*units("a", 3), *units("b", 3, 2)], ask("a", 2))) == ["b3"]


def test_the_second_strategy_takes_what_the_first_left() -> None:
    """a would be at 222, b is at 333: b's only workload leaves it with nothing, which FINAL alone refuses."""
    running = [*units("a", 3), runs("b", "b", 6)]
    assert one(trio([FINAL]), running, ask("a", 2))["outcome"] == "wait"
    found = one(trio([FINAL, INITIAL]), running, ask("a", 2))
    assert (victims(found), reasons(found)) == (["b"], ["InCohortFairSharing"])
    assert one(trio(), running, ask("a", 2))["victims"] == found["victims"]


def test_a_queue_has_one_try_in_the_second_round() -> None:
    """Only b's first candidate is tried, and its 1 cpu is not enough."""
    running = [*units("a", 3), runs("b1", "b", 5), runs("b2", "b", 1, started_at=at("10:30"))]
    of = trio([FINAL, INITIAL])
    found = one(of, running, ask("a", 2), explain="full")
    assert found["outcome"] == "wait"
    assert {c["workload"]: c["rule"] for c in found["explanation"]["candidates"] if c["queue"] == "b"} == {
        "b1": "share-too-low",
        "b2": "not-enough",
    }


def test_the_queue_with_the_highest_share_gives_first() -> None:
    """b is at 333 and c at 111; both lend their newest, b until it is no higher than c would be."""
    of = fair(
        queue("all"), queue("a", 6, "all", preemption=RECLAIM), queue("b", 3, "all"), queue("c", 0, "all"),
    )  # fmt: skip
    running = [*units("b", 6), *units("c", 1), *units("a", 2)]
    assert victims(one(of, running, ask("a", 2))) == ["b6", "b5"]
    assert victims(one(of, running, ask("a", 4))) == ["b6", "b5", "b4", "c1"]


def test_equal_shares_go_by_the_candidates() -> None:
    of = fair(
        queue("all"), queue("a", 2, "all", preemption=RECLAIM), queue("b", 1, "all"), queue("c", 1, "all"),
    )  # fmt: skip
    running = [*units("b", 2, priority=1), *units("c", 2)]
    assert victims(one(of, running, ask("a", 1))) == ["c2"]


def test_the_own_queue_competes_by_its_share_with_the_ask() -> None:
    """a is at 555 with the ask, b at 222: a's own lower priority goes first."""
    of = fair(
        queue("all"), queue("a", 3, "all", preemption=RECLAIM | LOWER), queue("b", 3, "all"), queue("c", 3, "all"),
    )  # fmt: skip
    found = one(of, [*units("a", 4), *units("b", 5)], ask("a", 4, 5))
    assert reasons(found) == ["InClusterQueue"] * 4


def test_a_queue_without_a_cohort_takes_its_own() -> None:
    of = fair(queue("q", 3, preemption=LOWER))
    found = one(of, units("q", 3), ask("q", 2, 1))
    assert (victims(found), reasons(found)) == (["q3", "q2"], ["InClusterQueue"] * 2)


@pytest.mark.parametrize(("weight", "outcome"), [(1, "preempt"), (2, "wait"), (0, "preempt")])
def test_shares_are_divided_by_weight(weight: float, outcome: str) -> None:
    """b borrows 2: at weight 1 it keeps 111 against the ask's 111, at weight 2 it has 111 and keeps 55, at weight 0
    it is above everybody while it borrows."""
    of = trio([FINAL])
    of["queues"][2]["weight"] = weight
    found = one(of, [*units("a", 3), *units("b", 5), *units("c", 1)], ask("a", 1))
    assert found["outcome"] == outcome


def test_a_borrower_of_weight_zero_takes_only_from_its_like() -> None:
    of = trio([FINAL, INITIAL])
    of["queues"][1]["weight"] = 0
    running = [*units("a", 3), *units("b", 6)]
    assert one(of, running, ask("a", 1))["outcome"] == "wait"
    of["queues"][2]["weight"] = 0
    assert one(of, running, ask("a", 1))["outcome"] == "preempt"


def test_shares_are_compared_below_the_lowest_common_cohort() -> None:
    """q would borrow 1 of its team, and the team 1 of the root, which lends 6: 166. Queue r borrows 5 alone: 833."""
    of = fair(
        queue("root"), queue("team", 0, "root"), queue("q", 0, "team", preemption=RECLAIM), queue("r", 0, "root"),
        queue("idle", 6, "root"), strategies=[FINAL],
    )  # fmt: skip
    found = one(of, [runs("r1", "r", 3), runs("r2", "r", 3)], ask("q", 1), explain="full")
    assert victims(found) == ["r1"]
    (taken,) = [c for c in found["explanation"]["candidates"] if c["verdict"] == "victim"]
    numbers = taken["numbers"]
    assert (numbers["common_ancestor"], numbers["ask_side"], numbers["queue_side"]) == ("root", "team", "r")
    assert [round(numbers[k]) for k in ("ask_share", "share_before", "share_after")] == [167, 1000, 500]


def test_on_equal_shares_a_cohort_goes_before_a_queue() -> None:
    """Below the root, team borrows as much as r does; its queue t is asked first although its workload is older."""
    of = fair(
        queue("root", 2), queue("q", 2, "root", preemption=RECLAIM), queue("team", 0, "root"), queue("t", 0, "team"),
        queue("r", 0, "root"),
    )  # fmt: skip
    running = [runs("t1", "t", 2, started_at=at("09:00")), runs("r1", "r", 2, started_at=at("11:00"))]
    assert victims(one(of, running, ask("q", 1))) == ["t1"]


def test_the_largest_resource_counts() -> None:
    """b borrows 1 of 9 cpu (111) and 6 of 12 gpu (500)."""
    groups = {
        "resource_groups": [
            {
                "resources": ["cpu", "gpu"],
                "flavors": [{"name": "f", "quota": {"cpu": {"guaranteed": 3}, "gpu": {"guaranteed": 4}}}],
            }
        ]
    }
    names = ("a", "b", "c")
    queues = [queue(n, parent="all", preemption=RECLAIM) | groups for n in names]
    of = fair(queue("all"), *queues) | {"flavors": [{"name": "f"}]}

    def both(name: str, cpu: int, gpu: int) -> dict[str, Any]:
        pins = {"cpu": "f", "gpu": "f"}
        return {"tasks": [{"name": "main", "requests": {"cpu": cpu, "gpu": gpu}, "flavors": pins}]}

    running = [runs("b", "b", 0) | both("b", 4, 10), runs("a", "a", 0) | both("a", 3, 2)]
    found = one(of, running, ask("a", 0) | both("a", 3, 1), explain="full")
    assert victims(found) == ["b"]
    (taken,) = [c for c in found["explanation"]["candidates"] if c["verdict"] == "victim"]
    assert round(taken["numbers"]["share_before"]) == 500
    assert round(taken["numbers"]["ask_share"]) == 333


def test_by_initial_share_it_can_go_round() -> None:
    """The round that docs/engines/kueue.md works out: nothing but Kueue's rules, and no end."""
    of = fair(queue("c"), queue("a", 2, "c", preemption=RECLAIM, weight=4), queue("b", 2, "c", preemption=RECLAIM))
    small, big = runs("small", "b", 1, 0), runs("big", "b", 3, 1)
    first = one(of, [small, big], ask("a", 4))
    assert (victims(first), set(reasons(first))) == (["small", "big"], {"InCohortFairSharing"})
    taken = runs("ask", "a", 4)
    second = one(of, [taken], asks("small", "b", 1, flavors={"cpu": "default"}))
    assert (victims(second), reasons(second)) == (["ask"], ["InCohortReclamation"])
    assert one(of, [small], asks("big", "b", 3, 1, flavors={"cpu": "default"}))["outcome"] == "admit"
    of["settings"]["kueue"]["preemption_strategies"] = [FINAL]
    assert one(of, [small, big], ask("a", 4))["outcome"] == "wait"


def test_with_two_resources_it_can_go_round_by_final_share_too() -> None:
    """b's share is its cpu, which nobody contests, so that its gpu can be taken to below its nominal quota."""

    def pair(name: str, cpu: int, gpu: int) -> dict[str, Any]:
        quota = {"cpu": {"guaranteed": cpu}, "gpu": {"guaranteed": gpu}}
        return queue(name, parent="c", preemption=RECLAIM) | {"quota": quota}

    def gpu(name: str, queue_name: str, amount: int) -> dict[str, Any]:
        task = {"name": "main", "requests": {"gpu": amount}, "flavors": {"gpu": "default"}}
        return runs(name, queue_name, 0) | {"tasks": [task]}

    def pending(work: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in work.items() if k != "started_at"}

    of = fair(queue("c"), pair("a", 10, 2), pair("b", 0, 2), strategies=[FINAL])
    cpu, first, second, mine = runs("cpu", "b", 8), gpu("g1", "b", 1), gpu("g2", "b", 2), gpu("ask", "a", 4)
    taken = one(of, [cpu, first, second], pending(mine))
    assert (victims(taken), set(reasons(taken))) == (["g1", "g2"], {"InCohortFairSharing"})
    again = one(of, [cpu, mine], pending(first))
    assert (victims(again), reasons(again)) == (["ask"], ["InCohortReclamation"])
    assert one(of, [cpu, first], pending(second))["outcome"] == "admit"


@pytest.mark.parametrize(("first", "second"), [("10:00", "10:30"), ("10:30", "10:00")])
def test_of_queues_that_borrow_alike_the_newest_workload_goes(first: str, second: str) -> None:
    """b and c borrow 4 of 8 each; what started last goes first, whatever its name."""
    of = configuration(
        queue("co", 8), queue("a", 0, "co", preemption={"reclaim_within_cohort": "Any"}), queue("b", 0, "co"),
        queue("c", 0, "co"), fair=True,
    )  # fmt: skip
    running = [runs("1", "b", 4, started_at=at(first)), runs("2", "c", 4, started_at=at(second))]
    found = one(of, running, asks("x", "a", 1, 5, flavors={"cpu": "default"}))
    assert victims(found) == ["1" if first > second else "2"]


def test_on_an_equal_share_goes_what_does_not_lower_it() -> None:
    """Of 4 cpu and 4 gpu a wants 2 cpu, and b has 2 gpu: both a share of 500, b also once its 1 cpu is gone."""

    def both(name: str, cpu: int, gpu: int, parent: str | None = None, **more: Any) -> dict[str, Any]:
        return queue(name, parent=parent, **more) | {"quota": {"cpu": {"guaranteed": cpu}, "gpu": {"guaranteed": gpu}}}

    def holds(name: str, of: str, **requests: int) -> dict[str, Any]:
        task = {"name": "main", "requests": requests, "flavors": dict.fromkeys(requests, "default")}
        return runs(name, of, 0) | {"tasks": [task]}

    of = configuration(
        both("co", 2, 4), both("a", 0, 0, "co", preemption={"reclaim_within_cohort": "Any"}), both("b", 0, 0, "co"),
        both("c", 2, 0, "co"), fair=True,
    )  # fmt: skip
    running = [holds("u", "b", gpu=2), holds("v", "b", cpu=1), holds("own", "c", cpu=2)]
    decision = one(of, running, asks("x", "a", 2))
    assert [(v["workload"], v["reason"]) for v in decision["victims"]] == [("v", "InCohortFairSharing")]


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_queues_with_the_highest_share_the_one_whose_candidate_goes_first(first: str) -> None:
    """A third that borrows less is beside them in the heap."""
    of = fair(
        queue("root"), *(queue(name, 0, "root") for name in "abc"), queue("d", 8, "root", preemption=RECLAIM)
    )  # fmt: skip
    running = [runs(name, name, 3, 0 if name == first else 1) for name in "ab"]
    found = one(of, [*running, runs("c", "c", 2)], asks("want", "d", 3, 2))
    assert victims(found) == [first]


@pytest.mark.parametrize(
    ("found", "least"),
    [
        ([((0, 3),), ((0, 2),)], ((0, 2),)), ([((0, 3),), ((1, 2),)], ()), ([((0, 3), (1, 1)), ((0, 2),)], ((0, 2),)),
        ([((0, 3), (1, 1)), ((0, 4), (1, 0), (2, 9))], ((0, 3), (1, 0))), ([((1, 3),)], ((1, 3),)),
        ([((0, 1), (1, 5)), ((1, 4), (2, 1))], ((1, 4),)),
    ],
)  # fmt: skip
def test_the_least_of_what_all_of_them_use(found: list[Any], least: Any) -> None:
    state = SimpleNamespace(shape=np.arange(len(found)), shapes=SimpleNamespace(amounts=found))
    search: Any = SimpleNamespace(_overlay=SimpleNamespace(state=state))
    assert fair_search._Search._least(search, range(len(found))) == least  # pyright: ignore[reportPrivateUsage]
