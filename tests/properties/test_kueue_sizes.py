"""One rule, two speeds: what is plain Python for a few workloads and columns for many decides the same."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kueue import candidates, knobs
from app.solver.engines.kueue import state as compiled
from app.solver.engines.kueue.amounts import Shapes
from app.solver.engines.kueue.engine import ENGINE
from app.solver.model.state import State, Task
from tests.support.bounds import Bounded
from tests.support.kueue_updates import cluster, decisions, small_states_are_settled_too, work
from tests.support.profiles import examples

LAWS = examples(40)
__all__ = ["small_states_are_settled_too"]
PLAIN, COLUMNS = 10**9, -1


def _not_simple(shapes: Shapes, task: Task) -> None:
    """Every task takes the longer way."""


def _answers(seed: int, *, fair: bool) -> tuple[list[int], list[list[Any]]]:
    rng = random.Random(seed)
    state = msgspec.convert({"workloads": [work(rng, f"w{i}") for i in range(rng.randint(0, 25))]}, State)
    loaded = ENGINE.load(ENGINE.configure(cluster(fair=fair)), state)
    return loaded.used, decisions(loaded, rng)


@LAWS
@given(st.integers(0, 10**6), st.booleans())
def test_few_and_many_are_decided_alike(seed: int, fair: bool) -> None:
    usual = _answers(seed, fair=fair)
    for module, name in (
        (compiled, "FEW"),
        (candidates, "FEW"),
        (candidates, "FEW_QUEUES"),
        (candidates, "FEW_OF"),
        (knobs, "MANY"),
    ):
        for size in (PLAIN, COLUMNS):
            with pytest.MonkeyPatch.context() as patched:
                Bounded(patched)(module, **{name: size})
                assert _answers(seed, fair=fair) == usual, (module.__name__, name, size)


@LAWS
@given(st.integers(0, 10**6))
def test_tasks_of_one_resource_are_resolved_as_all_others(seed: int) -> None:
    usual = _answers(seed, fair=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Shapes, "_simple", _not_simple)
        assert _answers(seed, fair=False) == usual
