"""The path of one allocation ask, in the order of the original: placing, preconditions, candidates, choice."""

from collections.abc import Hashable, Iterator, Sequence
from functools import cache

import msgspec
import numpy as np
from msgspec.structs import replace

from app.solver.engines.yunikorn import candidates as nodes
from app.solver.engines.yunikorn import shipped
from app.solver.engines.yunikorn.candidates import (
    Alone,
    Common,
    Found,
    Outcome,
    Reach,
    Silent,
    candidates,
    joined,
    reach,
)
from app.solver.engines.yunikorn.configuration import SECOND
from app.solver.engines.yunikorn.guarantees import (
    Allowance,
    Bounds,
    Giving,
    Need,
    Needs,
    SmallestSet,
    claim_of,
    has_headroom,
    law_2_slack,
    over_limit_of_nothing,
    path_needs,
    without_superfluous,
)
from app.solver.engines.yunikorn.overlay import CHECK_EVERY, Held, Overlay, Request, whose_is
from app.solver.engines.yunikorn.shipped import Preemptor
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, Bools, CompiledState, Ints
from app.solver.model.base import units

EXACT_CANDIDATES = 16
"""Most candidates on a node for the exact search."""
EXACT_STEPS = 100_000
"""Steps of exact search for one ask, over all nodes and tiers: it must end, whatever the input."""
TIERS = ((), (ORIGINATOR,), (OPTED_OUT,), (ORIGINATOR, OPTED_OUT, ORIGINATOR | OPTED_OUT))
"""Whom each round may take besides plain tasks: law 1 first, then originators as far as possible."""


@cache
def _marked(tier: tuple[int, ...]) -> Bools:
    """By flags of a task: whether they are one of these."""
    return np.isin(np.arange(1 + (ORIGINATOR | OPTED_OUT)), tier)


class Lawful:
    """One search for one ask: the choice that keeps the seven laws of the preemption design without exception.

    1 opted-out tasks only when nothing else makes room on any node; 2 no queue falls below its guarantee; 3 never the
    ask's own application; 4 the asking side is under its guarantee before; 5 the victim's is over it; 6 victims have
    lower or equal priority; 7 the fence. Laws 3 to 7 hold for every candidate (``candidates.py``), law 2 for all
    victims together (``guarantees.py``). All victims are on the node, the ask then fits it and every limit, and nobody
    is superfluous."""

    def __init__(
        self, overlay: Overlay, request: Request, within: Reach, candidates: Ints, pool: nodes.Pool, record: Silent
    ) -> None:
        self._record, self._overlay, self._state = record, overlay, overlay.state
        self._request, self._within, self._pool = request, within, pool
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
        if not self._record.on and (alone := self._alone(self._candidates[flags == 0])) is not None:
            return alone
        for tier in TIERS:
            if tier and not _marked(tier)[flags].any():
                continue
            among = self._candidates[_marked((0, *tier))[flags]]
            first = next(self._sets(among), None)
            if first is not None:
                return Found(first[1], first[2])
        return Found(failed="no-candidates" if not len(self._candidates) else "no-node")

    def _alone(self, among: Ints) -> Found | None:
        """What ``_sets`` has first where it is plain: on the first node, by name, where one of ``among`` makes room
        alone, the first in order does. No set is smaller, and no node before has one of this size. Asks that have it
        all in common take the nodes after that, as long as nothing else changes."""
        state = self._state
        on = state.node[among]
        enough = self._usable[on]
        for r, amount in self._request.needs.items():
            gives = state.column(r)[among]
            enough &= gives >= (amount - nodes.column(self._overlay.free, r))[on]
            for need in self._path.of:
                if need.resource == r:
                    enough &= (gives >= need.amount) & self._below(need.queue, among)
        of = self._request, _common(state, self._request, self._within, self._path.of)
        alone = Alone(state, of, among, enough)
        alone.signs = _signs(self._overlay, self._within.claim)
        if not self._pool.cancelled and self._request.ask.id not in self._overlay.holders():
            self._overlay.victims = alone
        return alone.next(self._allowance)

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
        kinds: list[int] = pairs.tolist()
        some = dict(zip(kinds, candidates.tolist(), strict=True))
        lets = {kind: self._allowance.lets(task) for kind, task in some.items()}
        return np.fromiter(map(lets.__getitem__, kinds), dtype=bool, count=len(kinds))

    def _search(self, node: int) -> tuple[int, list[int]] | None:
        state = self._state
        on_node = state.tasks_on(node)
        allowed: list[int] = on_node[self._allowed[on_node]].tolist()
        order = sorted(allowed, key=lambda task: (int(state.flags[task]), -state.created(task)))
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


ATTEMPTS = 10
"""Preemption attempts of a leaf queue in one cycle (YuniKorn: maxPreemptionsPerQueue)."""


class Context(msgspec.Struct, frozen=True):
    """What holds for the whole question. ``scored``: nodes are chosen with predicate calls and scores."""

    now: int
    scored: bool


def decide(overlay: Overlay, request: Request, context: Context, record: Silent) -> Outcome:
    """What becomes of the ask, on the overlay as it is; ``apply`` carries it out."""
    if overlay.state.configuration.limits.some and (refused := _refusal(overlay, request)) is not None:
        return refused
    vain = overlay.vain
    alike = None if record.on or request.ask.id in overlay.holders() else request.alike
    if alike in vain:
        headroom: bool = vain[alike][1]
    else:
        headroom = has_headroom(overlay, request)
        if headroom and (node := place(overlay, request)) is not None:
            return Outcome("admit", node, cancelled=_making_way(overlay, request))
        if alike is not None:
            vain[alike] = request, headroom
    if request.required is not None:
        return _on_required_node(overlay, request, request.required, record, headroom=headroom)
    if (unmet := _precondition(overlay, request, context)) is not None:
        return unmet
    return look_for_victims(overlay, request, context, record, headroom=headroom, shared=alike is not None)


def may_find(overlay: Overlay, request: Request, now: int) -> bool:
    """Whether an ask that has no room could find victims, or a node that is held too long: if not, it finds none."""
    state, vain = overlay.state, overlay.vain
    if not state.configuration.rules.keeps_guarantees or (overlay.held and nodes.pool(overlay, request, now).cancelled):
        return True
    key = "anybody", request.queue
    if key not in vain:
        vain[key] = request, Giving(overlay, request.queue)
    giving: Giving = vain[key][1]
    enough = state.schedulable
    for r, amount in request.needs.items():
        enough = enough & (giving.room(r) >= amount)
    return bool(enough.any())


def look_for_victims(
    overlay: Overlay, request: Request, context: Context, record: Silent, *, headroom: bool, shared: bool
) -> Outcome:
    """What becomes of an ask that has no room, and may look. ``shared``: what is known of others like it holds."""
    vain = overlay.vain
    who = _taker(overlay.state, request) if shared else None
    if who in vain:
        return vain[who][1]
    outcome = replace(_preempt(overlay, request, context, record, headroom=headroom), attempted=True)
    if who is not None and outcome.kind == "wait" and not outcome.cancelled:
        vain[who] = request, outcome
    return outcome


def _taker(state: CompiledState, request: Request) -> Hashable:
    """Equal for asks that are ``alike`` and find the same victims."""
    return request.alike, request.priority, request.application if request.application in state.queue_of else None


def _common(state: CompiledState, request: Request, within: Reach, over: Sequence[Need]) -> Common:
    """Equal for asks that find the same victims, one after the other, as long as they alone evict."""
    return state, _taker(state, request), tuple(within.ceiling), over


def _signs(overlay: Overlay, claim: int | None) -> tuple[int | None, list[bool]]:
    """Where nobody starts, what else ``reach`` of an ask hangs on."""
    return claim, [left < 0 for left in overlay.slack]


def next_alike(overlay: Overlay, request: Request, bounds: Bounds) -> Outcome | None:
    """``look_for_victims`` of an ask that holds no node, where it takes the next of the victims that were there for
    asks like it; ``bounds``: theirs. None: that has to be seen."""
    alone: Alone | None = overlay.victims
    if alone is None or alone.given is not None or (claim := bounds.claim(overlay)) is None:
        return None
    state, taker, _, over = alone.of[1]
    same = state is overlay.state and alone.signs == _signs(overlay, claim) and taker == _taker(state, request)
    if not same or over != bounds.needs(overlay):
        return None
    following = alone.next(Allowance(state, law_2_slack(overlay, request)))
    if following is None:
        overlay.victims = None  # it is not looked at twice
        return None
    return Outcome("preempt", following.node, following.victims, attempted=True)


def _next(overlay: Overlay, request: Request, within: Reach) -> Found | None:
    """The next of the victims that were found for asks like this one, where nothing but their evictions has changed.
    Whoever may go then, may still: only nodes have been taken, and law 2 allows less."""
    alone: Alone | None = overlay.victims
    if alone is None or alone.given is not None or request.ask.id in overlay.holders():
        return None
    same = alone.of[1] == _common(overlay.state, request, within, path_needs(overlay, request).of)
    return alone.next(Allowance(overlay.state, law_2_slack(overlay, request))) if same else None


def _refusal(overlay: Overlay, request: Request) -> Outcome | None:
    """What limits of applications, users and groups make of the ask, whatever room there is; None: nothing."""
    queues, whose = overlay.state.configuration, whose_is(overlay.state, request)
    limits, path, names = queues.limits, queues.paths[request.queue], queues.tree.names
    running = overlay.tracked()
    holders = whose.trackers(limits, path)
    for queue in path if whose.application not in running.applications[request.queue] else ():
        counts = [("", limits.applications[queue], len(running.applications[queue]))]
        for kind, name in holders:
            limit = limits.of(kind, name, queue)
            most = 0 if limit is None else limit.applications
            counts.append((f"{kind} {name} in ", most, len(running.running[kind, name, queue])))
        for who, most, now in counts:
            if most and now >= most:
                return Outcome.wait("too-many-applications", f"{who}{names[queue]} runs {now} of {most}")
    for queue in path:
        for kind, name in holders:
            if (limit := limits.of(kind, name, queue)) is None:
                continue
            used = running.used[kind, name, queue]
            for r, amount in request.needs.items():
                resource = request.resources.names[r]
                most = limit.resources.get(resource)
                if most is not None and amount > max(0, most - used[resource]):
                    shown = f"{units(used[resource], resource)} of {units(most, resource)} {resource}"
                    return Outcome.wait("user-limit", f"{kind} {name} uses {shown} in {names[queue]}")
    return None


def apply(overlay: Overlay, request: Request, outcome: Outcome) -> None:
    """Carry the outcome out on the overlay, for the asks that come after."""
    if outcome.attempted:
        overlay.attempts[request.queue] += 1
    for node, held in outcome.cancelled:
        if any(other is held for other in overlay.held.get(node, ())):
            overlay.cancel(node, held)
    if outcome.holds and request.required is not None:
        overlay.hold(request.required, request, triggered=request.triggered)
    if outcome.node is None:
        return
    if outcome.kind == "admit":
        overlay.place(outcome.node, request)
    elif outcome.kind == "preempt":
        alone: Alone | None = overlay.victims
        overlay.evict(outcome.victims)
        overlay.hold(outcome.node, request)
        if alone is not None and alone.given is outcome.victims:
            alone.given, overlay.victims = None, alone


def place(overlay: Overlay, request: Request) -> int | None:
    """A node with room now: the required one, else one that the ask holds, else the least used."""
    rules = overlay.state.configuration.rules
    if rules.counts_nothing and over_limit_of_nothing(overlay, request):
        return None
    room = nodes.fits(overlay, request)
    if request.required is not None:
        holders = overlay.held.get(request.required, ()) if rules.keeps_apart else ()
        promised = any(held.required and not held.is_of(request) for held in holders)
        return request.required if room[request.required] and not promised and _may_run_there(request) else None
    room &= overlay.state.schedulable
    room = nodes.among_feasible(request, room)
    own: list[int] = []
    for node, holders in overlay.held.items():
        if any(held.is_of(request) for held in holders):
            own.append(node)
        else:
            room[node] = False
    kept_for_it = [node for node in own if room[node]]
    return nodes.best_for_placing(overlay, nodes.only(room, kept_for_it) if kept_for_it else room)


def _may_run_there(request: Request) -> bool:
    """Whether the node that the ask requires passes its predicates, which is asked when it has room (YuniKorn: tryNode)
    and not before victims are looked for there."""
    return request.feasible is None or request.required in request.feasible


def _precondition(overlay: Overlay, request: Request, context: Context) -> Outcome | None:
    """The first unmet precondition (YuniKorn: attempts left, CheckPreconditions); None when all are met."""
    if not overlay.state.configuration.preemption:
        return Outcome.wait("preemption-off")
    delay = overlay.state.configuration.settings[request.queue].preemption_delay
    waited = context.now - request.created
    if overlay.attempts[request.queue] >= ATTEMPTS:
        return Outcome.wait("attempts-exhausted", f"{ATTEMPTS} attempts a queue and cycle")
    if request.ask.preemption_policy == "Never":
        return Outcome.wait("never-preempts")
    if request.triggered:
        return Outcome.wait("already-triggered")
    if waited * 1000 < delay:
        return Outcome.wait("too-young", f"waiting for {waited / 10**6:g} s of {delay / SECOND:g} s")
    if request.checked is not None and context.now - request.checked < CHECK_EVERY:
        return Outcome.wait("checked-lately", f"{(context.now - request.checked) / 10**6:g} s ago")
    return None


def _on_required_node(overlay: Overlay, request: Request, node: int, record: Silent, *, headroom: bool) -> Outcome:
    """By released rules an ask within its limits that waits keeps its node, large enough, from others that could run
    elsewhere (YuniKorn: tryRequiredNode)."""
    outcome = _evicting_there(overlay, request, node, record, headroom=headroom)
    if outcome.kind != "wait" or not headroom or overlay.state.configuration.rules.counts_free:
        return outcome
    capacity = overlay.state.capacity
    large = all(nodes.column(capacity, r)[node] >= amount for r, amount in request.needs.items())
    held = any(holder.is_of(request) for holder in overlay.held.get(node, ()))
    return replace(outcome, cancelled=_making_way(overlay, request), holds=large and not held)


def _evicting_there(overlay: Overlay, request: Request, node: int, record: Silent, *, headroom: bool) -> Outcome:
    """By released rules nobody goes where there is room already, though the ask may not have it."""
    if request.triggered:
        return Outcome.wait("required-node-released")
    counts_free = overlay.state.configuration.rules.counts_free
    search = shipped.documented_on_node if counts_free else shipped.shipped_on_node
    barred = not _may_run_there(request) if counts_free else headroom and nodes.fits(overlay, request)[node]
    if barred:
        return Outcome.wait("required-node-barred", overlay.state.node_names[node])
    victims = search(overlay, request, record)
    if victims is None:
        room = not path_needs(overlay, request).on(overlay, request, node).of
        failed = "resources-releasing" if counts_free and room else "required-node"
        return Outcome.wait(failed, overlay.state.node_names[node])
    return Outcome("preempt", node, victims, cancelled=_making_way(overlay, request))


def _making_way(overlay: Overlay, request: Request) -> list[tuple[int, Held]]:
    """Reservations on the required node of asks that could run elsewhere (YuniKorn cancels them for a DaemonSet)."""
    if request.required is None:
        return []
    holders = overlay.held.get(request.required, ())
    return [(request.required, held) for held in holders if not held.required and not held.is_of(request)]


def _preempt(overlay: Overlay, request: Request, context: Context, record: Silent, *, headroom: bool) -> Outcome:
    lawful = overlay.state.configuration.rules.keeps_guarantees
    if lawful and not record.on and claim_of(overlay, request) is None:
        return Outcome.wait("queue-guarantees", _asking(overlay, request))
    within = reach(overlay, request)
    if lawful and not record.on and (following := _next(overlay, request, within)) is not None:
        return Outcome("preempt", following.node, following.victims)
    among = candidates(overlay, request, within)
    record.searching(overlay, request, within, among)
    if lawful and within.claim is None:
        return _waits(overlay, request, within, "queue-guarantees")
    pool = nodes.pool(overlay, request, context.now)
    record.opened(pool)
    cancelled = pool.cancelled
    if lawful:
        if headroom and cancelled and (node := _on_cancelled(overlay, request, pool)) is not None:
            return Outcome("admit", node, cancelled=[(n, held) for n, held in cancelled if n == node])
        if len(among) or record.on:
            choice = Lawful(overlay, request, within, among, pool, record).choose()
        else:
            choice = Found(failed="no-candidates")
        cancelled = [(n, held) for n, held in cancelled if n == choice.node]
    else:
        choice = Preemptor(overlay, request, among, pool, record).choose(scored=context.scored, nodes_tried=headroom)
    if choice.failed is None:
        return Outcome("preempt", choice.node, choice.victims, cancelled=cancelled)
    if choice.failed == "queue-guarantees":
        return _waits(overlay, request, within, choice.failed)
    if (holders := _held_up(overlay, request, pool)) is not None:
        return Outcome.wait("nodes-held", holders, cancelled)
    return replace(
        _waits(overlay, request, within, choice.failed if len(among) else "no-candidates"), cancelled=cancelled
    )


def _on_cancelled(overlay: Overlay, request: Request, pool: nodes.Pool) -> int | None:
    """A node that has room now and whose reservation gives way."""
    room = nodes.among_feasible(request, pool.usable & nodes.fits(overlay, request))
    return nodes.best_for_placing(overlay, nodes.only(room, [node for node, _ in pool.cancelled]))


def _held_up(overlay: Overlay, request: Request, pool: nodes.Pool) -> str | None:
    """Who holds the nodes, when every node that could be preempted on is held for others; None when that is not so."""
    held = [(n, of) for n, of in pool.held if request.feasible is None or n in request.feasible]
    if not held or nodes.among_feasible(request, pool.usable).any():
        return None
    rank = overlay.state.node_rank
    held.sort(key=lambda held_node: int(rank[held_node[0]]))
    places = joined([overlay.state.node_names[n] for n, _ in held])
    own = sorted({of.unit + 1 for _, of in held if of.ask.id == request.ask.id and of.unit is not None})
    others = sorted({of.ask.id for _, of in held if of.ask.id != request.ask.id})
    whose = [f"ask{'s' * (len(others) > 1)} {joined(others)}"] if others else []
    if own:
        whose.append(f"task{'s' * (len(own) > 1)} {joined([str(unit) for unit in own])} of the same ask")
    return f"{places} {'is' if len(held) == 1 else 'are'} held for {' and '.join(whose)}"


def _asking(overlay: Overlay, request: Request) -> str:
    return f"asking queue {overlay.state.configuration.tree.names[request.queue]}"


def _waits(overlay: Overlay, request: Request, within: Reach, failed: str) -> Outcome:
    """With the facts of what failed."""
    names = overlay.state.configuration.tree.names
    detail = f"searched below {names[within.fence]}"
    if failed == "queue-guarantees":
        detail = _asking(overlay, request)
    elif within.at_limit and (over := path_needs(overlay, request).of):
        full = over[0].queue
        resource = min(request.resources.names[need.resource] for need in over if need.queue == full)
        detail = f"{names[full or 0]} is at its limit of {resource}"
    return Outcome.wait(failed, detail)
