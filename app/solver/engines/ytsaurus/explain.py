"""Why an ask waits, and the record of a decision."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.solver.engine import Question
from app.solver.engines.ytsaurus.board import Board
from app.solver.model.decision import Outcome, Shortage
from app.solver.model.state import Ask
from app.solver.model.trace import Explanation


@dataclass(frozen=True, slots=True)
class Reason:
    outcome: Outcome
    code: str
    message: str
    shortages: list[Shortage] | None = None


class Waiting:
    def __init__(self, board: Board, asks: Sequence[Ask], heard: Sequence[int], now: int) -> None:
        self.board = board

    def reason(self, ask: int) -> Reason:
        return Reason("wait", "NotStarving", "")


def explanation(
    board: Board, waiting: Waiting, i: int, ask: Ask, started: list[tuple[str, str]], question: Question
) -> Explanation | None:
    return None
