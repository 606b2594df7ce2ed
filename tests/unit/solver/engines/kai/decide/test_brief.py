"""Whom a cycle looks at where nobody hears why: the plan is that of the cycle which looks at everybody."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from app.solver.engines.kai import actions
from app.solver.engines.kai.configuration import compile_configuration
from app.solver.engines.kai.engine import plan
from app.solver.engines.kai.job_order import Lines, PendingOrder, key_now
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.state import compile_state
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Plan
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, State
from app.solver.question import Question
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import NOW, Json
from tests.unit.solver.engines.kai.case import ask, node, queue, workload

QUEUES = [queue("root", gpu="unlimited"), queue("a", "root"), queue("b", "root")]


def planned(monkeypatch: pytest.MonkeyPatch, workloads: list[Json], *asks: Json, brief: bool) -> tuple[Plan, Json]:
    """By consolidation alone on two nodes of four CPUs; how many had their turn there, and were searched room for."""
    body = {
        "engine": "kai", "now": NOW.isoformat(), "asks": list(asks),
        "configuration": {"queues": QUEUES, "settings": {"kai": {"actions": ["consolidation"]}}},
        "state": {"nodes": [node("m", gpu=0, cpu=4), node("n", gpu=0, cpu=4)], "workloads": workloads},
    }  # fmt: skip
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    assert isinstance(request.asks, list)
    state, counted = compile_state(compile_configuration(request.configuration), request.state), Counter[str]()
    pop, solve = PendingOrder.pop, actions._solve  # pyright: ignore[reportPrivateUsage]

    def counted_pop(order: PendingOrder) -> int | None:
        job = pop(order)
        counted["turns"] += job is not None
        return job

    def counted_solve(*of: Any, **more: Any) -> bool:
        counted["searches"] += 1
        return solve(*of, **more)

    with monkeypatch.context() as patch:
        patch.setattr(PendingOrder, "pop", counted_pop)
        patch.setattr(actions, "_solve", counted_solve)
        question = Question(micros(NOW), request.asks, "cycle", draws=False, brief=brief, ordered=not brief)
        return plan(state, question).plan, {"turns": counted["turns"], "searches": counted["searches"]}


def waiting(number: int, cpu: float) -> list[Json]:
    return [ask(f"p{i}", "ab"[i % 2], gpu=0, cpu=cpu, priority=i) for i in range(number)]


def test_nobody_moves_for_those_that_want_more_than_is_free_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are free, one on each node, and all want three: whoever moves takes as much as it gives."""
    runs = [workload("x", "a", "m", "n", gpu=0, cpu=1.5), workload("y", "b", "m", "n", gpu=0, cpu=1.5)]
    heard, of_all = planned(monkeypatch, runs, *waiting(6, 3), brief=False)
    unheard, few = planned(monkeypatch, runs, *waiting(6, 3), brief=True)
    assert (of_all, few) == ({"turns": 6, "searches": 1}, {"turns": 0, "searches": 0})
    assert heard == unheard == Plan(evictions=[], placements=[])


def test_who_is_no_easier_than_one_that_failed_has_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One and a half are free on each node, and two are asked for; what runs takes two and a half and can't move."""
    runs = [workload("x", "a", "m", gpu=0, cpu=2.5), workload("y", "b", "n", gpu=0, cpu=2.5)]
    heard, of_all = planned(monkeypatch, runs, *waiting(6, 2), brief=False)
    unheard, few = planned(monkeypatch, runs, *waiting(6, 2), brief=True)
    assert (of_all, few) == ({"turns": 6, "searches": 1}, {"turns": 1, "searches": 1})
    assert heard == unheard == Plan(evictions=[], placements=[])


def test_an_easier_one_behind_those_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A half is free on one node and one on the other: if the half moves there, one and a half fit."""
    runs = [workload("x", "a", "m", gpu=0, cpu=3), workload("y", "b", "n", gpu=0, cpu=2.5),
            workload("z", "b", "n", gpu=0, cpu=0.5)]  # fmt: skip
    late = ask("late", "a", gpu=0, cpu=1.5, priority=0)
    heard, of_all = planned(monkeypatch, runs, *waiting(3, 1.75), late, brief=False)
    unheard, few = planned(monkeypatch, runs, *waiting(3, 1.75), late, brief=True)
    assert (of_all, few) == ({"turns": 4, "searches": 2}, {"turns": 4, "searches": 2})
    assert [eviction.workload for eviction in heard.evictions] == ["z"]
    assert heard == unheard


def test_who_waits_is_put_in_order_from_the_order_of_the_last_round() -> None:
    """Some are gone by then, some are new, and two are not where they were in the request."""
    body = {
        "engine": "kai", "now": NOW.isoformat(), "configuration": {"queues": QUEUES}, "asks": waiting(12, 1),
        "state": {"nodes": [node("m", gpu=0)], "workloads": []},
    }  # fmt: skip
    asks = open_overlay(body).asks
    state = open_overlay(body).state
    rounds: list[Sequence[Ask]] = [asks[:8], [*asks[4:6][::-1], *asks[:2], *asks[9:]], [], asks]
    for some in rounds:
        overlay = Overlay(state, some, micros(NOW))
        keys, by_leaf = Lines(overlay).all()
        in_order = sorted((key_now(overlay, job), job) for job in overlay.jobs.of_ask)
        assert [*keys.items()] == [(job, key) for key, job in in_order]
        assert {entry for entries in by_leaf.values() for entry in entries} == {*in_order}
        assert state.resident.in_line == [id(some[overlay.jobs.ask[job]]) for _, job in in_order]
