"""KAI Scheduler: minimum runtimes, fair shares, and the allocate, consolidation, reclaim and preempt actions."""

from typing import Final

from app.solver.engine import Entitlement, Facts

FACTS: Final = Facts(
    name="kai", title="KAI Scheduler", short="KAI", schema="Kai",
    releases={"0.13": "KAI-Scheduler 72de64f", "0.17": "KAI-Scheduler d5bc503a"},
    places=True, tasks_are_pods=True, asks_together=True, boundless=True, weighs_resources=True, prefers_queues=True,
    entitlement=Entitlement(word="deserved", field="deserved", above="Over quota"),
)  # fmt: skip
