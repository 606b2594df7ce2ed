"""What is left of guarantees and limits as seen from an asking queue, the laws of the preemption design that keep
guarantees, and preemption for a changed quota (YuniKorn: quota_preemptor.go).

Those are laws 2, 4 and 5, which documented rules keep without exception. The *fork* of an ask and a victim is the
lowest queue above both. Below it the victim's side only loses and the ask's side only gains, so guarantees there are
judged by the one side; the fork and what is above it lose the victim and gain the ask, and are judged with the ask
placed. So every preemption, once its ask is placed, raises the sum over queues and resources of min(used, guaranteed),
and no sequence of them can return to where it was.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from app.solver.compiled import ROOTLESS
from app.solver.engines.yunikorn.configuration import Amounts, CompiledConfiguration
from app.solver.engines.yunikorn.overlay import Overlay, Request
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, CompiledState
from app.solver.model.base import units
from app.solver.model.decision import Plan, PlannedEviction, Result
from app.solver.model.problems import InvalidInput, Problem
from app.solver.question import Question, safe_point

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


HOUR = 3600 * 10**6
_SCORE_ORIGINATOR = 1 << 33
_SCORE_OPTED_OUT = 1 << 34
MILLI = "vcore"
"""The one resource that YuniKorn counts in thousandths."""
QUOTA_ENFORCED = "QuotaChanged"
Rank = tuple[int, int, int, list[float]]


def enforce(state: CompiledState, question: Question, name: str) -> Result:
    """Evictions that bring queue ``name``, which is above it, towards its limit. Raises InvalidInput: no such queue, or
    asks beside it.

    The amount above the limit, capped by the largest overuse of a guarantee on the queue's path, is spread over
    child queues by their share of overuse; each leaf then gives tasks that fit into its part, never more. The caller
    decides when a limit is due (YuniKorn: quota.preemption.delay after it was lowered); a queue within its limit gives
    nothing. Where the original crashes, a parent whose amount is empty, nobody is evicted."""
    queue = state.configuration.tree.index.get(name)
    problems: list[Problem] = []
    if queue is None:
        problems.append(Problem(pointer="/options/yunikorn/enforce_quota", detail=f"no queue {name!r}"))
    if question.asks:
        problems.append(Problem(pointer="/asks", detail="enforcing a quota takes no asks"))
    if queue is None or problems:
        raise InvalidInput(problems)
    overlay = Overlay(state)
    amount = _amount(state, queue)
    parts = list(_parts(state, queue, amount))
    evictions = [_eviction(state, task) for leaf, part in parts for task in _victims(overlay, leaf, part)]
    return Result(
        decisions=[], order=[], plan=Plan(evictions=evictions, placements=[]),
        notes={
            "enforced": {
                "queue": name,
                "above_limit": state.resources.units(amount),
                "parts": {state.configuration.tree.names[leaf]: state.resources.units(part) for leaf, part in parts},
            }
        },
    )  # fmt: skip


def _eviction(state: CompiledState, task: int) -> PlannedEviction:
    workload, name = state.label(task)
    return PlannedEviction(
        workload=workload, task=name, queue=state.queue_name(task), node=state.tasks[task].node,
        reason=QUOTA_ENFORCED,
    )  # fmt: skip


def _amount(state: CompiledState, queue: int) -> Amounts:
    """What the queue is above its limit, without what is being preempted, by resource; only positive amounts."""
    above: Amounts = {}
    for r, most in (state.limit[queue] or {}).items():
        over = state.allocated[queue][r] - state.preempting[queue][r] - most
        if over > 0:
            above[r] = over
    cap = _overuse(state, queue)
    return {r: min(over, cap.get(r, over)) for r, over in above.items()}


def _overuse(state: CompiledState, queue: int) -> Amounts:
    """The largest overuse against a guarantee on the path, by resource that some queue there overuses."""
    largest: Amounts = {}
    for q in state.configuration.paths[queue]:
        for r, guaranteed in (state.configuration.guaranteed[q] or {}).items():
            over = state.allocated[q][r] - guaranteed
            if over > largest.get(r, 0):
                largest[r] = over
    return largest


def _parts(state: CompiledState, queue: int, amount: Amounts) -> Iterator[tuple[int, Amounts]]:
    """(leaf, its part of ``amount``), leaves in the order of their paths."""
    if not amount:
        return
    queues = state.configuration
    if queues.leaf[queue]:
        yield queue, amount
        return
    overuse = {child: over for child in queues.tree.children[queue] if (over := _child_overuse(state, child))}
    total: Amounts = {}
    for over in overuse.values():
        for r, value in over.items():
            total[r] = total.get(r, 0) + value
    for child in sorted(overuse, key=queues.tree.names.__getitem__):
        part = {r: _part(value, total[r], amount[r]) for r, value in overuse[child].items() if r in amount}
        yield from _parts(state, child, part)


def _part(value: int, total: int, amount: int) -> int:
    """``value`` in ``total`` of ``amount``, rounded down; 0 where nobody overuses."""
    return int(value / total * amount) if total else 0


def _child_overuse(state: CompiledState, child: int) -> Amounts:
    """Distance from the guarantee (the original counts what is under it as well), or all usage without one.

    Nothing for a child that is within its guarantee in every resource. A type with 0 says that the child has no part
    in it, one that is missing that the child has no bound on it.
    """
    used, guaranteed = state.allocated[child], state.configuration.guaranteed[child]
    if guaranteed is None:
        return {r: used[r] for r in _named(state, child)}
    if all(used[r] <= held for r, held in guaranteed.items()):
        return {}
    return {r: abs(used[r] - held) for r, held in guaranteed.items()}


def _named(state: CompiledState, queue: int) -> list[int]:
    """Types that some task of the queue names, whatever the amount: those that its usage has in the original."""
    inside = np.zeros(len(state.configuration.tree), dtype=bool)
    inside[state.configuration.tree.under(queue)] = True
    shapes: list[int] = np.unique(state.shape[inside[state.queue]]).tolist()
    return sorted({r for shape in shapes for r in state.shapes[shape]})


def _victims(overlay: Overlay, leaf: int, part: Amounts) -> list[int]:
    """Tasks that fit into the part by themselves and together; one that doesn't is skipped. A part that is all zeros
    takes nobody (YuniKorn: filterAllocations)."""
    state = overlay.state
    if not any(part.values()):
        return []
    lawful = state.configuration.rules.keeps_guarantees
    left = dict(part)
    taken: list[int] = []
    for task in _candidates(state, leaf, part):
        safe_point()
        amounts = state.amounts(task)
        if any(value > left[r] for r, value in amounts.items() if r in left):
            continue
        if lawful and not keeps_guarantees(state.configuration, leaf, amounts, overlay.slack):
            continue
        overlay.evict([task])
        taken.append(task)
        for r, value in amounts.items():
            if r in left:
                left[r] -= value
    return taken


def _candidates(state: CompiledState, leaf: int, part: Amounts) -> list[int]:
    """Tasks of the leaf that may go, in order; Go's sort turns the order of equals round."""
    mask = state.eligible & (state.queue == leaf) & state.shares_a_type(part)
    limit = state.limit[leaf] or {}
    ranks = {task: _rank(state, task, part, limit) for task in reversed(np.flatnonzero(mask).tolist())}
    return sorted(ranks, key=ranks.__getitem__)


def _rank(state: CompiledState, task: int, part: Amounts, limit: Amounts) -> Rank:
    """Highest score, lowest priority, newest by whole hours, smallest shares of the leaf's own limit.

    The score puts originators and opted-out tasks first (shipped) or last (documented, law 1). Shares are of the types
    in the part only, the largest first; those of 0 count as if they were not there (YuniKorn:
    CompUsageRatioSpecificTypes, compareShares).
    """
    flags, amounts = int(state.flags[task]), state.amounts(task)
    score = sum(1 for r in amounts if r in part) * 100 // len(amounts)
    protected = (_SCORE_ORIGINATOR if flags & ORIGINATOR else 0) + (_SCORE_OPTED_OUT if flags & OPTED_OUT else 0)
    score += -protected if state.configuration.rules.opted_out_last else protected
    shares = [_share(state, r, value, limit) for r, value in amounts.items() if r in part and value]
    return -score, int(state.priority[task]), -(state.created(task) // HOUR), sorted(shares, reverse=True)


def _share(state: CompiledState, resource: int, amount: int, limit: Amounts) -> float:
    """Of the limit; without one the raw quantity, which YuniKorn has in thousandths for vcore and else in units."""
    if limit.get(resource):
        return amount / limit[resource]
    return float(amount if state.resources.names[resource] == MILLI else units(amount, state.resources.names[resource]))
