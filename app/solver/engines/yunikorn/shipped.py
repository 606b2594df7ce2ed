"""The released preemptor's choice (yunikorn-core be3bb487, preemption.go and, for an ask that must run on one node,
required_node_preemptor.go), defects included.

The original copies every queue twice for every node. Here a pass moves the slack of the few cells on its
victims' paths and takes it back; and nodes are searched in the order of a lower bound of their result, until the
winner can't be beaten any more.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from app.solver.engines.yunikorn.candidates import (
    IMPOSSIBLE,
    Found,
    Keeper,
    Pool,
    Silent,
    at_least,
    column,
    fits,
    in_order,
)
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.guarantees import (
    Level,
    Needs,
    levels,
    over_some,
    path_needs,
    remaining,
    shift,
    without_superfluous,
)
from app.solver.engines.yunikorn.overlay import Overlay, Request
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, CompiledState, Ints, sums
from app.solver.question import safe_point

BATCH = 10
"""Predicate calls made at a time (YuniKorn: preemptCheckConcurrency)."""
SCORE_LIMIT = 1 << 32
SCORE_ORIGINATOR = 1 << 33
SCORE_OPTED_OUT = 1 << 34
SCORE_UNFIT = 1 << 35


class Preemptor:
    """One attempt for one ask."""

    def __init__(self, overlay: Overlay, request: Request, candidates: Ints, pool: Pool, record: Silent) -> None:
        self._record = record
        self._overlay = overlay
        self._state = overlay.state
        self._request = request
        self._ask = request.amounts
        self._needs = request.needs
        self._candidates = candidates
        self._pool = pool
        self._slack = list(overlay.slack)
        self._path_cells = self._state.configuration.path_cells
        self._levels = levels(self._state.configuration, request.queue)
        self._asking: Level = self._levels[request.queue] or {}
        self._has_candidates = np.zeros(len(self._state.node_names), dtype=bool)
        self._has_candidates[self._state.node[candidates]] = True
        self._is_candidate = np.zeros(self._state.task_count, dtype=bool)
        self._is_candidate[candidates] = True

    def choose(self, *, scored: bool, nodes_tried: bool) -> Found:
        """The released order of stages: queue guarantees, nodes, additional victims, trimming."""
        if not self._guarantee_check():
            return Found(failed="queue-guarantees")
        chosen = self._choose_node(scored=scored, nodes_tried=nodes_tried)
        if chosen is None:
            return Found(failed="no-node")
        node, victims = chosen
        had_room = bool(fits(self._overlay, self._request)[node])
        if not self._settled(victims):
            others = self._additional(victims)
            victims = [] if others and self._overdrawn() else [*victims, *others]
        if not victims:
            return Found(failed="no-victims")
        final, short = self._trim(victims, node, had_room=had_room)
        return Found(failed="shortfall") if short else Found(node, final)

    def _guarantee_check(self) -> bool:
        """Whether the ask fits what is left of its queue's guarantee, now or with every candidate gone.

        Removing candidates moves only guarantees of ancestors, upward; so looking at the end is enough.
        """
        if not self._asking:
            return False
        named = [r for r in self._ask if r in self._asking]
        if all(remaining(self._asking, r, self._slack) >= self._ask[r] for r in named):
            return True
        if not len(self._candidates):
            return False
        state = self._state
        queue = state.queue[self._candidates]
        freed = list(self._slack)
        for r in named:
            column = state.column(r)[self._candidates]
            for leaf, amount in enumerate(sums(column, queue, len(state.configuration.tree))):
                for cell in self._path_cells[leaf].get(r, ()) if amount else ():
                    freed[cell] += amount
        return all(remaining(self._asking, r, freed) >= self._ask[r] for r in named)

    def _choose_node(self, *, scored: bool, nodes_tried: bool) -> tuple[int, list[int]] | None:
        checks = self._checks(nodes_tried=nodes_tried)
        if not scored:
            first = next(checks, None)
            return None if first is None else first[1:]
        best: tuple[int, int, list[int]] | None = None
        while batch := list(islice(checks, BATCH)):
            for count, node, victims in batch:
                if self._request.feasible is not None and node not in self._request.feasible:
                    continue
                score = self._score(count, node)
                if best is None or score < best[0]:
                    best = (score, node, victims)
            if best is not None and best[0] < SCORE_LIMIT:
                break
        return None if best is None else best[1:]

    def _checks(self, *, nodes_tried: bool) -> Iterator[tuple[int, int, list[int]]]:
        """(number of victims, node, victims) in the order of the predicate calls: none where the ask has room.

        Lazy: most nodes are never searched."""
        state, overlay = self._state, self._overlay
        room = fits(overlay, self._request)
        short = [(r, np.where(room, 0, amount - column(overlay.free, r)), None) for r, amount in self._needs.items()]
        counts = at_least(state, self._candidates, short)
        open_ = self._pool.usable & (counts < IMPOSSIBLE)
        if nodes_tried:
            open_ &= ~room
        return in_order(state, np.flatnonzero(open_), counts, self._search)

    def _score(self, count: int, node: int) -> int:
        """YuniKorn scores the first candidates of the node's list as sorted, not the victims it would preempt."""
        if not self._has_candidates[node]:
            return SCORE_UNFIT
        if count == 0:
            return 0
        flags = self._state.flags
        seen = 0
        for task in self._ordered(node)[:count]:
            seen |= int(flags[task])
        score = (SCORE_ORIGINATOR if seen & ORIGINATOR else 0) | (SCORE_OPTED_OUT if seen & OPTED_OUT else 0)
        return score + count

    def _ordered(self, node: int) -> list[int]:
        """Candidates on a node: opted-in first, then non-originators, then newest."""
        on_node = self._state.tasks_on(node)
        victims: list[int] = on_node[self._is_candidate[on_node]].tolist()
        flags, created = self._state.flags, self._state.created
        return sorted(victims, key=lambda task: (int(flags[task]), -created(task)))

    def _search(self, node: int) -> tuple[int, list[int]] | None:
        """A node's victims up to the first with whom the ask fits, and their number, which is one more than the index
        that YuniKorn sorts nodes by (calculateVictimsByNode).

        The node is big enough, so that it has a column for everything that the ask needs."""
        free = self._overlay.free[node].tolist()
        if all(free[r] >= amount for r, amount in self._needs.items()):
            return 0, []
        order = self._first_pass(node, list(free))
        victims = self._second_pass(order, free) if order else None
        self._record.searched(node, victims or (), victims)
        return None if victims is None else (len(victims), victims)

    def _first_pass(self, node: int, free: list[int]) -> list[int]:
        """Tasks that reduce what the node lacks, then the others, until the asking queue's guarantee is used up."""
        state, ask = self._state, self._ask
        head: list[int] = []
        tail: list[int] = []
        for task in self._ordered(node):
            queue, amounts = int(state.queue[task]), state.amounts(task)
            if not self._gives(queue):
                continue
            self._move(queue, amounts, 1)
            if not self._ask_has_left(amounts):
                break
            if any(amount > 0 and ask.get(r, 0) > free[r] for r, amount in amounts.items()):
                self._move(self._request.queue, amounts, -1)
                for r, amount in amounts.items():
                    free[r] += amount
                head.append(task)
            else:
                self._move(queue, amounts, -1)
                tail.append(task)
        self._undo()
        return head + tail

    def _second_pass(self, order: list[int], free: list[int]) -> list[int] | None:
        state = self._state
        accepted: list[int] = []
        for task in order:
            queue, amounts = int(state.queue[task]), state.amounts(task)
            if not self._gives(queue):
                continue
            self._move(queue, amounts, 1)
            accepted.append(task)
            for r, amount in amounts.items():
                free[r] += amount
            if all(free[r] >= need for r, need in self._needs.items()):
                self._undo()
                return accepted
        self._undo()
        return None

    def _additional(self, chosen: Sequence[int]) -> list[int]:
        """More victims from anywhere, until the asking queue's guarantee is used up (not until the ask fits). The last
        pass: what it moves is not taken back."""
        state = self._state
        for task in chosen:
            self._move(int(state.queue[task]), state.amounts(task), 1)
        taken: list[int] = []
        others = self._candidates[~np.isin(self._candidates, np.array(chosen, dtype=np.int64))]
        created = state.all_created()[others]
        for task in others[np.lexsort((-created, state.flags[others]))].tolist():
            queue, amounts = int(state.queue[task]), state.amounts(task)
            if not self._gives(queue):
                continue
            self._move(queue, amounts, 1)
            if not self._ask_has_left(amounts):
                self._move(queue, amounts, -1)
                break
            if any(amount > 0 and r in self._asking for r, amount in amounts.items()):
                self._move(self._request.queue, amounts, -1)
                taken.append(task)
            else:
                self._move(queue, amounts, -1)
        return taken

    def _settled(self, victims: Sequence[int]) -> bool:
        """Whether trimming takes nobody after ``victims``, whoever comes, and no overdrawn guarantee could end the
        attempt: looking for more is then in vain."""
        if self._overdrawn():
            return False
        total: Amounts = {}
        for task in victims:
            for r, amount in self._state.amounts(task).items():
                total[r] = total.get(r, 0) + amount
        above = any(held > self._ask[r] for r, held in total.items() if r in self._ask)
        return bool(total) and (above or all(total.get(r) == amount for r, amount in self._ask.items()))

    def _overdrawn(self) -> bool:
        """Whether less than nothing is left of what the asking queue inherits in some resource of the ask, which ends
        an attempt that has found additional victims. A guarantee of its own is not overdrawn at this point."""
        return any(remaining(self._asking, r, self._slack) < 0 for r in self._ask if r in self._asking)

    def _trim(self, victims: list[int], node: int, *, had_room: bool) -> tuple[list[int], bool]:
        """Take victims while their total is nowhere above the ask; then whether it is still short of it."""
        total: Amounts = {}
        final: list[int] = []
        for task in victims:
            if not had_room and int(self._state.node[task]) != node:
                continue
            if _still_above(self._ask, total):
                final.append(task)
            for r, amount in self._state.amounts(task).items():
                total[r] = total.get(r, 0) + amount
        return final, _still_above(self._ask, total)

    def _gives(self, queue: int) -> bool:
        """Whether the queue is over its guarantee in a resource of the ask, or has none (before the removal)."""
        return over_some(self._levels[queue], self._ask, self._slack)

    def _ask_has_left(self, amounts: Amounts) -> bool:
        """Whether a victim's resources fit into what is left of the asking queue's guarantee."""
        return all(
            amount <= remaining(self._asking, r, self._slack) for r, amount in amounts.items() if r in self._asking
        )

    def _move(self, queue: int, amounts: Amounts, sign: int) -> None:
        shift(self._state.configuration, queue, amounts, sign, self._slack)

    def _undo(self) -> None:
        """Take back every move of a pass."""
        self._slack = list(self._overlay.slack)


def _still_above(ask: Amounts, total: Amounts) -> bool:
    """YuniKorn's StrictlyGreaterThanOnlyExisting: of the types in common none is above the ask, not all equal."""
    if not total:
        return bool(ask) and all(amount > 0 for amount in ask.values())
    common = [(amount, total[r]) for r, amount in ask.items() if r in total]
    if any(held > amount for amount, held in common):
        return False
    return not common or any(held != amount for amount, held in common)


_Order = tuple[bool, bool, int, int]
"""An originator, else opted out; priority; age negated."""
_INSERTION = 20
"""Tasks in a block that Go's stable sort sorts by insertion."""


def candidates_on_node(overlay: Overlay, request: Request) -> list[int]:
    """Tasks on the node that may go: plain, opted-out, originators; then least priority, newest, smaller.

    For an ask that must run on the node there is no delay, no guarantee and no fence; its own Never does not hold
    either."""
    state = overlay.state
    assert request.required is not None
    spared = state.application(request.application) if state.configuration.rules.spares_application else None
    on_node: list[int] = state.tasks_on(request.required).tolist()
    there = [
        task
        for task in on_node
        if state.eligible[task]
        and not (overlay.gone is not None and overlay.gone[task])
        and int(state.priority[task]) <= request.priority
        and any(r in request.amounts for r in state.amounts(task))
        and int(state.workload[task]) != spared
    ]
    there.sort(key=lambda task: state.tasks[task].name)
    return _in_stable_order(state, there, {task: _order(overlay, task) for task in there})


def fates_on_node(overlay: Overlay, request: Request) -> Iterator[tuple[int, str]]:
    """Every task that is no candidate, and the rule that keeps it; for explanations."""
    of = keeper_on_node(overlay, request)
    return ((task, rule) for task in range(overlay.state.task_count) if (rule := of(task)) is not None)


def keeper_on_node(overlay: Overlay, request: Request) -> Keeper:
    """The rule that keeps each task, worked out when it is asked for."""
    state, open_ = overlay.state, set(candidates_on_node(overlay, request))

    def of(task: int) -> str | None:
        if task in open_:
            return None
        if int(state.node[task]) != request.required:
            return "on-another-node"
        if state.tasks[task].required_node is not None:
            return "bound-to-its-node"
        if state.tasks[task].state != "running" or (overlay.gone is not None and overlay.gone[task]):
            return "already-leaving"
        if int(state.priority[task]) > request.priority:
            return "higher-priority"
        return "same-application" if any(r in request.amounts for r in state.amounts(task)) else "no-common-resource"

    return of


def _order(overlay: Overlay, task: int) -> _Order:
    state = overlay.state
    flags = int(state.flags[task])
    originator = bool(flags & ORIGINATOR)
    opted_out = not originator and bool(flags & OPTED_OUT)
    return originator, opted_out, int(state.priority[task]), -state.created(task)


def _in_stable_order(state: CompiledState, tasks: list[int], place: Mapping[int, _Order]) -> list[int]:
    """By place, then smaller first, as Go's stable sort leaves them: blocks sorted by insertion, merged two by two.

    How it sorts shows in the answer: YuniKorn's comparison says "less" both ways for requests that are equal or can't
    be compared, which no order satisfies, so that a task moves before everybody it is not strictly larger than."""

    def before(left: int, right: int) -> bool:
        if place[left] != place[right]:
            return place[left] < place[right]
        return not _larger(state.amounts(left), state.amounts(right))

    blocks: list[list[int]] = []
    for start in range(0, len(tasks), _INSERTION):
        safe_point()
        out: list[int] = []
        for task in tasks[start : start + _INSERTION]:
            position = len(out)
            while position and before(task, out[position - 1]):
                position -= 1
            out.insert(position, task)
        blocks.append(out)
    while len(blocks) > 1:
        rest = blocks[1::2] if len(blocks) % 2 == 0 else [*blocks[1::2], []]
        blocks = [_merged(left, right, before) for left, right in zip(blocks[::2], rest, strict=True)]
    return blocks[0] if blocks else []


def _merged(left: list[int], right: list[int], before: Callable[[int, int], bool]) -> list[int]:
    """Both in one order, each being sorted, by the comparisons that SymMerge (Kim and Kutzner) makes."""
    safe_point()
    if not left or not right:
        return left + right
    if len(left) == 1:
        cut = bisect_left(right, True, key=lambda task: not before(task, left[0]))
        return [*right[:cut], *left, *right[cut:]]
    if len(right) == 1:
        cut = bisect_left(left, True, key=lambda task: before(right[0], task))
        return [*left[:cut], *right, *left[cut:]]
    both, middle = left + right, (len(left) + len(right)) // 2
    mirror = middle + len(left)
    low, high = (mirror - len(both), middle) if len(left) > middle else (0, len(left))
    cut = bisect_left(range(len(both)), True, low, high, key=lambda i: before(both[mirror - 1 - i], both[i]))
    end = mirror - cut
    return [
        *_merged(left[:cut], both[len(left) : end], before), *_merged(left[cut:], both[end:], before)
    ]  # fmt: skip


def _larger(left: Amounts, right: Amounts) -> bool:
    """More in some resource and less in none."""
    gaps = [left.get(r, 0) - right.get(r, 0) for r in {**left, **right}]
    return any(gap > 0 for gap in gaps) and all(gap >= 0 for gap in gaps)


def shipped_on_node(overlay: Overlay, request: Request, record: Silent) -> list[int] | None:
    """Collect until the victims alone cover the ask; accept if victims and free space do, and leave no resource of the
    node overcommitted, whether the ask names it or not. None: nobody goes."""
    state, ask = overlay.state, request.amounts
    assert request.required is not None
    total: Amounts = {}
    victims: list[int] = []
    everybody = candidates_on_node(overlay, request)
    record.searching(overlay, request, None, everybody)
    for task in everybody:
        if all(total.get(r, 0) >= amount for r, amount in ask.items()):
            break
        victims.append(task)
        for r, amount in state.amounts(task).items():
            total[r] = total.get(r, 0) + amount
    row: list[int] = overlay.free[request.required].tolist()
    free = dict(enumerate(row))
    covered = all(total.get(r, 0) + free.get(r, 0) >= ask.get(r, 0) for r in free.keys() | ask.keys())
    chosen = victims if victims and covered else None
    record.searched(request.required, victims, chosen)
    return chosen


def documented_on_node(overlay: Overlay, request: Request, record: Silent) -> list[int] | None:
    """The same order beside free space; opted-out tasks only when nothing else makes room; nobody superfluous."""
    assert request.required is not None
    needs = path_needs(overlay, request).on(overlay, request, request.required)
    everybody = candidates_on_node(overlay, request)
    record.searching(overlay, request, None, everybody)
    opted_in = [task for task in everybody if not int(overlay.state.flags[task]) & OPTED_OUT]
    for among in (opted_in, everybody):
        taken = _collect(needs, among)
        chosen = None if taken is None else without_superfluous(needs, taken)
        record.searched(request.required, taken or (), chosen)
        if chosen is not None:
            return chosen
    return None


def _collect(needs: Needs, among: list[int]) -> list[int] | None:
    """Who is taken, in order, until the ask fits; None when it never does."""
    taken: list[int] = []
    missing = [need.amount for need in needs.of]
    for task in among:
        if all(lack <= 0 for lack in missing):
            break
        taken.append(task)
        missing = [lack - help_ for lack, help_ in zip(missing, needs.help_of(task), strict=True)]
    return taken if taken and all(lack <= 0 for lack in missing) else None
