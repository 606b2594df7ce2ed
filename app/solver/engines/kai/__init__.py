"""KAI Scheduler: minimum runtimes, fair shares, and the allocate, consolidation, reclaim and preempt actions."""

from typing import Final

from app.solver.engine import Entitlement, Facts
from app.solver.engines.kai.rule_sets import RELEASES

FACTS: Final = Facts(
    name="kai", title="KAI Scheduler", short="KAI", schema="Kai",
    releases={name: rules.source for name, rules in RELEASES.items()},
    gpu="gpu", places=True, tasks_are_pods=True, asks_together=True, boundless=True, weighs_resources=True,
    prefers_queues=True,
    formats="app.formats.kai.system",
    entitlement=Entitlement(word="deserved", field="deserved", above="Over quota"),
)  # fmt: skip
