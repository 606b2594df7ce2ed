"""Kueue: cohorts, quotas that are lent and reclaimed, classical and fair-sharing preemption."""

from typing import Any

from app.solver.delta import Changes
from app.solver.engine import Engine, ProtectionQuestion, Question
from app.solver.engines.kueue.compile.configuration import Configured, configure
from app.solver.engines.kueue.compile.state import Loaded, load
from app.solver.engines.kueue.compile.update import update
from app.solver.engines.kueue.decide.plan import plan
from app.solver.engines.kueue.report import effective_settings as effective
from app.solver.engines.kueue.report import preemptibility, shares
from app.solver.engines.kueue.report.findings import findings
from app.solver.engines.kueue.rules import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State


class KueueEngine(Engine[Configured, Loaded]):
    """Kueue's scheduler, as of commit ff69552e (August 2026), feature gates at their defaults."""

    name = "kueue"
    looks = True
    implicit_parents = True  # Kueue: a cohort that is only referenced exists, without quota
    rules = RULES

    def configure(self, configuration: Configuration) -> Configured:
        return configure(configuration)

    def load(self, configured: Configured, state: State) -> Loaded:
        return load(configured, state)

    def update(self, loaded: Loaded, configured: Configured, state: State, changes: Changes) -> Loaded:
        return update(loaded, configured, state, changes)

    def plan(self, loaded: Loaded, question: Question) -> Result:
        loaded.settle()
        return plan(loaded, question)

    def shares(self, loaded: Loaded, asks: list[Ask], now: int) -> dict[str, Any]:
        return shares.report(loaded)

    def preemptibility(self, loaded: Loaded, question: ProtectionQuestion) -> dict[str, Any]:
        return preemptibility.report(loaded, question)

    def effective_settings(self, configured: Configured, state: State | None) -> dict[str, Any]:
        return effective.report(configured)

    def findings(self, configuration: Configuration) -> list[Finding]:
        return findings(configuration)
