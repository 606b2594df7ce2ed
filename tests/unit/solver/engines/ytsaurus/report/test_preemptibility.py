"""What protects operations and allocations, and which evictions an ask may count on; worked out by hand."""

from typing import Any

import pytest

from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, node, operation, pool, preemptibility, request

Json = dict[str, Any]


def shared(running: int = 10, wanted: int = 10, level: str = "non_starving", **of_a: Any) -> Json:
    """x of pool a runs so many of ten cpus, y of pool b wants so many. Due to x is what y leaves, but five at least; a
    fifth of that is protected."""
    tasks = [alloc(f"t{i}", i) for i in range(running)]
    operations = [operation("x", "a", tasks), operation("y", "b", ytsaurus={"starvation": level})]
    asks = [ask("y", "b", wanted)] if wanted else []
    return request([pool("a", ytsaurus=of_a), pool("b")], [node()], operations, asks)


def reason(body: Json) -> tuple[bool, str]:
    found = preemptibility(body)["workloads"]["x"]
    return found["preemptible"], found["reason"]


def groups(body: Json, **more: Any) -> str:
    """One letter an allocation, in order."""
    tasks = preemptibility(body, **more)["workloads"]["x"]["tasks"]
    assert list(tasks) == [f"t{i}" for i in range(len(tasks))]
    return "".join(task["preemptibility"][0] for task in tasks.values())


def test_reasons() -> None:
    over = "uses more than its fair share times "
    assert reason(shared()) == (True, over + "preemption_satisfaction_threshold")
    assert reason(shared(4)) == (True, over + "aggressive_preemption_satisfaction_threshold")
    assert reason(shared(4, allow_aggressive_preemption=False)) == (
        False, "within its protected share; aggressive preemption is not allowed here",
    )  # fmt: skip
    assert reason(shared(1)) == (False, "within its protected share")
    assert reason(shared(0)) == (False, "within its protected share")
    assert preemptibility(shared(0))["workloads"]["x"]["tasks"] == {}
    body = shared()
    body["state"]["workloads"][0]["ytsaurus"] = {"preemption_mode": "graceful"}
    assert reason(body) == (False, "preemption_mode is graceful: its allocations are only asked to stop")
    body["state"]["workloads"][0]["ytsaurus"] = {"starvation": "starving"}
    assert reason(body) == (False, "starving itself, and allow_preemption_from_starving_operations is off")


def test_an_ask_counts_as_demand_once() -> None:
    assert groups(shared()) == "naaaappppp"
    assert groups(shared(wanted=2)) == "nnaaaaaapp"
    assert groups(shared(wanted=0)) == "nnaaaaaaaa", "x is due all that it uses"
    own = ask("y", "b", 2)
    assert groups(shared(wanted=0), ask=own) == "nnaaaaaapp"
    assert groups(shared(wanted=2), ask=own) == "nnaaaaaapp", "it is among those that wait already"


EVICTIONS: list[tuple[list[Json], bool, bool]] = [
    ([{"workload": "x", "task": "t9"}], True, True),
    ([{"workload": "x", "task": "t1"}], False, True),
    ([{"workload": "x", "task": "t0"}], False, False),
    ([{"workload": "x", "task": "t9"}, {"workload": "x", "task": "t5"}], True, True),
    ([{"workload": "x", "task": "t9"}, {"workload": "x", "task": "t0"}], False, False),
    ([{"workload": "x"}], False, False),
    ([{"workload": "y"}], False, False),
    ([{"workload": "nobody"}], False, False),
    ([{"workload": "x", "task": "nothing"}], False, False),
]


@pytest.mark.parametrize(("evict", "normally", "aggressively"), EVICTIONS)
def test_evictions_by_the_stage_of_the_ask(evict: list[Json], normally: bool, aggressively: bool) -> None:
    """An ask without an operation that runs starves with its pool."""
    for level, allowed in (("starving", normally), ("aggressively_starving", aggressively)):
        of_y = preemptibility(shared(level=level), evict=evict, ask=ask("y", "b", 10))
        body = shared()
        body["state"]["queues"] = {"b": {"ytsaurus": {"starvation": level}}}
        new = {key: value for key, value in ask("z", "b", 10).items() if key != "workload"}
        assert of_y["evict_allowed"] is preemptibility(body, evict=evict, ask=new)["evict_allowed"] is allowed
    assert preemptibility(shared(), evict=evict)["evict_allowed"] is aggressively, "some stage takes them"


def test_all_of_an_operation_may_go_where_nothing_is_due_to_it() -> None:
    body = shared()
    body["configuration"]["queues"][0]["quota"] = {"cpu": {"limit": 0}}
    assert groups(body) == "p" * 10
    assert preemptibility(body, evict=[{"workload": "x"}])["evict_allowed"] is True
    assert "evict_allowed" not in preemptibility(body, evict=[])


def test_every_operation_has_its_own_allocations() -> None:
    """By operation and in the order of their ages; those that don't run are left out."""
    tasks = {"x": [alloc("x1", 5), alloc("x0", 3)], "y": [], "z": [alloc("z0"), alloc("z1", 1), alloc("z2", 2)]}
    tasks["y"] = [alloc("y0"), alloc("y1", state="releasing")]
    body = request([pool("a")], [node()], [operation(name, "a", of) for name, of in tasks.items()])
    found = preemptibility(body)["workloads"]
    assert {name: list(of["tasks"]) for name, of in found.items()} == {
        "x": ["x0", "x1"], "y": ["y0"], "z": ["z0", "z1", "z2"],
    }  # fmt: skip
