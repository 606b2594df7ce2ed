"""Asks that are alike are compared once, and are told what each would be told by itself."""

import random
from typing import Any

import pytest

from app.solver import solve
from app.solver.engines.yunikorn import explain
from app.solver.model.base import micros, to_datetime
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.decision import Decision
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.question import Question
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

NOW = micros(to_datetime(10**12))
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
    Ask(
        id=f"a{i:02}",
        queue="root.poor",
        created_at=to_datetime(0),
        tasks=[Task(name=f"p{i}", requests={"vcore": size})],
    )
    for i, size in enumerate([3, 2, 2, 2, 3, *[2] * 15])
]


def decided() -> list[Decision]:
    loaded = solve.load(solve.configure(Configuration(engine="yunikorn", queues=QUEUES)), STATE)
    return solve.decide(loaded, Question(NOW, ASKS, "cycle", explain="full")).decisions


def test_alike_asks_are_compared_once_and_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    compared = explain._compared  # pyright: ignore[reportPrivateUsage]

    def counted(overlay: Any, request: Any, context: Any, outcome: Any) -> Any:
        calls.append(request.ask.id)
        return compared(overlay, request, context, outcome)

    def unlike(overlay: Any, request: Any) -> object:
        del overlay
        return request.ask.id

    monkeypatch.setattr(explain, "_compared", counted)
    once = decided()
    assert [decision.outcome for decision in once] == ["admit", "preempt", *["wait"] * 18]
    assert calls == ["a00", "a01", "a02", "a04", "a11"]  # two kinds of asks wait, and attempts end
    monkeypatch.setattr(explain, "_likeness", unlike)
    assert decided() == once
    assert len(calls) == 5 + len(ASKS)


def question(seed: int) -> tuple[World, list[Json], str]:
    """A small cluster and asks of two kinds, some of two tasks, some of which hold a node."""
    rng = random.Random(seed)
    nodes = [node(f"n{i}", {"vcore": rng.randint(2, 5)}) for i in range(3)]
    held = [
        task(f"t{i}", f"n{i % 3}", {"vcore": rng.randint(1, 2)}, 100 + i, preemptible=rng.random() < 0.8)
        for i in range(5)
    ]
    queues = [
        queue("root"), queue("root.a", {"vcore": rng.randint(1, 5)}), queue("root.b", {"vcore": rng.randint(0, 2)}),
    ]  # fmt: skip
    of = World(queues, nodes, [app("a", "root.a"), app("b", "root.b", *held)], rng.choice(["documented", "shipped"]))
    kinds = [ask("", "root.a", {"vcore": rng.randint(1, 3)}, workload="a") for _ in range(2)]
    asks: list[Json] = []
    for i in range(6):
        kind = rng.choice(kinds)
        tasks = [{**kind["tasks"][0], "name": f"x{n}"} for n in range(rng.choice([1, 1, 2]))]
        asks.append(kind | {"id": f"w{i}", "tasks": tasks})
    of.reservations = [{"node": f"n{i}", "ask": rng.choice(asks)} for i in range(rng.choice([0, 1, 2]))]
    return of, asks, rng.choice(["cycle", "independent"])


def test_what_is_told_of_an_ask_does_not_hang_on_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against comparing each by itself."""
    asked = [question(seed) for seed in range(60)]
    together = [of.decide(*asks, mode=mode, explain="full") for of, asks, mode in asked]
    counted = iter(range(10**6))
    monkeypatch.setattr(explain, "_likeness", lambda *_: next(counted))
    for (of, asks, mode), found in zip(asked, together, strict=True):
        assert of.decide(*asks, mode=mode, explain="full") == found
