"""What a search tells of itself, at each moment that matters, with what it has at hand.

``Silent`` forgets it, at the cost of a call; ``explain.Recorder`` keeps it. Neither answers, so that explaining can't
change what is decided.
"""

from collections.abc import Iterable, Sequence

from app.solver.engines.yunikorn.compile.state import Ints
from app.solver.engines.yunikorn.decide.nodes import Pool
from app.solver.engines.yunikorn.decide.outcome import Outcome
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.victims.candidates import Reach
from app.solver.model.trace import Change, Explanation


class Silent:
    """Nobody asked why."""

    __slots__ = ()
    on = False

    def searching(self, overlay: Overlay, request: Request, within: Reach | None, among: Sequence[int] | Ints) -> None:
        """The candidates are known: within the reach of the ask, or (None) on the node that it requires."""

    def opened(self, pool: Pool) -> None:
        """It is known which nodes may be preempted on."""

    def forbidden(self, tasks: Ints) -> None:
        """Law 2 keeps these candidates, each by itself."""

    def searched(self, node: int, taken: Sequence[int], victims: Sequence[int] | None) -> None:
        """A node was searched: who was taken, and who of them is needed; None: it can't make room."""

    def decided(self, overlay: Overlay, request: Request, outcome: Outcome) -> None:
        """What becomes of one allocation ask; ``overlay`` as it was before."""

    def step(self, rule: str, detail: str) -> None:
        """Something that is not part of the search."""

    def blocked(self, blocker: str, changes: Iterable[Change]) -> None:
        """What the ask waits for, and what would let it in."""

    def explanation(self, overlay: Overlay, outcomes: Sequence[tuple[Request, Outcome]]) -> Explanation | None:
        """Everything told about an ask, None when nobody asked."""


SILENT = Silent()
