"""Flavor assignment: which flavor each resource of each pod set takes, and whether that needs preemption.

Source: Kueue ``pkg/scheduler/flavorassigner``. Pod sets go one after the other and see what earlier ones of the
same ask were given. The resources of one group share one flavor; groups are independent of one another.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from app.solver.engines.kueue.compile.amounts import PODS
from app.solver.engines.kueue.compile.configuration import DEFAULT_FLAVOR, CompiledConfiguration, Group
from app.solver.engines.kueue.decide.flavors.assignment import Assignment, Choice
from app.solver.engines.kueue.decide.flavors.eligibility import refusal
from app.solver.engines.kueue.decide.flavors.modes import BEST, WORST, Fit, Mode, Suit, mode_of, preferred, stops_search
from app.solver.engines.kueue.decide.level import borrowing_level
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor, Target
from app.solver.engines.kueue.decide.recorder import SILENT, Recorder
from app.solver.model.configuration import Flavor
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Task

Pins = Mapping[str, Mapping[str, str]]
"""Flavors that must be kept: by task, by resource."""
Scan = Mapping[str, Mapping[str, int]]
"""By task, by resource, the place of the flavor at which the scan of its group stopped; -1: that was the last."""
Search = Callable[[Overlay, Preemptor, Collection[int], Recorder], list[Target]]
"""How victims are searched for: ``targets.get_targets``, or one that knows whom an ask must spare."""


@dataclass(frozen=True, slots=True)
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
    _simulated: dict[tuple[int, int], Suit] = field(default_factory=dict[tuple[int, int], Suit])

    def assign(self, counts: Sequence[int] | None = None) -> Assignment:
        """An assignment for these counts (default: all that the ask wants). Mode NO_FIT ends at the first pod set
        that gets nothing; earlier pod sets keep their choices."""
        out = Assignment(counts=[t.count for t in self.tasks] if counts is None else list(counts))
        if not self.tasks:
            out.mode = Mode.NO_FIT
        for task, count in zip(self.tasks, out.counts, strict=True):
            mode = self._pod_set(task, count, out)
            out.mode = min(out.mode, mode)
            if mode is Mode.NO_FIT:
                break
        return out

    def _pod_set(self, task: Task, count: int, out: Assignment) -> Mode:
        configuration = self.overlay.state.configuration
        wanted = requests(configuration, self.preemptor.queue, task, count)
        covering = configuration.covering[self.preemptor.queue]
        lacking = [r for r, amount in wanted.items() if r not in covering and amount]
        if lacking:
            out.lacking = [f"{task.name}: no flavor offers {resource}" for resource in lacking]
            return Mode.NO_FIT
        choices: dict[str, Choice] = {}
        scan: dict[str, int] = {}
        all_fit = True
        for at, group in enumerate(configuration.groups[self.preemptor.queue]):
            mine = {r: amount for r, amount in wanted.items() if covering.get(r) == at}
            if not mine:
                continue
            found, suit, stopped = self._group(task, group, mine, out)
            if found is None:
                out.lacking = [f"{task.name}: no flavor for {', '.join(mine)}"]
                return Mode.NO_FIT
            choices |= found
            scan |= dict.fromkeys(found, stopped)
            all_fit = all_fit and suit.fit is Fit.FIT
        self._book(task, choices, wanted, out)
        out.scan[task.name] = scan
        return Mode.FIT if all_fit else min(choice.mode for choice in choices.values())

    def _book(self, task: Task, choices: dict[str, Choice], wanted: Mapping[str, int], out: Assignment) -> None:
        out.choices[task.name] = {r: choices[r] for r in wanted if r in choices}
        for resource, choice in choices.items():
            fr = self.overlay.fr(self.preemptor.queue, choice.flavor, resource)
            out.usage[fr] = out.usage.get(fr, 0) + wanted[resource]
            out.level = max(out.level, choice.level)

    def _group(
        self, task: Task, group: Group, wanted: Mapping[str, int], out: Assignment
    ) -> tuple[dict[str, Choice] | None, Suit, int]:
        """The best flavor of a group, trying them in order until one stops the search, and the place of the last one
        looked at: -1 where there is none after it. The scan goes on where it stopped last time (Kueue:
        FlavorFungibilityPreserveScanProgress)."""
        configuration = self.overlay.state.configuration
        rules = configuration.policy[self.preemptor.queue].fungibility
        best: dict[str, Choice] | None = None
        best_suit = WORST
        last = len(group.flavors) - 1
        for place in range(self._start(task, wanted), last + 1):
            name = group.flavors[place]
            refused = self._refusal(configuration, task, name, wanted)
            if refused is not None:
                self.record.flavor_refused(task.name, name, refused)
                continue
            worst, choices = BEST, dict[str, Choice]()
            for resource, amount in wanted.items():
                suit = self._suit(name, resource, amount, out)
                if preferred(worst, suit, rules):
                    worst = suit
                if worst.fit is Fit.NO_FIT:
                    break
                choices[resource] = Choice(name, mode_of(suit.fit), suit.level)
            self.record.flavor_considered(task.name, name, worst)
            if stops_search(worst, rules):
                return choices, worst, -1 if place == last else place
            if preferred(worst, best_suit, rules):
                best, best_suit = choices, worst
        return best, best_suit, -1

    def _start(self, task: Task, wanted: Mapping[str, int]) -> int:
        if self.scanned is None:
            return 0
        return self.scanned.get(task.name, {}).get(next(iter(wanted)), -1) + 1

    def _refusal(
        self, configuration: CompiledConfiguration, task: Task, name: str, wanted: Mapping[str, int]
    ) -> str | None:
        if self.pins is not None:
            kept = self.pins.get(task.name, {})
            if not any(kept.get(resource) == name for resource in wanted):
                return f"flavor {name} is not the one that was nominated"
        flavor = flavor_called(configuration, name)
        return f"flavor {name} not found" if flavor is None else refusal(flavor, task)

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
        height, below_root = borrowing_level(overlay.state.configuration, usage, queue, fr, total)
        if total <= usage.available(queue, fr):
            return Suit(Fit.FIT, height)
        if total <= quotas.nominal[cell] or below_root or self._may_preempt_while_borrowing():
            return self._simulate(fr, total)
        return Suit(Fit.NO_FIT, height)

    def _may_preempt_while_borrowing(self) -> bool:
        configuration = self.overlay.state.configuration
        policy = configuration.policy[self.preemptor.queue]
        return policy.borrow_within_cohort or (configuration.fair_sharing and policy.reclaim_within_cohort != "Never")

    def _simulate(self, fr: int, total: int) -> Suit:
        """Whether preemption could free this one flavor-resource, and the level once it did."""
        known = self._simulated.get((fr, total))
        if known is None:
            known = self._simulated[(fr, total)] = simulate(self.overlay, self.preemptor, fr, total, self.search)
        return known


def simulate(overlay: Overlay, preemptor: Preemptor, fr: int, total: int, search: Search) -> Suit:
    """Preempt for ``total`` of one flavor-resource and nothing else, in thought (Kueue: SimulatePreemption)."""
    configuration, queue = overlay.state.configuration, preemptor.queue
    targets = search(overlay, preemptor.only(fr, total), (fr,), SILENT)
    for workload, _ in targets:
        overlay.remove(workload)
    height = borrowing_level(configuration, overlay.usage, queue, fr, total).height
    for workload, _ in targets:
        overlay.restore(workload)
    if not targets:
        return Suit(Fit.NO_CANDIDATES, height)
    own = any(int(overlay.state.queue[workload]) == queue for workload, _ in targets)
    return Suit(Fit.PREEMPT if own else Fit.RECLAIM, height)


def requests(configuration: CompiledConfiguration, queue: int, task: Task, count: int) -> dict[str, int]:
    """Steps by resource for ``count`` units, by name; "pods" counts one a unit where the queue has
    quota for it, whatever was requested. Raises QuantityError."""
    out = {r: parse(amount, scale_of(r)) * count for r, amount in sorted(task.requests.items())}
    if PODS in configuration.covering[queue]:
        out[PODS] = count
    return out


def flavor_called(configuration: CompiledConfiguration, name: str) -> Flavor | None:
    """A declared flavor; the one that the ``quota`` shorthand means needs no declaration."""
    found = configuration.flavors.get(name)
    return Flavor(name=name) if found is None and name == DEFAULT_FLAVOR else found


def never_fits(configuration: CompiledConfiguration, queue: int, tasks: Sequence[Task]) -> str | None:
    """Why no state of the cluster could ever take the ask, or None. Sound, not complete: it looks at each pod set
    alone, at the smallest count it may start with."""
    for task in tasks:
        count = task.count if task.min_count is None else min(task.count, task.min_count)
        wanted = requests(configuration, queue, task, count)
        for resource, amount in wanted.items():
            if amount and resource not in configuration.covering[queue]:
                return f"queue {configuration.tree.names[queue]} has no quota for {resource}"
        for at, group in enumerate(configuration.groups[queue]):
            mine = [(r, n) for r, n in wanted.items() if configuration.covering[queue].get(r) == at]
            if mine and not any(_could(configuration, queue, task, f, mine) for f in group.flavors):
                names = ", ".join(r for r, _ in mine)
                return f"no flavor that pod set {task.name} may use could ever hold its {names}"
    return None


def _could(
    configuration: CompiledConfiguration, queue: int, task: Task, name: str, wanted: Sequence[tuple[str, int]]
) -> bool:
    flavor = flavor_called(configuration, name)
    if flavor is None or refusal(flavor, task) is not None:
        return False
    index = configuration.quotas.fr_index
    return all(n <= configuration.quotas.potential_available(queue, index[(name, r)]) for r, n in wanted)
