"""The same board under another rule set or another quota: what an explanation compares with."""

from dataclasses import replace

from app.solver.engines.yunikorn.compile.configuration import Amounts, Queues, cells_of
from app.solver.engines.yunikorn.compile.rule_sets import RuleSet
from app.solver.engines.yunikorn.compile.settings import effective
from app.solver.engines.yunikorn.compile.state import slack_of
from app.solver.engines.yunikorn.decide.overlay import Board


def under(board: Board, rules: RuleSet) -> Board:
    """The board as the other rule set would see it."""
    queues = board.cluster.queues
    settings = effective(queues.tree, queues.blocks, rules)
    return _with(board, replace(queues, rules=rules, settings=settings), board.cluster.limit)


def with_guarantee(board: Board, queue: int, resource: int, amount: int) -> Board:
    """The board if ``queue`` were guaranteed ``amount`` steps of ``resource``."""
    queues = board.cluster.queues
    guaranteed = list(queues.guaranteed)
    guaranteed[queue] = {**(guaranteed[queue] or {}), resource: amount}
    cells, path_cells, owner = cells_of(queues.tree, guaranteed)
    changed = replace(
        queues, guaranteed=guaranteed, cells=cells, path_cells=path_cells, cell_owner=owner,
        guarantee_of=[(guaranteed[q] or {})[r] for q, r in owner],
    )  # fmt: skip
    return _with(board, changed, board.cluster.limit)


def with_limit(board: Board, queue: int, resource: int, amount: int) -> Board:
    """The board if the limit of ``queue`` were ``amount`` steps of ``resource``."""
    limit = list(board.cluster.limit)
    limit[queue] = {**(limit[queue] or {}), resource: amount}
    return _with(board, board.cluster.queues, limit)


def _with(board: Board, queues: Queues, limit: list[Amounts | None]) -> Board:
    twin = board.copy()
    twin.cluster = board.cluster.with_queues(queues, limit)
    twin.slack = slack_of(queues, twin.allocated, twin.preempting)
    return twin
