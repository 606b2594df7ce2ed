"""One attempt for one pod, or for a gang: filters, the best node, and only then preemption.

Source: ``schedule_one.go``, ``schedule_one_podgroup.go``, ``framework/preemption``.
"""

from dataclasses import dataclass, field
from typing import Literal

from app.solver.engines.kube_scheduler.filters import Cycle, Status, World, fits, statuses_of
from app.solver.engines.kube_scheduler.pods import Pod, Unit
from app.solver.engines.kube_scheduler.scores import best
from app.solver.engines.kube_scheduler.victims import (
    Candidate,
    DryRun,
    Violation,
    by_budgets,
    by_importance,
    chosen,
    dry_run,
    units_of,
)
from app.solver.model.state import Ask

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
    ties: list[int] = field(default_factory=list[int])
    statuses: list[Status | None] = field(default_factory=list[Status | None])
    run: DryRun | None = None
    spared: list[Pod] = field(default_factory=list[Pod])
    gang: bool = False
    sample: tuple[int, int] | None = None
    """From how many starting points, of how many, the released sample would have chosen worse."""


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
    cycle = Cycle(world, pod, ask.id)
    statuses = statuses_of(cycle, world)
    feasible = [site for site, status in zip(world.sites, statuses, strict=True) if status is None]
    hint = world.state.place.get(pod.task.nominated_node or ask.nominated_node or "")
    if feasible:
        if hint is not None and statuses[hint] is None:
            feasible = [world.sites[hint]]
        site, _ = best(world, pod, feasible)
        return Outcome("admit", "fits", "", placed=[(pod, site.machine.at)], statuses=statuses)
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


def _preempting(world: World, cycle: Cycle, statuses: list[Status | None], chance: Chance) -> Outcome:
    helped = [
        site for site, status in zip(world.sites, statuses, strict=True) if status is not None and not status.final
    ]
    if not helped:
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
    found = chosen(run.candidates)
    first: Candidate = found[0]
    return Outcome(
        "preempt", "preempt", "", placed=[(cycle.pod, first.site.machine.at)], victims=first.victims,
        broken=first.broken, spared=first.spared,
        ties=[one.site.machine.at for one in found] if len(found) > 1 else [], statuses=statuses, run=run,
    )  # fmt: skip


def _gang(world: World, ask: Ask, pods: list[Pod], chance: Chance) -> Outcome:
    """kube-scheduler: the gate GenericWorkload. All that can be placed is, and not only as many as are needed.
    ``world`` is left in disorder, as the origin's snapshot, which it restores afterwards."""
    priority = ask.priority or 0
    if any(pod.priority != priority for pod in pods):
        return Outcome("wait", "gang-priorities", "all pods of a gang must have its priority")
    needed = len(pods) if ask.min_available is None else ask.min_available
    assigned = _place_all(world, ask, pods)
    _take_back(world, assigned)
    if len(assigned) >= needed and assigned:
        return Outcome("admit", "fits", "", placed=[(cycle.pod, node) for cycle, node in assigned], gang=True)
    if ask.preemption_policy == "Never":
        return Outcome("wait", "never", "not eligible due to preemptionPolicy=Never.")
    hints = {pod.task.nominated_node or ask.nominated_node for pod in pods} - {None}
    for name in hints:
        at = world.state.place.get(name or "")
        if at is not None and _on_its_way(world, at, priority, None):
            return Outcome("wait", "ongoing", "a victim of the gang still terminates on a node that it is nominated to")
    return _gang_preempting(world, ask, pods, needed, chance)


def _gang_preempting(world: World, ask: Ask, pods: list[Pod], needed: int, chance: Chance) -> Outcome:
    priority = ask.priority or 0
    everybody = [pod for site in world.sites for pod in site.pods]
    units = units_of(everybody, chance.now, priority)
    if not units:
        return Outcome("wait", "not-helpful", "nobody is less important")
    for unit in units:
        for pod in unit.pods:
            world.remove(pod, pod.node)
    assigned = _place_all(world, ask, pods)
    if len(assigned) < needed or not assigned:
        reason = f"only {len(assigned)} of {needed} pods would have room without all less important pods"
        return Outcome("wait", "no-candidate", reason)
    _take_back(world, assigned)
    violating, kept = by_budgets(by_importance(units), world.state)
    victims: list[Unit] = []
    spared: list[Pod] = []
    broken: list[Violation] = []
    for unit, violations in [*violating, *((unit, list[Violation]()) for unit in kept)]:
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
        feasible = [site for site in world.sites if fits(cycle, site, world) is None]
        if not feasible:
            continue
        hint = world.state.place.get(pod.task.nominated_node or ask.nominated_node or "")
        nominated = [site for site in feasible if site.machine.at == hint]
        site, _ = best(world, pod, nominated or feasible)
        world.add(pod, site.machine.at)
        assigned.append((cycle, site.machine.at))
    return assigned


def _take_back(world: World, assigned: list[tuple[Cycle, int]]) -> None:
    for cycle, node in reversed(assigned):
        world.remove(cycle.pod, node)
