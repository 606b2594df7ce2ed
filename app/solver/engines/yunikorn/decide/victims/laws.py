"""Laws 2, 4 and 5 of the preemption design, which documented rules keep without exception.

The *fork* of an ask and a victim is the lowest queue above both. Below it the victim's side only loses and the
ask's side only gains, so guarantees there are judged by the one side; the fork and what is above it lose the victim
and gain the ask, and are judged with the ask placed. So every preemption, once its ask is placed, raises the sum over
queues and resources of min(used, guaranteed), and no sequence of them can return to where it was.
"""

from collections.abc import Iterable, Iterator

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.yunikorn.compile.configuration import CompiledConfiguration
from app.solver.engines.yunikorn.compile.state import CompiledState
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.victims.guarantee import keeps_guarantees, shift

_UNBOUND = -(2**100)
"""Slack of a guarantee that forbids nothing."""


class Allowance:
    """What victims may take out before law 2 forbids more, while they are tried. ``slack``: see ``law_2_slack``."""

    def __init__(self, state: CompiledState, slack: list[int]) -> None:
        self._state = state
        self._slack = slack

    def lets(self, task: int) -> bool:
        """Whether the task may go with those that are taken."""
        state = self._state
        return keeps_guarantees(state.configuration, int(state.queue[task]), state.amounts(task), self._slack)

    def let_together(self, tasks: Iterable[int]) -> bool:
        """Whether all of them may; those that may are taken."""
        for task in tasks:
            if not self.lets(task):
                return False
            self.take(task)
        return True

    def take(self, task: int) -> None:
        """The task goes."""
        self._move(task, 1)

    def give_back(self, task: int) -> None:
        """It does not go after all."""
        self._move(task, -1)

    def most(self, leaf: int, resource: int, amount: int) -> int:
        """Of ``amount`` of a resource in a leaf, what can go at most."""
        cells = self._state.configuration.path_cells[leaf].get(resource, ())
        return min([amount, *(max(0, -self._slack[cell]) for cell in cells)])

    def _move(self, task: int, sign: int) -> None:
        state = self._state
        shift(state.configuration, int(state.queue[task]), state.amounts(task), sign, self._slack)


def claim_of(overlay: Overlay, request: Request) -> int | None:
    """Law 4: the lowest queue of the ask's path that is under its guarantee in a resource that the ask needs.

    The ask has a claim against victims outside that queue, whose fork is above it; None: against nobody. What was
    evicted for other asks counts as used, although it has not come yet.
    """
    queues = overlay.state.configuration
    for queue in queues.paths[request.queue]:
        for r, cell in queues.cells[queue].items():
            if r in request.needs and overlay.slack[cell] > overlay.expected(queue, r, request):
                return queue
    return None


def over_guarantee(overlay: Overlay, request: Request, leaf: int, shared: frozenset[int]) -> bool:
    """Law 5: the victim's side is over its guarantee in a resource that the ask needs.

    For each resource the nearest queue to the victim that has a guarantee in it, below the fork, says so; where none
    has, the side is over. ``shared``: the ask's path.
    """
    cells = overlay.state.configuration.cells
    side = list(below_fork(overlay.state.configuration, leaf, shared))
    for r in request.needs:
        nearest = next((cells[queue][r] for queue in side if r in cells[queue]), None)
        if nearest is None or overlay.slack[nearest] < 0:
            return True
    return False


def below_fork(queues: CompiledConfiguration, leaf: int, shared: frozenset[int]) -> Iterator[int]:
    """The queues from ``leaf`` up to the fork with the path ``shared``, the fork left out."""
    for queue in queues.paths[leaf]:
        if queue in shared:
            return
        yield queue


def law_2_slack(overlay: Overlay, request: Request) -> list[int]:
    """By cell, what victims may take out before law 2 forbids it, negated: their amounts are added up to 0.

    Below the fork a queue may fall to its guarantee; one that is under it gives nothing. A queue of the ask's path
    gains the ask as well, and may end at the lesser of its guarantee and what it used before.
    """
    queues = overlay.state.configuration
    out = [min(left, 0) for left in overlay.slack]
    for r, cells in queues.path_cells[request.queue].items():
        for cell in cells:
            out[cell] -= request.needs.get(r, 0)
    return out


def law_2_slack_for_any(overlay: Overlay) -> list[int]:
    """``law_2_slack`` of whatever asks: a queue with several leaves may be the fork of one of them, which brings as
    much as it takes; only queues with one leaf are below every fork."""
    queues = overlay.state.configuration
    leaves = [int(leaf) for leaf in queues.leaf]
    for queue in reversed(queues.tree.top_down):
        if (above := queues.tree.parent[queue]) != ROOTLESS:
            leaves[above] += leaves[queue]
    return [
        min(left, 0) if leaves[queue] == 1 else _UNBOUND
        for left, (queue, _) in zip(overlay.slack, queues.cell_owner, strict=True)
    ]
