"""Which running tasks an ask may preempt at all: fence, priorities, guarantees of their queues."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.yunikorn.compile.configuration import Amounts
from app.solver.engines.yunikorn.compile.state import Bools, CompiledState, Ints
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.victims.guarantee import levels, over_any
from app.solver.engines.yunikorn.decide.victims.laws import claim_of, over_guarantee

NEVER = -(2**62)
ALWAYS = 2**62
"""Priority ceilings of a leaf: nobody there, and everybody whatever their priority."""
Protection = Callable[[int], str | None]
"""Why a leaf's guarantee keeps its tasks from the ask; None when it does not."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an ask may reach. ``fence``: the queue below which victims are looked for; ``at_limit``: the fence is
    there because that queue can't take the ask; ``claim``: see ``laws.claim_of`` (None with the released rules, which
    judge by what is left of the guarantee); ``ceiling``: by queue, the highest priority of a candidate; ``excluded``:
    by leaf, why it gives nobody."""

    fence: int
    at_limit: bool
    claim: int | None
    ceiling: list[int]
    excluded: dict[int, str]


def path_limits(state: CompiledState, queue: int) -> dict[int, Amounts]:
    """By queue of the path: the effective limit, the smallest of its own and its ancestors' (root: the nodes)."""
    limits: dict[int, Amounts] = {}
    tightest: Amounts = {}
    for q in reversed(state.configuration.paths[queue]):
        for r, amount in (state.limit[q] or {}).items():
            tightest[r] = min(amount, tightest.get(r, amount))
        limits[q] = dict(tightest)
    return limits


def reach(overlay: Overlay, request: Request) -> Reach:
    """Fence and priority ceilings (YuniKorn: findPreemptionFenceRoot, findEligiblePreemptionVictims)."""
    fence, at_limit, priorities = _fence(overlay, request)
    queues = overlay.state.configuration
    documented = queues.rules == "documented"
    claim = claim_of(overlay, request) if documented else None
    found = Reach(fence, at_limit, claim, [NEVER] * len(queues.tree), {})
    protection = _by_law(overlay, request, claim) if documented else _as_shipped(overlay, request)
    _descend(overlay, request, protection, priorities, found)
    return found


def _fence(overlay: Overlay, request: Request) -> tuple[int, bool, dict[int, int]]:
    """Up from the asking leaf to the first queue that is fenced, or can't take the ask, or is the root.

    Usage that is being preempted counts in full here, and a queue at its limit is a fence: victims elsewhere
    would not help.
    """
    queues = overlay.state.configuration
    limits = path_limits(overlay.state, request.queue)
    priority = request.priority
    priorities: dict[int, int] = {}
    for q in queues.paths[request.queue]:
        settings = queues.settings[q]
        priority = settings.priority_offset if settings.priority_fence else priority + settings.priority_offset
        priorities[q] = priority
        if queues.tree.parent[q] == ROOTLESS or settings.preemption_policy == "fence":
            return q, False, priorities
        if any(overlay.used(q, r) + request.amounts.get(r, 0) > most for r, most in limits[q].items()):
            return q, True, priorities
    raise AssertionError("a path ends at the root")


def _descend(
    overlay: Overlay, request: Request, protection: Protection, priorities: dict[int, int], found: Reach
) -> None:
    """Down from the fence. A branch with a priority fence is eligible as a whole or not at all; otherwise the
    offset of every queue on the way is taken off. Fences of preemption don't matter on the way down."""
    queues = overlay.state.configuration
    todo = [(found.fence, priorities[found.fence], False)]
    while todo:
        q, priority, fenced = todo.pop()
        if q == request.queue:
            continue
        if queues.leaf[q]:
            disabled = queues.settings[q].preemption_policy == "disabled"
            why_not = "preemption-disabled" if disabled else protection(q)
            if why_not is not None:
                found.excluded[q] = why_not
            else:
                found.ceiling[q] = ALWAYS if fenced else priority
            continue
        for child in queues.tree.children[q]:
            if child in priorities:
                todo.append((child, priorities[child], fenced))
                continue
            settings = queues.settings[child]
            if not settings.priority_fence:
                todo.append((child, priority - settings.priority_offset, fenced))
            elif settings.priority_offset <= priority:
                todo.append((child, priority, True))
            else:
                found.excluded.update(
                    (leaf, "priority-fence") for leaf in queues.tree.under(child) if queues.leaf[leaf]
                )


def _by_law(overlay: Overlay, request: Request, claim: int | None) -> Protection:
    """Laws 4 and 5."""
    queues = overlay.state.configuration
    shared = frozenset(queues.paths[request.queue])

    def of(leaf: int) -> str | None:
        if claim is None or claim in queues.paths[leaf]:
            return "no-claim"
        return None if over_guarantee(overlay, request, leaf, shared) else "within-guarantee"

    return of


def _as_shipped(overlay: Overlay, request: Request) -> Protection:
    """What remains of the guarantee is unknown, or negative in some resource, whatever the ask needs."""
    level = levels(overlay.state.configuration, request.queue)
    return lambda leaf: None if over_any(level[leaf], overlay.slack) else "within-guarantee"


def candidates(overlay: Overlay, request: Request, found: Reach) -> Ints:
    """Canonical indices of the tasks that the ask may preempt."""
    return np.flatnonzero(_mask(overlay, request, found))


def _mask(overlay: Overlay, request: Request, found: Reach) -> Bools:
    state = overlay.state
    ceiling = np.array(found.ceiling, dtype=np.int64)
    mask = state.eligible & (state.priority <= ceiling[state.queue])
    if overlay.gone is not None:
        mask &= ~overlay.gone
    mask &= state.shares_a_type(request.amounts)
    if state.configuration.rules == "documented" and request.workload is not None:
        mask &= state.workload != request.workload
    return mask


Keeper = Callable[[int], str | None]
"""The rule that keeps a task, by its canonical index; None for a candidate."""


def fates(overlay: Overlay, request: Request, found: Reach) -> Iterator[tuple[int, str]]:
    """Every task that is no candidate, and the rule that keeps it; for explanations."""
    of = keeper(overlay, request, found)
    return ((task, rule) for task in range(overlay.state.task_count) if (rule := of(task)) is not None)


def keeper(overlay: Overlay, request: Request, found: Reach) -> Keeper:
    """The rule that keeps each task, worked out when it is asked for."""
    state = overlay.state
    shares = state.shares_a_type(request.amounts)
    inside = set(state.configuration.tree.under(found.fence))

    def of(task: int) -> str | None:
        q = int(state.queue[task])
        if q == request.queue:
            return "asking-queue"
        if q not in inside:
            return "outside-the-fence"
        return found.excluded.get(q) or of_itself(task) or against(task, q)

    def of_itself(task: int) -> str | None:
        if state.tasks[task].required_node is not None:
            return "bound-to-its-node"
        if state.tasks[task].state != "running" or (overlay.gone is not None and overlay.gone[task]):
            return "already-leaving"
        return "on-no-node" if state.tasks[task].node is None else None

    def against(task: int, q: int) -> str | None:
        if not shares[task]:
            return "no-common-resource"
        if int(state.priority[task]) > found.ceiling[q]:
            return "higher-priority"
        same = state.configuration.rules == "documented" and int(state.workload[task]) == request.workload
        return "same-application" if same else None

    return of
