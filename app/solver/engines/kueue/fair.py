"""Fair sharing preemption: who goes is decided by the shares of queues and cohorts, not by quota alone."""

from app.solver.engines.kueue import classical
from app.solver.engines.kueue.snapshot import Preemptor, Snapshot, Target
from app.solver.trace import SILENT, Why


def search(snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], why: Why = SILENT) -> list[Target]:
    """Victims, empty when no set of them makes room. See ``targets.get_targets``."""
    return classical.search(snapshot, preemptor, contested, why)
