"""Why: records of one decision, and which difference between the rule sets decided it."""

from collections.abc import Iterable

from app.solver.engines.yunikorn.board import Board
from app.solver.engines.yunikorn.guarantee import Level
from app.solver.engines.yunikorn.outcome import Found
from app.solver.engines.yunikorn.request import Request
from app.solver.trace import Why


def record_fates(board: Board, excluded: Iterable[tuple[int, str]], why: Why) -> None:
    """Every task that is no candidate, with the rule that keeps it."""
    cluster = board.cluster
    for task, rule in excluded:
        workload, name = cluster.label(task)
        why.candidate(
            "excluded", rule, workload, task=name, queue=cluster.queue_name(task), node=cluster.tasks[task].node
        )


def note_differences(board: Board, request: Request, level: list[Level | None], found: Found, why: Why) -> None:
    """Placeholder until the rest stands."""
