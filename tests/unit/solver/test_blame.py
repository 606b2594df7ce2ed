"""What a delta broke is put down to the part of the delta that broke it."""

from typing import Any

import msgspec
import pytest

from app.solver import check
from app.solver.apply import Index
from app.solver.delta import apply_delta, in_delta
from app.solver.model.problems import Problem
from app.solver.model.state import Delta, State

NODE = {"name": "n", "capacity": {"cpu": 1}}
STATE = msgspec.convert(
    {
        "nodes": [NODE, {"name": "other", "capacity": {}}],
        "workloads": [
            {"id": "a", "queue": "q", "tasks": [{"name": "t", "node": "n"}]},
            {"id": "b", "queue": "q", "tasks": [{"name": "t"}, {"name": "u"}]},
        ],
        "reservations": [{"node": "n", "ask": {"id": "x", "queue": "q", "tasks": []}}],
    },
    State,
)
ASK = {"id": "y", "queue": "nowhere", "tasks": []}


@pytest.mark.parametrize(
    ("delta", "blamed"),
    [
        (
            {"workloads": {"add": [{"id": "c", "queue": "q"}, {"id": "d", "queue": "nowhere"}], "remove": ["a"]}},
            ["/workloads/add/1/queue"],
        ),
        (
            {"workloads": {"change": [{"id": "b", "queue": "q", "tasks": [{"name": "t", "node": "nowhere"}]}]}},
            ["/workloads/change/0/tasks/0/node"],
        ),
        (
            {"tasks": {"change": [{"workload": "b", "task": {"name": "u", "requests": {"cpu": "1.5.2"}}}]}},
            ["/tasks/change/0/task/requests/cpu"],
        ),
        (
            {"tasks": {"add": [{"workload": "b", "task": {"name": "v", "node": "nowhere"}}]}},
            ["/tasks/add/0/task/node"],
        ),
        ({"nodes": {"change": [{"name": "other", "capacity": {"cpu": "-1"}}]}}, ["/nodes/change/0/capacity/cpu"]),
        ({"nodes": {"remove": ["n"]}}, ["/nodes/remove/0", "/nodes/remove/0"]),
        ({"reservations": {"add": [{"node": "n", "ask": ASK}]}}, ["/reservations/add/0/ask/queue"]),
        ({"queues": {"nowhere": {}}}, ["/queues/nowhere"]),
    ],
)
def test_pointers_are_into_the_delta(delta: dict[str, Any], blamed: list[str]) -> None:
    sent = msgspec.convert({"generation": 1} | delta, Delta)
    after, _, _ = apply_delta(STATE, Index(STATE), sent)
    problems = check.state_problems({"q"}, after)
    assert [p.pointer for p in in_delta(problems, after, sent)] == blamed


def test_who_still_needs_a_removed_node_is_named() -> None:
    sent = msgspec.convert({"generation": 1, "nodes": {"remove": ["n"]}}, Delta)
    after, _, _ = apply_delta(STATE, Index(STATE), sent)
    found = list(in_delta(check.state_problems({"q"}, after), after, sent))
    assert [p.detail for p in found] == ["'a' still needs node 'n'", "'x' still needs node 'n'"]


def test_what_no_part_of_the_delta_explains_keeps_its_pointer() -> None:
    strange = Problem(pointer="/state/workloads/0/queue", detail="strange")
    assert list(in_delta([strange], STATE, msgspec.convert({"generation": 1}, Delta))) == [strange]


def test_of_two_that_are_called_alike_the_last_is_to_blame() -> None:
    """A name that is there twice is found at its second place, among others."""
    names = ["first", "c", "between", "c", "last"]
    sent = msgspec.convert({"generation": 1, "nodes": {"add": [{"name": n, "capacity": {}} for n in names]}}, Delta)
    after = State(nodes=[*STATE.nodes, *sent.nodes.add])
    found = in_delta([Problem(pointer="/state/nodes/5/name", detail="a second node 'c'")], after, sent)
    assert [p.pointer for p in found] == ["/nodes/add/3/name"]


def test_a_node_that_stays_is_not_to_blame() -> None:
    """The same delta removes another node."""
    strange = Problem(pointer="/state/workloads/0/tasks/0/node", detail="strange")
    sent = msgspec.convert({"generation": 1, "nodes": {"remove": ["other"]}}, Delta)
    assert list(in_delta([strange], STATE, sent)) == [strange]
