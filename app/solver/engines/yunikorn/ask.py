"""The path of one allocation ask, in the order of the original: placing, preconditions, candidates, choice."""

from dataclasses import dataclass, replace

import numpy as np

from app.solver.engines.yunikorn import required_node
from app.solver.engines.yunikorn import room as nodes
from app.solver.engines.yunikorn.candidates import Outcome, Reach, Silent, candidates, joined, reach
from app.solver.engines.yunikorn.configuration import SECOND
from app.solver.engines.yunikorn.documented import Lawful
from app.solver.engines.yunikorn.overlay import Held, Overlay, Request
from app.solver.engines.yunikorn.room import has_headroom, path_needs
from app.solver.engines.yunikorn.shipped import Preemptor
from app.solver.model.quantity import units

ATTEMPTS = 10
"""Preemption attempts of a leaf queue in one cycle (YuniKorn: maxPreemptionsPerQueue)."""
CHECK_EVERY = 15 * 10**6
"""Microseconds between two checks of one ask (YuniKorn: preemptAttemptFrequency)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What holds for the whole question. ``scored``: nodes are chosen with predicate calls and scores."""

    now: int
    scored: bool


def decide(overlay: Overlay, request: Request, context: Context, record: Silent) -> Outcome:
    """What becomes of the ask, on the overlay as it is; ``apply`` carries it out."""
    if overlay.state.configuration.limits.some and (refused := _refusal(overlay, request)) is not None:
        return refused
    headroom = has_headroom(overlay, request)
    if headroom and (node := _place(overlay, request)) is not None:
        return Outcome("admit", node, cancelled=_making_way(overlay, request))
    if request.required is not None:
        return _on_required_node(overlay, request, request.required, record)
    if (unmet := _precondition(overlay, request, context)) is not None:
        return unmet
    return replace(_preempt(overlay, request, context, record, headroom=headroom), attempted=True)


def _refusal(overlay: Overlay, request: Request) -> Outcome | None:
    """What limits of applications, users and groups make of the ask, whatever room there is; None: nothing."""
    queues, whose = overlay.state.configuration, request.whose
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
    if outcome.node is None:
        return
    if outcome.kind == "admit":
        overlay.place(outcome.node, request)
    elif outcome.kind == "preempt":
        overlay.evict(outcome.victims)
        overlay.hold(outcome.node, request)


def _place(overlay: Overlay, request: Request) -> int | None:
    """A node with room now: the required one, else one that the ask holds, else the least used."""
    room = nodes.fits(overlay, request)
    if request.required is not None:
        kept = any(held.required and not held.is_of(request) for held in overlay.held.get(request.required, ()))
        return request.required if room[request.required] and not kept else None
    room = nodes.among_feasible(request, room & overlay.state.schedulable)
    own: list[int] = []
    for node, holders in overlay.held.items():
        if any(held.is_of(request) for held in holders):
            own.append(node)
        else:
            room[node] = False
    open_ = np.flatnonzero(room)
    kept_for_it = open_[np.isin(open_, np.array(own, dtype=np.int64))]
    if len(kept_for_it):
        open_ = kept_for_it
    return nodes.best_for_placing(overlay, open_) if len(open_) else None


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


def _on_required_node(overlay: Overlay, request: Request, node: int, record: Silent) -> Outcome:
    if request.triggered:
        return Outcome.wait("required-node-released")
    documented = overlay.state.configuration.rules == "documented"
    search = required_node.documented if documented else required_node.shipped
    victims = search(overlay, request, record)
    if victims is None:
        room = not path_needs(overlay, request).on(overlay, request, node).of
        failed = "resources-releasing" if documented and room else "required-node"
        return Outcome.wait(failed, overlay.state.node_names[node])
    return Outcome("preempt", node, victims, cancelled=_making_way(overlay, request))


def _making_way(overlay: Overlay, request: Request) -> list[tuple[int, Held]]:
    """Reservations on the required node of asks that could run elsewhere (YuniKorn cancels them for a DaemonSet)."""
    if request.required is None:
        return []
    holders = overlay.held.get(request.required, ())
    return [(request.required, held) for held in holders if not held.required and not held.is_of(request)]


def _preempt(overlay: Overlay, request: Request, context: Context, record: Silent, *, headroom: bool) -> Outcome:
    documented = overlay.state.configuration.rules == "documented"
    within = reach(overlay, request)
    among = candidates(overlay, request, within)
    record.searching(overlay, request, within, among)
    if documented and within.claim is None:
        return _waits(overlay, request, within, "queue-guarantees")
    pool = nodes.pool(overlay, request, context.now)
    record.opened(pool)
    cancelled = pool.cancelled
    if documented:
        if headroom and (node := _on_cancelled(overlay, request, pool)) is not None:
            return Outcome("admit", node, cancelled=[(n, held) for n, held in pool.cancelled if n == node])
        found = Lawful(overlay, request, among, pool, record).choose()
        cancelled = [(n, held) for n, held in pool.cancelled if n == found.node]
    else:
        found = Preemptor(overlay, request, among, pool, record).choose(scored=context.scored, nodes_tried=headroom)
    if found.failed is None:
        return Outcome("preempt", found.node, found.victims, cancelled=cancelled)
    if found.failed == "queue-guarantees":
        return _waits(overlay, request, within, found.failed)
    if (holders := _held_up(overlay, request, pool)) is not None:
        return Outcome.wait("nodes-held", holders, cancelled)
    return replace(
        _waits(overlay, request, within, found.failed if len(among) else "no-candidates"), cancelled=cancelled
    )


def _on_cancelled(overlay: Overlay, request: Request, pool: nodes.Pool) -> int | None:
    """A node that has room now and whose reservation gives way."""
    room = nodes.among_feasible(request, pool.usable & nodes.fits(overlay, request))
    open_ = np.array([node for node, _ in pool.cancelled if room[node]], dtype=np.int64)
    return nodes.best_for_placing(overlay, open_) if len(open_) else None


def _held_up(overlay: Overlay, request: Request, pool: nodes.Pool) -> str | None:
    """Who holds the nodes, when every node that could be preempted on is held for others; None when that is not so."""
    held = [(n, of) for n, of in pool.held if request.feasible is None or n in request.feasible]
    if not held or nodes.among_feasible(request, pool.usable).any():
        return None
    rank = overlay.state.node_rank
    held.sort(key=lambda one: int(rank[one[0]]))
    places = joined([overlay.state.node_names[n] for n, _ in held])
    own = sorted({of.unit + 1 for _, of in held if of.ask.id == request.ask.id and of.unit is not None})
    others = sorted({of.ask.id for _, of in held if of.ask.id != request.ask.id})
    whose = [f"ask{'s' * (len(others) > 1)} {joined(others)}"] if others else []
    if own:
        whose.append(f"task{'s' * (len(own) > 1)} {joined([str(unit) for unit in own])} of the same ask")
    return f"{places} {'is' if len(held) == 1 else 'are'} held for {' and '.join(whose)}"


def _waits(overlay: Overlay, request: Request, within: Reach, failed: str) -> Outcome:
    """With the facts of what failed."""
    names = overlay.state.configuration.tree.names
    detail = f"searched below {names[within.fence]}"
    if failed == "queue-guarantees":
        detail = f"asking queue {names[request.queue]}"
    elif within.at_limit and (over := path_needs(overlay, request).of):
        full = over[0].queue
        resource = min(request.resources.names[need.resource] for need in over if need.queue == full)
        detail = f"{names[full or 0]} is at its limit of {resource}"
    return Outcome.wait(failed, detail)
