"""What judges victims: filters of whole jobs and validators of scenarios, by reclaim's fairness and minimum runtimes.

Source of the rules: KAI's proportion plugin (reclaimable, strategies) and its minruntime plugin; docs/engines/kai.md.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal

from app.solver.compiled import Tree
from app.solver.engines.kai.chance import Chance, Refusal, Scenario
from app.solver.engines.kai.configuration import MinRuntime, keeps_gang, may_evict, protected, protected_since
from app.solver.engines.kai.jobs import ALLOCATED, KAI_UNLIMITED, PIPELINED, RELEASING, RUNNING, Share, total
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.queue_order import NOTHING, Comparison, QueueOrder, holds_within, minus, plus
from app.solver.model.base import seconds

VictimFilter = Callable[[int, int], Refusal | None]
"""(pending job, victim job) -> why the victim may not be taken at all; None where it may."""

ScenarioValidator = Callable[[Scenario], Refusal | None]
"""A solved scenario -> why it may not be carried out; None where it may."""

Foregone = Callable[[Scenario, int], Refusal | None]
"""(scenario, victim that it lists) -> what some validator will say of it and of every scenario that lists more of the
victim; None where that must be seen. It spares simulations and changes no decision."""


def refused_victim(filters: Sequence[VictimFilter], job: int, victim: int) -> Refusal | None:
    """The first filter's refusal; None when all agree."""
    for judge in filters:
        if (refusal := judge(job, victim)) is not None:
            return refusal
    return None


def refused_scenario(validators: Sequence[ScenarioValidator], scenario: Scenario) -> Refusal | None:
    """The first validator's refusal; None when all agree."""
    for judge in validators:
        if (refusal := judge(scenario)) is not None:
            return refusal
    return None


_KEPT = (RUNNING, ALLOCATED, PIPELINED)
_RESOURCES = (0, 1, 2)


def without_place(overlay: Overlay, scenario: Scenario) -> Refusal | None:
    """Whether somebody would have to go for good where all may only move."""
    for victim, listed in scenario.listed.items():
        for t in listed:
            if overlay.status[t] == RELEASING:
                numbers = {"workload": overlay.jobs.id[victim], "task": overlay.jobs.task_name[t]}
                return Refusal("victim-without-place", "a pod that would move has no other place", numbers)
    return None


def may_reclaim(overlay: Overlay, order: QueueOrder, job: int) -> Refusal | None:
    """The first gate, on the leaf alone: with the job it stays within its fair share, and what is not preemptible
    within its deserved quota."""
    q = overlay.jobs.queue[job]
    want = overlay.wanted(job)[1]
    name = overlay.state.configuration.tree.names[q]
    if not holds_within(plus(order.held(q), want), order.fair[q]):
        return Refusal("over-fair-share", f"{name} would pass its fair share", {"queue": name})
    if not overlay.jobs.preemptible[job] and not holds_within(plus(order.held_fixed(q), want), order.deserved[q]):
        return Refusal(
            "non-preemptible-over-quota", f"{name} would pass its deserved quota with non-preemptible pods",
            {"queue": name},
        )  # fmt: skip
    return None


class QueueShares:
    """Reclaim's victim filter of 0.17 for one attempt: of the first pair of different queues above reclaimer and
    victim, the victim's must hold more than it may keep.

    Within its deserved quota the reclaimer's side may take from whom holds more than its own in a resource that the
    job asks for, or exactly its own in all; otherwise only from whom holds more than its allocatable share.
    """

    def __init__(self, overlay: Overlay, order: QueueOrder, job: int) -> None:
        self._overlay = overlay
        self._order = order
        self._leaf = overlay.jobs.queue[job]
        self._want = overlay.wanted(job)[1]
        self._known: dict[int, Refusal | None] = {}

    def __call__(self, job: int, victim: int) -> Refusal | None:
        queue = self._overlay.jobs.queue[victim]
        if queue not in self._known:
            self._known[queue] = self._judge(queue)
        return self._known[queue]

    def _judge(self, queue: int) -> Refusal | None:
        theirs, within, taken = may_lose(self._order, self._leaf, self._want, queue)
        if taken:
            return None
        name = self._overlay.queue_name(theirs)
        return Refusal(
            "queue-within-share", f"{name} holds no more than it may keep: nothing of it may be reclaimed",
            {"within_share": name, "asker_within_quota": within},
        )  # fmt: skip


def may_lose(order: Comparison, leaf: int, want: Share, queue: int) -> tuple[int, bool, bool]:
    """The queue above a victim's that is judged, whether the reclaimer's side stays within its quota, and whether that
    queue may lose anything to it. See ``QueueShares``."""
    ours, theirs = siblings(order, leaf, queue)
    held, within = order.held(theirs), holds_within(plus(order.held(ours), want), order.deserved[ours])
    if not within:
        return theirs, within, not holds_within(held, order.allocatable[theirs])
    deserved = order.deserved[theirs]
    asked = [r for r in _RESOURCES if want[r] and deserved[r] != KAI_UNLIMITED]
    return theirs, within, any(held[r] > deserved[r] for r in asked) or all(held[r] == deserved[r] for r in asked)


def siblings(order: Comparison, leaf: int, queue: int) -> tuple[int, int]:
    """The first pair of different queues on the two paths from the root; there is one, as both are leaves."""
    ours, theirs = order.paths[leaf][::-1], order.paths[queue][::-1]
    return next((a, b) for a, b in zip(ours, theirs, strict=False) if a != b)


@dataclass(slots=True)
class Taken:
    """What a scenario takes from one queue, chunk by chunk: per job each listed pod beyond the first min_available
    alone, then those first ones together. ``last`` is the last chunk; ``chunks`` are listed on demand."""

    all: Share
    last: Share
    chunks: Callable[[], list[Share]]


class Balance:
    """Reclaim's fairness, for one reclaimer; ``before``: what queues held when its attempt began."""

    def __init__(self, before: Comparison, tree: Tree) -> None:
        self._before = before
        self._tree = tree

    def take(
        self, leaf: int, want: Share, queue: int, taken: Taken,
        remaining: dict[int, Share], involved: dict[int, set[int]],
    ) -> Refusal | None:  # fmt: skip
        """Subtract the chunks from the victim's queue and those above it, each only while it may still be taken.

        What is left only shrinks, so that the last chunk may be taken only if all before it may; below zero KAI's
        comparison has an exception (``holds_within``), and every chunk is asked for.
        """
        before = self._before
        ours, theirs = siblings(before, leaf, queue)
        involved[queue] = {r for r in _RESOURCES if taken.all[r]}
        held = remaining.setdefault(theirs, before.held(theirs))
        under_quota = holds_within(plus(before.held(ours), want), before.deserved[ours])
        left = plus(minus(held, taken.all), taken.last)
        may = self._may_take(left, theirs, under_quota=under_quota)
        if min(left) < 0:
            left = held
            for chunk in taken.chunks():
                may = self._may_take(left, theirs, under_quota=under_quota)
                if not may:
                    break
                left = minus(left, chunk)
        if not may:
            name = self._tree.names[theirs]
            return Refusal(
                "within-allocatable-share", f"{name} is within its share: nothing more can be reclaimed from it",
                {"queue": name, "reclaimer_within_quota": under_quota},
            )  # fmt: skip
        for q in before.paths[queue]:
            remaining[q] = minus(remaining[q] if q in remaining else before.held(q), taken.all)
            involved[q] = involved.get(q, set[int]()) | involved[queue]
        return None

    def spares(self, leaf: int, want: Share, queue: int) -> bool:
        """Whether nothing of a queue may be taken: while something is, it holds no more than now, and never below 0."""
        return self.take(leaf, want, queue, Taken(NOTHING, NOTHING, list), {}, {}) is not None

    def _may_take(self, left: Share, queue: int, *, under_quota: bool) -> bool:
        """KAI's two strategies: the queue holds more than its allocatable share; or the reclaimer stays within its
        deserved quota, and the queue holds more than its own."""
        before = self._before
        return not holds_within(left, before.allocatable[queue]) or (
            under_quota and not holds_within(left, before.deserved[queue])
        )

    def stays_below(
        self, leaf: int, want: Share, remaining: dict[int, Share], involved: dict[int, set[int]], *, preemptible: bool
    ) -> Refusal | None:  # fmt: skip
        """At every level the reclaiming side must end less saturated than each sibling that it took from."""
        before, tree = self._before, self._tree
        wanted = {r for r in _RESOURCES if want[r]}
        for q in before.paths[leaf]:
            ours = plus(remaining[q] if q in remaining else before.held(q), want)
            for sibling in sorted(remaining):
                if sibling == q or tree.parent[sibling] != tree.parent[q]:
                    continue
                for r in sorted(involved.get(sibling, set[int]()) | wanted):
                    if _more_saturated(ours[r], before.fair[q][r], remaining[sibling][r], before.fair[sibling][r]):
                        return Refusal(
                            "saturation", f"{tree.names[q]} would be over its fair share, and no less than "
                            f"{tree.names[sibling]}", {"queue": tree.names[q], "sibling": tree.names[sibling]},
                        )  # fmt: skip
            if not preemptible and not holds_within(plus(before.held_fixed(q), want), before.deserved[q]):
                return Refusal(
                    "non-preemptible-over-quota",
                    f"{tree.names[q]} would pass its deserved quota with non-preemptible pods",
                    {"queue": tree.names[q]},
                )
        return None


class Fairness(Balance):
    """The scenario validator of one reclaiming job; ``before``: what queues held when its attempt began."""

    def __init__(
        self, overlay: Overlay, before: QueueOrder, *, ignore_moved: bool, chance: Chance | None = None
    ) -> None:
        """``chance``: orders of maps, where the release leaves some to them."""
        super().__init__(before, overlay.state.configuration.tree)
        self._overlay = overlay
        self._chance = chance
        self._ignore_moved = ignore_moved

    def __call__(self, scenario: Scenario) -> Refusal | None:
        overlay = self._overlay
        leaf = overlay.jobs.queue[scenario.job]
        want = total(overlay.wants, scenario.part)
        remaining: dict[int, Share] = {}
        involved: dict[int, set[int]] = {}
        for queue, taken in self._taken(scenario) if self._chance is None else self._drawn(self._chance, scenario):
            refusal = self.take(leaf, want, queue, taken, remaining, involved)
            if refusal is not None:
                return refusal
        preemptible = overlay.jobs.preemptible[scenario.job]
        return self.stays_below(leaf, want, remaining, involved, preemptible=preemptible)

    def _taken(self, scenario: Scenario) -> list[tuple[int, Taken]]:
        """What the scenario takes, by victim queue in order of the configuration. Pods that found another place
        don't count, so that only jobs that the try takes from need a look."""
        victims, queue = scenario.taking if self._ignore_moved else scenario.listed, self._overlay.jobs.queue
        by_queue = defaultdict[int, list[int]](list)
        for victim in victims:
            by_queue[queue[victim]].append(victim)
        taken_of: list[tuple[int, Taken]] = []
        for q in sorted(by_queue):
            taken = self._of_queue(scenario, by_queue[q])
            if taken is not None:
                taken_of.append((q, taken))
        return taken_of

    def _drawn(self, chance: Chance, scenario: Scenario) -> list[tuple[int, Taken]]:
        """The same as maps of victims and of their queues yield them. Whatever is taken last may take its queue below
        what it may keep, so that a scenario can stand or fall by their order."""
        by_queue: dict[int, list[Share]] = {}
        chunks = {victim: self._chunks(scenario, victim) for victim in chance.order(scenario.listed)}
        for victim, of in chunks.items():
            if of:
                by_queue.setdefault(self._overlay.jobs.queue[victim], []).extend(of)
        several = len(scenario.listed) + len(scenario.elastic) > 1
        if several and not chance.matters and self._hangs_on_order(scenario, chunks):
            chance.hangs()
        taken = [(q, by_queue[q]) for q in chance.order(by_queue)]
        return [(q, Taken(_sum(of), of[-1], partial(_same, of))) for q, of in taken]

    def _hangs_on_order(self, scenario: Scenario, chunks: dict[int, list[Share]]) -> bool:
        """Whether some queue may lose all that is taken from it when one chunk comes last, and not when another does.
        Which pods of an elastic job are the chunks of one pod is left to a map too."""
        before, jobs = self._before, self._overlay.jobs
        leaf, want = jobs.queue[scenario.job], total(self._overlay.wants, scenario.part)
        last: dict[tuple[int, int], set[Share]] = {}
        taken: dict[tuple[int, int], Share] = {}
        elastic = set(scenario.elastic)
        pairs = {queue: siblings(before, leaf, queue) for queue in {jobs.queue[v] for v, of in chunks.items() if of}}
        for victim, of in chunks.items():
            if of:
                pair = pairs[jobs.queue[victim]]
                last.setdefault(pair, set()).update(of if victim in elastic else of[-1:])
                taken[pair] = reduce(plus, of, taken.get(pair, NOTHING))
        for (ours, theirs), candidates in last.items():
            under_quota = holds_within(plus(before.held(ours), want), before.deserved[ours])
            left = minus(before.held(theirs), taken[ours, theirs])
            if len({self._may_take(plus(left, chunk), theirs, under_quota=under_quota) for chunk in candidates}) > 1:
                return True
        return False

    def _of_queue(self, scenario: Scenario, victims: list[int]) -> Taken | None:
        last = self._chunks(scenario, max(victims))
        if not last:
            last = next((c for v in sorted(victims, reverse=True) if (c := self._chunks(scenario, v))), last)
        if not last:
            return None
        status, listed = self._overlay.status, scenario.listed
        if self._ignore_moved:
            tasks = (t for victim in victims for t in listed[victim] if status[t] not in _KEPT)
        else:
            tasks = (t for victim in victims for t in listed[victim])

        def chunks() -> list[Share]:
            return [chunk for victim in sorted(victims) for chunk in self._chunks(scenario, victim)]

        return Taken(total(self._overlay.request, tasks), last[-1], chunks)

    def _chunks(self, scenario: Scenario, victim: int) -> list[Share]:
        overlay = self._overlay
        listed, gang = scenario.listed[victim], overlay.jobs.gang[victim]
        if gang is None:
            core = overlay.jobs.min_available[victim]
            beyond, needed = listed[core:], listed[:core]
        else:
            beyond, needed = gang.split(overlay.jobs.by_pod_set(listed))
        chunks: list[Share] = []
        for chunk in (*([t] for t in beyond), needed):
            taken = [t for t in chunk if not (self._ignore_moved and overlay.status[t] in _KEPT)]
            if taken:
                chunks.append(total(overlay.request, taken))
        return chunks


def _same(shares: list[Share]) -> list[Share]:
    return shares


def _sum(shares: Sequence[Share]) -> Share:
    return reduce(plus, shares, NOTHING)


def _more_saturated(held: float, fair: float, sibling_held: float, sibling_fair: float) -> bool:
    ours, theirs = _saturation(held, fair), _saturation(sibling_held, sibling_fair)
    return ours > 1 and bool(sibling_fair) and ours >= theirs


def _saturation(held: float, fair: float) -> float:
    if fair == 0:
        return float("inf") if held > 0 else 0.0
    return held / fair


class Protection:
    """One per overlay: released KAI judges a victim's clock once a cycle, and so does this."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        configuration = overlay.state.configuration
        self._runtimes = configuration.min_runtimes
        self._rules = configuration.policy.rules
        self._minimums: dict[tuple[int, int], MinRuntime] = {}
        self._known: dict[tuple[str, int], dict[int, bool]] = {}

    def again(self) -> "Protection":
        """For another run of the cycle that has come as far."""
        other = copy(self)
        other._known = {of: known.copy() for of, known in self._known.items()}
        return other

    def minimum(self, action: Literal["reclaim", "preempt"], job: int, victim: int) -> MinRuntime:
        """The minimum runtime that protects ``victim`` from ``job``."""
        queues = self._overlay.jobs.queue
        if action == "preempt":
            return self._runtimes.for_preempt(queues[victim])
        pair = queues[job], queues[victim]
        known = self._minimums.get(pair)
        if known is None:
            known = self._minimums[pair] = self._runtimes.for_reclaim(*pair)
        return known

    def is_protected(self, action: Literal["reclaim", "preempt"], job: int, victim: int) -> bool:
        """Whether the victim's minimum runtime has not passed."""
        known = self._known_of(action, job)
        if victim not in known:
            started = self._overlay.started[victim]
            minimum = self.minimum(action, job, victim).micros
            protects = protected(self._overlay.now, started, minimum, self._rules)
            if started is None:
                return protects
            known[victim] = protects
        return known[victim]

    def _known_of(self, action: Literal["reclaim", "preempt"], job: int) -> dict[int, bool]:
        """Clocks judged so far, by victim: by all jobs together in preempt, by each itself in reclaim."""
        return self._known.setdefault((action, -1 if action == "preempt" else job), {})

    def unprotected(self, job: int, victims: list[int]) -> list[int]:
        """Those of ``victims``, all of one leaf, that ``filter`` lets reclaim take from for the job."""
        if not victims:
            return []
        known, started, elastic = self._known_of("reclaim", job), self._overlay.started, self._overlay.jobs.elastic
        minimum = self.minimum("reclaim", job, victims[0]).micros
        since = protected_since(self._overlay.now, minimum, self._rules)
        known |= {
            victim: start >= since
            for victim in victims
            if (start := started[victim]) is not None and victim not in known
        }
        return [v for v in victims if not known.get(v) or may_evict(protected=True, elastic=elastic(v))]

    def filter(self, action: Literal["reclaim", "preempt"], job: int, victim: int) -> Refusal | None:
        """Protected whole, unless the victim is elastic."""
        if not self.is_protected(action, job, victim):
            return None
        jobs = self._overlay.jobs
        if may_evict(protected=True, elastic=jobs.elastic(victim)):
            return None
        minimum = self.minimum(action, job, victim)
        return Refusal(
            f"{action}-min-runtime", f"{jobs.id[victim]} has not run for its {action}-min-runtime",
            {"min_runtime": seconds(minimum.micros)},
        )  # fmt: skip

    def foregone(self, action: Literal["reclaim", "preempt"], scenario: Scenario, victim: int) -> Refusal | None:
        """What ``validate`` will say of every scenario that lists of the victim what this one does, or more; None where
        that is open. Shipped only: a pod counts as lost once it is listed, and pending pods could yet be placed."""
        if not self._rules.counts_listed or victim not in scenario.listed:
            return None
        jobs, overlay = self._overlay.jobs, self._overlay
        if jobs.gang[victim] is not None or not jobs.elastic(victim):
            return None
        lost = len(scenario.listed[victim])
        keeps = keeps_gang(
            running=overlay.used[victim] + overlay.pending[victim],
            evicted=lost,
            min_available=jobs.min_available[victim],
        )
        if keeps or not self.is_protected(action, scenario.job, victim):
            return None
        return self._undercut(action, victim, overlay.used[victim] - lost)

    def validate(self, action: Literal["reclaim", "preempt"], scenario: Scenario) -> Refusal | None:
        """A protected elastic victim keeps its gang.

        Shipped: every pod that the scenario lists counts as lost, pods being released as running. Documented: only
        pods that the scenario really evicts are lost, and only pods that really run are left.
        """
        jobs, overlay = self._overlay.jobs, self._overlay
        for victim in scenario.elastic:
            listed = scenario.listed[victim]
            if not self.is_protected(action, scenario.job, victim):
                continue
            if jobs.gang[victim] is not None:
                if (refusal := self._sub_group(action, victim, listed)) is not None:
                    return refusal
                continue
            if self._rules.counts_listed:
                running, lost = overlay.used[victim], len(listed)
            else:
                lost = sum(overlay.evictions_of(t) > 0 for t in listed)
                running = lost + sum(overlay.status[t] in (RUNNING, ALLOCATED) for t in jobs.tasks[victim])
            if lost and not keeps_gang(running=running, evicted=lost, min_available=jobs.min_available[victim]):
                return self._undercut(action, victim, running - lost)
        return None

    def _sub_group(self, action: str, victim: int, listed: list[int]) -> Refusal | None:
        """The same of a gang with sub groups: every pod set keeps the pods that it needs."""
        jobs, overlay = self._overlay.jobs, self._overlay
        gang = jobs.gang[victim]
        if gang is None:
            return None
        if self._rules.counts_listed:
            used, lost = overlay.used_pods(victim), jobs.by_pod_set(listed)
        else:
            gone = [t for t in listed if overlay.evictions_of(t) > 0]
            runs = [t for t in jobs.tasks[victim] if overlay.status[t] in (RUNNING, ALLOCATED)]
            used, lost = jobs.by_pod_set([*runs, *gone]), jobs.by_pod_set(gone)
        short = gang.lacking(used, lost)
        if short is None:
            return None
        keeps = max(0, len(used.get(short.name, ())) - len(lost[short.name]))
        return Refusal(
            f"{action}-min-runtime-gang",
            f"{jobs.id[victim]} is protected, and {short.name} of it would keep {keeps} of the {short.minimum} pods "
            "that it needs",
            {"workload": jobs.id[victim], "sub_group": short.name, "keeps": keeps, "needs": short.minimum},
        )

    def _undercut(self, action: str, victim: int, keeps: int) -> Refusal:
        jobs = self._overlay.jobs
        needs = jobs.min_available[victim]
        return Refusal(
            f"{action}-min-runtime-gang",
            f"{jobs.id[victim]} is protected and would keep {max(keeps, 0)} of the {needs} pods that it needs",
            {"workload": jobs.id[victim], "keeps": max(keeps, 0), "needs": needs},
        )
