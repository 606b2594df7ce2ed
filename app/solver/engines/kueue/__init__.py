"""Kueue: cohorts, quotas that are lent and reclaimed, classical and fair-sharing preemption."""

from typing import Final

from app.solver.engine import Entitlement, Facts

FACTS: Final = Facts(
    name="kueue", title="Kueue", short="Kueue", schema="Kueue", borrows=True,
    releases={"ff69552e": "Kueue as of that commit (August 2026), feature gates at their defaults"},
    entitlement=Entitlement(word="nominal", field="fair_share", above="Borrowed", borrowed="borrowed"),
)  # fmt: skip
