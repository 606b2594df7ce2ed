"""What decisions find out about a compiled state and keep with it changes no later decision."""

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask
from app.solver.question import Question
from tests.support.kai_world import NOW, Shape, cluster
from tests.support.profiles import examples

FAST = examples(80)


@FAST
@given(st.integers(0, 2**32))
def test_a_state_answers_the_tenth_time_as_the_first(seed: int) -> None:
    random = Random(seed)
    body = cluster(seed, Shape(asks=5, rules=random.choice(["documented", "shipped"]), shares_of_gpus=bool(seed % 2)))
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    configured = solve.configure(request.configuration, "kai")
    kept = solve.load(configured, request.state)

    def decided(asks: list[Ask], *, anew: bool) -> tuple[object, ...]:
        loaded = solve.load(configured, request.state) if anew else kept
        answer: Result = solve.decide(loaded, Question(micros(NOW), asks, "cycle", request.options))
        return answer.decisions, answer.order, answer.plan

    for _ in range(6):
        asks = random.sample(request.asks, random.randint(1, len(request.asks)))
        assert decided(asks, anew=False) == decided(asks, anew=True)
