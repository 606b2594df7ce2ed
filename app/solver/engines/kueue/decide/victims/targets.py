"""Who must stop so that the preemptor fits: the one door to both of Kueue's preemption algorithms.

Source: ``pkg/scheduler/preemption/preemption.go`` (getTargets).
"""

from collections.abc import Collection

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor, Target
from app.solver.engines.kueue.decide.recorder import SILENT, Recorder
from app.solver.engines.kueue.decide.victims import classical, fair
from app.solver.stopping import safe_point


def get_targets(
    overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder = SILENT
) -> list[Target]:
    """Victims in Kueue's order, empty when no set of them makes room. The overlay is left as it was.

    ``contested``: the flavor-resources of the request whose assignment needs preemption; only they select
    candidates, but all of ``preemptor.request`` must fit in the end. Called with one flavor-resource and one amount
    (``preemptor.only``) it is Kueue's simulation for a single flavor. Like Kueue it tests for a fit only after a
    removal, so that a call for what already fits still names a victim.
    """
    safe_point()
    contested = frozenset(contested)
    record.search_begins(overlay, preemptor, contested)
    if not _anybody_low_enough(overlay, preemptor, record):
        return []
    search = fair.search if overlay.state.configuration.fair_sharing else classical.search
    return search(overlay, preemptor, contested, record)


def _anybody_low_enough(overlay: Overlay, preemptor: Preemptor, record: Recorder) -> bool:
    """Whether the lowest priority that runs within reach lets the policies pick anybody at all.

    KEP-83's shortcut: where nobody's priority is low enough, candidates need not be looked for."""
    configuration, state, queue = overlay.state.configuration, overlay.state, preemptor.queue
    policy = configuration.policy[queue]
    own = state.lowest_priority([queue])
    others: int | None = None
    if configuration.tree.parent[queue] != ROOTLESS and policy.reclaim_within_cohort != "Never":
        others = state.lowest_priority([q for q in configuration.queues_of(queue) if q != queue])
    reach = ((policy.within_cluster_queue, own), (policy.reclaim_within_cohort, others))
    if any(lowest is not None and _admits(rule, lowest, preemptor.priority) for rule, lowest in reach):
        return True
    record.nobody_low_enough(preemptor, own, others)
    return False


def _admits(policy: str, lowest: int, priority: int) -> bool:
    if policy == "LowerOrNewerEqualPriority":
        return lowest <= priority
    return policy == "Any" or (policy == "LowerPriority" and lowest < priority)


def nobody(
    overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder = SILENT
) -> list[Target]:
    """The search of an ask that never preempts."""
    record.never_preempts(overlay)
    return []


def not_yet(
    overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder = SILENT
) -> list[Target]:
    """The search of an ask that has not waited long enough to preempt (KEP-83)."""
    record.not_yet(overlay)
    return []
