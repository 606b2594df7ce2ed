"""What an engine is asked: a request without its configuration and state."""

from dataclasses import dataclass, field

from app.solver.model.request import Eviction, Explain, Mode, Options, Proposal
from app.solver.model.state import Ask
from app.solver.trace import Why


@dataclass(frozen=True, slots=True)
class Question:
    """A decision request without its configuration and state. ``now`` in microseconds since 1970."""

    now: int
    asks: list[Ask]
    mode: Mode = "independent"
    options: Options = field(default_factory=Options)
    explain: Explain = "none"
    proposals: list[Proposal] | None = None

    def why(self) -> Why:
        """A fresh record for one ask."""
        return Why(self.explain)


@dataclass(frozen=True, slots=True)
class ProtectionQuestion:
    """A preemptibility request without its configuration and state."""

    now: int
    asks: list[Ask]
    ask: Ask | None = None
    action: str | None = None
    evict: list[Eviction] = field(default_factory=list[Eviction])
