"""What would let an ask in that waits: another priority, less of one resource, fewer pods of a gang; and with which
budget a preemption would violate it no more. Each was tried, and so was one step less.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter

import msgspec

from app.solver.engines.kube_scheduler.attempt import Chance, Outcome, attempt
from app.solver.engines.kube_scheduler.filters import room_on_all
from app.solver.engines.kube_scheduler.pods import Budget, Pod, by_namespace
from app.solver.engines.kube_scheduler.world import World
from app.solver.kubernetes import PODS
from app.solver.model.base import units
from app.solver.model.decision import Change
from app.solver.model.state import Ask

_OUTRANKED = ("not-helpful", "no-candidate")
"""Why a pod waits that others of at least its priority may keep out, or its size."""
_MOST_TRIED = 8
"""So many budgets."""


def changes(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, outcome: Outcome) -> Iterator[Change]:
    """Each would do alone. ``pods``: of a gang, or one."""
    if outcome.kind == "preempt":
        yield from _budgets(world, ask, pods, chance, outcome)
    elif outcome.rule in _OUTRANKED:
        yield from _priority(world, ask, pods, chance)
    if outcome.kind == "wait" and outcome.rule in (*_OUTRANKED, "never"):
        if outcome.gang:
            yield from _fewer(ask, pods, outcome)
        elif len(ask.tasks) == 1:
            yield from _less(world, ask, pods[0], chance)


def _priority(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance) -> Iterator[Change]:
    """kube-scheduler: whoever is less important may go, so that only priorities just above somebody's count."""
    least = pods[0].priority
    priorities = set(map(attrgetter("effective_priority"), world.state.pods))
    ranks = sorted(priority + 1 for priority in priorities if priority >= least)

    def starts(priority: int) -> bool:
        raised = [msgspec.structs.replace(pod, priority=priority) for pod in pods]
        return attempt(world.copy(), msgspec.structs.replace(ask, priority=priority), raised, chance).kind != "wait"

    if ranks and starts(ranks[-1]):
        needed = ranks[bisect_left(ranks, True, hi=len(ranks) - 1, key=starts)]
        yield Change(
            queue=ask.queue, resource=PODS, field="priority", current=least, needed=needed,
            detail=f"with priority {needed} it could evict who is in its way",
        )  # fmt: skip


def _fewer(ask: Ask, pods: Sequence[Pod], outcome: Outcome) -> Iterator[Change]:
    """As many pods as have room; a gang's pods are placed one after the other however many are needed."""
    if outcome.placeable:
        needed = len(pods) if ask.min_available is None else ask.min_available
        yield Change(
            queue=ask.queue, resource=PODS, field="min_available", current=needed, needed=outcome.placeable,
            detail=f"{outcome.placeable} of its pods have room together",
        )  # fmt: skip


def _less(world: World, ask: Ask, pod: Pod, chance: Chance) -> Iterator[Change]:
    """Of each resource. What a node has beside others is where an answer changes: all of them, or those that nobody may
    evict."""
    running = chain(
        (other for other in world.state.pods if other.node not in world.touched),
        (other for node in world.touched for other in world.sites[node].pods),
    )
    lower = [other for other in running if other.effective_priority < pod.priority]
    for resource in sorted(pod.requests):
        asked = pod.requests[resource]
        amounts = sorted({0, *(room for room in _rooms(world, pod, lower, resource) if 0 <= room < asked)})

        def waits(amount: int, resource: str = resource) -> bool:
            smaller = msgspec.structs.replace(pod, requests=pod.requests | {resource: amount}, _shape=None)
            return attempt(world.copy(), ask, [smaller], chance).kind == "wait"

        if not asked or len(amounts) < 2 or waits(0):
            continue
        if most := amounts[bisect_left(amounts, True, lo=1, key=waits) - 1]:
            needed = units(most, resource)
            yield Change(
                queue=ask.queue, resource=resource, field="requests", current=units(asked, resource), needed=needed,
                detail=f"with {needed} {resource} it would fit, or could evict who is in its way",
            )  # fmt: skip


def _rooms(world: World, pod: Pod, lower: Sequence[Pod], resource: str) -> set[int]:
    """What is free on nodes, and without ``lower``; where pods are nominated that go before, with them too."""
    free: list[int] = room_on_all(world, resource)[0].tolist()
    emptied = list(free)
    for other in lower:
        emptied[other.node] += other.requests.get(resource, 0)
    rooms = {*free, *emptied}
    for node, of in world.nominated.items():
        held = sum(other.requests.get(resource, 0) for _, other in of if other.priority >= pod.priority)
        rooms |= {free[node] - held, emptied[node] - held}
    return rooms


def _budgets(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, outcome: Outcome) -> Iterator[Change]:
    """No pod charges a budget twice, so that one that allows as many as it selects is violated by none."""
    for budget in islice(dict.fromkeys(budget for _, budget in outcome.broken), _MOST_TRIED):
        allowed = range(budget.allowed, sum(map(budget.charged_by, world.state.pods)) + 1)
        kept = _keeps(world, ask, pods, chance, budget)
        needed = allowed[bisect_left(allowed, True, lo=1, hi=len(allowed) - 1, key=kept)]
        yield Change(
            queue=budget.namespace, resource=PODS, field="disruptions_allowed", current=budget.allowed, needed=needed,
            detail=f"with {needed} disruptions allowed {budget.name} would not be violated",
        )  # fmt: skip


def _keeps(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, budget: Budget) -> Callable[[int], bool]:
    state = world.state
    at = state.budgets.index(budget)

    def kept(allowed: int) -> bool:
        other = replace(budget, allowed=allowed)
        budgets = [*state.budgets[:at], other, *state.budgets[at + 1 :]]
        imagined = world.copy()
        imagined.state = replace(state, budgets=budgets, budgets_in=by_namespace(budgets))
        return all(broken is not other for _, broken in attempt(imagined, ask, list(pods), chance).broken)

    return kept
