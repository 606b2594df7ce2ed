"""What tests of gpu room share with those beside them."""

import msgspec

from app.solver.engines.kai.actions import Cycle, begin
from app.solver.engines.kai.chance import Chance, Trail
from app.solver.engines.kai.configuration import compile_configuration
from app.solver.engines.kai.solver import Budget
from app.solver.engines.kai.state import compile_state
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import State
from app.solver.question import Question
from tests.support.kai_world import NOW, Json
from tests.unit.solver.engines.kai.case import queue


def cycle_of(body: Json) -> Cycle:
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    state = compile_state(compile_configuration(request.configuration), request.state)
    question = Question(micros(NOW), request.asks)
    return begin(state, question.asks, question.now, Budget(), Trail(), Chance(), strict=False)


def body(nodes: list[Json], workloads: list[Json], *asks: Json) -> Json:
    queues = [queue("a", gpu=8)]
    return {
        "engine": "kai", "configuration": {"queues": queues}, "asks": list(asks),
        "state": {"nodes": nodes, "workloads": workloads}, "now": NOW.isoformat(),
    }  # fmt: skip
