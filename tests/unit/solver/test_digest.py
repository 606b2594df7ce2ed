"""Digests: the same document, the same digest, however it was reached."""

import random
from typing import Any

import msgspec
import pytest

from app.solver.apply import Index
from app.solver.delta import StateDigest, apply_delta, digest
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Delta, State, WorkloadChanges


def work(name: str, tasks: int = 1, cpu: int = 1) -> dict[str, Any]:
    return {"id": name, "queue": "q", "tasks": [{"name": f"t{i}", "requests": {"cpu": cpu}} for i in range(tasks)]}


def state(*workloads: dict[str, Any], **more: Any) -> State:
    return msgspec.convert({"workloads": list(workloads), **more}, State)


def test_the_order_of_keys_does_not_matter_that_of_lists_does() -> None:
    one = {"requests": {"cpu": 1, "memory": 2}, "name": "t"}
    other = {"name": "t", "requests": {"memory": 2, "cpu": 1}}
    a, b = ({"id": "a", "queue": "q", "tasks": [t]} for t in (one, other))
    assert StateDigest(state(a)).hexdigest() == StateDigest(state(b)).hexdigest()
    assert StateDigest(state(a, work("b"))).hexdigest() != StateDigest(state(work("b"), a)).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        state(work("a", cpu=2)),
        state(work("a"), work("b")),
        state(work("a"), nodes=[{"name": "n", "capacity": {}}]),
        state(work("a"), queues={"q": {}}),
        state(),
    ],
)
def test_every_part_counts(other: State) -> None:
    assert StateDigest(state(work("a"))).hexdigest() != StateDigest(other).hexdigest()


@pytest.mark.parametrize("tasks", [1, 3, 200])
def test_after_any_deltas_it_is_that_of_the_state_sent_whole(tasks: int) -> None:
    rng = random.Random(tasks)
    now = state(*(work(f"w{i}", rng.randint(1, tasks)) for i in range(300)), nodes=[{"name": "n", "capacity": {}}])
    index, kept = Index(now), StateDigest(now)
    for step in range(40):
        names = rng.sample(sorted(index.workloads), 6)
        changes = {
            "change": [work(name, rng.randint(1, tasks), rng.randint(2, 9)) for name in names[: rng.randint(0, 3)]],
            "remove": names[3 : 3 + rng.choice((0, 0, 1, 3))],
            "add": [work(f"n{step}-{i}", rng.randint(1, tasks)) for i in range(rng.choice((0, 1, 70)))],
        }
        nodes = {"change": [{"name": "n", "capacity": {"cpu": step}}]} if rng.random() < 0.3 else {}
        delta = msgspec.convert({"generation": 1, "workloads": changes, "nodes": nodes}, Delta)
        now, index, changed = apply_delta(now, index, delta)
        kept = kept.after(now, changed)
        if rng.random() < 0.7:
            assert kept.hexdigest() == StateDigest(now).hexdigest()
    assert kept.hexdigest() == StateDigest(now).hexdigest()


def test_integers_past_64_bits_are_refused_where_they_stand() -> None:
    with pytest.raises(InvalidInput) as refused:
        digest({"a": [1, 2**64]}, "configuration")
    assert [p.pointer for p in refused.value.problems] == ["/configuration/a/1"]


def test_a_digest_that_remembers_is_the_same_digest() -> None:
    now = state(*(work(f"w{i}") for i in range(300)))
    found = StateDigest(now)
    found.remember()
    assert found.hexdigest() == StateDigest(now).hexdigest()
    for gone in (299, 17, 0):
        delta = Delta(generation=0, workloads=WorkloadChanges(remove=[now.workloads[gone].id]))
        now, _, changes = apply_delta(now, Index(now), delta)
        found = found.after(now, changes)
        assert found.hexdigest() == StateDigest(now).hexdigest()


def test_where_the_first_few_grow_stretches_are_others() -> None:
    """What was worked out for stretches of another length is not taken for these."""
    now = state(*(work(f"w{i}") for i in range(300)))
    found = StateDigest(now)
    found.hexdigest()
    for name, tasks in (("w3", 40), ("w4", 90), ("w3", 1), ("w299", 5)):
        delta = Delta(generation=0, workloads=WorkloadChanges(change=list(state(work(name, tasks)).workloads)))
        now, _, changes = apply_delta(now, Index(now), delta)
        found = found.after(now, changes)
        assert found.hexdigest() == StateDigest(now).hexdigest()
