"""Whom a node would have to lose: kube-scheduler's dry run, and which node it chooses.

Source: ``framework/plugins/defaultpreemption`` (SelectVictimsOnNode) and ``framework/preemption``
(pickOneNodeForPreemption, FilterVictimsWithPDBViolation, MoreImportantVictim).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.solver.engines.kube_scheduler.filters import Cycle, Site, Status, World, fits
from app.solver.engines.kube_scheduler.importance import go_sorted
from app.solver.engines.kube_scheduler.pods import Budget, Group, Pod
from app.solver.stopping import safe_point

_OFFSET = 2**31
Start = tuple[int, int]
"""When it started; pods that say nothing started just now, one after the other."""
Violation = tuple[Pod, str]
"""A pod whose eviction violates a budget, and the budget."""


@dataclass(slots=True, eq=False)
class Unit:
    """What is evicted together: a pod, or all pods of a group. ``key``: ascending, the more important first."""

    pods: list[Pod]
    priority: int
    key: tuple[int, int, int, Start]


@dataclass(slots=True, eq=False)
class Candidate:
    """A node that could take the pod without ``victims``. ``broken``: which of them violate which budget."""

    site: Site
    victims: list[Pod]
    spared: list[Pod] = field(default_factory=list[Pod])
    broken: list[Violation] = field(default_factory=list[Violation])

    @property
    def violations(self) -> int:
        return len(self.broken)


@dataclass(slots=True, eq=False)
class DryRun:
    """What was found on the nodes looked at, in order; ``refused``: nodes that no eviction would help, and why."""

    candidates: list[Candidate]
    refused: list[tuple[Site, Status | None]]
    looked_at: int
    possible: int


def units_of(pods: Iterable[Pod], now: int, below: int | None = None) -> list[Unit]:
    """kube-scheduler: getCrossNodesVictims. Pods in the order of their nodes' lists. ``below``: only those of a lower
    priority, each at its place among all."""
    found: list[Unit] = []
    seen: set[int] = set()
    count = 0
    for pod in pods:
        group = pod.group
        together = group is not None and group.whole
        if together and id(group) in seen:
            continue
        seen.add(id(group))
        if below is None or pod.effective_priority < below:
            found.append(_unit(group.pods if group is not None and together else [pod], group, now, count))
        count += 1
    return found


def _unit(pods: list[Pod], group: Group | None, now: int, at: int) -> Unit:
    priority = pods[0].effective_priority
    starts = [(now, at + 1) if pod.start is None else (pod.start, 0) for pod in pods]
    return Unit(pods, priority, (-priority, 1 if group is None else 0, -len(pods), min(starts)))


def dry_run(world: World, cycle: Cycle, sites: Sequence[Site], most: int, offset: int, now: int) -> DryRun:
    """kube-scheduler: DryRunPreemption. From ``offset`` on, round and round, until ``most`` candidates are there and
    one of them violates no budget."""
    kept: list[Candidate] = []
    violating: list[Candidate] = []
    refused: list[tuple[Site, Status | None]] = []
    looked_at = 0
    for i in range(len(sites)):
        safe_point()
        site = sites[(offset + i) % len(sites)]
        looked_at += 1
        found = victims_on(world, cycle.copy(), site.copy(), now)
        if isinstance(found, Candidate):
            into = kept if found.violations == 0 else violating
            if len(into) < most:
                into.append(found)
            if kept and len(kept) + len(violating) >= most:
                break
        else:
            refused.append((site, found))
    return DryRun([*kept, *violating], refused, looked_at, len(sites))


class _Trial:
    """One node without some of its pods. What a group leaves on other nodes changes only what the cycle knows."""

    def __init__(self, world: World, cycle: Cycle, site: Site) -> None:
        self._world, self._cycle, self._site = world, cycle, site

    def status(self) -> Status | None:
        return fits(self._cycle, self._site, self._world)

    def take_away(self, unit: Unit) -> None:
        for pod in unit.pods:
            if pod.node == self._site.machine.at:
                self._site.remove(pod)
            self._cycle.change(pod, self._world.state.machines[pod.node], -1)

    def put_back(self, unit: Unit) -> None:
        for pod in unit.pods:
            if pod.node == self._site.machine.at:
                self._site.add(pod)
            self._cycle.change(pod, self._world.state.machines[pod.node], 1)

    def reprieves(self, unit: Unit) -> bool:
        """Whether the pod fits with ``unit`` back; then it is back."""
        self.put_back(unit)
        if self.status() is None:
            return True
        self.take_away(unit)
        return False


def victims_on(world: World, cycle: Cycle, site: Site, now: int) -> Candidate | Status | None:
    """kube-scheduler: SelectVictimsOnNode. None: nobody there is less important, or nobody had to go."""
    units = units_of(site.pods, now, cycle.pod.priority)
    if not units:
        return None
    trial = _Trial(world, cycle, site)
    for unit in units:
        trial.take_away(unit)
    if (status := trial.status()) is not None:
        return status
    violating, kept = by_budgets(by_importance(units), world.state.budgets)
    victims: list[Unit] = []
    spared: list[Pod] = []
    broken: list[Violation] = []
    for unit, violations in [*violating, *((unit, list[Violation]()) for unit in kept)]:
        if trial.reprieves(unit):
            spared += unit.pods
            continue
        victims.append(unit)
        broken += violations
    if violating and kept:
        victims = by_importance(victims)
    if not victims:
        return None
    pods = [pod for unit in victims for pod in unit.pods]
    return Candidate(site, pods, spared, broken)


def by_importance(units: list[Unit]) -> list[Unit]:
    """The most important first; equal ones where Go's sort leaves them."""
    return go_sorted(units, [unit.key for unit in units])


def by_budgets(
    units: Iterable[Unit], budgets: Sequence[Budget]
) -> tuple[list[tuple[Unit, list[Violation]]], list[Unit]]:
    """Those whose eviction violates a budget, each with which of its pods do, and the others.
    kube-scheduler: a budget is charged also by what goes below zero; the budgets after it are not."""
    left = [budget.allowed for budget in budgets]
    violating: list[tuple[Unit, list[Violation]]] = []
    kept: list[Unit] = []
    for unit in units:
        broken: list[Violation] = []
        for pod in unit.pods:
            if pod.labels:
                for i, budget in enumerate(budgets):
                    if not _of(budget, pod):
                        continue
                    left[i] -= 1
                    if left[i] < 0:
                        broken.append((pod, budget.name))
                        break
        if broken:
            violating.append((unit, broken))
        else:
            kept.append(unit)
    return violating, kept


def _of(budget: Budget, pod: Pod) -> bool:
    selector = budget.selector
    return (
        budget.namespace == pod.namespace
        and not selector.everything
        and selector.matches(pod.labels)
        and pod.name not in budget.disrupted
    )


def chosen(candidates: list[Candidate]) -> list[Candidate]:
    """kube-scheduler: pickOneNodeForPreemption. More than one: it takes any of them by chance."""
    left = candidates
    for score in (_violations, _highest, _sum, _count, _latest):
        values = [score(candidate) for candidate in left]
        least = min(values)
        left = [candidate for candidate, value in zip(left, values, strict=True) if value == least]
        if len(left) == 1:
            break
    return left


def _violations(candidate: Candidate) -> int:
    return candidate.violations


def _highest(candidate: Candidate) -> int:
    return candidate.victims[0].priority


def _sum(candidate: Candidate) -> int:
    return sum(pod.priority + _OFFSET for pod in candidate.victims)


def _count(candidate: Candidate) -> int:
    return len(candidate.victims)


def _latest(candidate: Candidate) -> float:
    """The later the better. Without a start it is just now, later than all."""
    highest = max(pod.priority for pod in candidate.victims)
    starts = [pod.start for pod in candidate.victims if pod.priority == highest and pod.start is not None]
    return -min(starts) if starts else float("-inf")
