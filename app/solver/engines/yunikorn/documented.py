"""The exact search on one node: the smallest lawful set that makes room.

The choice that keeps the seven laws of the preemption design without exception.

1 opted-out tasks only when nothing else makes room on any node; 2 no queue falls below its guarantee; 3 never the
ask's own application; 4 the asking side is under its guarantee before; 5 the victim's is over it; 6 victims have lower
or equal priority; 7 the fence. Laws 3 to 7 hold for every candidate (``candidates.py``), law 2 for all victims
together (``laws.py``). All victims are on the node, the ask then fits it and every limit, and nobody is superfluous.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from app.solver.engines.yunikorn import room
from app.solver.engines.yunikorn.candidates import Found, Silent
from app.solver.engines.yunikorn.guarantees import Allowance, law_2_slack
from app.solver.engines.yunikorn.overlay import Overlay, Request
from app.solver.engines.yunikorn.room import Needs, path_needs, without_superfluous
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, Bools, Ints
from app.solver.stopping import safe_point


class SmallestSet:
    """Sets by size, and of one size in the order of taking. ``steps``: how many more tasks may be tried."""

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


EXACT_CANDIDATES = 16
"""Most candidates on a node for the exact search."""
EXACT_STEPS = 100_000
"""Steps of exact search for one ask, over all nodes and tiers: it must end, whatever the input."""
TIERS = ((), (ORIGINATOR,), (OPTED_OUT,), (ORIGINATOR, OPTED_OUT, ORIGINATOR | OPTED_OUT))
"""Whom each round may take besides plain tasks: law 1 first, then originators as far as possible."""


class Lawful:
    """One search for one ask."""

    def __init__(self, overlay: Overlay, request: Request, candidates: Ints, pool: room.Pool, record: Silent) -> None:
        self._record = record
        self._overlay = overlay
        self._state = overlay.state
        self._request = request
        self._path = path_needs(overlay, request)
        self._allowance = Allowance(overlay.state, law_2_slack(overlay, request))
        spare = self._spare(candidates) if len(candidates) else np.ones(0, dtype=bool)
        self._candidates = candidates[spare]
        record.forbidden(candidates[~spare])
        self._allowed = np.zeros(self._state.task_count, dtype=bool)
        self._steps = EXACT_STEPS
        self._usable: Bools = room.among_feasible(request, pool.usable)

    def choose(self) -> Found:
        """The best node's set: fewest victims, then the node's name; among sets without opted-out tasks first."""
        if not self._usable.any():
            return Found(failed="no-node")
        if not self._path.of and (self._usable & room.fits(self._overlay, self._request)).any():
            return Found(failed="resources-releasing")
        flags = self._state.flags[self._candidates]
        for tier in TIERS:
            if tier and not np.isin(flags, tier).any():
                continue
            among = self._candidates[np.isin(flags, (0, *tier))]
            first = next(self._sets(among), None)
            if first is not None:
                return Found(first[1], first[2])
        return Found(failed="no-candidates" if not len(self._candidates) else "no-node")

    def _sets(self, among: Ints) -> Iterator[tuple[int, int, list[int]]]:
        """(victims, node, set) by number of victims, then node name; nodes searched as late as possible."""
        state, free, needs = self._state, self._overlay.free, self._request.needs
        short = [(r, np.maximum(amount - room.column(free, r), 0), None) for r, amount in needs.items()]
        size = len(state.node_names)
        below = [
            (need.resource, np.full(size, need.amount, dtype=free.dtype), self._below(need.queue, among))
            for need in self._path.of
        ]
        bound = room.at_least(state, among, [*short, *below])
        self._allowed[:] = False
        self._allowed[among] = True
        open_ = self._usable & (bound < room.IMPOSSIBLE)
        return room.in_order(state, np.flatnonzero(open_), bound, self._search)

    def _below(self, queue: int | None, among: Ints) -> Bools:
        inside = np.zeros(len(self._state.configuration.tree), dtype=bool)
        inside[self._state.configuration.tree.under(queue if queue is not None else 0)] = True
        return inside[self._state.queue[among]]

    def _spare(self, candidates: Ints) -> Bools:
        """Law 2 for a single victim, worked out once for each queue and shape."""
        state = self._state
        pairs = state.queue[candidates] * len(state.shapes) + state.shape[candidates]
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
        lets = [self._allowance.lets(task) for task in candidates[first].tolist()]
        return np.array(lets, dtype=bool)[which]

    def _search(self, node: int) -> tuple[int, list[int]] | None:
        state = self._state
        on_node = state.tasks_on(node)
        found: list[int] = on_node[self._allowed[on_node]].tolist()
        order = sorted(found, key=lambda task: (int(state.flags[task]), -state.created(task)))
        needs = self._path.on(self._overlay, self._request, node)
        taken = self._greedy(needs, order)
        victims = None if taken is None else without_superfluous(needs, taken)
        if victims is None and len(order) <= EXACT_CANDIDATES and self._may_suffice(needs, order):
            search = SmallestSet(self._allowance, needs, order, self._steps)
            taken = victims = search.find()
            self._steps = search.steps
        self._record.searched(node, taken or (), victims)
        return None if victims is None else (len(victims), victims)

    def _greedy(self, needs: Needs, order: Sequence[int]) -> list[int] | None:
        """Take in the shipped order whom law 2 allows given the ones taken, until the ask fits; None: it never does."""
        missing = [need.amount for need in needs.of]
        taken: list[int] = []
        for task in order:
            if not self._allowance.lets(task):
                continue
            self._allowance.take(task)
            taken.append(task)
            missing = [lack - help_ for lack, help_ in zip(missing, needs.help_of(task), strict=True)]
            if all(lack <= 0 for lack in missing):
                break
        for task in taken:
            self._allowance.give_back(task)
        return taken if all(lack <= 0 for lack in missing) else None

    def _may_suffice(self, needs: Needs, order: Sequence[int]) -> bool:
        """A bound that spares exact searches: no leaf gives more than it has above the guarantees on its path."""
        state = self._state
        given: dict[int, list[int]] = {}
        for task in order:
            of = given.setdefault(int(state.queue[task]), [0] * len(needs.of))
            for i, help_ in enumerate(needs.help_of(task)):
                of[i] += help_
        return all(
            sum(self._allowance.most(leaf, need.resource, of[i]) for leaf, of in given.items()) >= need.amount
            for i, need in enumerate(needs.of)
        )
