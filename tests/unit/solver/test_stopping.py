import json
import time
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.request import DecisionRequest
from app.solver.question import Question, safe_point, stoppable
from app.solver.solve import Loaded
from tests.support.countdown import Countdown, Stopped
from tests.vectors.files import HERE, read

SEARCHES = {
    "kueue/classic.jsonl.gz": 3,
    "kueue/fair.jsonl.gz": 3,
    "kueue/cycle.jsonl.gz": 3,
    "yunikorn/preempt.jsonl.gz": 2,
    "yunikorn/quota-change.jsonl.gz": 2,
    "kai/decision.jsonl.gz": 3,
    "kai/consolidation.jsonl.gz": 3,
    "ytsaurus/reference-heartbeat.jsonl.gz": 3,
}
"""Recorded decisions, and the fewest safe points within deciding one of those that search the longest."""
_TRIED = 12


def loaded(document: Any) -> tuple[Loaded, Question]:
    request = msgspec.json.decode(json.dumps(document).encode(), type=DecisionRequest)
    assert not isinstance(request.configuration, str)
    state = solve.load(solve.configure(request.configuration, request.engine), request.state)
    now = micros(request.now) if request.now else 0
    return state, Question(now, request.asks, request.mode, request.options, "full")


def points(state: Loaded, question: Question) -> int:
    """Safe points that deciding passes."""
    many = 1 << 30
    left = Countdown(many)
    with stoppable(left):
        solve.decide(state, question)
    return many - left.left


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_stops_wherever_it_is_asked_to_and_leaves_nothing_half_changed(name: str) -> None:
    asked = [vector["request"] for vector in read(HERE / name)[:40]]
    state, question = max(map(loaded, asked), key=lambda one: points(*one))
    expected = msgspec.json.encode(solve.decide(state, question))
    many = points(state, question)
    assert many > SEARCHES[name]
    for at in sorted({at * many // _TRIED for at in range(_TRIED)}):
        with pytest.raises(Stopped), stoppable(Countdown(at)):
            solve.decide(state, question)
        assert msgspec.json.encode(solve.decide(state, question)) == expected


def test_compiling_is_stopped_too() -> None:
    document = read(HERE / "kueue" / "classic.jsonl.gz")[0]["request"]
    with pytest.raises(Stopped), stoppable(Countdown(0)):
        loaded(document)


def test_nobody_asks_outside() -> None:
    with stoppable(Countdown(0)):
        pass
    safe_point()


def test_a_check_is_not_asked_again_before_it_says() -> None:
    asked: list[float] = []

    def check() -> float:
        asked.append(time.monotonic())
        return asked[-1] + 0.05

    begun = time.monotonic()
    with stoppable(check, time.monotonic, begun + 0.05):
        while len(asked) < 2:
            safe_point()
    assert asked[0] >= begun + 0.05
    assert asked[1] >= asked[0] + 0.05
