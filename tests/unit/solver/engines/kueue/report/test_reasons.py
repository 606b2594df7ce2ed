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


def test_the_first_pod_set_that_gets_nothing_ends_it() -> None:
    """The second would fit, and the third lacks another resource: neither is looked at."""
    tasks = [{"name": name, "requests": requests} for name, requests in (
        ("first", {"disk": 1}), ("second", {"cpu": 1}), ("third", {"tape": 1}),
    )]  # fmt: skip
    found = one(configuration(queue("q", 4)), [], asks("x", "q", 1) | {"tasks": tasks}, explain="full")
    assert found["conditions"][0]["message"] == "queue q has no quota for disk; first: no flavor offers disk"
    assert found["explanation"]["steps"] == []


def test_resources_are_named_in_their_own_order() -> None:
    """Whatever the order in which the ask requests them."""
    group = {"resources": ["memory", "cpu"], "flavors": [{"name": "f", "quota": {"cpu": {}, "memory": {}}}]}
    of = configuration({"name": "q", "resource_groups": [group]}, flavors=[{"name": "f"}])
    for requests in ({"memory": 1, "cpu": 1}, {"cpu": 1, "memory": 1}):
        found = one(of, [], asks("x", "q", 1) | {"tasks": [{"name": "main", "requests": requests}]})
        assert found["conditions"][0]["message"].startswith(
            "no flavor that pod set main may use could ever hold its cpu, memory; main: no flavor for cpu, memory"
        )


def test_what_could_start_smaller_is_not_hopeless() -> None:
    """4 are more than the queue could ever have, 2 are not; 3 are in use by work that may not be stopped."""
    of = configuration(queue("q", 3, preemption=LOWER))
    for least, outcome in ((2, "wait"), (3, "wait"), (4, "infeasible")):
        ask = asks("x", "q", 1, 1, count=4, min_count=least)
        assert one(of, [runs("w", "q", 3, 9)], ask)["outcome"] == outcome


def test_a_second_group_is_looked_at_where_the_first_is_not_wanted() -> None:
    groups = [
        {"resources": [r], "flavors": [{"name": f"for-{r}", "quota": {r: {"guaranteed": 2}}}]} for r in ("cpu", "gpu")
    ]
    of = configuration({"name": "q", "resource_groups": groups}, flavors=[{"name": "for-cpu"}, {"name": "for-gpu"}])
    found = one(of, [], asks("x", "q", 1) | {"tasks": [{"name": "main", "requests": {"gpu": 1}}]})
    assert (found["outcome"], found["assignment"]) == ("admit", {"main": {"gpu": "for-gpu"}})
