"""What an ask is told in rare places: sizes, waiting before preempting, flavors that it can never use."""

from tests.unit.solver.engines.kueue.cluster import asks, configuration, flavors, one, queue, runs

LOWER = {"within_cluster_queue": "LowerPriority"}


def test_an_ask_that_may_not_preempt_yet_has_that_as_the_reason_for_everybody() -> None:
    of = configuration(queue("q", 4, preemption={**LOWER, "trigger_after_workload_waiting_seconds": 3601}))
    found = one(of, [runs("w", "q", 3), runs("v", "q", 1, 9)], asks("x", "q", 3, priority=1), explain="full")
    steps = [step["rule"] for step in found["explanation"]["steps"]]
    assert steps == ["flavor-considered", "waits-before-preempting", "beyond-kueue"]
    judged = [(c["workload"], c["verdict"], c["rule"]) for c in found["explanation"]["candidates"]]
    assert judged == [(w, "protected", "waits-before-preempting") for w in ("w", "v")]


def test_a_full_size_that_can_be_had_is_not_called_partial() -> None:
    for workloads, outcome in ([], "admit"), ([runs("w", "q", 4)], "preempt"):
        of = configuration(queue("q", 4, preemption=LOWER))
        found = one(of, workloads, asks("x", "q", 1, 1, count=3, min_count=1), explain="full")
        assert (found["outcome"], "counts" in found) == (outcome, False)
        assert "partial-admission" not in [step["rule"] for step in found["explanation"]["steps"]]


def test_flavors_that_can_never_be_used_are_told_as_such() -> None:
    of = configuration(
        queue("q", **flavors(a=4, b=6)), flavors=[{"name": name, "node_labels": {"z": name}} for name in "ab"]
    )
    never = "no flavor that pod set main may use could ever hold its cpu; main: no flavor for cpu"
    found = one(of, [], asks("x", "q", 1, node_selector={"z": "c"}))
    assert (found["outcome"], found["conditions"][0]["message"]) == ("infeasible", never)
    found = one(of, [], asks("x", "q", 9))
    short = (
        "insufficient unused quota for cpu in flavor {}, {} more needed (requested 9, while this queue can never have "
        "more than {})"
    )
    assert found["conditions"][0]["message"] == f"{never}; {short.format('a', 5, 4)}; {short.format('b', 3, 6)}"
