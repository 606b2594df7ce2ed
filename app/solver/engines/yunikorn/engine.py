"""YuniKorn as an engine: wiring only, one file a stage."""

from typing import Any

from app.solver.delta import Changes
from app.solver.engine import Engine, ProtectionQuestion, Question
from app.solver.engines.yunikorn.compile.configuration import Queues, compile_configuration
from app.solver.engines.yunikorn.compile.state import Cluster
from app.solver.engines.yunikorn.compile.update import update
from app.solver.engines.yunikorn.decide import plan as cycle
from app.solver.engines.yunikorn.decide import quota_change
from app.solver.engines.yunikorn.report import findings, preemptibility, shares
from app.solver.engines.yunikorn.report.effective_settings import effective_settings
from app.solver.engines.yunikorn.rules import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding
from app.solver.model.state import Ask, State


class YuniKornEngine(Engine[Queues, Cluster]):
    """Guaranteed queues, fences and nodes."""

    name = "yunikorn"
    rules = RULES

    def configure(self, configuration: Configuration) -> Queues:
        """See ``Engine.configure``."""
        return compile_configuration(configuration)

    def load(self, configured: Queues, state: State) -> Cluster:
        """See ``Engine.load``."""
        return Cluster(configured, state)

    def update(self, loaded: Cluster, configured: Queues, state: State, changes: Changes) -> Cluster:
        """See ``Engine.update``."""
        return update(loaded, configured, state, changes)

    def plan(self, loaded: Cluster, question: Question) -> Result:
        """See ``Engine.plan``."""
        options = question.options.yunikorn
        if options is not None and options.enforce_quota is not None:
            return quota_change.enforce(loaded, question, options.enforce_quota)
        return cycle.plan(loaded, question)

    def shares(self, loaded: Cluster, asks: list[Ask], now: int) -> dict[str, Any]:
        """See ``Engine.shares``."""
        return shares.shares(loaded, asks)

    def preemptibility(self, loaded: Cluster, question: ProtectionQuestion) -> dict[str, Any]:
        """See ``Engine.preemptibility``."""
        return preemptibility.preemptibility(loaded, question)

    def effective_settings(self, configured: Queues, state: State | None) -> dict[str, Any]:
        """See ``Engine.effective_settings``."""
        return effective_settings(configured)

    def findings(self, configuration: Configuration) -> list[Finding]:
        """See ``Engine.findings``."""
        return findings.findings(configuration)
