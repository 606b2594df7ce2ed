"""The order of one scheduling cycle."""

from app.solver.engines.yunikorn.compile.state import CompiledState
from app.solver.engines.yunikorn.decide.request import requests_of
from app.solver.model.state import Ask


def in_turn(state: CompiledState, asks: list[Ask]) -> list[Ask]:
    """The asks as a cycle takes them. Raises QuantityError."""
    return sorted(asks, key=lambda ask: _turn(state, ask))


def _turn(state: CompiledState, ask: Ask) -> tuple[int, int, str]:
    """The order of a cycle: priority as the root sees it, then age, then id."""
    request = requests_of(state, ask)[0]
    priority = request.priority
    for q in state.configuration.paths[request.queue]:
        settings = state.configuration.settings[q]
        priority = settings.priority_offset if settings.priority_fence else priority + settings.priority_offset
    return -priority, request.created, ask.id
