"""What is left of a queue's guarantee, as seen from an asking queue (YuniKorn: remaining guaranteed resource).

The value is a minimum over the guarantees of a queue and its ancestors. Which of them take part depends on the
tree and the asking queue alone, never on usage; so it is worked out once for a decision as lists of cells, and
usage only moves the slack of single cells.
"""

from collections.abc import Callable, Sequence

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.yunikorn.compile.configuration import Amounts, CompiledConfiguration

_MOST_KEPT = 64

Level = dict[int, list[int]]
"""Resource -> the cells whose smallest slack is what remains."""


def levels(queues: CompiledConfiguration, asking: int) -> list[Level | None]:
    """By queue: the cells that count, None when no guarantee is known on the whole path. Not to be changed.

    An ancestor of the asking queue passes nothing down while both have a guarantee, so that siblings are
    judged by their own. The asking queue's own guarantee beats its parents', resource by resource.
    """
    known = queues.levels.get(asking)
    if known is None:
        known = _levels(queues, asking)
        if len(queues.levels) >= _MOST_KEPT:
            queues.levels.clear()
        queues.levels[asking] = known
    return known


def _levels(queues: CompiledConfiguration, asking: int) -> list[Level | None]:
    tree, above_asking = queues.tree, _ancestor_test(queues, asking)
    found: list[Level | None] = [None] * len(tree)
    own_guarantee = bool(queues.guaranteed[asking])
    for i in tree.top_down:
        above = tree.parent[i]
        parent = found[above] if above != ROOTLESS else None
        own = queues.cells[i]
        if not own:
            found[i] = parent
        elif i == asking:
            found[i] = {**(parent or {}), **{r: [cell] for r, cell in own.items()}}
        elif own_guarantee and above != ROOTLESS and above_asking(i):
            found[i] = None
        else:
            merged = dict(parent or {})
            for r, cell in own.items():
                merged[r] = [*merged.get(r, ()), cell]
            found[i] = merged
    return found


def _ancestor_test(queues: CompiledConfiguration, asking: int) -> Callable[[int], bool]:
    """Whether a queue is above the asking one: in the tree, or (shipped) by a textual prefix of its path."""
    if queues.rules == "documented":
        path = frozenset(queues.paths[asking])
        return path.__contains__
    names = queues.tree.names
    return lambda i: names[asking].startswith(names[i])


def remaining(level: Level, resource: int, slack: Sequence[int]) -> int:
    """What is left in ``resource``; negative when over. Raises KeyError where no guarantee names it."""
    return min(slack[cell] for cell in level[resource])


def over_any(level: Level | None, slack: Sequence[int]) -> bool:
    """Over its guarantee in some resource, or no guarantee known: the leaf may hold candidates."""
    return level is None or any(slack[cell] < 0 for cells in level.values() for cell in cells)


def tested_cells(level: Level | None, amounts: Amounts) -> list[int] | None:
    """The cells of which one must be overdrawn for the leaf to give a victim; None: always."""
    if level is None:
        return None
    return [cell for r in amounts for cell in level.get(r, ())]


def keeps_guarantees(queues: CompiledConfiguration, queue: int, amounts: Amounts, slack: Sequence[int]) -> bool:
    """Whether taking ``amounts`` out of ``queue`` leaves no cell on its path above 0 that names what they use: with
    the slack as it is, every guarantee stays met; with ``laws.law_2_slack``, law 2 holds."""
    cells = queues.path_cells[queue]
    return all(slack[cell] + amount <= 0 for r, amount in amounts.items() if amount > 0 for cell in cells.get(r, ()))


def shift(queues: CompiledConfiguration, queue: int, amounts: Amounts, sign: int, slack: list[int]) -> None:
    """Give ``amounts`` back to every guarantee on the path of ``queue``, or book them (sign -1)."""
    cells = queues.path_cells[queue]
    for r, amount in amounts.items():
        for cell in cells.get(r, ()):
            slack[cell] += sign * amount
