"""What is left of guarantees and limits as seen from an asking queue, and the laws of the preemption design that keep
guarantees.

Those are laws 2, 4 and 5, which documented rules keep without exception. The *fork* of an ask and a victim is the
lowest queue above both. Below it the victim's side only loses and the ask's side only gains, so guarantees there are
judged by the one side; the fork and what is above it lose the victim and gain the ask, and are judged with the ask
placed. So every preemption, once its ask is placed, raises the sum over queues and resources of min(used, guaranteed),
and no sequence of them can return to where it was.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np

from app.solver.compiled import ROOTLESS
from app.solver.engines.yunikorn.configuration import Amounts, CompiledConfiguration
from app.solver.engines.yunikorn.overlay import Overlay, Request
from app.solver.engines.yunikorn.state import WIDEST, Bools, CompiledState, Doubles
from app.solver.question import safe_point

_MOST_KEPT = 64

Level = dict[int, list[int]]
"""Resource -> the cells whose smallest slack is what remains."""


def levels(queues: CompiledConfiguration, asking: int) -> list[Level | None]:
    """By queue: the cells that count, None when no guarantee is known on the whole path. Not to be changed.

    What is left of a queue's guarantee (YuniKorn: remaining guaranteed resource) is a minimum over the guarantees of
    the queue and its ancestors. Which of them take part depends on the tree and the asking queue alone, never on usage;
    so it is worked out once for a decision as lists of cells, and usage only moves the slack of single cells.

    An ancestor of the asking queue passes nothing down while both have a guarantee, so that siblings are
    judged by their own. The asking queue's own guarantee beats its parents', resource by resource."""
    known = queues.levels.get(asking)
    if known is None:
        known = _levels(queues, asking)
        if len(queues.levels) >= _MOST_KEPT:
            queues.levels.clear()
        queues.levels[asking] = known
    return known


def _levels(queues: CompiledConfiguration, asking: int) -> list[Level | None]:
    tree, above_asking = queues.tree, _ancestor_test(queues, asking)
    by_queue: list[Level | None] = [None] * len(tree)
    own_guarantee = bool(queues.guaranteed[asking])
    for i in tree.top_down:
        above = tree.parent[i]
        parent = by_queue[above] if above != ROOTLESS else None
        own = queues.cells[i]
        if not own:
            by_queue[i] = parent
        elif i == asking:
            by_queue[i] = {**(parent or {}), **{r: [cell] for r, cell in own.items()}}
        elif own_guarantee and above != ROOTLESS and above_asking(i):
            by_queue[i] = None
        else:
            merged = dict(parent or {})
            for r, cell in own.items():
                merged[r] = [*merged.get(r, ()), cell]
            by_queue[i] = merged
    return by_queue


def _ancestor_test(queues: CompiledConfiguration, asking: int) -> Callable[[int], bool]:
    """Whether a queue is above the asking one: in the tree, or (shipped) by a textual prefix of its path."""
    if not queues.rules.ancestors_by_path:
        path = frozenset(queues.paths[asking])
        return path.__contains__
    names = queues.tree.names
    return lambda i: names[asking].startswith(names[i])


def remaining(level: Level, resource: int, slack: Sequence[int]) -> int:
    """What is left in ``resource``; negative when over. Raises KeyError where no guarantee names it."""
    return min(slack[cell] for cell in level[resource])


def over_any(level: Level | None, slack: Sequence[int]) -> bool:
    """Over its guarantee in some resource, or no guarantee known: the leaf may hold candidates."""
    return level is None or _overdrawn(level.values(), slack)


def _overdrawn(guarantees: Iterable[Sequence[int]], slack: Sequence[int]) -> bool:
    for cells in guarantees:
        for cell in cells:  # a generator takes twice as long
            if slack[cell] < 0:
                return True
    return False


def over_some(level: Level | None, resources: Iterable[int], slack: Sequence[int]) -> bool:
    """The same for ``resources`` alone: the leaf may give a victim."""
    return level is None or _overdrawn([level.get(r, ()) for r in resources], slack)


def keeps_guarantees(queues: CompiledConfiguration, queue: int, amounts: Amounts, slack: Sequence[int]) -> bool:
    """Whether taking ``amounts`` out of ``queue`` leaves no cell on its path above 0 that names what they use: with
    the slack as it is, every guarantee stays met; with ``law_2_slack``, law 2 holds."""
    cells = queues.path_cells[queue]
    return all(slack[cell] + amount <= 0 for r, amount in amounts.items() if amount > 0 for cell in cells.get(r, ()))


def shift(queues: CompiledConfiguration, queue: int, amounts: Amounts, sign: int, slack: list[int]) -> None:
    """Give ``amounts`` back to every guarantee on the path of ``queue``, or book them (sign -1)."""
    cells = queues.path_cells[queue]
    for r, amount in amounts.items():
        for cell in cells.get(r, ()):
            slack[cell] += sign * amount


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


SURE = 1e-9
"""Sums in doubles are right but for so much of them."""
_TOGETHER = 1 << 16
"""Leaves times nodes."""


class Giving:
    """What everybody of other queues than ``queue`` could give to an ask of it, as far as law 2 lets them go below the
    fork, whatever else keeps them. Queues above both gain the ask as well: nobody knows yet how much."""

    def __init__(self, overlay: Overlay, queue: int) -> None:
        self._overlay, self._rooms = overlay, dict[int, Doubles]()
        state, tree = overlay.state, overlay.state.configuration.tree
        self._gains = set(chain.from_iterable(state.configuration.path_cells[queue].values()))
        eligible = state.eligible & (state.queue != queue)
        if overlay.gone is not None:
            eligible &= ~overlay.gone
        candidates = np.flatnonzero(eligible)
        queues = state.queue[candidates]
        self._leaves: list[int] = np.flatnonzero(np.bincount(queues, minlength=len(tree))).tolist()
        lets: Bools = np.ones(len(candidates), dtype=bool)
        for r in {r for leaf in self._leaves for r in state.configuration.path_cells[leaf]}:
            most = np.zeros(len(tree), dtype=state.free.dtype)
            most[self._leaves] = self._bounds(r)
            lets &= state.column(r)[candidates] <= most[queues]
        self._candidates = candidates[lets]

    def room(self, resource: int) -> Doubles:
        """By node what is free with the most that those there can give together: a leaf gives no more than it has above
        its guarantees, where few leaves are on few nodes. In doubles: perhaps too much, never too little."""
        if (known := self._rooms.get(resource)) is None:
            known, free = self._most(resource), self._overlay.free
            if resource < free.shape[1]:
                there = free[:, resource].astype(np.float64)
                known = there + known + (np.abs(there) + known) * SURE
            self._rooms[resource] = known
        return known

    def _most(self, resource: int) -> Doubles:
        state, among, size = self._overlay.state, self._candidates, len(self._overlay.state.nodes)
        gives, on = state.column(resource)[among].astype(np.float64), state.node[among]
        if len(self._leaves) * size > _TOGETHER:
            return np.bincount(on, gives, minlength=size).astype(np.float64, copy=False)
        leaf = np.array(self._leaves, dtype=np.int64).searchsorted(state.queue[among])
        by_leaf = np.bincount(leaf * size + on, gives, minlength=len(self._leaves) * size).reshape(-1, size)
        return np.minimum(by_leaf, np.array(self._bounds(resource), dtype=np.float64)[:, None]).sum(0)

    def _bounds(self, resource: int) -> list[int]:
        """By leaf, the most that it may give: what it has above each guarantee on its path below the fork."""
        state, slack, gains = self._overlay.state, self._overlay.slack, self._gains
        cells, top = state.configuration.path_cells, WIDEST if state.narrow else -_UNBOUND
        return [
            min([top, *(max(0, -slack[cell]) for cell in cells[leaf].get(resource, ()) if cell not in gains)])
            for leaf in self._leaves
        ]


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


class Need(msgspec.Struct, frozen=True):
    """``amount`` of ``resource`` is missing: on the node, or in ``queue`` where a victim must be below it."""

    resource: int
    amount: int
    queue: int | None = None


class Needs(msgspec.Struct, frozen=True):
    """What one node lacks together with the limits; all of it must be met."""

    state: CompiledState
    of: tuple[Need, ...]

    def help_of(self, task: int) -> tuple[int, ...]:
        """What evicting ``task`` gives to each need."""
        amounts = self.state.amounts(task)
        path = self.state.configuration.paths[int(self.state.queue[task])]
        return tuple(
            amounts.get(need.resource, 0) if need.queue is None or need.queue in path else 0 for need in self.of
        )


class PathNeeds(msgspec.Struct, frozen=True):
    """What the limits on the asking queue's path lack, whatever the node."""

    state: CompiledState
    of: tuple[Need, ...]

    def on(self, overlay: Overlay, request: Request, node: int) -> Needs:
        """Together with what ``node`` lacks."""
        free: list[int] = overlay.free[node].tolist()
        lacking = [
            Need(r, amount - (free[r] if r < len(free) else 0))
            for r, amount in request.needs.items()
            if r >= len(free) or free[r] < amount
        ]
        return Needs(self.state, (*lacking, *self.of))


def path_needs(overlay: Overlay, request: Request) -> PathNeeds:
    """Counted after everybody that is being preempted has left, and everybody that waits for that has come."""
    state = overlay.state
    return PathNeeds(
        state,
        tuple(
            Need(r, over, q)
            for q in state.configuration.paths[request.queue]
            for r, most in (state.limit[q] or {}).items()
            if r in request.needs and (over := overlay.used_after(q, r, request) + request.needs[r] - most) > 0
        ),
    )


def has_headroom(overlay: Overlay, request: Request) -> bool:
    """Whether every limit on the path takes the ask now."""
    state = overlay.state
    expects = state.configuration.rules.counts_expected
    for q in state.configuration.paths[request.queue]:
        for r, most in (state.limit[q] or {}).items():
            if r not in request.needs:
                continue
            used = overlay.used(q, r) + (overlay.expected(q, r, request) if expects else 0)
            if used + request.needs[r] > most:
                return False
    return True


class Bounds:
    """``has_headroom``, ``claim_of`` and ``path_needs`` of all asks that are alike and hold no node, of which
    ``request`` is one."""

    __slots__ = ("_cells", "_expects", "_limits")

    def __init__(self, state: CompiledState, request: Request) -> None:
        queues, needs = state.configuration, request.needs
        path = queues.paths[request.queue]
        self._expects = queues.rules.counts_expected
        self._limits = [
            (q, r, most - needs[r]) for q in path for r, most in (state.limit[q] or {}).items() if r in needs
        ]
        self._cells = [(cell, q, r) for q in path for r, cell in queues.cells[q].items() if r in needs]

    def have_headroom(self, overlay: Overlay) -> bool:
        """Whether every limit takes one of them now."""
        allocated, coming = overlay.allocated, overlay.coming
        if coming and self._expects:
            return not [q for q, r, most in self._limits if allocated[q][r] + coming.get((q, r), 0) > most]
        return not [q for q, r, most in self._limits if allocated[q][r] > most]  # a generator takes twice as long

    def claim(self, overlay: Overlay) -> int | None:
        """The lowest queue of their path that is under its guarantee."""
        slack, coming = overlay.slack, overlay.coming
        for cell, q, r in self._cells:
            if slack[cell] > (coming.get((q, r), 0) if coming else 0):
                return q
        return None

    def needs(self, overlay: Overlay) -> tuple["Need", ...]:
        """What limits on their path lack."""
        used, leaving, coming = overlay.allocated, overlay.preempting, overlay.coming
        of = [(q, r, used[q][r] - leaving[q][r] + coming.get((q, r), 0) - most) for q, r, most in self._limits]
        return tuple([Need(r, over, q) for q, r, over in of if over > 0])


def over_limit_of_nothing(overlay: Overlay, request: Request) -> bool:
    """Whether a queue on the path is over its limit of a resource that the ask names and wants 0 of."""
    if len(request.needs) == len(request.amounts):
        return False
    state, nothing = overlay.state, request.amounts.keys() - request.needs.keys()
    return any(
        overlay.used(q, r) > most
        for q in state.configuration.paths[request.queue]
        for r, most in (state.limit[q] or {}).items()
        if r in nothing
    )


def without_superfluous(needs: Needs, taken: Sequence[int]) -> list[int]:
    """Put back whoever is not needed, the one taken last being tried last. ``taken`` must make room."""
    helps = [needs.help_of(task) for task in taken]
    spare = [sum(of) - need.amount for of, need in zip(zip(*helps, strict=True), needs.of, strict=True)]
    needed: list[int] = []
    for task, help_ in zip(taken, helps, strict=True):
        if all(given <= room for given, room in zip(help_, spare, strict=True)):
            spare = [room - given for given, room in zip(help_, spare, strict=True)]
        else:
            needed.append(task)
    return needed


class SmallestSet:
    """The exact search on one node: the smallest lawful set that makes room.

    Sets by size, and of one size in the order of taking. ``steps``: how many more tasks may be tried."""

    def __init__(self, allowance: Allowance, needs: Needs, order: Sequence[int], steps: int) -> None:
        self.steps = steps
        self._allowance = allowance
        self._order = order
        self._missing = [need.amount for need in needs.of]
        self._helps = [needs.help_of(task) for task in order]
        rest = [[0] * len(needs.of)]
        for help_ in reversed(self._helps):
            rest.append([a + b for a, b in zip(rest[-1], help_, strict=True)])
        self._rest = rest[::-1]
        """By place in the order: what everybody from there on gives."""

    def find(self) -> list[int] | None:
        """The first set that covers everything missing; None when there is none, or the steps ran out."""
        for size, _ in enumerate(self._order, 1):
            chosen: list[int] = []
            if self._pick(0, size, self._missing, chosen):
                return chosen
        return None

    def _pick(self, start: int, size: int, missing: Sequence[int], chosen: list[int]) -> bool:
        """Extend ``chosen`` by ``size`` lawful tasks from ``start`` on that cover ``missing``."""
        if size == 0:
            return all(lack <= 0 for lack in missing)
        for i in range(start, len(self._order) - size + 1):
            safe_point()
            if self.steps == 0 or any(lack > left for lack, left in zip(missing, self._rest[i], strict=True)):
                return False
            self.steps -= 1
            task = self._order[i]
            if not self._allowance.lets(task):
                continue
            self._allowance.take(task)
            chosen.append(task)
            left = [lack - help_ for lack, help_ in zip(missing, self._helps[i], strict=True)]
            done = self._pick(i + 1, size - 1, left, chosen)
            self._allowance.give_back(task)
            if done:
                return True
            chosen.pop()
        return False
