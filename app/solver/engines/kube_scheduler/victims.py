"""Whom a node would have to lose: kube-scheduler's dry run, and which node it chooses.

Source: ``framework/plugins/defaultpreemption`` (SelectVictimsOnNode) and ``framework/preemption``
(pickOneNodeForPreemption, FilterVictimsWithPDBViolation, MoreImportantVictim).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.solver.engine import Loss
from app.solver.engines.kube_scheduler.filters import Cycle, fits, nominated, of_the_node
from app.solver.engines.kube_scheduler.importance import ALONE, NOBODY, go_sorted, search_of
from app.solver.engines.kube_scheduler.pods import Ints, Pod, Site, Unit
from app.solver.engines.kube_scheduler.world import Budget, CompiledState, World
from app.solver.model.state import Node
from app.solver.question import safe_point

_OFFSET = 2**31
_MANY = 2**31
Violation = tuple[Pod, Budget]
"""A pod whose eviction violates a budget, and the budget."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A node that could take the pod without ``victims``. ``broken``: which of them violate which budget."""

    site: Site
    victims: list[Pod]
    spared: list[Pod] = field(default_factory=list)
    broken: list[Violation] = field(default_factory=list)
    _scored: dict[int, list[float]] = field(default_factory=dict)

    @property
    def violations(self) -> int:
        return len(self.broken)

    def scores(self, step: int) -> list[float]:
        """Those of a step of ``_SCORES``."""
        known = self._scored.get(step)
        if known is None:
            known = self._scored[step] = [score(self) for score in _SCORES[step]]
        return known


@dataclass(slots=True, eq=False)
class DryRun:
    """What was found on the nodes looked at. ``candidates``: nodes in order, each with how many victims would violate
    budgets; ``best``: those that the origin chooses among by chance; ``on``: what a node would lose."""

    candidates: dict[int, int]
    best: list[int]
    looked_at: int
    possible: int
    on: Callable[[int], Candidate | None]

    def losses(self, nodes: Iterable[int]) -> Iterator[Candidate]:
        """What candidates would lose, as far as it is asked for."""
        return (loss for node in nodes if (loss := self.on(node)) is not None)


def units_of(pods: Iterable[Pod], now: int, below: int) -> list[Unit]:
    """Those of a priority below ``below``, each at its place among all. Pods in the order of their nodes' lists.
    kube-scheduler: getCrossNodesVictims."""
    units: list[Unit] = []
    seen: set[int] = set()
    place = 0
    for pod in pods:
        group = pod.group
        if group is None or not group.whole:
            if pod.effective_priority < below:
                units.append(pod.unit(now, place))
        elif id(group) in seen:
            continue
        else:
            seen.add(id(group))
            if group.priority < below:
                unstarted = (now, place + 1)
                start = min(unstarted if other.start is None else (other.start, 0) for other in group.pods)
                units.append(Unit(group.pods, group.priority, (-group.priority, 0, -len(group.pods), start)))
        place += 1
    return units


def dry_run(world: World, cycle: Cycle, nodes: Ints, most: int, offset: int, now: int) -> DryRun:
    """kube-scheduler: DryRunPreemption. From ``offset`` on, round and round, until ``most`` candidates are there and
    one of them violates no budget."""
    looks = _Looks(world, cycle, now)
    non_violating: dict[int, int] = {}
    violating: dict[int, int] = {}
    looked_at = 0
    start = offset % len(nodes)
    for node, violations in looks.through(np.concatenate((nodes[start:], nodes[:start])) if start else nodes, most):
        looked_at += 1
        if violations is not None:
            into = violating if violations else non_violating
            if len(into) < most:
                into[node] = violations
            if non_violating and len(non_violating) + len(violating) >= most:
                break
    candidates = non_violating | violating
    return DryRun(candidates, looks.best(list(candidates)), looked_at, len(nodes), looks.on)


class _Trial:
    """One node without some of its pods. What a group leaves on other nodes changes only what the cycle knows."""

    def __init__(self, world: World, cycle: Cycle, site: Site) -> None:
        self._world, self._cycle, self._site = world, cycle, site

    def emptied(self, now: int) -> list[Unit] | None:
        """All that is less important than the pod, the most important first, which is away from here on. None: there is
        nobody, or the pod does not even fit then."""
        units = units_of(self._site.pods, now, self._cycle.pod.priority)
        for unit in units:
            self._change(unit, self._site.remove, -1)
        return by_importance(units) if units and fits(self._cycle, self._site, self._world) is None else None

    def reprieves(self, units: Sequence[Unit]) -> list[bool]:
        """Whether the pod fits with each back, one after the other; then it is back."""
        return [self._reprieves(unit) for unit in units]

    def _reprieves(self, unit: Unit) -> bool:
        self._change(unit, self._site.add, 1)
        if fits(self._cycle, self._site, self._world) is None:
            return True
        self._change(unit, self._site.remove, -1)
        return False

    def _change(self, unit: Unit, move: Callable[[Pod], None], by: int) -> None:
        for pod in unit.pods:
            if pod.node == self._site.machine.index:
                move(pod)
            self._cycle.change(pod, self._world.state.machines[pod.node], by)


class _Room:
    """The same for a node where nothing but what is free can stand in the way. ``held``: pods nominated to it that go
    before; ``free``: by resource that the pod asks for, what would be left beside it; ``places``: for how many more
    pods."""

    __slots__ = ("_priority", "_site", "_wanted", "free", "places")

    def __init__(self, pod: Pod, site: Site, wanted: Mapping[str, int], held: Sequence[Pod]) -> None:
        machine = site.machine
        capacity, used = machine.capacity, site.used
        self._priority, self._site = pod.priority, site
        self._wanted = wanted
        self.free = [capacity.get(name, 0) - used.get(name, 0) - amount for name, amount in wanted.items()]
        self.places = _MANY if machine.most is None else machine.most - site.count - len(held) - 1
        for other in held:
            self.free = [free - other.requests.get(name, 0) for name, free in zip(wanted, self.free, strict=True)]

    @property
    def suffices(self) -> bool:
        """Whether the pod has room."""
        return self.places >= 0 and min(self.free, default=0) >= 0

    def emptied(self, now: int) -> list[Unit] | None:
        """See ``_Trial``."""
        site, priority = self._site, self._priority
        ranked = site.machine.less_important(priority) if site.pods is site.machine.pods else None
        if ranked is not None:
            lower = [pod.requests for unit in ranked for pod in unit.pods]
        else:
            lower = [pod.requests for pod in site.pods if pod.effective_priority < priority]
        self.without(lower)
        if not lower or not self.suffices:
            return None
        return by_importance(units_of(site.pods, now, priority)) if ranked is None else ranked

    def without(self, gone: Sequence[Mapping[str, int]]) -> None:
        """Pods that request these leave."""
        for i, name in enumerate(self._wanted):
            self.free[i] += sum([requests.get(name, 0) for requests in gone])
        self.places += len(gone)

    def reprieves(self, units: Sequence[Unit]) -> list[bool]:
        """See ``_Trial``."""
        free, places, node, wanted = self.free, self.places, self._site.machine.index, tuple(self._wanted)
        stayed: list[bool] = []
        for unit in units:
            after, count = free, 0
            for pod in unit.pods:
                if pod.node == node:
                    get = pod.requests.get
                    after = [left - get(name, 0) for name, left in zip(wanted, after)]  # noqa: B905
                    count += 1
            stays = places >= count and (not after or min(after) >= 0)
            if stays:
                free, places = after, places - count
            stayed.append(stays)
        return stayed


def _wanted(pod: Pod) -> dict[str, int]:
    return {resource: amount for resource, amount in pod.requests.items() if amount > 0}


def _room_of(pod: Pod, site: Site, wanted: Mapping[str, int], world: World) -> _Room:
    """Of a pod that is nominated nowhere."""
    nominees = world.nominated.get(site.machine.index)
    held = [other for _, other in nominees if other.priority >= pod.priority] if nominees else ()
    return _Room(pod, site, wanted, held)


def in_vain(pod: Pod, site: Site, world: World) -> bool:
    """Whether a node that only suits and has room, or doesn't, has none even without all that is less important. The
    pod is nominated nowhere."""
    if of_the_node(pod, site.machine) is not None:
        return True
    room = _room_of(pod, site, _wanted(pod), world)
    room.without([other.requests for other in site.pods if other.effective_priority < pod.priority])
    return not room.suffices


class _Looks:
    """What each node would lose for one pod. Where nothing but what is free can stand in the way, that hangs on the
    pod's shape and priority alone, if pods there have one order whatever the moment: then it is kept, or looked up on
    many nodes at once. ``_first``: nodes that were, each with where in the columns its first victim is."""

    def __init__(self, world: World, cycle: Cycle, now: int) -> None:
        pod, state = cycle.pod, world.state
        self._world, self._cycle, self._now = world, cycle, now
        self._plain = not (cycle.spreads or cycle.affine or pod.ports)
        self._wanted = _wanted(pod)
        self._key = pod.shape, pod.priority, *state.budgets
        self._known = state.dry_runs.of(self._key) if self._plain else {}
        self._candidates: dict[int, Candidate | None] = {}
        self._first: dict[int, int] = {}
        self._search = search_of(world, pod, self._wanted) if self._plain else None

    def through(self, nodes: Ints, most: int) -> Iterator[tuple[int, int | None]]:
        """Each node with how many victims would violate budgets; None: it is no candidate."""
        if self._search is None:
            known, stamps = self._known, self._world.stamps.tolist()
            for node in nodes.tolist():
                earlier = known.get(node)
                candidate = earlier[1] if earlier is not None and earlier[0] == stamps[node] else self.on(node)
                yield node, None if candidate is None else len(candidate.broken)
            return
        for start in range(0, len(nodes), most):
            safe_point()
            part = nodes[start : start + most]
            for node, first in zip(part.tolist(), self._search.first(part).tolist(), strict=True):
                if first == ALONE:
                    yield node, self._violations(node)
                elif first == NOBODY:
                    yield node, None
                else:
                    self._first[node] = first
                    yield node, 0

    def on(self, node: int) -> Candidate | None:
        """What it would lose; None: it is no candidate."""
        known = self._known.get(node)
        if known is not None and known[0] == self._world.stamps.item(node):
            return known[1]
        if node not in self._candidates:
            safe_point()
            self._candidates[node] = self._looked_at(self._world.sites[node])
        return self._candidates[node]

    def best(self, nodes: list[int]) -> list[int]:
        """Of candidates. kube-scheduler: pickOneNodeForPreemption. More than one: it takes any of them by chance."""
        alone = {
            node: candidate for node in nodes if node not in self._first and (candidate := self.on(node)) is not None
        }
        left = nodes
        for step in range(len(_SCORES)):
            if len(left) > 1:
                of = {node: alone[node].scores(step) for node in left if node in alone}
                if self._search is not None and len(of) < len(left):
                    many = {node: self._first[node] for node in left if node not in alone}
                    looked_up = self._search.scores(many) if step else self._search.highest(many)
                    of |= zip(many, looked_up, strict=True)
                least = min(of.values())
                left = [node for node in left if of[node] == least]
        return left

    def _violations(self, node: int) -> int | None:
        candidate = self.on(node)
        return None if candidate is None else len(candidate.broken)

    def _looked_at(self, site: Site) -> Candidate | None:
        world, cycle = self._world, self._cycle
        if not self._plain:
            return victims_on(world, site, _Trial(world, cycle.copy(), site.copy()), self._now)
        dry_runs, machine = world.state.dry_runs, site.machine
        held = nominated(cycle, site, world) if world.nominated else ()
        dry_runs.singles += not held and (self._search is None or self._search.is_stale(machine))
        candidate = victims_on(world, site, _Room(cycle.pod, site, self._wanted, held), self._now)
        if _lasts(site, cycle.pod.priority):
            dry_runs.keep(self._key, self._known, machine.index, (world.stamps.item(machine.index), candidate))
        return candidate


def _lasts(site: Site, priority: int) -> bool:
    """Whether its pods below ``priority`` have one order whatever the moment."""
    if site.pods is site.machine.pods:
        return site.machine.less_important(priority) is not None
    return all(pod.started is not None and (pod.group is None or not pod.group.whole) for pod in site.pods)


def victims_on(world: World, site: Site, trial: "_Trial | _Room", now: int) -> Candidate | None:
    """kube-scheduler: SelectVictimsOnNode. None: nobody there is less important, all of them are not enough, or nobody
    had to go."""
    units = trial.emptied(now)
    if units is None:
        return None
    violating, non_violating = by_budgets(units, world.state)
    victims: list[Unit] = []
    spared: list[Pod] = []
    broken: list[Violation] = []
    units = [*(unit for unit, _ in violating), *non_violating]
    for i, (unit, stays) in enumerate(zip(units, trial.reprieves(units), strict=True)):
        if stays:
            spared += unit.pods
        else:
            victims.append(unit)
            if i < len(violating):
                broken += violating[i][1]
    if violating and non_violating:
        victims = by_importance(victims)
    if not victims:
        return None
    pods = [pod for unit in victims for pod in unit.pods]
    return Candidate(site, pods, spared, broken)


class _Loss(NamedTuple):
    scores: list[float]
    node: int
    victims: list[Pod]


def _alike(units: Sequence[Unit]) -> bool:
    """Whether they request the same."""
    first = units[0].pods[0].requests
    return all(unit.pods[0].requests is first for unit in units)


class Offers:
    """What nodes offer pods that are alike and that only room can keep away, in states that follow one another: whether
    they fit, or else what it would lose. What is known of a node holds until it changes. ``score``: see ``best``;
    ``_suits``: could take one if everybody left; ``_unknown``: nodes whose loss is not known."""

    def __init__(self, pod: Pod, nodes: int, score: Callable[[Site], tuple[int]]) -> None:
        self._priority, self._wanted, self._score = pod.priority, _wanted(pod), score
        self._stamps: Ints = np.zeros(nodes, np.int64)
        self._nodes: list[Node | None] = [None] * nodes
        self._suits, self._fits = [False] * nodes, [False] * nodes
        self._unknown: set[int] = set()
        self._scores: list[int | None] = [None] * nodes
        self._losses: list[_Loss | None] = [None] * nodes

    def follow(self, world: World, pod: Pod) -> None:
        """``pod``: one of them, which is nominated nowhere."""
        stamps, sites, wanted = world.stamps, world.sites, self._wanted.items()
        changed: list[int] = (self._stamps != stamps).nonzero()[0].tolist()
        for i in changed:
            site = sites[i]
            machine = site.machine
            if self._nodes[i] is not machine.node:
                self._nodes[i] = machine.node
                enough = all(amount <= machine.capacity.get(name, 0) for name, amount in wanted)
                self._suits[i] = enough and of_the_node(pod, machine) is None
            if not self._suits[i]:
                self._fits[i], self._losses[i] = False, None
                self._unknown.discard(i)
                continue
            if i in world.nominated or machine.most is not None:
                self._fits[i] = _room_of(pod, site, self._wanted, world).suffices
            else:
                capacity, used, fits = machine.capacity, site.used, True
                for name, amount in wanted:
                    fits = fits and capacity.get(name, 0) - used.get(name, 0) >= amount
                self._fits[i] = fits
            self._scores[i] = None
            self._unknown.add(i)
        self._stamps = stamps

    def fitting(self, world: World) -> tuple[list[int], list[int]]:
        """Nodes that can take a pod, and the score of each."""
        nodes = [node for node, fits in enumerate(self._fits) if fits]
        return nodes, [self._scored(world.sites[node]) for node in nodes] if len(nodes) > 1 else [0] * len(nodes)

    def least(self, world: World, pod: Pod, now: int) -> tuple[int, list[Pod]] | None:
        """The first of the nodes that would lose least, and whom, where none can take a pod as it is; None: nobody's
        going helps."""
        unknown, losses = self._unknown, self._losses
        self._unknown = set[int]()
        for node in unknown:
            site = world.sites[node]
            lower = site.less_important(self._priority)
            if lower is None:  # that hangs on the moment
                self._unknown.add(node)
            candidate: Candidate | None = None
            if lower is None or lower:
                room = _room_of(pod, site, self._wanted, world)
                if lower and not world.state.budgets and _alike(lower):
                    candidate = self._without(room, site, lower)
                else:
                    safe_point()
                    candidate = victims_on(world, site, room, now)
            scores = [] if candidate is None else [*candidate.scores(0), *candidate.scores(1)]
            losses[node] = None if candidate is None else _Loss(scores, node, candidate.victims)
        least = min([loss for loss in losses if loss is not None], default=None)
        return None if least is None else (least.node, least.victims)

    def _without(self, room: _Room, site: Site, lower: Sequence[Unit]) -> Candidate | None:
        """See ``victims_on``. Of pods that request the same, the more important stay, as many as have room."""
        count = len(lower)
        stay = min(count, room.places + count)
        for beside, name in zip(room.free, self._wanted, strict=True):
            amount = lower[0].pods[0].requests.get(name, 0)
            left = beside + amount * count
            if left < 0:
                return None
            stay = min(stay, left // amount) if amount else stay
        if stay < 0 or stay == count:
            return None
        return Candidate(site, [unit.pods[0] for unit in lower[stay:]])

    def _scored(self, site: Site) -> int:
        node = site.machine.index
        if (score := self._scores[node]) is None:
            (score,) = (self._scores[node],) = self._score(site)
        return score


def by_importance(units: list[Unit]) -> list[Unit]:
    """The most important first; equal ones where Go's sort leaves them."""
    return go_sorted(units, [unit.key for unit in units])


def by_budgets(units: Iterable[Unit], state: CompiledState) -> tuple[list[tuple[Unit, list[Violation]]], list[Unit]]:
    """Those whose eviction violates a budget, each with which of its pods do, and the others.
    kube-scheduler: a budget is charged also by what goes below zero; the budgets after it are not."""
    if not state.budgets:
        return [], list(units)
    left: dict[int, int] = {}
    violating: list[tuple[Unit, list[Violation]]] = []
    non_violating: list[Unit] = []
    for unit in units:
        broken: list[Violation] = []
        for pod in unit.pods:
            if pod.labels:
                for i, budget in state.budgets_in.get(pod.namespace, ()):
                    if not budget.charged_by(pod):
                        continue
                    left[i] = left.get(i, budget.allowed) - 1
                    if left[i] < 0:
                        broken.append((pod, budget))
                        break
        if broken:
            violating.append((unit, broken))
        else:
            non_violating.append(unit)
    return violating, non_violating


def ranks(losses: list[Loss]) -> list[int]:
    """See ``Engine.ranks``."""
    scores = [tuple(score(loss) for scores in _SCORES for score in scores) for loss in losses]
    places = {score: place for place, score in enumerate(sorted(set(scores)), start=1)}
    return [places[score] for score in scores]


def _violations(of: Candidate | Loss) -> int:
    return of.violations


def _highest(of: Candidate | Loss) -> int:
    return of.victims[0].priority


def _sum(of: Candidate | Loss) -> int:
    return sum(pod.priority + _OFFSET for pod in of.victims)


def _count(of: Candidate | Loss) -> int:
    return len(of.victims)


def _latest(of: Candidate | Loss) -> float:
    """The later the better. Without a start it is just now, later than all."""
    highest = max(pod.priority for pod in of.victims)
    starts = [pod.start for pod in of.victims if pod.priority == highest and pod.start is not None]
    return -min(starts) if starts else float("-inf")


_SCORES: tuple[tuple[Callable[[Candidate | Loss], float], ...], ...] = (
    (_violations, _highest),
    (_sum, _count, _latest),
)
"""The less the better, one after the other; those of ``Search``."""
