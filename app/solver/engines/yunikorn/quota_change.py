"""Quota-change preemption: a queue above its limit gives up tasks (YuniKorn: quota_preemptor.go)."""

from collections.abc import Iterator

import numpy as np

from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.guarantees import keeps_guarantees
from app.solver.engines.yunikorn.overlay import Overlay
from app.solver.engines.yunikorn.state import OPTED_OUT, ORIGINATOR, CompiledState
from app.solver.model.decision import Plan, PlannedEviction, Result
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.quantity import units
from app.solver.question import Question
from app.solver.stopping import safe_point

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
    lawful = state.configuration.rules == "documented"
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
    score += protected if state.configuration.rules == "shipped" else -protected
    shares = [_share(state, r, value, limit) for r, value in amounts.items() if r in part and value]
    return -score, int(state.priority[task]), -(state.created(task) // HOUR), sorted(shares, reverse=True)


def _share(state: CompiledState, resource: int, amount: int, limit: Amounts) -> float:
    """Of the limit; without one the raw quantity, which YuniKorn has in thousandths for vcore and else in units."""
    if limit.get(resource):
        return amount / limit[resource]
    return float(amount if state.resources.names[resource] == MILLI else units(amount, state.resources.names[resource]))
