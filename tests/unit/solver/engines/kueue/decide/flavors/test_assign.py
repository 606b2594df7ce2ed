"""Flavor assignment, rule by rule."""

from typing import Any

import pytest

from app.solver.engines.kueue.cycle import OUTRUN
from app.solver.model.problems import InvalidInput
from tests.unit.solver.engines.kueue.cluster import asks, configuration, flavors, one, queue, runs, victims

FLAVORS = [{"name": "a"}, {"name": "b"}]
LOWER = {"within_cluster_queue": "LowerPriority"}


def assigned(decision: dict[str, Any]) -> dict[str, str]:
    return decision["assignment"]["main"]


def test_the_first_flavor_that_fits() -> None:
    of = configuration(queue("q", **flavors(a=4, b=4)), flavors=FLAVORS)
    assert assigned(one(of, [], asks("x", "q", 3))) == {"cpu": "a"}
    assert assigned(one(of, [runs("w", "q", 2, flavor="a")], asks("x", "q", 3))) == {"cpu": "b"}


def test_a_flavor_with_a_taint_needs_a_toleration() -> None:
    tainted = [{"name": "a", "node_taints": [{"key": "spot", "effect": "NoSchedule"}]}, {"name": "b"}]
    of = configuration(queue("q", **flavors(a=4, b=4)), flavors=tainted)
    assert assigned(one(of, [], asks("x", "q", 1))) == {"cpu": "b"}
    tolerant = asks("x", "q", 1, tolerations=[{"key": "spot", "operator": "Exists"}])
    assert assigned(one(of, [], tolerant)) == {"cpu": "a"}


def test_a_flavor_that_is_not_declared_is_skipped() -> None:
    of = configuration(queue("q", **flavors(gone=4, b=4)), flavors=FLAVORS)
    assert assigned(one(of, [], asks("x", "q", 1))) == {"cpu": "b"}


def test_preemption_in_the_first_flavor_or_the_next_flavor() -> None:
    """a is full of lower priority. TryNextFlavor (the default) looks at b, which fits; MayStopSearch takes a."""
    running = [runs("w", "q", 4, flavor="a")]
    patient = queue("q", preemption=LOWER, **flavors(a=4, b=4))
    hasty = queue("q", preemption=LOWER, flavor_fungibility={"when_can_preempt": "MayStopSearch"}, **flavors(a=4, b=4))
    decision = one(configuration(patient, flavors=FLAVORS), running, asks("x", "q", 3, priority=1))
    assert (decision["outcome"], assigned(decision)) == ("admit", {"cpu": "b"})
    decision = one(configuration(hasty, flavors=FLAVORS), running, asks("x", "q", 3, priority=1))
    assert (decision["outcome"], assigned(decision), victims(decision)) == ("preempt", {"cpu": "a"}, ["w"])


def test_a_flavor_without_candidates_is_passed_over_even_by_may_stop_search() -> None:
    """Nobody in a has a lower priority, so the simulated preemption finds nobody and the search goes on."""
    hasty = queue("q", preemption=LOWER, flavor_fungibility={"when_can_preempt": "MayStopSearch"}, **flavors(a=4, b=4))
    decision = one(configuration(hasty, flavors=FLAVORS), [runs("w", "q", 4, 1, "a")], asks("x", "q", 3, priority=1))
    assert (decision["outcome"], assigned(decision)) == ("admit", {"cpu": "b"})


@pytest.mark.parametrize(("rule", "flavor"), [("MayStopSearch", "a"), ("TryNextFlavor", "b")])
def test_borrowing_in_the_first_flavor_or_the_next_flavor(rule: str, flavor: str) -> None:
    mine = queue("q", parent="c", flavor_fungibility={"when_can_borrow": rule}, **flavors(a=1, b=4))
    of = configuration(queue("c"), mine, queue("lender", parent="c", **flavors(a=9)), flavors=FLAVORS)
    decision = one(of, [], asks("x", "q", 3))
    assert assigned(decision) == {"cpu": flavor}
    assert decision["borrowing"] is (flavor == "a")


@pytest.mark.parametrize(
    ("preference", "flavor"), [("BorrowingOverPreemption", "a"), ("PreemptionOverBorrowing", "b"), (None, "a")]
)
def test_preference_between_borrowing_and_preemption(preference: str | None, flavor: str) -> None:
    """a can be borrowed; b is the queue's own, full of lower priority."""
    rules = {"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor"}
    rules |= {} if preference is None else {"preference": preference}
    mine = queue("q", parent="c", preemption=LOWER, flavor_fungibility=rules, **flavors(a=0, b=4))
    of = configuration(queue("c"), mine, queue("lender", parent="c", **flavors(a=9)), flavors=FLAVORS)
    decision = one(of, [runs("w", "q", 4, flavor="b")], asks("x", "q", 3, priority=1))
    assert assigned(decision) == {"cpu": flavor}
    assert victims(decision) == ([] if flavor == "a" else ["w"])


def two_groups() -> dict[str, Any]:
    """cpu and memory share a flavor, of a or b; gpu has its own."""
    both = {"cpu": {"guaranteed": 4}, "memory": {"guaranteed": 100}}
    cpu = {"resources": ["cpu", "memory"], "flavors": [{"name": "a", "quota": both}, {"name": "b", "quota": both}]}
    gpu = {"resources": ["gpu"], "flavors": [{"name": "b", "quota": {"gpu": {"guaranteed": 2}}}]}
    return {"name": "q", "resource_groups": [cpu, gpu]}


def test_resources_of_one_group_share_a_flavor_and_groups_are_independent() -> None:
    of = configuration(two_groups(), flavors=FLAVORS)
    full = runs("w", "q", 2, flavor="a")
    wide = {"name": "main", "requests": {"cpu": 3, "memory": 10, "gpu": 1}}
    decision = one(of, [full], asks("x", "q", 0) | {"tasks": [wide]})
    assert assigned(decision) == {"cpu": "b", "gpu": "b", "memory": "b"}
    narrow = {"name": "main", "requests": {"cpu": 2, "memory": 10, "gpu": 1}}
    decision = one(of, [full], asks("x", "q", 0) | {"tasks": [narrow]})
    assert assigned(decision) == {"cpu": "a", "gpu": "b", "memory": "a"}


def test_a_later_pod_set_sees_what_an_earlier_one_was_given() -> None:
    of = configuration(queue("q", **flavors(a=4, b=4)), flavors=FLAVORS)
    tasks = [{"name": name, "requests": {"cpu": 3}} for name in ("first", "second")]
    decision = one(of, [], asks("x", "q", 0) | {"tasks": tasks})
    assert decision["assignment"] == {"first": {"cpu": "a"}, "second": {"cpu": "b"}}
    tasks.append({"name": "third", "requests": {"cpu": 3}})
    assert one(of, [], asks("x", "q", 0) | {"tasks": tasks})["outcome"] == "wait"


def test_pods_count_without_being_asked_for() -> None:
    of = configuration({"name": "q", "quota": {"cpu": {"guaranteed": 100}, "pods": {"guaranteed": 5}}})
    decision = one(of, [], asks("x", "q", 1, count=5))
    assert assigned(decision) == {"cpu": "default", "pods": "default"}
    assert one(of, [], asks("x", "q", 1, count=6))["outcome"] == "infeasible"
    assert one(of, [runs("w", "q", 1)], asks("x", "q", 1, count=5))["outcome"] == "wait"


@pytest.mark.parametrize("mode", ["cycle", "independent"])
def test_the_search_for_victims_does_not_count_pods_and_the_fit_does(mode: str) -> None:
    """Of 4 cpu and 4 pods v and w use 2 cpu and a pod each. 3 pods of 1 cpu take both; for 4 pods of half a cpu one
    victim frees enough cpu and too few pods."""
    of = configuration({
        "name": "q", "quota": {"cpu": {"guaranteed": 4}, "pods": {"guaranteed": 4}}, "kueue": {"preemption": LOWER},
    })  # fmt: skip
    running = [runs(name, "q", 2) for name in ("v", "w")]
    for workload in running:
        workload["tasks"][0]["flavors"]["pods"] = "default"
    few = one(of, running, asks("x", "q", 1, priority=1, count=3), mode=mode, explain="full")
    assert (few["outcome"], victims(few)) == ("preempt", ["v", "w"])
    x = asks("x", "q", 0.5, priority=1, count=4)
    skipped = one(of, running, x, mode=mode, explain="full")
    assert (skipped["outcome"], victims(skipped)) == ("wait", [])
    assert skipped["conditions"][0]["message"].startswith(OUTRUN)
    assert "does not count pods" in skipped["explanation"]["blocker"]


def test_a_resource_that_the_queue_does_not_cover() -> None:
    of = configuration(queue("q", 4))
    wanted = asks("x", "q", 1)
    wanted["tasks"][0]["requests"]["gpu"] = 1
    assert one(of, [], wanted)["outcome"] == "infeasible"
    wanted["tasks"][0]["requests"]["gpu"] = 0
    decision = one(of, [], wanted)
    assert (decision["outcome"], assigned(decision)) == ("admit", {"cpu": "default"})


def test_more_than_every_quota_and_limit_is_infeasible() -> None:
    limited = {"guaranteed": 4, "borrowing_limit": 2}
    of = configuration(queue("c"), queue("q", limited, "c"), queue("lender", 10, "c"))
    assert one(of, [], asks("x", "q", 7))["outcome"] == "infeasible"
    assert one(of, [], asks("x", "q", 6))["outcome"] == "admit"


def test_an_ask_that_never_preempts_waits() -> None:
    of = configuration(queue("q", 4, preemption=LOWER))
    ask = asks("x", "q", 3, priority=1) | {"preemption_policy": "Never"}
    assert one(of, [runs("w", "q", 4)], ask)["outcome"] == "wait"


def test_worst_of_resources_by_preference() -> None:
    """Kueue's own surprise: with PreemptionOverBorrowing a resource that fits by borrowing is worse than one that needs
    preemption at home, so the flavor counts as fitting and nobody is preempted for the other."""
    rules = {"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor"}
    rules["preference"] = "PreemptionOverBorrowing"
    mine = queue("q", parent="c", preemption=LOWER, flavor_fungibility=rules)
    mine["quota"] = {"cpu": {"guaranteed": 4}, "memory": {"guaranteed": 0}}
    lender = {"name": "lender", "parent": "c", "quota": {"memory": {"guaranteed": 100}}}
    ask = asks("x", "q", 3, priority=1)
    ask["tasks"][0]["requests"]["memory"] = 50
    decision = one(configuration(queue("c"), mine, lender), [runs("w", "q", 4)], ask)
    assert (decision["outcome"], victims(decision), decision["borrowing"]) == ("admit", [], True)


def test_partial_admission_takes_the_largest_size_that_fits() -> None:
    of = configuration(queue("q", 10))
    decision = one(of, [runs("w", "q", 3)], asks("x", "q", 1, count=9, min_count=2))
    assert (decision["outcome"], decision["counts"]) == ("admit", {"main": 7})
    assert "counts" not in one(of, [], asks("x", "q", 1, count=9, min_count=2))


@pytest.mark.parametrize(("quota", "counts"), [(16, None), (15, {"a": 7, "b": 7}), (13, {"a": 6, "b": 6})])
def test_partial_admission_counts_down_from_the_spec_although_some_pods_are_done(
    quota: int, counts: dict[str, int] | None
) -> None:
    """6 of 10 and all 10 of 10 are left: one pod of the first less and two of the second would be 13."""
    ask = asks("x", "q", 1)
    pods = {"min_count": 5, "requests": {"cpu": 1}}
    ask["tasks"] = [{"name": "a", "count": 6, "full_count": 10} | pods, {"name": "b", "count": 10} | pods]
    decision = one(configuration(queue("q", quota)), [], ask)
    assert (decision["outcome"], decision.get("counts")) == ("admit", counts)


def test_partial_admission_may_preempt() -> None:
    """4 of 10 are held by a higher priority, 4 by a lower one: 6 units by preempting the latter, more never."""
    of = configuration(queue("q", 10, preemption=LOWER))
    running = [runs("high", "q", 4, 5), runs("low", "q", 4, 0)]
    decision = one(of, running, asks("x", "q", 1, priority=1, count=9, min_count=2))
    assert (decision["outcome"], decision["counts"], victims(decision)) == ("preempt", {"main": 6}, ["low"])


def test_what_kubernetes_would_refuse_is_an_error_with_a_pointer() -> None:
    ask = asks("x", "q", 1, node_affinity=[[{"key": "zone", "operator": "In", "values": []}]])
    with pytest.raises(InvalidInput) as refused:
        one(configuration(queue("q", 1)), [], ask)
    assert [p.pointer for p in refused.value.problems] == ["/asks/0/tasks/0/node_affinity/0/0/values"]


def test_a_workload_without_pod_sets_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        one(configuration(queue("q", 1)), [], {"id": "x", "queue": "q", "tasks": []})
    assert [p.pointer for p in refused.value.problems] == ["/asks/0/tasks"]


def test_why_a_flavor_was_passed_over() -> None:
    tainted = [{"name": "a", "node_taints": [{"key": "spot", "effect": "NoSchedule"}]}, {"name": "b"}]
    of = configuration(queue("q", **flavors(a=4, b=4)), flavors=tainted)
    steps = one(of, [], asks("x", "q", 1), explain="full")["explanation"]["steps"]
    assert [(s["rule"], s["numbers"]["flavor"]) for s in steps if s["rule"].startswith("flavor-")] == [
        ("flavor-refused", "a"),
        ("flavor-considered", "b"),
    ]


def test_of_a_flavor_that_the_queue_does_not_list_it_has_what_the_cohort_lends() -> None:
    of = configuration(
        queue("co", **flavors(spot=10)), queue("q", parent="co", **flavors(reserved=1)),
        flavors=[{"name": "spot"}, {"name": "reserved"}],
    )  # fmt: skip
    for mode in ("independent", "cycle"):
        answer = one(of, [], asks("x", "q", 10, flavors={"cpu": "spot"}), mode=mode)
        assert (answer["outcome"], answer["borrowing"]) == ("admit", True)
        assert one(of, [], asks("x", "q", 11, flavors={"cpu": "spot"}), mode=mode)["outcome"] == "wait"
    alone = configuration(queue("q", **flavors(reserved=1)), flavors=[{"name": "spot"}, {"name": "reserved"}])
    assert one(alone, [], asks("x", "q", 1, flavors={"cpu": "spot"}))["outcome"] == "wait"
    assert one(of, [], asks("x", "q", 1, flavors={"cpu": "reserved"}))["outcome"] == "admit"
    assert one(of, [], asks("x", "q", 0, flavors={"cpu": "spot"}))["outcome"] == "admit", "nothing of it is wanted"
