"""What an import gives."""

from dataclasses import dataclass

from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State


@dataclass(frozen=True, slots=True)
class Imported:
    """``state`` and ``asks`` are what runs and what waits, where the source says so; ``findings`` say what could not
    be carried over, with pointers into the source."""

    configuration: Configuration
    state: State
    asks: list[Ask]
    findings: list[Finding]
