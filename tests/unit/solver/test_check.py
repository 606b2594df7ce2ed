from typing import Any

import msgspec
import pytest

from app.solver import check
from app.solver.apply import Index
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, State


def configuration(**fields: object) -> Configuration:
    return msgspec.convert(fields, Configuration)


def state(**fields: object) -> State:
    return msgspec.convert(fields, State)


def test_every_problem_of_a_configuration_is_listed_with_its_pointer() -> None:
    broken = configuration(
        queues=[
            {"name": "a", "parent": "b"},
            {"name": "b", "parent": "a", "weight": -1},
            {"name": "c", "quota": {"cpu": {"guaranteed": "-1", "limit": "1.5.2"}}},
            {
                "name": "c",
                "resource_groups": [{"resources": ["cpu"], "flavors": [{"name": "f", "quota": {"memory": {}}}]}],
            },
        ],
    )
    pointers = {p.pointer for p in check.configuration_problems(broken)}
    assert pointers == {
        "/configuration/queues/0/parent",
        "/configuration/queues/1/parent",
        "/configuration/queues/1/weight",
        "/configuration/queues/3/name",
        "/configuration/queues/2/quota/cpu/guaranteed",
        "/configuration/queues/2/quota/cpu/limit",
        "/configuration/queues/3/resource_groups/0/flavors/0/quota/memory",
    }


def test_every_problem_of_a_state_is_listed_with_its_pointer() -> None:
    broken = state(
        nodes=[{"name": "n", "capacity": {"cpu": "0.0001"}}, {"name": "n", "capacity": {}}],
        workloads=[
            {
                "id": "w",
                "queue": "q",
                "tasks": [{"name": "t", "node": "ghost", "requests": {"memory": "NaN"}}, {"name": "t"}],
            },
            {"id": "w", "queue": "nowhere"},
        ],
        reservations=[{"node": "ghost", "ask": {"id": "r", "queue": "q", "tasks": []}}],
        queues={"nowhere": {}},
    )
    pointers = {p.pointer for p in check.state_problems({"q"}, broken)}
    assert pointers == {
        "/state/nodes/0/capacity/cpu",
        "/state/nodes/1/name",
        "/state/workloads/0/tasks/0/node",
        "/state/workloads/0/tasks/0/requests/memory",
        "/state/workloads/0/tasks/1/name",
        "/state/workloads/1/id",
        "/state/workloads/1/queue",
        "/state/reservations/0/node",
        "/state/queues/nowhere",
    }
    assert not check.quick_state({"q"}, broken, Index(broken))


def test_what_the_quick_look_passes_has_no_reference_problem() -> None:
    fine = state(
        nodes=[{"name": "n", "capacity": {"cpu": 1}}],
        workloads=[{"id": "w", "queue": "q", "tasks": [{"name": "t", "node": "n", "requests": {"cpu": 1}}]}],
    )
    assert check.quick_state({"q"}, fine, Index(fine))
    assert check.state_problems({"q"}, fine) == []


def test_asks_name_known_things_once() -> None:
    asks = msgspec.convert(
        [
            {"id": "a", "queue": "q", "workload": "ghost", "required_node": "ghost", "feasible_nodes": ["ghost"],
             "tasks": [{"name": "t", "count": 1, "min_count": 2}]},
            {"id": "a", "queue": "nowhere", "tasks": []},
            {"id": "own", "workload": "own", "queue": "q", "tasks": []},
        ],
        list[Ask],
    )  # fmt: skip
    pointers = {p.pointer for p in check.ask_problems({"q"}, Index(State()), asks)}
    assert pointers == {
        "/asks/0/workload", "/asks/0/required_node", "/asks/0/feasible_nodes/0", "/asks/0/tasks/0/min_count",
        "/asks/1/id", "/asks/1/queue",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({}, None),
        ({"queue": "nowhere"}, "/queue"),
        ({"workload": "ghost"}, "/workload"),
        ({"required_node": "ghost"}, "/required_node"),
        ({"feasible_nodes": ["n", "ghost"]}, "/feasible_nodes/1"),
        ({"limit": {"cpu": "1.5.2"}}, "/limit/cpu"),
        ({"tasks": [{"name": "t", "requests": {"cpu": "1.5.2"}}]}, "/tasks/0/requests/cpu"),
        ({"tasks": [{"name": "t", "requests": {"cpu": -1}}]}, "/tasks/0/requests/cpu"),
        ({"tasks": [{"name": "t", "count": 1, "min_count": 2}]}, "/tasks/0/min_count"),
        ({"tasks": [{"name": "t"}, {"name": "t"}]}, "/tasks/1/name"),
        ({"tasks": [{"name": "t", "node": "ghost"}]}, "/tasks/0/node"),
        ({"tasks": [{"name": "t", "required_node": "ghost"}]}, "/tasks/0/required_node"),
    ],
)
def test_the_quick_look_at_asks_passes_nothing_that_is_wrong(fields: dict[str, Any], at: str | None) -> None:
    plain = {
        "id": "a",
        "queue": "q",
        "workload": "w",
        "feasible_nodes": ["n"],
        "tasks": [{"name": "t", "requests": {"cpu": 1}}],
    }
    index = Index(state(nodes=[{"name": "n", "capacity": {}}], workloads=[{"id": "w", "queue": "q"}]))
    others = [plain | {"id": "b"}]
    for before in ([], others):
        asks = msgspec.convert([*before, plain | fields], list[Ask])
        found = [p.pointer for p in check.ask_problems({"q"}, index, asks)]
        assert found == ([] if at is None else [f"/asks/{len(before)}{at}"])


def test_reservations_alone_are_no_reason_to_look_closer() -> None:
    def reserved(node: str = "n", queue: str = "q", cpu: str = "1") -> State:
        task = {"name": "t", "requests": {"cpu": cpu}}
        ask = {"id": "a", "queue": queue, "tasks": [task]}
        return state(nodes=[{"name": "n", "capacity": {}}], reservations=[{"node": node, "ask": ask}])

    assert check.quick_state({"q"}, reserved(), Index(reserved()))
    for broken in (reserved(node="x"), reserved(queue="x"), reserved(cpu="1.5.2")):
        assert not check.quick_state({"q"}, broken, Index(broken))
        assert check.state_problems({"q"}, broken)


def test_the_queue_that_was_meant_is_named_and_a_state_all_wrong_takes_no_time_for_it() -> None:
    names = {"research", "serving"}
    broken = state(workloads=[{"id": f"w{i}", "queue": f"reserch{i or ''}", "tasks": []} for i in range(50)])
    details = [problem.detail for problem in check.state_problems(names, broken)]
    assert details[0] == "no queue 'reserch'; did you mean 'research'?"
    assert sum("did you mean" in detail for detail in details) == 20
    asks = [msgspec.convert({"id": "a", "queue": "Serving", "tasks": []}, Ask)]
    assert [p.detail for p in check.ask_problems(names, Index(State()), asks)] == [
        "no queue 'Serving'; did you mean 'serving'?"
    ]
    child = configuration(queues=[{"name": "company"}, {"name": "a", "parent": "compny"}])
    assert check.configuration_problems(child)[0].detail == "no queue 'compny'; did you mean 'company'?"
