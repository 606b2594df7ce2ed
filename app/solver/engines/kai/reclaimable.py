"""Reclaim's fairness: who may reclaim at all, from which queues, and how far.

Source of the rules: KAI's proportion plugin (reclaimable, strategies); docs/engines/kai.md, Reclaim.
"""

from app.solver.compiled.tree import Tree
from app.solver.engines.kai.compile import ALLOCATED, PIPELINED, RUNNING, UNLIMITED, Share
from app.solver.engines.kai.queue_order import QueueOrder, holds_within, plus
from app.solver.engines.kai.scenario import Scenario
from app.solver.engines.kai.session import Session, total
from app.solver.engines.kai.validators import Refusal

_KEPT = (RUNNING, ALLOCATED, PIPELINED)
_RESOURCES = (0, 1, 2)


def may_reclaim(session: Session, order: QueueOrder, job: int) -> Refusal | None:
    """The first gate, on the leaf alone: with the job it stays within its fair share, and what is not preemptible
    within its deserved quota."""
    q = session.jobs.queue[job]
    want = session.wanted(job)[1]
    name = session.state.configuration.tree.names[q]
    if not holds_within(plus(order.held(q), want), order.fair[q]):
        return Refusal("over-fair-share", f"{name} would pass its fair share", {"queue": name})
    if not session.jobs.preemptible[job] and not holds_within(plus(order.held_fixed(q), want), order.deserved[q]):
        return Refusal(
            "non-preemptible-over-quota", f"{name} would pass its deserved quota with non-preemptible pods",
            {"queue": name},
        )  # fmt: skip
    return None


class Fairness:
    """The scenario validator of one reclaiming job; ``before``: what queues held when its attempt began."""

    def __init__(self, session: Session, before: QueueOrder, *, ignore_moved: bool) -> None:
        self._session = session
        self._before = before
        self._tree: Tree = session.state.configuration.tree
        self._ignore_moved = ignore_moved

    def __call__(self, scenario: Scenario) -> Refusal | None:
        session = self._session
        leaf = session.jobs.queue[scenario.job]
        want = total(session.request, scenario.part)
        remaining: dict[int, Share] = {}
        involved: dict[int, set[int]] = {}
        for queue, chunks in self._taken(scenario).items():
            refusal = self._take(leaf, want, queue, chunks, remaining, involved)
            if refusal is not None:
                return refusal
        return self._stays_below(scenario.job, want, remaining, involved)

    def _taken(self, scenario: Scenario) -> dict[int, list[Share]]:
        """What the scenario takes, by victim queue in order of the configuration: per job each listed pod beyond the
        first min_available alone, then those first ones together. Pods that found another place don't count."""
        session, jobs = self._session, self._session.jobs
        found: dict[int, list[Share]] = {}
        for victim in sorted(scenario.listed):
            listed, core = scenario.listed[victim], jobs.min_available[victim]
            chunks = [[t] for t in listed[core:]] + [listed[:core]]
            for chunk in chunks:
                taken = [t for t in chunk if not (self._ignore_moved and session.status[t] in _KEPT)]
                if taken:
                    found.setdefault(jobs.queue[victim], []).append(total(session.request, taken))
        return {queue: found[queue] for queue in sorted(found)}

    def _take(
        self, leaf: int, want: Share, queue: int, chunks: list[Share],
        remaining: dict[int, Share], involved: dict[int, set[int]],
    ) -> Refusal | None:  # fmt: skip
        """Subtract the chunks from the victim's queue and those above it, each only while it may still be taken."""
        before = self._before
        ours, theirs = self._siblings(leaf, queue)
        mine = {r for chunk in chunks for r in _RESOURCES if chunk[r] > 0}
        involved[queue] = mine
        remaining.setdefault(theirs, before.held(theirs))
        under_quota = holds_within(plus(before.held(ours), want), before.deserved[ours])
        for chunk in chunks:
            left = remaining[theirs]
            over_share = not holds_within(left, before.allocatable[theirs])
            if not over_share and not (under_quota and not holds_within(left, before.deserved[theirs])):
                name = self._tree.names[theirs]
                return Refusal(
                    "within-allocatable-share", f"{name} is within its share: nothing more can be reclaimed from it",
                    {"queue": name, "reclaimer_within_quota": under_quota},
                )  # fmt: skip
            for q in before.paths[queue]:
                held = remaining.get(q) or before.held(q)
                remaining[q] = (held[0] - chunk[0], held[1] - chunk[1], held[2] - chunk[2])
                involved[q] = involved.get(q, set[int]()) | involved[queue]
        return None

    def _siblings(self, leaf: int, queue: int) -> tuple[int, int]:
        """The first pair of different queues on the two paths from the root; the last pair where one path ends."""
        ours, theirs = self._before.paths[leaf][::-1], self._before.paths[queue][::-1]
        pair = ours[0], theirs[0]
        for pair in zip(ours, theirs, strict=False):
            if pair[0] != pair[1]:
                break
        return pair

    def _stays_below(
        self, job: int, want: Share, remaining: dict[int, Share], involved: dict[int, set[int]]
    ) -> Refusal | None:
        """At every level the reclaiming side must end less saturated than each sibling that it took from."""
        before, tree, jobs = self._before, self._tree, self._session.jobs
        wanted = {r for r in _RESOURCES if want[r] > 0}
        for q in before.paths[jobs.queue[job]]:
            ours = plus(remaining.get(q) or before.held(q), want)
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
    if fair == UNLIMITED and sibling_fair == UNLIMITED:
        return False
    ours, theirs = _saturation(held, fair), _saturation(sibling_held, sibling_fair)
    return ours > 1 and sibling_fair > 0 and ours >= theirs


def _saturation(held: float, fair: float) -> float:
    if fair == 0:
        return float("inf") if held > 0 else 0.0
    return 0.0 if fair == UNLIMITED else held / fair
