"""The choice that keeps the seven laws of the preemption design without exception.

1 opted-out tasks only when nothing else makes room on any node; 2 no queue falls below its guarantee; 3 never the
ask's own application; 4 the asking side is under its guarantee before; 5 the victim's is over it; 6 victims have lower
or equal priority; 7 the fence. Laws 3 to 7 hold for every candidate (``candidates.py``), law 2 for all victims
together (``laws.py``). All victims are on the node, the ask then fits it and every limit, and nobody is superfluous.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from app.solver.engines.yunikorn.compile.state import OPTED_OUT, ORIGINATOR, Bools, Ints
from app.solver.engines.yunikorn.decide import nodes
from app.solver.engines.yunikorn.decide.needs import Needs, path_needs, without_superfluous
from app.solver.engines.yunikorn.decide.outcome import Found
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.record import Silent
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.victims.exact import SmallestSet
from app.solver.engines.yunikorn.decide.victims.laws import Allowance, law_2_slack

EXACT_CANDIDATES = 16
"""Most candidates on a node for the exact search."""
EXACT_STEPS = 100_000
"""Steps of exact search for one ask, over all nodes and tiers: it must end, whatever the input."""
TIERS = ((), (ORIGINATOR,), (OPTED_OUT,), (ORIGINATOR, OPTED_OUT, ORIGINATOR | OPTED_OUT))
"""Whom each round may take besides plain tasks: law 1 first, then originators as far as possible."""


class Lawful:
    """One search for one ask."""

    def __init__(self, overlay: Overlay, request: Request, candidates: Ints, pool: nodes.Pool, record: Silent) -> None:
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
        self._usable: Bools = nodes.among_feasible(request, pool.usable)

    def choose(self) -> Found:
        """The best node's set: fewest victims, then the node's name; among sets without opted-out tasks first."""
        if not self._usable.any():
            return Found(failed="no-node")
        if not self._path.of and (self._usable & nodes.fits(self._overlay, self._request)).any():
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
        short = [(r, np.maximum(amount - nodes.column(free, r), 0), None) for r, amount in needs.items()]
        size = len(state.node_names)
        below = [
            (need.resource, np.full(size, need.amount, dtype=free.dtype), self._below(need.queue, among))
            for need in self._path.of
        ]
        bound = nodes.at_least(state, among, [*short, *below])
        self._allowed[:] = False
        self._allowed[among] = True
        open_ = self._usable & (bound < nodes.IMPOSSIBLE)
        return nodes.in_order(state, np.flatnonzero(open_), bound, self._search)

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
