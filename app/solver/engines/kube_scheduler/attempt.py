"""One attempt for one pod, or for a gang: kube-scheduler's filters, the best node, and only then preemption; and what
would let an ask in that waits.

Source: ``schedule_one.go``, ``schedule_one_podgroup.go``, ``framework/preemption``.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import attrgetter
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.solver import kubernetes
from app.solver.engines.kube_scheduler.filters import (
    NONE_LOOKED_AT,
    Cycle,
    Status,
    Statuses,
    fits,
    room_on_all,
    statuses_of,
)
from app.solver.engines.kube_scheduler.pods import Ints, Pod, Site, Unit
from app.solver.engines.kube_scheduler.victims import (
    Candidate,
    DryRun,
    Violation,
    by_budgets,
    by_importance,
    dry_run,
    units_of,
)
from app.solver.engines.kube_scheduler.world import Budget, World, by_namespace, per_node
from app.solver.kubernetes import PODS
from app.solver.model.base import units
from app.solver.model.decision import Change
from app.solver.model.state import Ask

_BEST = 100
_UNSET = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a pod counts as that asks for none, in steps: a tenth of a core, 200 MiB."""
_TAINTS, _AFFINITY = 3, 2
_EXACT = 2**53
"""What is more is no number of the machine's floating point, or too large for its integers a hundred times."""


def best(world: World, pod: Pod, nodes: Sequence[int]) -> int:
    """The node that the origin takes of those that fit. Equal scores are no chance: the origin makes a heap of the
    nodes as it found them and takes its root, which is the first of the best in preorder.

    Scores are kube-scheduler's at their default weights: least allocated and balanced allocation (1 each, cpu and
    memory), taints (3), required affinity of pods there to the one that asks (2). What the wire can't say (preferred
    terms, images) scores alike everywhere."""
    if len(nodes) == 1:
        return nodes[0]
    numbers = np.array(nodes)
    totals = _resources(world, pod)[numbers] + _taints(world, pod, numbers) + _affinity(world, pod, nodes)
    alike: list[int] = np.flatnonzero(totals == totals.max()).tolist()
    return nodes[min(alike, key=lambda i: f"{i + 1:b}")]


def _resources(world: World, pod: Pod) -> Ints:
    """Of all nodes: of the least allocated, and of the evenness of what would be."""
    of, _ = per_node(world, _loads, 3 * len(_UNSET), _loads)
    if of.dtype != object and of.max(initial=0) > _EXACT:
        of = of.astype(object)
    capacity, used, loads = of.reshape(3, len(_UNSET), -1)
    there = capacity > 0
    safe = np.where(there, capacity, 1)
    asked = loads + np.array([[pod.requests.get(resource, unset)] for resource, unset in _UNSET.items()])
    parts = np.where(there & (asked <= capacity), (capacity - asked) * _BEST // safe, 0)
    total = parts.sum(0) // np.maximum(there.sum(0), 1)
    amounts = np.array([[pod.requests.get(resource, 0)] for resource in _UNSET])
    if not amounts.any():
        return total
    before, after = (_evenness(of, safe, there) for of in (used, used + amounts))
    return total + _BEST // 2 + (_BEST // 2 + after - before) // 2


def _evenness(used: Ints, capacity: Ints, there: NDArray[np.bool_]) -> Ints:
    parts = np.minimum(1.0, used / capacity)
    spread = np.where(there.all(0), np.abs((parts[0] - parts[1]) / 2), 0.0)
    return ((1 - spread) * _BEST).astype(np.int64)


def _loads(site: Site) -> tuple[int, ...]:
    """What there is, what is used, and what counts as used where a pod asks for none."""
    machine = site.machine
    others = machine.others
    return (
        *(machine.capacity.get(resource, 0) for resource in _UNSET),
        *(site.used.get(resource, 0) for resource in _UNSET),
        *(
            others.get(resource, 0) + sum([requests.get(resource, unset) for requests in site.requested()])
            for resource, unset in _UNSET.items()
        ),
    )


def _taints(world: World, pod: Pod, nodes: Ints) -> Ints:
    tolerations = [
        toleration for toleration in pod.task.tolerations or () if toleration.effect in (None, "PreferNoSchedule")
    ]

    def disliked(site: Site) -> tuple[int]:
        taints = site.machine.node.taints
        soft = (taint for taint in taints if taint.effect == "PreferNoSchedule")
        return (sum(not any(kubernetes.tolerates(toleration, taint) for toleration in tolerations) for taint in soft),)

    counts = per_node(world, (_taints, pod.suiting), 1, disliked)[0][0][nodes]
    most = counts.max()
    return _TAINTS * (_BEST - (_BEST * counts // most if most else counts))


def _affinity(world: World, pod: Pod, nodes: Sequence[int]) -> Ints:
    terms: dict[tuple[str, str], int] = {}
    machines = world.state.machines
    for other in world.friends:
        labels = machines[other.node].labels
        for term in other.affinity:
            if term.key in labels and term.matches(pod.namespace, pod.labels):
                pair = (term.key, labels[term.key])
                terms[pair] = terms.get(pair, 0) + 1
    if not terms:
        return np.zeros(len(nodes), np.int64)
    counts = np.array([sum(terms.get(pair, 0) for pair in machines[node].labels.items()) for node in nodes])
    least, most = counts.min(), counts.max()
    if most == least:
        return np.zeros(len(nodes), np.int64)
    return _AFFINITY * (_BEST * ((counts - least) / (most - least))).astype(np.int64)


Kind = Literal["admit", "preempt", "wait"]


@dataclass(slots=True, eq=False)
class Outcome:
    """``rule``: why it waits; ``placed``: node by pod; ``statuses``: what the filters said, by node."""

    kind: Kind
    rule: str
    reason: str
    placed: list[tuple[Pod, int]] = field(default_factory=list[tuple[Pod, int]])
    victims: list[Pod] = field(default_factory=list[Pod])
    broken: list[Violation] = field(default_factory=list[Violation])
    again: list[Pod] = field(default_factory=list[Pod])
    """Those of its victims that terminate already."""
    ties: list[int] = field(default_factory=list[int])
    statuses: Statuses = NONE_LOOKED_AT
    run: DryRun | None = None
    losses: list[Candidate] = field(default_factory=list[Candidate])
    """What the first of the candidates would have lost then, where that is told."""
    spared: list[Pod] = field(default_factory=list[Pod])
    gang: bool = False
    sample: tuple[int, int] | None = None
    """From how many starting points, of how many, the released sample would have chosen worse."""
    placeable: int = 0
    """How many pods of a gang have room together."""
    changes: list[Change] = field(default_factory=list[Change])
    """What would let it in, or would violate no budget."""


@dataclass(frozen=True, slots=True)
class Chance:
    """What the released code draws, given. ``offset`` None: every node is looked at."""

    now: int
    offset: int | None = 0


def attempt(world: World, ask: Ask, pods: list[Pod], chance: Chance) -> Outcome:
    """What becomes of an ask: of one pod, or with several (or where it says how many it needs) of a gang."""
    gated = next((pod for pod in pods if pod.task.scheduling_gates), None)
    if gated is not None:
        return Outcome("wait", "gated", f"{gated.name} has a scheduling gate")
    if world.state.configuration.settings.workload_aware and (len(pods) > 1 or ask.min_available is not None):
        return _gang(world.copy(), ask, pods, chance)
    return _single(world, ask, pods[0], chance)


def _single(world: World, ask: Ask, pod: Pod, chance: Chance) -> Outcome:
    """A pod that waits changes nothing: another that nodes don't tell from it waits for the same reason."""
    cycle = Cycle(world, pod, ask.id)
    hint = world.state.place.get(pod.task.nominated_node or ask.nominated_node or "")
    if cycle.spreads or cycle.affine or world.claims(ask.id, pod):
        return _alone(world, ask, cycle, hint, chance)
    key = pod.shape, pod.priority, ask.preemption_policy, hint, chance
    known = world.waits.get(key)
    if isinstance(known, Outcome):
        return copy(known)
    outcome = _alone(world, ask, cycle, hint, chance)
    if outcome.kind == "wait":
        world.waits[key] = copy(outcome)
    return outcome


def _alone(world: World, ask: Ask, cycle: Cycle, hint: int | None, chance: Chance) -> Outcome:
    pod = cycle.pod
    statuses = statuses_of(cycle, world)
    if feasible := statuses.fitting():
        node = hint if hint is not None and statuses[hint] is None else best(world, pod, feasible)
        return Outcome("admit", "fits", "", placed=[(pod, node)], statuses=statuses)
    if ask.preemption_policy == "Never":
        return Outcome("wait", "never", "not eligible due to preemptionPolicy=Never.", statuses=statuses)
    if hint is not None and _on_its_way(world, hint, pod.priority, statuses[hint]):
        reason = "not eligible due to a terminating pod on the nominated node."
        return Outcome("wait", "ongoing", reason, statuses=statuses)
    return _preempting(world, cycle, statuses, chance)


def _on_its_way(world: World, node: int, priority: int, status: Status | None) -> bool:
    if status is not None and status.final:
        return False
    return any(world.preempted(pod) and pod.effective_priority < priority for pod in world.sites[node].pods)


def _preempting(world: World, cycle: Cycle, statuses: Statuses, chance: Chance) -> Outcome:
    helped = statuses.helped()
    if not len(helped):
        reason = "preemption is not helpful: no node would take it whoever left"
        return Outcome("wait", "not-helpful", reason, statuses=statuses)
    settings = world.state.configuration.settings
    most = max(len(helped) * settings.min_candidate_nodes_percentage // 100, settings.min_candidate_nodes_absolute)
    if chance.offset is None:
        most = len(helped)
    run = dry_run(world, cycle, helped, min(most, len(helped)), chance.offset or 0, chance.now)
    if not run.candidates:
        reason = f"no node of {run.looked_at} has room without its less important pods"
        return Outcome("wait", "no-candidate", reason, statuses=statuses, run=run)
    first = next(run.losses(run.best))
    return Outcome(
        "preempt", "preempt", "", placed=[(cycle.pod, run.best[0])], victims=first.victims,
        broken=first.broken, spared=first.spared,
        ties=run.best if len(run.best) > 1 else [], statuses=statuses, run=run,
    )  # fmt: skip


def _gang(world: World, ask: Ask, pods: list[Pod], chance: Chance) -> Outcome:
    """kube-scheduler: the gate GenericWorkload. All that can be placed is, and not only as many as are needed.
    ``world`` is left in disorder, as the origin's snapshot, which it restores afterwards."""
    priority = ask.priority or 0
    if any(pod.priority != priority for pod in pods):
        return Outcome("wait", "gang-priorities", "all pods of a gang must have its priority", gang=True)
    needed = len(pods) if ask.min_available is None else ask.min_available
    assigned = _place_all(world, ask, pods)
    _take_back(world, assigned)
    if len(assigned) >= needed and assigned:
        return Outcome("admit", "fits", "", placed=[(cycle.pod, node) for cycle, node in assigned], gang=True)
    if ask.preemption_policy == "Never":
        reason = "not eligible due to preemptionPolicy=Never."
        return Outcome("wait", "never", reason, gang=True, placeable=len(assigned))
    hints = {pod.task.nominated_node or ask.nominated_node for pod in pods} - {None}
    for name in hints:
        nominee = world.state.place.get(name or "")
        if nominee is not None and _on_its_way(world, nominee, priority, None):
            reason = "a victim of the gang still terminates on a node that it is nominated to"
            return Outcome("wait", "ongoing", reason, gang=True)
    outcome = _gang_preempting(world, ask, pods, needed, chance)
    outcome.placeable = max(outcome.placeable, len(assigned))
    return outcome


def _gang_preempting(world: World, ask: Ask, pods: list[Pod], needed: int, chance: Chance) -> Outcome:
    priority = ask.priority or 0
    everybody = [pod for site in world.sites for pod in site.pods]
    units = units_of(everybody, chance.now, priority)
    if not units:
        return Outcome("wait", "not-helpful", "nobody is less important", gang=True)
    for unit in units:
        for pod in unit.pods:
            world.remove(pod, pod.node)
    assigned = _place_all(world, ask, pods)
    if len(assigned) < needed or not assigned:
        reason = f"only {len(assigned)} of {needed} pods would have room without all less important pods"
        return Outcome("wait", "no-candidate", reason, gang=True, placeable=len(assigned))
    _take_back(world, assigned)
    violating, non_violating = by_budgets(by_importance(units), world.state)
    victims: list[Unit] = []
    spared: list[Pod] = []
    broken: list[Violation] = []
    for unit, violations in [*violating, *((unit, list[Violation]()) for unit in non_violating)]:
        if _reprieved(world, unit, assigned):
            spared += unit.pods
            continue
        victims.append(unit)
        broken += violations
    gone = [pod for unit in by_importance(victims) for pod in unit.pods]
    return Outcome(
        "preempt" if gone else "admit", "preempt", "", placed=[(cycle.pod, node) for cycle, node in assigned],
        victims=gone, broken=broken, spared=spared, gang=True,
    )  # fmt: skip


def _reprieved(world: World, unit: Unit, assigned: list[tuple[Cycle, int]]) -> bool:
    """Whether every placed pod keeps its place with the victim back; it stays back only then. Each pod's cycle knows
    the ones placed before it, as it was made."""
    machines = world.state.machines
    for pod in unit.pods:
        world.add(pod, pod.node)
        for cycle, _ in assigned:
            cycle.change(pod, machines[pod.node], 1)
    stands: list[tuple[Cycle, int]] = []
    fine = True
    for cycle, node in assigned:
        if fits(cycle, world.sites[node], world) is not None:
            fine = False
            break
        world.add(cycle.pod, node)
        stands.append((cycle, node))
    if not fine:
        for pod in unit.pods:
            world.remove(pod, pod.node)
            for cycle, _ in assigned:
                cycle.change(pod, machines[pod.node], -1)
    _take_back(world, stands)
    return fine


def _place_all(world: World, ask: Ask, pods: list[Pod]) -> list[tuple[Cycle, int]]:
    """Each pod at the best node, seeing those before it; they stand there afterwards."""
    assigned: list[tuple[Cycle, int]] = []
    for pod in pods:
        cycle = Cycle(world, pod, ask.id)
        statuses = statuses_of(cycle, world)
        if feasible := statuses.fitting():
            hint = world.state.place.get(pod.task.nominated_node or ask.nominated_node or "")
            node = hint if hint is not None and statuses[hint] is None else best(world, pod, feasible)
            world.add(pod, node)
            assigned.append((cycle, node))
    return assigned


def _take_back(world: World, assigned: list[tuple[Cycle, int]]) -> None:
    for cycle, node in reversed(assigned):
        world.remove(cycle.pod, node)


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
        unbroken = _keeps(world, ask, pods, chance, budget)
        needed = allowed[bisect_left(allowed, True, lo=1, hi=len(allowed) - 1, key=unbroken)]
        yield Change(
            queue=budget.namespace, resource=PODS, field="disruptions_allowed", current=budget.allowed, needed=needed,
            detail=f"with {needed} disruptions allowed {budget.name} would not be violated",
        )  # fmt: skip


def _keeps(world: World, ask: Ask, pods: Sequence[Pod], chance: Chance, budget: Budget) -> Callable[[int], bool]:
    state = world.state
    index = state.budgets.index(budget)

    def unbroken(allowed: int) -> bool:
        other = replace(budget, allowed=allowed)
        budgets = [*state.budgets[:index], other, *state.budgets[index + 1 :]]
        imagined = world.copy()
        imagined.state = replace(state, budgets=budgets, budgets_in=by_namespace(budgets))
        return all(broken is not other for _, broken in attempt(imagined, ask, list(pods), chance).broken)

    return unbroken
