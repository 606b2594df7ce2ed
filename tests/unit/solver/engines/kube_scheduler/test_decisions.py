"""kube-scheduler's rules, each on a cluster small enough to follow by hand."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Delta, WorkloadChanges
from tests.unit.solver.engines.kube_scheduler.asked import NOW, ask, decided, loaded_of, node, pod, request, told


def test_what_fits_evicts_nobody_and_goes_to_the_emptiest_node() -> None:
    answer = decided(request([node("a"), node("b")], [pod("p", "a")], [ask()]))
    assert told(answer) == ("admit", "b", [])
    assert [(p.node, p.pipelined) for p in answer.plan.placements] == [("b", False)]


def test_only_lower_priorities_go_and_no_more_than_must() -> None:
    running = [pod("low", "a", 2, 1), pod("lower", "a", 1, 0), pod("equal", "a", 1, 10)]
    assert told(decided(request([node("a")], running, [ask(cpu=1)]))) == ("preempt", "a", ["lower"])
    assert told(decided(request([node("a")], running, [ask(cpu=2)]))) == ("preempt", "a", ["low"])
    assert told(decided(request([node("a")], running, [ask(cpu=3)]))) == ("preempt", "a", ["low", "lower"])
    answer = decided(request([node("a")], running, [ask(cpu=4)]))
    assert told(answer) == ("wait", None, [])
    assert answer.decisions[0].conditions[0].reason == "Unschedulable"


def test_more_than_a_node_has_is_not_helped_by_preemption() -> None:
    answer = decided(request([node("a")], [pod("p", "a", 4)], [ask(cpu=5)], explain="full"))
    assert told(answer)[0] == "wait"
    told_why = answer.decisions[0].explanation
    assert told_why is not None
    assert [step.rule for step in told_why.steps] == ["resources"]
    assert "preemption can't help" in told_why.steps[0].detail


@pytest.mark.parametrize(
    ("first", "second", "chosen"),
    [
        ([("x", 4, 5)], [("y", 4, 4)], "b"),  # the highest victim is lower
        ([("x", 2, 4), ("w", 2, 4)], [("y", 2, 4), ("z", 2, 3)], "b"),  # the sum is lower
        ([("x", 2, 4), ("w", 2, 4)], [("y", 4, 4)], "b"),  # fewer
    ],
)
def test_the_node_whose_victims_matter_least(first: Any, second: Any, chosen: str) -> None:
    running = [pod(name, "a", cpu, priority) for name, cpu, priority in first]
    running += [pod(name, "b", cpu, priority) for name, cpu, priority in second]
    assert told(decided(request([node("a"), node("b")], running, [ask(cpu=4)])))[1] == chosen


def test_the_latest_start_goes_and_what_is_alike_is_a_tie_that_is_told() -> None:
    early, late = pod("early", "a", 4), pod("late", "b", 4)
    late["tasks"][0]["started_at"] = "2026-01-01T06:00:00Z"
    nodes = [node("a"), node("b")]
    assert told(decided(request(nodes, [early, late], [ask(cpu=4)]))) == ("preempt", "b", ["late"])
    late["tasks"][0]["started_at"] = early["tasks"][0]["started_at"]
    answer = decided(request(nodes, [early, late], [ask(cpu=4)], explain="summary"))
    assert told(answer) == ("preempt", "a", ["early"])
    why = answer.decisions[0].explanation
    assert why is not None
    assert why.ties == ["a", "b"]


def test_budgets_are_preferred_and_not_binding() -> None:
    nodes = [node("a"), node("b")]
    running = [pod("kept", "a", 4, 1, labels={"app": "web"}), pod("free", "b", 4, 5, labels={"app": "db"})]
    budget = {"name": "web", "queue": "default", "selector": {"match_labels": {"app": "web"}}}
    body = request(nodes, running, [ask(cpu=4)], disruption_budgets=[budget])
    assert told(decided(body)) == ("preempt", "b", ["free"])
    alone = request(nodes[:1], running[:1], [ask(cpu=4)], disruption_budgets=[budget], explain="summary")
    answer = decided(alone)
    assert told(answer) == ("preempt", "a", ["kept"])
    assert answer.decisions[0].violations == 1
    why = answer.decisions[0].explanation
    assert why is not None
    assert "budgets-not-binding" in {step.rule for step in why.steps}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"preemption_policy": "Never"}, "preemptionPolicy=Never"),
        ({"scheduling_gates": ["quota"]}, "scheduling gate"),
        ({"nominated_node": "a"}, "terminating pod on the nominated node"),
    ],
)
def test_who_does_not_preempt(more: Any, reason: str) -> None:
    running = [pod("p", "a", 3), pod("q", "a", 1, 0, state="preempted")]
    answer = decided(request([node("a")], running, [ask(cpu=4, **more)]))
    assert told(answer)[0] == "wait"
    assert reason in answer.decisions[0].conditions[0].message


def test_nominated_pods_of_at_least_the_priority_keep_their_room() -> None:
    held = [{"node": "a", "ask": ask("held", 3, 10)}]
    assert told(decided(request([node("a")], [], [ask(cpu=2)], reservations=held)))[0] == "wait"
    assert told(decided(request([node("a")], [], [ask(cpu=2, priority=11)], reservations=held)))[0] == "admit"


def test_ports_taints_and_affinity() -> None:
    port = {"host_ports": [{"port": 80}]}
    taken = [pod("p", "a", 1, 0, **port)]
    assert told(decided(request([node("a")], taken, [ask(**port)]))) == ("preempt", "a", ["p"])
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    assert told(decided(request([tainted], [pod("p", "a", 4)], [ask()])))[0] == "wait"
    away = {"pod_anti_affinity": [{"topology_key": "zone", "label_selector": {"match_labels": {"app": "db"}}}]}
    zone = node("a", labels={"zone": "x"})
    enemy = [pod("db", "a", 1, 0, labels={"app": "db"}), pod("web", "a", 1, 0)]
    assert told(decided(request([zone], enemy, [ask(**away)]))) == ("preempt", "a", ["db"])
    near = {"pod_affinity": away["pod_anti_affinity"]}
    assert told(decided(request([zone], enemy[1:], [ask(**near)])))[0] == "wait"


def test_spread_evicts_who_makes_it_uneven() -> None:
    like = {"labels": {"app": "web"}}
    rule = {"max_skew": 1, "topology_key": "zone", "label_selector": {"match_labels": {"app": "web"}}}
    nodes = [node("a", labels={"zone": "x"}), node("b", 0.5, labels={"zone": "y"})]
    answer = decided(request(nodes, [pod("p", "a", 1, 0, **like)], [ask(**like, topology_spread=[rule])]))
    assert told(answer) == ("preempt", "a", ["p"])


def test_a_cycle_goes_by_priority_and_sees_what_was_nominated() -> None:
    running = [pod("p", "a", 4), pod("q", "b", 4)]
    body = request([node("a"), node("b")], running, [ask("low", 4, 5), ask("high", 4, 9)], mode="cycle")
    answer = decided(body)
    assert answer.order == ["high", "low"]
    assert [told(answer, i) for i in (0, 1)] == [("preempt", "b", ["q"]), ("preempt", "a", ["p"])]
    one = decided(request([node("a")], running[:1], [ask("low", 4, 5), ask("high", 4, 9)], mode="cycle"))
    assert [told(one, i)[0] for i in (0, 1)] == ["wait", "preempt"]


def test_a_gang_is_placed_whole_or_waits() -> None:
    gang: Any = ask("gang", 2, 9)
    gang["tasks"] = [{"name": f"g{i}", "requests": {"cpu": 2}} for i in range(3)]
    running = [pod("p", "a", 4), pod("q", "b", 4, 9)]
    body = request([node("a"), node("b")], running, [gang], settings={"workload_aware": True})
    assert told(decided(body))[0] == "wait"
    gang["min_available"] = 2
    answer = decided(body)
    assert told(answer) == ("preempt", "a", ["p"])
    assert answer.decisions[0].placements == {"g0": "a", "g1": "a"}


def test_a_group_goes_as_one_where_it_says_so() -> None:
    group: Any = pod("one", "a", 4)
    group["tasks"].append({"name": "two", "requests": {"cpu": 1}, "node": "b"})
    group["disruption_mode"] = "all"
    body = request([node("a"), node("b", 1)], [group], [ask(cpu=4)], settings={"workload_aware": True})
    assert told(decided(body)) == ("preempt", "a", ["one", "two"])


def test_every_node_looked_at_says_whether_a_sample_had_chosen_worse() -> None:
    nodes = [node(f"n{i}") for i in range(6)]
    running = [pod(f"p{i}", f"n{i}", 4, 6 - i) for i in range(6)]
    settings = {"min_candidate_nodes_absolute": 2, "min_candidate_nodes_percentage": 0}
    body = request(nodes, running, [ask(cpu=4)], settings=settings, explain="summary")
    assert told(decided(body))[1] == "n1", "of the first two"
    body["options"] = {"kube_scheduler": {"offset": 4}}
    assert told(decided(body))[1] == "n5"
    body["options"] = {"kube_scheduler": {"offset": "all"}}
    answer = decided(body)
    assert told(answer)[1] == "n5"
    why = answer.decisions[0].explanation
    assert why is not None
    (sample,) = [step for step in why.steps if step.rule == "sample"]
    assert sample.numbers == {"worse": 4, "starting_points": 6}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"options": {"kube_scheduler": {"parallelism": 2}}}, "/options/kube_scheduler/parallelism"),
        ({"asks": [{**ask(), "tasks": [{"name": "t", "count": 2}]}]}, "/asks/0/tasks/0/count"),
    ],
)
def test_what_is_not_decided_on_is_refused_by_name(change: Any, where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decided(request([node("a")], [], [ask()]) | change)
    assert [problem.pointer for problem in refused.value.problems] == [where]


def test_namespaces_are_flat() -> None:
    body = request([node("a")], [], [ask()])
    body["configuration"]["queues"].append({"name": "below", "parent": "default"})
    with pytest.raises(InvalidInput, match="a namespace has no parent"):
        decided(body)


def test_times_are_those_of_the_request() -> None:
    assert decided(request([node("a")], [], [ask()])).decisions[0].conditions[0].last_transition_time.isoformat() == (
        NOW.replace("Z", "+00:00")
    )


def test_pods_of_an_ask_see_each_other_and_name_a_victim_once() -> None:
    """Found beside the released code: the second pod counts the first, which is nominated to the node."""
    two: Any = ask("two", 1, 9)
    two["tasks"] = [{"name": f"t{i}", "requests": {"cpu": 1}} for i in range(2)]
    wide = decided(request([node("a", 2), node("b", 2)], [pod("p", "a", 2, 1), pod("q", "b", 2, 2)], [two]))
    assert told(wide)[2] == ["p"]
    assert wide.decisions[0].placements == {"t0": "a", "t1": "a"}
    narrow = decided(request([node("a", 1), node("b", 1)], [pod("p", "a", 1, 1), pod("q", "b", 1, 2)], [two]))
    assert told(narrow)[2] == ["p", "q"]
    budget = {"name": "web", "queue": "default", "selector": {"match_labels": {"app": "web"}}}
    web = pod("p", "a", 2, 1, labels={"app": "web"})
    once = decided(request([node("a", 2)], [web], [two], disruption_budgets=[budget]))
    assert told(once)[2] == ["p"]
    assert once.decisions[0].violations == 1


def test_a_gang_is_tried_first_where_it_is_nominated() -> None:
    gang: Any = ask("gang", 1, 9, nominated_node="b", min_available=1)
    answer = decided(request([node("a", 8), node("b", 4)], [], [gang], settings={"workload_aware": True}))
    assert told(answer)[:2] == ("admit", "b")


def test_who_is_nominated_where_a_gang_preempts_stays_so() -> None:
    """Found beside the released code, which clears nominations by the node of a candidate; a gang has none."""
    held = [{"node": "a", "ask": ask("held", 2, 5)}]
    running = [pod("p", "a", 4)]
    single = [ask("first", 4, 9), ask("then", 2, 6)]
    body = request([node("a")], running, single, mode="cycle", reservations=held)
    assert decided(body).notes == {"nominations_cleared": [{"ask": "held", "node": "a"}]}
    gang = [ask("first", 4, 9, min_available=1), ask("then", 2, 5)]
    body = request([node("a")], running, gang, mode="cycle", reservations=held, settings={"workload_aware": True})
    answer = decided(body)
    assert told(answer) == ("preempt", "a", ["p"])
    assert answer.notes is None


def test_a_gang_that_looked_for_room_leaves_the_order_of_pods() -> None:
    """Found beside the released code: equal victims of later pods go by the order of the node's list."""
    running = [pod("p", "a", 1), pod("q", "a", 1), pod("r", "a", 2, 6)]
    gang: Any = ask("gang", 4, 9)
    gang["tasks"] = [{"name": f"g{i}", "requests": {"cpu": 4}} for i in range(2)]
    after = ask("after", 1, 5)
    settings = {"workload_aware": True}
    alone = decided(request([node("a")], running, [after], mode="cycle", settings=settings))
    both = decided(request([node("a")], running, [gang, after], mode="cycle", settings=settings))
    assert told(both)[0] == "wait"
    assert told(alone) == told(both, 1)


def test_the_least_priority_that_would_let_a_pod_in_is_told() -> None:
    running = [pod("a", "n1", 2, priority=20), pod("b", "n1", 2, priority=30), pod("c", "n2", 4, priority=40)]
    nodes = [node("n1"), node("n2")]

    def needed(cpu: float, **more: Any) -> list[float]:
        answer = decided(request(nodes, running, [ask(cpu=cpu, **more)], explain="summary"))
        explained = answer.decisions[0].explanation
        assert explained is not None
        return [change.needed for change in explained.smallest_change or ()]

    assert [needed(2), needed(3), needed(5)] == [[21], [31], []]
    assert told(decided(request(nodes, running, [ask(cpu=3, priority=31)])))[0] == "preempt"
    assert told(decided(request(nodes, running, [ask(cpu=3, priority=30)])))[0] == "wait"
    assert needed(2, preemption_policy="Never") == []
    assert needed(2, priority=25) == []


def changes(nodes: list[Any], running: list[Any], wanted: Any, **more: Any) -> dict[str, list[float]]:
    """What would let an ask in, or violate a budget no more: by field, in order."""
    answer = decided(request(nodes, running, [wanted], explain="summary", **more))
    explained = answer.decisions[0].explanation
    assert explained is not None
    found: dict[str, list[float]] = {}
    for change in explained.smallest_change or ():
        found.setdefault(change.field, []).append(change.needed)
    return found


def test_how_much_less_a_pod_would_have_to_ask_for_is_told() -> None:
    running = [pod("a", "n1", 1, priority=20), pod("b", "n1", 1, priority=5), pod("c", "n2", 2.5, priority=40)]
    nodes = [node("n1"), node("n2")]
    assert changes(nodes, running, ask(cpu=3.5)) == {"priority": [21], "requests": [3]}
    assert changes(nodes, running, ask(cpu=3.5, preemption_policy="Never")) == {"requests": [2]}
    assert changes(nodes, running, ask(cpu=5)) == {"requests": [3]}
    tainted = [node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])]
    assert changes(tainted, [], ask(cpu=5)) == {}


def test_how_many_pods_of_a_gang_have_room_is_told() -> None:
    gang: Any = ask("gang")
    gang["tasks"] = [{"name": f"g{i}", "requests": {"cpu": 3}} for i in range(4)]
    nodes = [node("n1"), node("n2"), node("n3")]
    running = [pod("a", "n1", 4, priority=20), pod("b", "n2", 4, priority=5)]
    aware = {"workload_aware": True}
    assert changes(nodes, running, gang, settings=aware) == {"min_available": [2]}
    assert changes(nodes, running, gang | {"preemption_policy": "Never"}, settings=aware) == {"min_available": [1]}
    three = gang | {"min_available": 3}
    assert changes(nodes, running, three, settings=aware) == {"priority": [21], "min_available": [2]}
    for more, outcome in (({"priority": 20}, "wait"), ({"priority": 21}, "preempt"), ({"min_available": 2}, "preempt")):
        raised = three | more
        assert told(decided(request(nodes, running, [raised], settings=aware)))[0] == outcome


def test_what_a_budget_would_have_to_allow_is_told() -> None:
    running = [pod(f"p{i}", "n1", 1, labels={"app": "web"}) for i in range(4)]
    budget = {"name": "b", "queue": "default", "selector": {"match_labels": {"app": "web"}}, "disruptions_allowed": 0}
    found = changes([node("n1")], running, ask(cpu=3), disruption_budgets=[budget])
    assert found == {"disruptions_allowed": [3]}  # the fourth would violate it, and is the first to be put back
    for allowed, violations in ((2, 1), (3, 0)):
        budgets = [budget | {"disruptions_allowed": allowed}]
        answer = decided(request([node("n1")], running, [ask(cpu=3)], disruption_budgets=budgets))
        assert answer.decisions[0].violations == violations


def test_only_who_terminated_before_is_said_to_get_no_new_call() -> None:
    def again(at: int, **more: Any) -> list[str]:
        first, second = ask("first", 3), ask("second", 1, 20)
        answer = decided(
            request([node("n1")], [pod("a", "n1", 4, **more)], [first, second], explain="full", mode="cycle")
        )
        assert told(answer, at)[0] == "preempt"
        explained = answer.decisions[at].explanation
        assert explained is not None
        return [step.detail.split()[0] for step in explained.steps if step.rule == "terminating-victim"]

    assert (again(1), again(0)) == ([], ["a/a"]), "the second is more important and goes first"
    assert again(1, state="releasing") == ["a/a"]


def test_what_becomes_of_all_that_runs_is_told_once_for_all_pods_of_an_ask() -> None:
    """A summary counts those of whom a full explanation tells one by one."""
    nodes = [node(name) for name in ("n1", "n2", "n3")]
    running = [pod("a", "n1", 4), pod("b", "n2", 3), pod("c", "n2", 1, 20), pod("d", "n3", 4, 20), pod("e", "n1", 0)]
    two = ask(cpu=3)
    two["tasks"] = [{**two["tasks"][0], "name": name} for name in ("first", "second")]
    answers = {level: decided(request(nodes, running, [two], explain=level)) for level in ("summary", "full")}
    assert told(answers["full"]) == ("preempt", None, ["a", "b"])
    explained = {level: answer.decisions[0].explanation for level, answer in answers.items()}
    assert explained["full"] is not None
    verdicts = {one.workload: (one.verdict, one.rule) for one in explained["full"].candidates or ()}
    assert verdicts == {
        "a": ("victim", "preempted"), "b": ("victim", "preempted"), "e": ("put-back", "reprieved"),
        "c": ("protected", "not-less-important"), "d": ("out-of-reach", "another-node"),
    }  # fmt: skip
    assert explained["summary"] is not None
    counted = {(of.verdict, of.rule): of.count for of in explained["summary"].groups or ()}
    assert counted == Counter(verdicts.values())


def test_pods_are_scheduled_by_their_own_priority_whatever_that_of_their_ask_is() -> None:
    """Nobody has to go for whom a pod has just been bound: whoever is more important comes first."""
    first, second = ask("first", 4, 5), ask("second", 4, 1)
    first["tasks"][0]["priority"], second["tasks"][0]["priority"] = 0, 20
    answer = decided(request([node("n1")], [pod("a", "n1", 4, 10)], [first, second], mode="cycle"))
    assert answer.order == ["second", "first"]
    assert told(answer, 1) == ("preempt", "n1", ["a"])
    assert told(answer, 0)[0] == "wait"
    both = ask("both", 4, 5)
    both["tasks"] = [{**both["tasks"][0], "name": name, "priority": of} for name, of in (("low", 0), ("high", 20))]
    answer = decided(request([node("n1")], [], [both]))
    assert answer.decisions[0].placements == {"high": "n1"}


def test_sizes_never_asked_for_see_what_changed_since_another_was_asked_for() -> None:
    """What is free is kept by node and resource from one state to the next."""
    nodes = [node("n1"), {**node("n2"), "capacity": {"cpu": 4, "memory": "8Gi", "pods": 2}}, node("n3", 2)]
    there = [pod("a", "n1", 4, 50), pod("b", "n2", 1, 50), pod("c", "n3", 2, 5)]
    larger = {**nodes[2], "capacity": {"cpu": 3, "memory": "1Gi"}}
    lower, another = pod("a", "n1", 3, 5), pod("d", "n2", 1, 50)
    before = loaded_of(request(nodes, there, []))

    def answers(loaded: solve.Loaded | None, sizes: tuple[float, ...]) -> list[Any]:
        asked = (
            request([*nodes[:2], larger], [lower, *there[1:], another], [ask(cpu=size)], explain="full")
            for size in sizes
        )
        return [msgspec.to_builtins(decided(body, loaded).decisions) for body in asked]

    answers(before, (2.25,))
    changes = {"workloads": {"change": [lower], "add": [another]}, "nodes": {"change": [larger]}}
    delta = msgspec.convert({"generation": 1, **changes}, Delta)
    after = solve.update(before, *apply_delta(before.state, before.index, delta), generation=None)
    sizes = (0.5, 1.5, 2.5, 3.5, 4.5)
    found = answers(after, sizes)
    assert found == answers(None, sizes)
    assert [one["outcome"] for (one,) in found] == ["admit", "preempt", "preempt", "preempt", "wait"]


def test_a_pod_that_ended_is_gone_though_its_workload_is_still_there() -> None:
    ended = pod("a", "n1", 4, 50, state="succeeded")
    before = loaded_of(request([node("n1")], [pod("a", "n1", 4, 50)], []))
    delta = msgspec.convert({"generation": 1, "workloads": {"change": [ended]}}, Delta)
    after = solve.update(before, *apply_delta(before.state, before.index, delta), generation=None)
    body = request([node("n1")], [ended], [ask(cpu=4)])
    assert told(decided(body, before)) == ("wait", None, [])
    assert told(decided(body, after)) == told(decided(body)) == ("admit", "n1", [])


def test_pods_stay_and_their_nodes_with_them_where_another_of_their_workload_is_told_to_go() -> None:
    tasks = [pod(name, on)["tasks"][0] for name, on in (("a", "n1"), ("b", "n1"), ("c", "n1"), ("d", "n2"))]
    before = loaded_of(request([node("n1"), node("n2")], [{**pod("w", "n1"), "tasks": tasks}], []))
    (had,) = before.state.workloads
    told_to_go = replace(had.tasks[1], state="preempted")
    changed = replace(had, tasks=[had.tasks[0], told_to_go, *had.tasks[2:]])
    delta = Delta(generation=1, workloads=WorkloadChanges(change=[changed]))
    after = solve.update(before, *apply_delta(before.state, before.index, delta), generation=None)
    pods = [of.compiled.machines[0].pods for of in (before, after)]
    assert [(one.name, one.preempted) for one in pods[1]] == [("a", False), ("b", True), ("c", False)]
    assert [one is other for one, other in zip(*pods, strict=True)] == [True, False, True]
    assert (before.compiled.stamps == after.compiled.stamps).tolist() == [False, True]


@pytest.mark.parametrize("kinds", [1, 40])
@pytest.mark.parametrize("size", [4, 2**53])
def test_requests_add_up_however_large_and_of_however_many_kinds(size: int, kinds: int) -> None:
    """Also beyond the machine's integers."""
    named = [f"example.com/{i}" for i in range(kinds)]
    nodes = [{"name": name, "capacity": dict.fromkeys(named, size)} for name in ("n1", "n2", "n3")]
    halves = dict.fromkeys(named, size // 2)
    there = [pod(f"{i}-{name}", name, priority=5, requests=halves) for name in ("n1", "n3") for i in range(2)]
    fits, preempts = ask("fits", requests=halves), ask("preempts", requests=halves, required_node="n3")
    found = decided(request(nodes, [*there, pod("others", "n3", priority=50, requests={})], [fits, preempts]))
    assert told(found) == ("admit", "n2", [])
    assert told(found, 1) == ("preempt", "n3", ["1-n3"])
