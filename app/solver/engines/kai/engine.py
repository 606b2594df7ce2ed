"""KAI Scheduler as an engine: wiring only, one file a stage."""

from typing import Any

from app.solver.delta import Changes
from app.solver.engine import Engine
from app.solver.engines.kai.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kai.compile.state import CompiledState, compile_state
from app.solver.engines.kai.compile.update import update
from app.solver.engines.kai.plan import plan
from app.solver.engines.kai.report.effective_settings import effective_settings
from app.solver.engines.kai.report.findings import findings
from app.solver.engines.kai.report.preemptibility import preemptibility
from app.solver.engines.kai.report.shares import shares
from app.solver.engines.kai.rounds import KaiRounds
from app.solver.engines.kai.rules import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding
from app.solver.model.request import Options
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Rounds


class KaiEngine(Engine[CompiledConfiguration, CompiledState]):
    """Queues with deserved quotas, fair shares, minimum runtimes; actions on nodes with whole GPUs."""

    name = "kai"
    rules = RULES

    def configure(self, configuration: Configuration) -> CompiledConfiguration:
        """See ``Engine.configure``."""
        return compile_configuration(configuration)

    def load(self, configured: CompiledConfiguration, state: State) -> CompiledState:
        """See ``Engine.load``."""
        return compile_state(configured, state)

    def update(
        self, loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes
    ) -> CompiledState:
        """See ``Engine.update``."""
        return update(loaded, configured, state, changes)

    def plan(self, loaded: CompiledState, question: Question) -> Result:
        """See ``Engine.plan``."""
        return plan(loaded, question)

    def rounds(
        self, configured: CompiledConfiguration, configuration: Configuration
    ) -> Rounds[CompiledConfiguration, CompiledState]:
        return KaiRounds(configured, configuration)

    def shares(self, loaded: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
        """See ``Engine.shares``."""
        return shares(loaded, asks)

    def preemptibility(self, loaded: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
        """See ``Engine.preemptibility``."""
        return preemptibility(loaded, question)

    def effective_settings(self, configured: CompiledConfiguration, state: State | None) -> dict[str, Any]:
        """See ``Engine.effective_settings``."""
        return effective_settings(configured)

    def findings(self, configuration: Configuration) -> list[Finding]:
        """See ``Engine.findings``."""
        return findings(configuration)
