"""One rule, two speeds: the quick look at an input and the walk that names every problem agree on whatever is drawn."""

# pyright: reportPrivateUsage=false

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.solver import check
from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.model.configuration import FlavorQuotas, Queue, Quota, ResourceGroup
from app.solver.model.problems import InvalidInput, Nearest
from app.solver.model.state import (
    Ask,
    Delta,
    Node,
    NodeChanges,
    QueueState,
    Reservation,
    State,
    Task,
    Workload,
    WorkloadChanges,
)

NAMES = {"a", "b"}
queues = st.sampled_from(["a", "b", "b", "none"])
nodes = st.sampled_from([None, "n1", "n2", "gone"])
amounts = st.sampled_from([1, "500m", 0, "2Gi", "x", -1])
requests = st.dictionaries(st.sampled_from(["cpu", "memory"]), amounts, max_size=2)
good = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from([0, 1, "2k"]), max_size=2)


def tasks(resources: st.SearchStrategy[dict[str, int | str]]) -> st.SearchStrategy[Task]:
    return st.builds(
        Task, name=st.sampled_from(["t1", "t2", "t3"]), requests=resources, node=nodes, required_node=nodes,
        usage=st.none() | resources, count=st.just(2), min_count=st.sampled_from([None, None, 1, 3]),
    )  # fmt: skip


# Amounts are left to the engines' own load, which stumbles over those that are none: here they are sound.
running = st.builds(
    Task,
    name=st.sampled_from(["t1", "t2", "t3"]),
    requests=good,
    node=st.sampled_from([None, "n1", "n2", "n2", "gone"]),
)
workloads = st.builds(
    Workload, id=st.sampled_from(["w1", "w2", "w3", "w4", "w5"]), queue=queues, tasks=st.lists(running, max_size=3)
)
asks = st.builds(
    Ask, id=st.sampled_from(["x", "y", "z"]), queue=queues, workload=st.sampled_from([None, "w1", "x", "lost"]),
    tasks=st.lists(tasks(requests), max_size=2), required_node=nodes, limit=st.none() | requests,
    feasible_nodes=st.none() | st.lists(st.sampled_from(["n1", "n2", "gone"]), max_size=2),
)  # fmt: skip
states = st.builds(
    State,
    nodes=st.lists(st.builds(Node, name=st.sampled_from(["n1", "n2"]), capacity=good), min_size=1, max_size=2),
    workloads=st.lists(workloads, max_size=4),
    reservations=st.lists(st.builds(Reservation, node=st.sampled_from(["n1", "gone"]), ask=asks), max_size=1),
    queues=st.dictionaries(queues, st.just(QueueState()), max_size=1),
)
some_nodes = st.lists(st.builds(Node, name=st.sampled_from(["n1", "n2"]), capacity=good), max_size=1)
deltas = st.builds(
    Delta, generation=st.just(1),
    nodes=st.builds(
        NodeChanges, add=some_nodes, change=some_nodes, remove=st.lists(st.sampled_from(["n1", "n2"]), max_size=1)
    ),
    workloads=st.builds(
        WorkloadChanges, add=st.lists(workloads, max_size=1), change=st.lists(workloads, max_size=1),
        remove=st.lists(st.sampled_from(["w1", "w2"]), max_size=1),
    ),
    queues=st.dictionaries(queues, st.just(QueueState()), max_size=1),
)  # fmt: skip
quotas = st.builds(
    Quota, guaranteed=st.none() | amounts | st.just("unlimited"), limit=st.none() | amounts,
    borrowing_limit=st.none() | amounts, lending_limit=st.none() | amounts,
    weight=st.sampled_from([None, 1.0, -1.0, float("inf")]),
)  # fmt: skip
of_resources = st.dictionaries(st.sampled_from(["cpu", "memory"]), quotas, max_size=2)
flavors = st.builds(FlavorQuotas, name=st.sampled_from(["f1", "f2"]), quota=of_resources)
groups = st.builds(
    ResourceGroup, resources=st.just(["cpu"]) | st.just(["cpu", "memory"]), flavors=st.lists(flavors, max_size=2)
)
documents = st.builds(
    Queue, name=st.just("a"), quota=st.none() | of_resources, resource_groups=st.none() | st.lists(groups, max_size=2)
)


@given(states)
def test_a_state_is_sound_at_a_glance_exactly_when_nothing_is_wrong_with_it(state: State) -> None:
    assert check.quick_state(NAMES, state, Index(state)) == (check.state_problems(NAMES, state) == [])


@given(states)
def test_what_an_engine_looks_at_itself_is_all_that_is_left_to_it(state: State) -> None:
    index = Index(state)
    known: set[str | None] = {None, *index.nodes}
    left = all(w.queue in NAMES and check.sound_tasks(w.tasks, known) for w in state.workloads)
    assert check.quick_state(NAMES, state, index) == (
        check.quick_state(NAMES, state, index, engine_looks=True) and left
    )


@pytest.mark.slow
@given(states, deltas)
def test_what_a_delta_leaves_is_sound_at_a_glance_exactly_when_nothing_is_wrong_with_it(
    old: State, delta: Delta
) -> None:
    assume(check.state_problems(NAMES, old) == [])
    try:
        new, index, changes = apply_delta(old, Index(old), delta)
    except InvalidInput:
        return  # names what is not there: never looked at
    assert check.quick_changes(NAMES, old, new, index, changes) == (check.state_problems(NAMES, new) == [])


@given(states, st.lists(asks, max_size=3))
def test_asks_that_pass_at_a_glance_have_no_problem(state: State, found: list[Ask]) -> None:
    index = Index(state)
    walked = list(check._duplicates((a.id for a in found), ("asks",), "ask", field="id"))
    for i, ask in enumerate(found):
        walked += check._ask_problems(ask, NAMES, index.nodes, index.workloads, ("asks", i), Nearest(NAMES))
    assert check.ask_problems(NAMES, index, found) == walked


@given(documents)
def test_quotas_that_pass_at_a_glance_have_no_problem(queue: Queue) -> None:
    if check._plain_quotas(queue):
        assert list(check._quota_problems(queue, ())) == []
