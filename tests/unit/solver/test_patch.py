"""A state is what the patch makes of the one before, whatever happened between."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.apply import Index, Patch, patch, patched
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Node, Reservation, State, Workload


def workload(name: str, priority: int = 0) -> Workload:
    return Workload(id=name, queue="q", priority=priority, tasks=[])


def state(*names: str, **fields: object) -> State:
    return msgspec.structs.replace(State(workloads=[workload(name) for name in names]), **fields)


def between(old: State, new: State) -> Patch:
    made = patch(old, Index(old), new)
    assert msgspec.json.encode(patched(old, made)) == msgspec.json.encode(new)
    travelled = msgspec.json.decode(msgspec.json.encode(made), type=Patch)
    assert msgspec.json.encode(patched(old, travelled)) == msgspec.json.encode(new)
    return made


def test_what_stays_is_counted_and_what_is_new_is_told() -> None:
    old = state(*"abcdef")
    assert between(old, old) == Patch()
    assert between(old, state(*"abef")).workloads == [2, -2, 2]
    assert between(old, state(*"abcdefx")).workloads == [6, [workload("x")]]
    changed = State(workloads=[*old.workloads[:2], workload("c", 7), *old.workloads[3:]])
    assert between(old, changed).workloads == [2, -1, [workload("c", 7)], 3]
    assert between(old, State()).workloads == [-6]
    moved = between(old, state(*"bcdefa")).workloads
    assert moved == [-1, 5, [workload("a")]]


def test_nodes_reservations_and_queues_too() -> None:
    old = State(nodes=[Node(name=name, capacity={}) for name in "mno"])
    fewer = State(nodes=[old.nodes[0], old.nodes[2]])
    assert between(old, fewer).nodes == [1, -1, 1]
    held = msgspec.convert([{"node": "m", "ask": {"id": "a", "queue": "q", "tasks": []}}], list[Reservation])
    assert between(old, msgspec.structs.replace(old, reservations=held)) == Patch(reservations=held)
    assert between(msgspec.structs.replace(old, reservations=held), old) == Patch(reservations=[])


names = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), unique_by=lambda pair: pair[0], max_size=12)


@given(names, names)
def test_any_state_from_any_other(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    old, new = (State(workloads=[workload(f"w{n}", p) for n, p in pairs]) for pairs in (before, after))
    between(old, new)


def test_a_patch_of_another_state_is_refused() -> None:
    with pytest.raises(InvalidInput):
        patched(state("a"), Patch(workloads=[2]))
