"""Reclaim's fairness: who may reclaim at all, from which queues, and how far.

Source of the rules: KAI's proportion plugin (reclaimable, strategies); docs/engines/kai.md, Reclaim.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.solver.compiled.tree import Tree
from app.solver.engines.kai.compile.jobs import ALLOCATED, PIPELINED, RUNNING
from app.solver.engines.kai.compile.resources import Share
from app.solver.engines.kai.decide.order.queue_order import QueueOrder, holds_within, minus, plus
from app.solver.engines.kai.decide.overlay import Overlay, total
from app.solver.engines.kai.decide.search.scenario import Scenario
from app.solver.engines.kai.decide.search.validators import Refusal

_KEPT = (RUNNING, ALLOCATED, PIPELINED)
_RESOURCES = (0, 1, 2)


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


@dataclass(slots=True)
class Taken:
    """What a scenario takes from one queue, chunk by chunk: per job each listed pod beyond the first min_available
    alone, then those first ones together. ``last`` is the last chunk; ``chunks`` are listed on demand."""

    all: Share
    last: Share
    chunks: Callable[[], list[Share]]


class Fairness:
    """The scenario validator of one reclaiming job; ``before``: what queues held when its attempt began."""

    def __init__(self, overlay: Overlay, before: QueueOrder, *, ignore_moved: bool) -> None:
        self._overlay = overlay
        self._before = before
        self._tree: Tree = overlay.state.configuration.tree
        self._ignore_moved = ignore_moved

    def __call__(self, scenario: Scenario) -> Refusal | None:
        overlay = self._overlay
        leaf = overlay.jobs.queue[scenario.job]
        want = total(overlay.request, scenario.part)
        remaining: dict[int, Share] = {}
        involved: dict[int, set[int]] = {}
        for queue, taken in self._taken(scenario):
            refusal = self._take(leaf, want, queue, taken, remaining, involved)
            if refusal is not None:
                return refusal
        return self._stays_below(scenario.job, want, remaining, involved)

    def _taken(self, scenario: Scenario) -> list[tuple[int, Taken]]:
        """What the scenario takes, by victim queue in order of the configuration. Pods that found another place
        don't count, so that only jobs that the try takes from need a look."""
        jobs = self._overlay.jobs
        victims = scenario.taking if self._ignore_moved else scenario.listed
        by_queue: dict[int, list[int]] = {}
        for victim in victims:
            by_queue.setdefault(jobs.queue[victim], []).append(victim)
        found: list[tuple[int, Taken]] = []
        for queue in sorted(by_queue):
            taken = self._of_queue(scenario, by_queue[queue])
            if taken is not None:
                found.append((queue, taken))
        return found

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
        listed, core = scenario.listed[victim], overlay.jobs.min_available[victim]
        found: list[Share] = []
        for chunk in (*([t] for t in listed[core:]), listed[:core]):
            taken = [t for t in chunk if not (self._ignore_moved and overlay.status[t] in _KEPT)]
            if taken:
                found.append(total(overlay.request, taken))
        return found

    def _take(
        self, leaf: int, want: Share, queue: int, taken: Taken,
        remaining: dict[int, Share], involved: dict[int, set[int]],
    ) -> Refusal | None:  # fmt: skip
        """Subtract the chunks from the victim's queue and those above it, each only while it may still be taken.

        What is left only shrinks, so that the last chunk may be taken only if all before it may; below zero KAI's
        comparison has an exception (``holds_within``), and every chunk is asked for.
        """
        before = self._before
        ours, theirs = self._siblings(leaf, queue)
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

    def _may_take(self, left: Share, queue: int, *, under_quota: bool) -> bool:
        """KAI's two strategies: the queue holds more than its allocatable share; or the reclaimer stays within its
        deserved quota, and the queue holds more than its own."""
        before = self._before
        return not holds_within(left, before.allocatable[queue]) or (
            under_quota and not holds_within(left, before.deserved[queue])
        )

    def _siblings(self, leaf: int, queue: int) -> tuple[int, int]:
        """The first pair of different queues on the two paths from the root; there is one, as both are leaves."""
        paths = self._before.paths
        return next((a, b) for a, b in zip(paths[leaf][::-1], paths[queue][::-1], strict=False) if a != b)

    def _stays_below(
        self, job: int, want: Share, remaining: dict[int, Share], involved: dict[int, set[int]]
    ) -> Refusal | None:
        """At every level the reclaiming side must end less saturated than each sibling that it took from."""
        before, tree, jobs = self._before, self._tree, self._overlay.jobs
        wanted = {r for r in _RESOURCES if want[r]}
        for q in before.paths[jobs.queue[job]]:
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
            if not jobs.preemptible[job] and not holds_within(plus(before.held_fixed(q), want), before.deserved[q]):
                return Refusal(
                    "non-preemptible-over-quota",
                    f"{tree.names[q]} would pass its deserved quota with non-preemptible pods",
                    {"queue": tree.names[q]},
                )
        return None


def _more_saturated(held: float, fair: float, sibling_held: float, sibling_fair: float) -> bool:
    ours, theirs = _saturation(held, fair), _saturation(sibling_held, sibling_fair)
    return ours > 1 and bool(sibling_fair) and ours >= theirs


def _saturation(held: float, fair: float) -> float:
    if fair == 0:
        return float("inf") if held > 0 else 0.0
    return held / fair
