"""Who must stop so that the preemptor fits: the one door to both of Kueue's preemption algorithms.

Source: ``pkg/scheduler/preemption/preemption.go`` (getTargets).
"""

from collections.abc import Collection

from app.solver.engines.kueue import classical, fair
from app.solver.engines.kueue.snapshot import Preemptor, Snapshot, Target
from app.solver.trace import SILENT, Why


def get_targets(
    snapshot: Snapshot, preemptor: Preemptor, contested: Collection[int], why: Why = SILENT
) -> list[Target]:
    """Victims in Kueue's order, empty when no set of them makes room. The snapshot is left as it was.

    ``contested``: the flavor-resources of the request whose assignment needs preemption; only they select
    candidates, but all of ``preemptor.request`` must fit in the end. Called with one flavor-resource and one amount
    (``preemptor.only``) it is Kueue's simulation for a single flavor. Like Kueue it tests for a fit only after a
    removal, so that a call for what already fits still names a victim.
    """
    search = fair.search if snapshot.loaded.configured.fair_sharing else classical.search
    return search(snapshot, preemptor, frozenset(contested), why)


def nobody(snapshot: Snapshot, preemptor: Preemptor, contested: Collection[int], why: Why = SILENT) -> list[Target]:
    """The search of an ask that never preempts."""
    if why.on:
        why.step("never-preempts", "the ask's preemption policy is Never")
    return []


def not_yet(snapshot: Snapshot, preemptor: Preemptor, contested: Collection[int], why: Why = SILENT) -> list[Target]:
    """The search of an ask that has not waited long enough to preempt (KEP-83)."""
    if why.on:
        why.step("waits-before-preempting", "the ask has not waited as long as its queue wants before it preempts")
    return []
