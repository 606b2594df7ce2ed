"""Asks that are alike are compared once, and are told what each would be told by itself."""

from typing import Any

import pytest

from app.solver import solve
from app.solver.engines.yunikorn.report import comparison
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.decision import Decision
from app.solver.model.instant import at, micros
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.question import Question

NOW = micros(at(10**12))
QUEUES = [
    Queue(name="root"),
    Queue(name="root.poor", parent="root", quota={"vcore": Quota(guaranteed=6)}),
    Queue(name="root.rich", parent="root", quota={"vcore": Quota(guaranteed=1)}),
]
HELD = [Task(name=f"t{i}", node="n1", requests={"vcore": 2}) for i in range(4)]
STATE = State(
    nodes=[Node(name="n1", capacity={"vcore": 8}), Node(name="n2", capacity={"vcore": 3})],
    workloads=[Workload(id="w", queue="root.rich", tasks=HELD)],
)
ASKS = [
    Ask(id=f"a{i:02}", queue="root.poor", created_at=at(0), tasks=[Task(name=f"p{i}", requests={"vcore": size})])
    for i, size in enumerate([3, 2, 2, 2, 3, *[2] * 15])
]


def decided() -> list[Decision]:
    loaded = solve.load(solve.configure(Configuration(engine="yunikorn", queues=QUEUES)), STATE)
    return solve.decide(loaded, Question(NOW, ASKS, "cycle", explain="full")).decisions


def test_alike_asks_are_compared_once_and_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    compared = comparison._compared  # pyright: ignore[reportPrivateUsage]

    def counted(overlay: Any, request: Any, context: Any, outcome: Any) -> Any:
        calls.append(request.ask.id)
        return compared(overlay, request, context, outcome)

    def unlike(overlay: Any, request: Any) -> object:
        del overlay
        return request.ask.id

    monkeypatch.setattr(comparison, "_compared", counted)
    once = decided()
    assert [decision.outcome for decision in once] == ["admit", "preempt", *["wait"] * 18]
    assert calls == ["a00", "a01", "a02", "a04", "a11"]  # two kinds of asks wait, and attempts end
    monkeypatch.setattr(comparison, "_likeness", unlike)
    assert decided() == once
    assert len(calls) == 5 + len(ASKS)
