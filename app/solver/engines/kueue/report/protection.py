"""What keeps a running workload out of a preemptor's reach: the first rule that applies, with the numbers compared.

The candidates of both algorithms are exactly the workloads that no rule protects; this says why of all the others.
"""

from dataclasses import dataclass
from typing import Any

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.compile.state import OLDEST, instant
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor
from app.solver.model.instant import at
from app.solver.model.quantity import units

_OTHER_LEVELS = {
    "LowerPriority": "a lower priority",
    "LowerOrNewerEqualPriority": "a lower priority, or the same and newer",
}


@dataclass(frozen=True, slots=True)
class Protection:
    """``rule``: a stable id; ``numbers``: what was compared."""

    rule: str
    detail: str
    numbers: dict[str, Any]


class Judge:
    """Judges running workloads for one preemptor, at the state of the overlay when called."""

    def __init__(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        self._overlay = overlay
        self._preemptor = preemptor
        self._contested = contested
        self._configuration = overlay.state.configuration
        self._policy = self._configuration.policy[preemptor.queue]
        self._using = overlay.state.shapes_using(contested).tolist()
        self._above = frozenset(self._configuration.tree.path(preemptor.queue))
        self._by_queue: dict[int, Protection | None] = {}

    def protection(self, workload: int) -> Protection | None:
        """Why the workload is no candidate; None when it is one."""
        overlay, state = self._overlay, self._overlay.state
        if workload in overlay.gone:
            return Protection("already-leaving", "it stops for another ask already", {})
        if workload in overlay.barred:
            if workload in state.protected:
                return Protection("not-preemptible", "it is marked as not preemptible (beyond Kueue)", {})
            return Protection("own-workload", "the ask belongs to it", {})
        queue = int(state.queue[workload])
        if queue not in self._by_queue:
            self._by_queue[queue] = self.queue_protection(queue)
        if (found := self._by_queue[queue]) is not None:
            return found
        if not self._using[int(state.shape[workload])]:
            wanted = [fr_name(overlay, fr) for fr in sorted(self._contested)]
            return Protection("uses-nothing-contested", f"it uses none of {', '.join(wanted)}", {"contested": wanted})
        return self._by_priority(workload, queue)

    def queue_protection(self, queue: int) -> Protection | None:
        """Why nothing in ``queue`` is a candidate; None when that depends on the workload."""
        configuration, names = self._configuration, self._configuration.tree.names
        if queue == self._preemptor.queue:
            if self._policy.within_cluster_queue == "Never":
                return Protection("within-cluster-queue-never", "withinClusterQueue is Never", {})
            return None
        if configuration.root[queue] != configuration.root[self._preemptor.queue]:
            return Protection("outside-cohort", "its queue is in another cohort tree than the ask's", {})
        if self._policy.reclaim_within_cohort == "Never":
            return Protection("reclaim-within-cohort-never", "reclaimWithinCohort is Never", {})
        node = queue
        while node not in self._above:
            if not self._overlay.usage.exceeds(node, self._contested):
                what = "its queue" if node == queue else f"cohort {names[node]} above it"
                return Protection("within-nominal", f"{what} is within its quota", self._usage(node))
            node = ROOTLESS if configuration.fair_sharing else configuration.tree.parent[node]
            if node == ROOTLESS:
                break
        return None

    def _by_priority(self, workload: int, queue: int) -> Protection | None:
        """The policy on priorities. Source: Kueue's SatisfiesPreemptionPolicy."""
        own = queue == self._preemptor.queue
        policy = self._policy.within_cluster_queue if own else self._policy.reclaim_within_cohort
        state, mine = self._overlay.state, self._preemptor.priority
        theirs = int(state.priority[workload])
        if policy == "Any" or theirs < mine:
            return None
        numbers: dict[str, Any] = {"policy": policy, "priority": theirs, "ask_priority": mine}
        if policy == "LowerOrNewerEqualPriority" and theirs == mine:
            created = instant(state.workloads[workload].created_at)
            if self._preemptor.created < created:
                return None
            numbers |= {"created_at": _time(created), "ask_created_at": _time(self._preemptor.created)}
            return Protection("not-newer", "it has the ask's priority and is not newer", numbers)
        wants = _OTHER_LEVELS[policy]
        return Protection("priority", f"priority {theirs} against the ask's {mine}: only {wants} may go", numbers)

    def _usage(self, node: int) -> dict[str, Any]:
        usage = self._overlay.usage
        quotas, out = usage.quotas, dict[str, Any]()
        for fr in sorted(self._contested):
            cell = quotas.cells[node].get(fr)
            resource = quotas.frs[fr][1]
            used, quota = (0, 0) if cell is None else (usage.used[cell], quotas.subtree[cell])
            out[fr_name(self._overlay, fr)] = {"used": units(used, resource), "quota": units(quota, resource)}
        return {"within_quota": quotas.tree.names[node], "usage": out}


def fr_name(overlay: Overlay, fr: int) -> str:
    """As explanations write a flavor-resource: ``flavor/resource``."""
    return "/".join(overlay.usage.quotas.frs[fr])


def _time(micros: int) -> str | None:
    return None if micros == OLDEST else at(micros).isoformat()
