"""Kueue: cohorts, quotas that are lent and reclaimed, classical and fair-sharing preemption."""

from typing import Any, Final

from app.solver.engine import Entitlement, Example, Facts
from app.solver.model.configuration import Queue
from app.solver.model.kueue import BorrowWithinCohort, Preemption
from app.solver.model.kueue import Queue as Block


def _lower_priority(queue: Queue) -> dict[str, Any]:
    """Kueue: a ClusterQueue that only borrows preempts lower priority in its cohort."""
    preemption = Preemption(
        within_cluster_queue="LowerPriority", reclaim_within_cohort="LowerPriority",
        borrow_within_cohort=BorrowWithinCohort(policy="LowerPriority"),
    )  # fmt: skip
    return {"kueue": Block(preemption=preemption)} if queue.kueue is None else {}


_ANY = {"reclaim_within_cohort": "Any"}
FACTS: Final = Facts(
    name="kueue", title="Kueue", short="Kueue", schema="Kueue", borrows=True, remembers=True,
    shares_by_priority=_lower_priority, exact_amounts=("consumed", "penalty"),
    releases={"ff69552e": "Kueue as of that commit (August 2026), feature gates at their defaults"},
    formats="app.formats.kueue.system",
    entitlement=Entitlement(word="nominal", field="fair_share", above="Borrowed", borrowed="borrowed"),
    example=Example(
        parent={"name": "all", "kueue": {"role": "cohort"}},
        preempting={"kueue": {"preemption": {"within_cluster_queue": "LowerPriority", **_ANY}}},
        reclaiming={"kueue": {"preemption": _ANY}},
        variant={"name": "fair", "settings": {"kueue": {"fair_sharing": True}}},
    ),
)  # fmt: skip
