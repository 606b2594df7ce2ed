"""Workloads and asks in tables: what each field becomes, and what stands for one that is not given."""

from datetime import datetime
from typing import Any

import msgspec

from app.solver.engines.kai.configuration import compile_configuration
from app.solver.engines.kai.jobs import GONE, NOWHERE, OLDEST, PENDING, RELEASING, RUNNING, Jobs
from app.solver.engines.kai.state import compile_state, with_asks
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, State

CONFIGURATION = msgspec.convert({"queues": [{"name": "q"}, {"name": "r"}]}, Configuration)
AT = "2026-11-22T08:00:00Z"
MICROS = micros(datetime.fromisoformat(AT))


def jobs(workloads: list[Any], *asks: Any) -> Jobs:
    nodes = [{"name": "m", "capacity": {"cpu": 8}}, {"name": "n", "capacity": {"cpu": 8, "gpu": 1}}]
    state = msgspec.convert({"nodes": nodes, "workloads": workloads}, State)
    compiled = compile_state(compile_configuration(CONFIGURATION), state)
    return with_asks(compiled, [msgspec.convert(ask, Ask) for ask in asks])[0]


def of_job(found: Jobs, j: int) -> dict[str, Any]:
    columns = ("id", "uid", "queue", "priority", "created", "started", "preemptible", "min_available", "ask", "tasks")
    return {name: getattr(found, name)[j] for name in columns}


TASK = {"name": "t", "requests": {}}
BARE = {
    "id": "w", "uid": "w", "queue": 0, "priority": 0, "created": OLDEST, "started": None, "preemptible": True,
    "min_available": 1, "ask": -1, "tasks": [0],
}  # fmt: skip


def test_what_is_not_given_has_its_default() -> None:
    bare = {"id": "w", "queue": "q", "tasks": [TASK | {"node": "m"}]}
    assert of_job(jobs([bare]), 0) == BARE
    assert of_job(jobs([], {"id": "w", "queue": "q", "tasks": [TASK]}), 0) == BARE | {"ask": 0}


def test_what_is_given_is_taken() -> None:
    given = {
        "id": "w", "uid": "u", "queue": "r", "priority": 7, "created_at": AT, "preemptible": False, "min_available": 2,
    }  # fmt: skip
    expected = {
        "id": "w", "uid": "u", "queue": 1, "priority": 7, "created": MICROS, "started": None, "preemptible": False,
        "min_available": 2, "ask": -1,
    }  # fmt: skip
    running = given | {"started_at": AT, "tasks": []}
    assert of_job(jobs([running]), 0) == expected | {"started": MICROS, "tasks": []}
    assert of_job(jobs([], given | {"tasks": [TASK, TASK | {"name": "s"}]}), 0) == expected | {
        "ask": 0,
        "tasks": [0, 1],
    }


def test_an_ask_of_a_workload_adds_its_pods_to_that_job_and_the_first_one_counts() -> None:
    works = [{"id": name, "queue": "q", "tasks": [TASK | {"node": "n"}]} for name in ("v", "w")]
    asks = [
        {"id": "a", "queue": "q", "workload": "w", "tasks": [TASK | {"name": "x"}]},
        {"id": "b", "queue": "r", "tasks": []},
        {"id": "c", "queue": "q", "workload": "w", "tasks": [TASK | {"name": "y"}]},
        {"id": "d", "queue": "q", "workload": "b", "tasks": [TASK | {"name": "z"}]},
    ]  # fmt: skip
    found = jobs(works, *asks)
    assert (found.id, found.tasks, found.ask) == (["v", "w", "b"], [[0], [1, 2, 3], [4]], [-1, 0, 1])
    assert (found.of_ask, found.task_job, found.task_name) == ([1, 2, 1, 2], [0, 1, 1, 1, 2], ["t", "t", "x", "y", "z"])
    assert found.task_state == [RUNNING, RUNNING, PENDING, PENDING, PENDING]
    assert found.task_node == [1, 1, NOWHERE, NOWHERE, NOWHERE]


def test_states_of_pods() -> None:
    states = ["running", "releasing", "preempted", "released"]
    tasks = [{"name": state, "state": state, "node": "m", "requests": {}} for state in states]
    work = {"id": "w", "queue": "q", "tasks": tasks}
    assert jobs([work]).task_state == [RUNNING, RELEASING, RELEASING, GONE]
    assert jobs([work | {"evicted": True}]).task_state == [RELEASING, RELEASING, RELEASING, GONE]


def test_a_request_of_what_no_node_has_widens_every_vector() -> None:
    work = {"id": "w", "queue": "q", "tasks": [TASK | {"node": "m", "requests": {"cpu": "1500m", "gpu": 1}}]}
    found = jobs([work], {"id": "a", "queue": "q", "tasks": [TASK | {"requests": {"x": 3}}]})
    assert [vector[:3] for vector in found.task_request] == [(1500, 0, 1000), (0, 0, 0)]
    assert [vector[-1] for vector in found.task_request] == [0, 3]
    assert len({len(vector) for vector in found.task_request}) == 1
