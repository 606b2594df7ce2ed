"""Flavor assignment: which flavor each resource of each pod set takes, and whether that needs preemption.

Part of it is how far up the tree its quota comes from.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import msgspec

from app.solver import kubernetes
from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue.amounts import pinned
from app.solver.engines.kueue.candidates import SILENT, Recorder
from app.solver.engines.kueue.configuration import DEFAULT_FLAVOR, CompiledConfiguration, FlavorResource, Group
from app.solver.engines.kueue.nomination import (
    BEST,
    WORST,
    Assignment,
    Choice,
    Fit,
    Mode,
    Suit,
    Target,
    mode_of,
    preferred,
    stops_search,
)
from app.solver.engines.kueue.overlay import Overlay, Preemptor, Usage
from app.solver.engines.kueue.topology.placement import PodSet, asks, levels_of
from app.solver.kubernetes import PODS
from app.solver.model.base import Quantity, parse_quantity, scale_of
from app.solver.model.configuration import Flavor
from app.solver.model.state import Ask, Expression, Task


def refusal(flavor: Flavor, task: Task) -> str | None:
    """Why ``task`` can't use ``flavor``, or None when it can."""
    taint = kubernetes.untolerated(flavor.node_taints, task.tolerations or ())
    if taint is not None:
        return f"untolerated taint {taint.key}={taint.value}:{taint.effect} in flavor {flavor.name}"
    labels = flavor.node_labels
    for key, value in (task.node_selector or {}).items():
        if key in labels and labels[key] != value:
            return f"flavor {flavor.name} has {key}={labels[key]}, the node selector asks for {value}"
    terms = _relevant_terms(task.node_affinity or (), labels)
    if terms and not kubernetes.matches_any(terms, labels):
        return f"flavor {flavor.name} doesn't match the required node affinity"
    return None


_MOST_KEPT = 1024
_encode = msgspec.msgpack.Encoder().encode


class Refusals(dict[str, str | None]):
    """Why pod sets that select alike can't use a flavor, or None where they can: by flavor, once somebody asks."""

    def __init__(self, flavors: Mapping[str, Flavor], task: Task) -> None:
        self._flavors = flavors
        self._task = task

    def __missing__(self, name: str) -> str | None:
        """The flavor that the ``quota`` shorthand means needs no declaration."""
        flavor = self._flavors.get(name) or (Flavor(name=name) if name == DEFAULT_FLAVOR else None)
        reason = self[name] = f"flavor {name} not found" if flavor is None else refusal(flavor, self._task)
        return reason


def refusals(configuration: CompiledConfiguration, task: Task) -> dict[str, str | None]:
    """Those of a pod set; what a configuration was asked before is known."""
    selects = task.tolerations, task.node_selector, task.node_affinity
    key = _encode(selects) if any(selects) else b""
    known = configuration.refusals
    judged = known.get(key)
    if judged is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        judged = known[key] = Refusals(configuration.flavors, task)
    return judged


def _relevant_terms(terms: Sequence[Sequence[Expression]], labels: dict[str, str]) -> list[list[Expression]]:
    """The terms cut down to keys that the flavor labels. A term left empty matches anything, and terms are
    alternatives, so it voids them all (Kueue: flavorSelector)."""
    out: list[list[Expression]] = []
    for term in terms:
        relevant = [e for e in term if e.key in labels]
        if not relevant:
            return []
        out.append(relevant)
    return out


class Level(NamedTuple):
    """``height`` of the lowest subtree whose quota covers usage and request, the root's when none does;
    ``below_root``: whether that subtree is a part of the tree only, so that capacity can be reclaimed from the
    rest of the hierarchy."""

    height: int
    below_root: bool


def borrowing_level(configuration: CompiledConfiguration, usage: Usage, queue: int, fr: int, amount: int) -> Level:
    """Where ``amount`` more of ``fr`` for ``queue`` would come from."""
    quotas, used = usage.quotas, usage.used
    parent = configuration.tree.parent
    has_parent = parent[queue] != ROOTLESS
    cell = quotas.cells[queue][fr]
    if not has_parent or used[cell] + amount <= quotas.nominal[cell]:
        return Level(0, has_parent)
    rest = amount - max(0, quotas.local[cell] - used[cell])
    node = queue
    while parent[node] != ROOTLESS:
        node, cell = parent[node], quotas.above[cell]
        if used[cell] + rest <= quotas.subtree[cell]:
            break
        rest -= max(0, quotas.local[cell] - used[cell])
    return Level(configuration.height[node], parent[node] != ROOTLESS)


def may_preempt_while_borrowing(configuration: CompiledConfiguration, queue: int) -> bool:
    """Whether others may go for an ask that stays beyond its nominal quota (Kueue: canPreemptWhileBorrowing)."""
    policy = configuration.policy[queue]
    return policy.borrow_within_cohort or (configuration.fair_sharing and policy.reclaim_within_cohort != "Never")


Pins = Mapping[str, Mapping[str, str]]
"""Flavors that must be kept: by task, by resource."""
Scan = Mapping[str, Mapping[str, int]]
"""By task, by resource, the place of the flavor at which the scan of its group stopped; -1: that was the last."""
Search = Callable[[Overlay, Preemptor, Collection[int], Recorder], list[Target]]
"""How victims are searched for: ``targets.get_targets``, or one that knows whom an ask must spare."""


@dataclass(slots=True)
class Assigner:
    """Assigns for one ask against one overlay. ``preemptor.request`` is not read. ``search`` answers the question
    whether a flavor could be had by preemption. ``scanned``: where scans stopped last time, as ``Assignment.scan``."""

    overlay: Overlay
    preemptor: Preemptor
    tasks: Sequence[Task]
    search: Search
    pins: Pins | None = None
    record: Recorder = SILENT
    scanned: Scan | None = None
    _simulated: dict[tuple[int, int], Suit] = field(default_factory=dict)

    def assign(self, counts: Sequence[int] | None = None) -> Assignment:
        """An assignment for these counts (default: all that the ask wants). Mode NO_FIT ends at the first pod set
        that gets nothing; earlier pod sets keep their choices.

        A pod set that requests something, but 0 of it or what is not counted, gets no flavor and ends the assignment
        too, as far as it has come: later pod sets get nothing, and nothing is placed. A defect of Kueue, as shipped."""
        out = Assignment(counts=[t.count for t in self.tasks] if counts is None else list(counts))
        if not self.tasks:
            out.mode = Mode.NO_FIT
        for group in _together(self.tasks, out.counts):
            mode = self._pod_sets(group, out)
            out.mode = min(out.mode, mode)
            if mode is Mode.NO_FIT or any(task.requests and not out.choices[task.name] for task, _ in group):
                return out
        place(self.overlay, self.preemptor.queue, self.tasks, out, self.record)
        return out

    def _pod_sets(self, group: Sequence[tuple[Task, int]], out: Assignment) -> Mode:
        """One pod set, or several of a group, which get the same flavors for all that they want together."""
        configuration, queue = self.overlay.state.configuration, self.preemptor.queue
        each = [requests(configuration, queue, task, count) for task, count in group]
        wanted = each[0] if len(each) == 1 else _sum(each)
        tasks = [task for task, _ in group]
        names = " and ".join(task.name for task in tasks)
        covering = configuration.covering[queue]
        lacking = [r for r, amount in wanted.items() if r not in covering and amount]
        if configuration.ignores_undeclared:
            lacking = []
        if lacking:
            out.lacking = [f"{names}: no flavor offers {resource}" for resource in lacking]
            return Mode.NO_FIT
        choices: dict[str, Choice] = {}
        scan: dict[str, int] = {}
        all_fit = True
        for g, resource_group in enumerate(configuration.groups[queue]):
            mine = {r: amount for r, amount in wanted.items() if covering.get(r) == g}
            if not mine:
                continue
            chosen, suit, stopped = self._group(tasks, resource_group, mine, out)
            if chosen is None:
                out.lacking = [f"{names}: no flavor for {', '.join(mine)}"]
                return Mode.NO_FIT
            choices |= chosen
            scan |= dict.fromkeys(chosen, stopped)
            all_fit = all_fit and suit.fit is Fit.FIT
        for task, mine in zip(tasks, each, strict=True):
            self._book(task, self._own(task, choices, mine), mine, out)
            out.scan[task.name] = {r: place for r, place in scan.items() if r in out.choices[task.name]}
        return Mode.FIT if all_fit else min(choice.mode for choice in choices.values())

    def _own(self, task: Task, choices: dict[str, Choice], wanted: Mapping[str, int]) -> dict[str, Choice]:
        """What a pod set gets of its group's flavors: those of what it requests; one that requests nothing, those that
        say where its pods go."""
        if wanted or task.topology_request is None or task.topology_request.pod_set_group is None:
            return {r: choice for r, choice in choices.items() if r in wanted}
        topologies = self.overlay.state.configuration.topologies
        return {r: choice for r, choice in choices.items() if choice.flavor in topologies}

    def _book(self, task: Task, choices: dict[str, Choice], wanted: Mapping[str, int], out: Assignment) -> None:
        out.choices[task.name] = {r: choices[r] for r in (*wanted, *choices) if r in choices}
        for resource, choice in choices.items():
            fr = self.overlay.fr(self.preemptor.queue, choice.flavor, resource)
            out.usage[fr] = out.usage.get(fr, 0) + wanted.get(resource, 0)
            out.level = max(out.level, choice.level)

    def _group(
        self, tasks: Sequence[Task], group: Group, wanted: Mapping[str, int], out: Assignment
    ) -> tuple[dict[str, Choice] | None, Suit, int]:
        """The best flavor of a group, trying them in order until one stops the search, and the place of the last one
        looked at: -1 where there is none after it. The scan goes on where it stopped last time (Kueue:
        FlavorFungibilityPreserveScanProgress)."""
        configuration = self.overlay.state.configuration
        rules = configuration.policy[self.preemptor.queue].fungibility
        best: dict[str, Choice] | None = None
        best_suit = WORST
        last = len(group.flavors) - 1
        names = " and ".join([task.name for task in tasks])
        judged = [refusals(configuration, task) for task in tasks]
        for place in range(self._start(tasks[0], wanted), last + 1):
            name = group.flavors[place]
            refused = self._refusal(tasks, judged, name, group, wanted)
            if refused is not None:
                self.record.flavor_refused(names, name, refused)
                continue
            worst = BEST
            choices: dict[str, Choice] = {}
            for resource, amount in wanted.items():
                suit = self._suit(name, resource, amount, out)
                if suit is not worst and preferred(worst, suit, rules):
                    worst = suit
                if worst.fit is Fit.NO_FIT:
                    break
                choices[resource] = Choice(name, mode_of(suit.fit), suit.level)
            self.record.flavor_considered(names, name, worst)
            if stops_search(worst, rules):
                return choices, worst, -1 if place == last else place
            if preferred(worst, best_suit, rules):
                best, best_suit = choices, worst
        return best, best_suit, -1

    def _start(self, task: Task, wanted: Mapping[str, int]) -> int:
        """Where the scan of the first resource looked at stopped for the first pod set of a group, which need not have
        asked for that resource: then nothing is known, and it starts over."""
        if self.scanned is None:
            return 0
        return self.scanned.get(task.name, {}).get(min(wanted, key=_visited), -1) + 1

    def _refusal(
        self,
        tasks: Sequence[Task],
        judged: Sequence[Mapping[str, str | None]],
        name: str,
        group: Group,
        wanted: Mapping[str, int],
    ) -> str | None:
        if self.pins is not None:
            for task in tasks:
                pins = self.pins.get(task.name, {})
                if pins and not any(pins.get(resource) == name for resource in wanted):
                    return f"flavor {name} is not the one that was nominated"
        configuration = self.overlay.state.configuration
        for task, of in zip(tasks, judged, strict=True):
            reason = of[name]
            if reason is None and (configuration.topologies or task.topology_request is not None):
                reason = topology_refusal(configuration, self.preemptor.queue, name, task, group.resources)
            if reason is not None:
                return reason
        return None

    def _suit(self, flavor: str, resource: str, amount: int, out: Assignment) -> Suit:
        """How one resource could be had from one flavor (Kueue: fitsResourceQuota)."""
        overlay, queue = self.overlay, self.preemptor.queue
        fr = overlay.fr(queue, flavor, resource)
        total = amount + out.usage.get(fr, 0)
        usage = overlay.usage
        quotas = usage.quotas
        cell = quotas.cells[queue][fr]
        if total > quotas.potential[cell]:
            return WORST
        fits = total <= max(0, usage.available_cell(cell))
        if fits and usage.used[cell] + total <= quotas.nominal[cell]:
            return BEST  # of its own
        height, below_root = borrowing_level(overlay.state.configuration, usage, queue, fr, total)
        if fits:
            return Suit(Fit.FIT, height)
        if (
            total <= quotas.nominal[cell]
            or below_root
            or may_preempt_while_borrowing(overlay.state.configuration, queue)
        ):
            return self._simulate(fr, total)
        return Suit(Fit.NO_FIT, height)

    def _simulate(self, fr: int, total: int) -> Suit:
        """Whether preemption could free this one flavor-resource, and the level once it did."""
        simulated, alike = self._simulated, self.overlay.alike
        if (fr, total) not in simulated:
            same = (suit for (other, amount), suit in simulated.items() if amount == total and alike(other, fr))
            suit = next(same, None) or simulate(self.overlay, self.preemptor, fr, total, self.search)
            simulated[fr, total] = suit
        return simulated[fr, total]


def _together(tasks: Sequence[Task], counts: Sequence[int]) -> Iterable[list[tuple[Task, int]]]:
    """Pod sets with their counts: alone, or with those of their group, in order of the first of each."""
    if all(task.topology_request is None for task in tasks):
        return ([pair] for pair in zip(tasks, counts, strict=True))
    groups: dict[str, list[tuple[Task, int]]] = {}
    for i, (task, count) in enumerate(zip(tasks, counts, strict=True)):
        name = task.topology_request.pod_set_group if task.topology_request is not None else None
        groups.setdefault(f"/{i}" if name is None else name, []).append((task, count))
    return groups.values()


def _sum(each: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for wanted in each:
        for resource, amount in wanted.items():
            total[resource] = total.get(resource, 0) + amount
    return dict(sorted(total.items()))


def as_pinned(overlay: Overlay, queue: int, ask: Ask, record: Recorder) -> Assignment:
    """The ask's own flavors: a flavor-resource needs preemption when the ask's total for it is not available, or its
    nodes have no room. No flavor is judged by taints, labels, or by what preemption could free. One that its queue does
    not list has no quota of the queue's own, and what the cohort lends of it (Kueue: a missing quota counts as 0)."""
    configuration = overlay.state.configuration
    out = Assignment(counts=[t.count for t in ask.tasks])
    by_task = [pinned(configuration, queue, task) for task in ask.tasks]
    totals: dict[FlavorResource, int] = {}
    for of in by_task:
        for key, amount in of.items():
            totals[key] = totals.get(key, 0) + amount
    out.usage = dict(overlay.request(queue, totals))
    usage, choice = overlay.usage, dict[FlavorResource, Choice]()
    for key, amount in totals.items():
        fr = usage.quotas.fr_index[key]
        mode = Mode.PREEMPT if amount > usage.available(queue, fr) else Mode.FIT
        level = borrowing_level(configuration, usage, queue, fr, amount).height
        choice[key] = Choice(key[0], mode, level)
        out.mode, out.level = min(out.mode, mode), max(out.level, level)
    for task, of in zip(ask.tasks, by_task, strict=True):
        out.choices[task.name] = {resource: choice[(flavor, resource)] for flavor, resource in of}
    place(overlay, queue, ask.tasks, out, record)
    return out


def place(overlay: Overlay, queue: int, tasks: Sequence[Task], out: Assignment, record: Recorder) -> None:
    """Kueue: with quota for all, nodes for all; where nodes lack, whoever runs on them may have to stop. Raises
    QuantityError."""
    configuration = overlay.state.configuration
    if overlay.room is None:
        return
    asking: list[tuple[str, PodSet]] = []
    for task, count in zip(tasks, out.counts, strict=True):
        flavors = sorted({c.flavor for c in out.choices[task.name].values()} & configuration.topologies.keys())
        if not asks(task.topology_request) and not configuration.only_topologies[queue]:
            continue
        if len(flavors) != 1:
            out.mode = Mode.NO_FIT
            out.lacking = [f"{task.name}: gets {len(flavors)} flavors with a topology, not one"]
            return
        asking.append((flavors[0], PodSet.of(task, count)))
    out.pod_sets = tuple(asking)
    if not asking:
        return
    if out.mode is Mode.FIT:
        out.places, out.misfit = overlay.place(out.pod_sets)
        if out.misfit is not None:
            out.preempt([out.misfit.task])
            record.nodes_short(overlay, out.pod_sets, out.misfit, empty=False)
    if out.mode is Mode.PREEMPT:
        out.places, misfit = overlay.place(out.pod_sets, empty=True)
        if misfit is None:
            out.preempt(of.task.name for _, of in asking)
        else:
            out.mode, out.misfit = Mode.NO_FIT, None
            out.lacking = [f"{misfit.task}: {misfit.reason}, even with none of Kueue's work running"]
            record.nodes_short(overlay, out.pod_sets, misfit, empty=True)


def topology_refusal(
    configuration: CompiledConfiguration, queue: int, flavor: str, task: Task, resources: Collection[str]
) -> str | None:
    """Why ``task`` can't use ``flavor`` for these resources by what it asks of a topology, or None when it can (Kueue:
    checkPodSetAndFlavorMatchForTAS)."""
    levels = configuration.topologies.get(flavor)
    request = task.topology_request
    if request is None or not asks(request):
        if levels is None or configuration.only_topologies[queue]:
            return None
        return f"flavor {flavor} is for pods that ask for a topology"
    if levels is None:
        return None if task.requests.keys().isdisjoint(resources) else f"flavor {flavor} has no topology"
    missing = [level for level in levels_of(request) if level not in levels]
    return f"the topology of flavor {flavor} has no level {missing[0]}" if missing else None


def simulate(overlay: Overlay, preemptor: Preemptor, fr: int, total: int, search: Search) -> Suit:
    """Preempt for ``total`` of one flavor-resource and nothing else, in thought (Kueue: SimulatePreemption)."""
    queue, targets = preemptor.queue, search(overlay, preemptor.only(fr, total), (fr,), SILENT)
    height = height_without(overlay, targets, queue, fr, total)
    if not targets:
        return Suit(Fit.NO_CANDIDATES, height)
    own = any(int(overlay.state.queue[workload]) == queue for workload, _ in targets)
    return Suit(Fit.PREEMPT if own else Fit.RECLAIM, height)


def height_without(overlay: Overlay, targets: Sequence[Target], queue: int, fr: int, total: int) -> int:
    """How far up quota for ``total`` comes from once these have gone."""
    for workload, _ in targets:
        overlay.remove(workload)
    height = borrowing_level(overlay.state.configuration, overlay.usage, queue, fr, total).height
    for workload, _ in targets:
        overlay.restore(workload)
    return height


def requests(configuration: CompiledConfiguration, queue: int, task: Task, count: int) -> dict[str, int]:
    """Steps by resource for ``count`` units, by name, not to be changed; "pods" counts one a unit where the queue has
    quota for it, whatever was requested. Raises QuantityError."""
    return _steps(tuple(task.requests.items()), count, pods=PODS in configuration.covering[queue])


@lru_cache(maxsize=256)
def _visited(resource: str) -> tuple[int, str]:
    """The order in which Kueue looks at resources: by the FNV-1a hash of their names."""
    code = 0xCBF29CE484222325
    for byte in resource.encode():
        code = (code ^ byte) * 0x100000001B3 % 2**64
    return code, resource


@lru_cache(maxsize=4096)
def _steps(requested: tuple[tuple[str, Quantity], ...], count: int, *, pods: bool) -> dict[str, int]:
    out = {r: parse_quantity(amount, scale_of(r)) * count for r, amount in sorted(requested)}
    if pods:
        out[PODS] = count
    return out


def never_fits(configuration: CompiledConfiguration, queue: int, tasks: Sequence[Task]) -> str | None:
    """Why no state of the cluster could ever take the ask, or None. Sound, not complete: it looks at each pod set
    alone, at the smallest count it may start with."""
    for task in tasks:
        count = task.count if task.min_count is None else min(task.count, task.min_count)
        wanted, judged = requests(configuration, queue, task, count), refusals(configuration, task)
        for resource, amount in wanted.items():
            if amount and resource not in configuration.covering[queue] and not configuration.ignores_undeclared:
                return f"queue {configuration.tree.names[queue]} has no quota for {resource}"
        for g, group in enumerate(configuration.groups[queue]):
            mine = [(r, n) for r, n in wanted.items() if configuration.covering[queue].get(r) == g]
            if mine and not any(judged[f] is None and _could(configuration, queue, f, mine) for f in group.flavors):
                names = ", ".join(r for r, _ in mine)
                return f"no flavor that pod set {task.name} may use could ever hold its {names}"
    return None


def _could(configuration: CompiledConfiguration, queue: int, name: str, wanted: Sequence[tuple[str, int]]) -> bool:
    index = configuration.quotas.fr_index
    return all(n <= configuration.quotas.potential_available(queue, index[(name, r)]) for r, n in wanted)
