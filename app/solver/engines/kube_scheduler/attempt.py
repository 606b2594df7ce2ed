"""One attempt for one pod, or for a gang: kube-scheduler's filters, the best node, and only then preemption.

Source: ``schedule_one.go``, ``schedule_one_podgroup.go``, ``framework/preemption``.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.solver import kubernetes
from app.solver.engines.kube_scheduler.filters import (
    NONE_LOOKED_AT,
    Cycle,
    Status,
    Statuses,
    fits,
    statuses_of,
)
from app.solver.engines.kube_scheduler.importance import MOST_IN_VAIN, Attempt, is_vain, no_less_waits, wait
from app.solver.engines.kube_scheduler.pods import Ints, Pod, Site, Unit
from app.solver.engines.kube_scheduler.victims import (
    Candidate,
    DryRun,
    Offers,
    Violation,
    by_budgets,
    by_importance,
    dry_run,
    in_vain,
    units_of,
)
from app.solver.engines.kube_scheduler.world import World, per_node
from app.solver.model.decision import Change
from app.solver.model.state import Ask

_BEST = 100
_UNSET = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a pod counts as that asks for none, in steps: a tenth of a core, 200 MiB."""
_KINDS = len(_UNSET)
_TAINTS, _AFFINITY = 3, 2
_EXACT = 2**53
"""What is more is no number of the machine's floating point, or too large for its integers a hundred times."""


def best(world: World, pod: Pod, nodes: Ints) -> int:
    """The node that the origin takes of those that fit. Equal scores are no chance: the origin makes a heap of the
    nodes as it found them and takes its root, which is the first of the best in preorder.

    Scores are kube-scheduler's at their default weights: least allocated and balanced allocation (1 each, cpu and
    memory), taints (3), required affinity of pods there to the one that asks (2). What the wire can't say (preferred
    terms, images) scores alike everywhere."""
    if len(nodes) == 1:
        return int(nodes[0])
    work = _Resources(pod)
    (resources,), _ = per_node(world, (_Resources, *work.asked), 1, work, work.on_all)
    totals = resources[nodes]
    if world.state.soft:
        totals = totals + _taints(world, pod, nodes)
    if world.friends:
        totals = totals + _affinity(world, pod, nodes)
    alike: list[int] = (totals == totals.max()).nonzero()[0].tolist()
    return int(nodes[_root(alike)])


def _root(alike: list[int]) -> int:
    """The first in preorder."""
    return min(alike, key=lambda i: f"{i + 1:b}") if alike[0] else 0


class _Resources:
    """The score of a node for what is asked of it: of the least allocated, and of the evenness of what would be."""

    def __init__(self, pod: Pod) -> None:
        self.asked = tuple(map(pod.requests.get, _UNSET))

    def __call__(self, site: Site) -> tuple[int]:
        return (_score(_loads(site), self.asked),)

    def on_all(self, world: World) -> Ints:
        """Of all nodes."""
        return _resources(world, self.asked)[np.newaxis]


@lru_cache(maxsize=1 << 14)
def _score(numbers: tuple[int, ...], asked: tuple[int | None, ...]) -> int:
    capacity, used, loads = numbers[:_KINDS], numbers[_KINDS : 2 * _KINDS], numbers[2 * _KINDS :]
    parts = count = 0
    for most, load, amount, unset in zip(capacity, loads, asked, _UNSET.values(), strict=True):
        if most > 0:
            count += 1
            left = most - load - (unset if amount is None else amount)
            parts += left * _BEST // most if left >= 0 else 0
    total = parts // max(count, 1)
    if not any(asked):
        return total
    after = [of + (amount or 0) for of, amount in zip(used, asked, strict=True)]
    change = _even(after, capacity) - _even(used, capacity) if count == _KINDS else 0
    return total + _BEST // 2 + (_BEST // 2 + change) // 2


def _even(used: Sequence[int], capacity: Sequence[int]) -> int:
    first, second = [min(1.0, of / most) for of, most in zip(used, capacity, strict=True)]
    return int((1 - abs((first - second) / 2)) * _BEST)


def _resources(world: World, asked_for: Sequence[int | None]) -> Ints:
    of, _ = per_node(world, _loads, 3 * _KINDS, _loads)
    if of.dtype != object and of.max(initial=0) > _EXACT:
        of = of.astype(object)
    capacity, used, loads = of.reshape(3, _KINDS, -1)
    there = capacity > 0
    safe = np.where(there, capacity, 1)
    wanted = zip(asked_for, _UNSET.values(), strict=True)
    asked = loads + np.array([[unset if amount is None else amount] for amount, unset in wanted])
    parts = np.where(there & (asked <= capacity), (capacity - asked) * _BEST // safe, 0)
    total = parts.sum(0) // np.maximum(there.sum(0), 1)
    amounts = np.array([[amount or 0] for amount in asked_for])
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
    if site.loads is not None:
        return site.loads
    machine = site.machine
    others = machine.others
    requested = list(site.requested())
    site.loads = (
        *[machine.capacity.get(resource, 0) for resource in _UNSET],
        *[site.used.get(resource, 0) for resource in _UNSET],
        *[
            others.get(resource, 0) + sum([requests.get(resource, unset) for requests in requested])
            for resource, unset in _UNSET.items()
        ],
    )
    return site.loads


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


def _affinity(world: World, pod: Pod, nodes: Ints) -> Ints:
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
    places: list[int] = nodes.tolist()
    counts = np.array([sum(terms.get(pair, 0) for pair in machines[node].labels.items()) for node in places])
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
    placed: list[tuple[Pod, int]] = field(default_factory=list)
    victims: list[Pod] = field(default_factory=list)
    broken: list[Violation] = field(default_factory=list)
    again: list[Pod] = field(default_factory=list)
    """Those of its victims that terminate already."""
    ties: list[int] = field(default_factory=list)
    statuses: Statuses = NONE_LOOKED_AT
    run: DryRun | None = None
    losses: list[Candidate] = field(default_factory=list)
    """What the first of the candidates would have lost then, where that is told."""
    spared: list[Pod] = field(default_factory=list)
    gang: bool = False
    sample: tuple[int, int] | None = None
    """From how many starting points, of how many, the released sample would have chosen worse."""
    placeable: int = 0
    """How many pods of a gang have room together."""
    changes: list[Change] = field(default_factory=list)
    """What would let it in, or would violate no budget."""


@dataclass(frozen=True, slots=True)
class Chance:
    """What the released code draws, given. ``offset`` None: every node is looked at."""

    now: int
    offset: int | None = 0


MANY = 64
"""So many nodes are looked at again all together sooner than one by one."""


def attempt_unseen(world: World, of: Attempt, chance: Chance) -> Outcome | None:
    """``attempt`` where nobody is told of an ask that waits: None, then."""
    ask, pod = of.ask, of.pods[0]
    claimed = (ask.id, pod.name) in world.claimants
    if is_vain(world, of) and not claimed:
        return None
    known = world.state.vain.get(of.alike)
    alone = of.kind is not None and not world.anti
    if alone and not claimed and (offers := _offers(world, of)) is not None:
        return _offered(world, of, offers, chance)
    if alone and not claimed and _goes_on(world, of, known):
        return None
    if alone and claimed:
        node = world.state.place.get(ask.nominated_node or "")
        if node is not None and fits(Cycle(world, pod, ask.id), world.sites[node], world) is None:
            return Outcome("admit", "fits", "", placed=[(pod, node)])
    outcome = attempt(world, ask, of.pods, chance)
    if outcome.kind != "wait":
        return outcome
    if alone and not claimed and outcome.rule != "ongoing":
        wait(world, of)
    return None


def _offers(world: World, of: Attempt) -> Offers | None:
    """None: more than these counts, or that is not kept."""
    if world.offers is None or world.friends or of.ask.nominated_node is not None:
        return None
    offers = world.offers.get(of.alike)
    if not isinstance(offers, Offers):
        if len(world.offers) >= MOST_IN_VAIN:
            world.offers.clear()
        offers = world.offers[of.alike] = Offers(of.pods[0], len(world.sites), _Resources(of.pods[0]))
    return offers


def _offered(world: World, of: Attempt, offers: Offers, chance: Chance) -> Outcome | None:
    """See ``attempt_unseen``, of one that is nominated nowhere, where all nodes are looked at."""
    pod = of.pods[0]
    if not no_less_waits(world, of):
        offers.follow(world, pod)
        nodes, scores = offers.fitting(world)
        if nodes:
            most = max(scores)
            node = nodes[_root([i for i, score in enumerate(scores) if score == most])]
            return Outcome("admit", "fits", "", placed=[(pod, node)])
        loss = None if of.ask.preemption_policy == "Never" else offers.least(world, pod, chance.now)
        if loss is not None:
            return Outcome("preempt", "preempt", "", placed=[(pod, loss[0])], victims=loss[1])
    wait(world, of)
    return None


def _goes_on(world: World, of: Attempt, known: Ints | None) -> bool:
    """Whether a pod waits as one like it did, since the nodes that have changed then would not even have room for it
    without all that is less important. That is less, and claims count for more, the lower its priority is.
    ``known``: the stamps that nodes had then, if it did."""
    pod, stamps = of.pods[0], world.stamps
    if not no_less_waits(world, of):
        if known is None:
            return False
        changed: list[int] = (known != stamps).nonzero()[0].tolist()
        if len(changed) > MANY or not all(in_vain(pod, world.sites[node], world) for node in changed):
            return False
    wait(world, of)
    return True


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
    if len(feasible := statuses.fitting()):
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
        if len(feasible := statuses.fitting()):
            hint = world.state.place.get(pod.task.nominated_node or ask.nominated_node or "")
            node = hint if hint is not None and statuses[hint] is None else best(world, pod, feasible)
            world.add(pod, node)
            assigned.append((cycle, node))
    return assigned


def _take_back(world: World, assigned: list[tuple[Cycle, int]]) -> None:
    for cycle, node in reversed(assigned):
        world.remove(cycle.pod, node)
