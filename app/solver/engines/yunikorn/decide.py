"""The path of one allocation ask, in the order of the original: placing, preconditions, candidates, choice."""

from dataclasses import dataclass, replace

import numpy as np

from app.solver.engines.yunikorn import nodes, record, required_node
from app.solver.engines.yunikorn.board import Board, Held
from app.solver.engines.yunikorn.candidates import Reach, candidates, fates, reach
from app.solver.engines.yunikorn.cluster import Ints
from app.solver.engines.yunikorn.compile import Amounts
from app.solver.engines.yunikorn.documented import Lawful
from app.solver.engines.yunikorn.guarantee import levels, remaining
from app.solver.engines.yunikorn.needs import has_headroom, path_needs
from app.solver.engines.yunikorn.outcome import Outcome
from app.solver.engines.yunikorn.request import Request
from app.solver.engines.yunikorn.settings import SECOND
from app.solver.engines.yunikorn.shipped import Preemptor
from app.solver.model.quantity import units
from app.solver.trace import Why

ATTEMPTS = 10
"""Preemption attempts of a leaf queue in one cycle (YuniKorn: maxPreemptionsPerQueue)."""
CHECK_EVERY = 15 * 10**6
"""Microseconds between two checks of one ask (YuniKorn: preemptAttemptFrequency)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What holds for the whole question. ``scored``: nodes are chosen with predicate calls and scores."""

    now: int
    scored: bool


def decide(board: Board, request: Request, context: Context, why: Why) -> Outcome:
    """What becomes of the ask, on the board as it is; ``apply`` carries it out."""
    headroom = has_headroom(board, request)
    if headroom and (node := _place(board, request)) is not None:
        return Outcome("admit", node, cancelled=_making_way(board, request))
    if request.required is not None:
        return _on_required_node(board, request, why)
    if (unmet := _precondition(board, request, context)) is not None:
        return unmet
    return replace(_preempt(board, request, context, why, headroom=headroom), attempted=True)


def apply(board: Board, request: Request, outcome: Outcome) -> None:
    """Carry the outcome out on the board, for the asks that come after."""
    if outcome.attempted:
        board.attempts[request.queue] = board.attempts.get(request.queue, 0) + 1
    for node, held in outcome.cancelled:
        if any(other is held for other in board.held.get(node, ())):
            board.cancel(node, held)
    if outcome.node is None:
        return
    if outcome.kind == "admit":
        board.place(outcome.node, request)
    elif outcome.kind == "preempt":
        board.evict(outcome.victims)
        board.hold(outcome.node, request)


def _place(board: Board, request: Request) -> int | None:
    """A node with room now: the required one, else one that the ask holds, else the least used."""
    room = nodes.fits(board, request)
    if request.required is not None:
        kept = any(held.required and not held.is_of(request) for held in board.held.get(request.required, ()))
        return request.required if room[request.required] and not kept else None
    room &= board.cluster.schedulable
    if request.feasible is not None:
        room &= np.isin(np.arange(len(room)), sorted(request.feasible))
    own: list[int] = []
    for node, holders in board.held.items():
        if any(held.is_of(request) for held in holders):
            own.append(node)
        else:
            room[node] = False
    open_ = np.flatnonzero(room)
    kept_for_it = open_[np.isin(open_, np.array(own, dtype=np.int64))]
    if len(kept_for_it):
        open_ = kept_for_it
    return nodes.best_for_placing(board, open_) if len(open_) else None


def _precondition(board: Board, request: Request, context: Context) -> Outcome | None:
    """The first unmet precondition (YuniKorn: attempts left, CheckPreconditions); None when all are met."""
    delay = board.cluster.queues.settings[request.queue].preemption_delay
    waited = context.now - request.created
    if board.attempts.get(request.queue, 0) >= ATTEMPTS:
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


def _on_required_node(board: Board, request: Request, why: Why) -> Outcome:
    if request.triggered:
        return Outcome.wait("required-node-released")
    documented = board.cluster.queues.rules == "documented"
    victims = required_node.documented(board, request) if documented else required_node.shipped(board, request)
    if why.on:
        record.candidates(board, required_node.candidates(board, request), why)
        record.victims(board, victims or [], "required-node", why)
    if victims is None:
        room = not path_needs(board, request).on(board, request, request.required or 0).of
        failed = "resources-releasing" if documented and room else "required-node"
        return Outcome.wait(failed, board.cluster.node_names[request.required or 0])
    return Outcome("preempt", request.required, victims, cancelled=_making_way(board, request))


def _making_way(board: Board, request: Request) -> list[tuple[int, Held]]:
    """Reservations on the required node of asks that could run elsewhere (YuniKorn cancels them for a DaemonSet)."""
    if request.required is None:
        return []
    holders = board.held.get(request.required, ())
    return [(request.required, held) for held in holders if not held.required and not held.is_of(request)]


def _preempt(board: Board, request: Request, context: Context, why: Why, *, headroom: bool) -> Outcome:
    documented = board.cluster.queues.rules == "documented"
    within = reach(board, request)
    among = candidates(board, request, within)
    _record(board, request, within, among, why)
    if documented and within.claim is None:
        return Outcome.wait("queue-guarantees", _facts(board, request, within, "queue-guarantees"))
    pool = nodes.pool(board, request, context.now)
    cancelled = pool.cancelled
    if documented:
        if headroom and (node := _on_cancelled(board, request, pool)) is not None:
            return Outcome("admit", node, cancelled=[(n, held) for n, held in pool.cancelled if n == node])
        found = Lawful(board, request, among, pool, why).choose()
        cancelled = [(n, held) for n, held in pool.cancelled if n == found.node]
    else:
        attempt = Preemptor(board, request, among, pool, why)
        found = attempt.choose(scored=context.scored, nodes_tried=headroom)
    if found.failed is not None:
        failed = "no-candidates" if found.failed != "queue-guarantees" and not len(among) else found.failed
        dropped = cancelled if found.failed != "queue-guarantees" else []
        return Outcome.wait(failed, _facts(board, request, within, failed), dropped)
    if why.on:
        record.victims(board, found.victims, "makes-room", why)
    return Outcome("preempt", found.node, found.victims, cancelled=cancelled)


def _on_cancelled(board: Board, request: Request, pool: nodes.Pool) -> int | None:
    """A node that has room now and whose reservation gives way."""
    room = pool.usable & nodes.fits(board, request)
    if request.feasible is not None:
        room &= np.isin(np.arange(len(room)), sorted(request.feasible))
    open_ = np.array([node for node, _ in pool.cancelled if room[node]], dtype=np.int64)
    return nodes.best_for_placing(board, open_) if len(open_) else None


def _record(board: Board, request: Request, within: Reach, among: Ints, why: Why) -> None:
    if not why.on:
        return
    names = board.cluster.queues.tree.names
    reason = "it can't take the ask within its limit" if within.at_limit else "it is fenced, or the root"
    why.step("fence", f"victims are looked for below {names[within.fence]}: {reason}", candidates=len(among))
    asking, left = _left(board, request, within)
    why.step(
        "asking-queue", f"what is left of the guarantee of {names[asking]}",
        left={request.resources.names[r]: units(amount, request.resources.names[r]) for r, amount in left.items()},
    )  # fmt: skip
    record.excluded(board, fates(board, request, within), why)
    record.candidates(board, among.tolist(), why)


def _left(board: Board, request: Request, within: Reach) -> tuple[int, Amounts]:
    """What is left of the asking side's guarantee, in what the ask names: of the queue that has a claim, or of the
    asking queue as the released rules see it."""
    queues = board.cluster.queues
    if queues.rules == "documented":
        asking = request.queue if within.claim is None else within.claim
        return asking, {r: board.slack[cell] for r, cell in queues.cells[asking].items() if r in request.amounts}
    level = levels(queues, request.queue)[request.queue] or {}
    return request.queue, {r: remaining(level, r, board.slack) for r in request.amounts if r in level}


def _facts(board: Board, request: Request, within: Reach, failed: str) -> str:
    names = board.cluster.queues.tree.names
    if failed == "queue-guarantees":
        return f"asking queue {names[request.queue]}"
    if within.at_limit and (over := path_needs(board, request).of):
        full = over[0].queue
        resource = min(request.resources.names[need.resource] for need in over if need.queue == full)
        return f"{names[full or 0]} is at its limit of {resource}"
    return f"searched below {names[within.fence]}"
