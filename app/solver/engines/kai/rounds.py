"""Rounds of KAI: a session over all pending jobs; what one pipelines, a later one binds.

Source: KAI Scheduler ``pkg/scheduler/scheduler.go`` (a session every schedule period over a fresh snapshot).
"""

from typing import ClassVar

from app.solver.engines.kai.compile.configuration import CompiledConfiguration
from app.solver.engines.kai.compile.state import CompiledState
from app.solver.placed_rounds import PlacedRounds
from app.solver.rounds import Unit


class KaiRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. Victims are ``releasing`` until their grace is over; room that is being released is room."""

    unit: ClassVar[Unit] = "gang"
