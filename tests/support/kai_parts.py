"""What tests of kai parts share with those beside them."""

import msgspec

from app.solver.engines.kai.configuration import compile_configuration
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.state import compile_state
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import State
from tests.support.kai_world import NOW, Json


def open_overlay(body: Json) -> Overlay:
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    state = compile_state(compile_configuration(request.configuration), request.state)
    return Overlay(state, request.asks, micros(NOW))
