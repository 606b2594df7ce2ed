"""What Kueue's engine is made of."""

from typing import Any

from app.solver.delta import Changes
from app.solver.engine import Engine
from app.solver.engines.kueue.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kueue.compile.state import CompiledState, compile_state
from app.solver.engines.kueue.compile.update import update
from app.solver.engines.kueue.plan import plan
from app.solver.engines.kueue.report.effective_settings import effective_settings
from app.solver.engines.kueue.report.findings import findings
from app.solver.engines.kueue.report.preemptibility import preemptibility
from app.solver.engines.kueue.report.shares import shares
from app.solver.engines.kueue.rounds import KueueRounds
from app.solver.engines.kueue.rules import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding
from app.solver.model.request import Options
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Rounds


class KueueEngine(Engine[CompiledConfiguration, CompiledState]):
    """Kueue's scheduler, as of commit ff69552e (August 2026), feature gates at their defaults."""

    name = "kueue"
    looks = True
    implicit_parents = True  # Kueue: a cohort that is only referenced exists, without quota
    rules = RULES

    def configure(self, configuration: Configuration) -> CompiledConfiguration:
        return compile_configuration(configuration)

    def load(self, configured: CompiledConfiguration, state: State) -> CompiledState:
        return compile_state(configured, state)

    def update(
        self, loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes
    ) -> CompiledState:
        return update(loaded, configured, state, changes)

    def plan(self, loaded: CompiledState, question: Question) -> Result:
        return plan(loaded, question)

    def rounds(
        self, configured: CompiledConfiguration, configuration: Configuration
    ) -> Rounds[CompiledConfiguration, CompiledState]:
        return KueueRounds(configured)

    def shares(self, loaded: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
        return shares(loaded, asks, now)

    def preemptibility(self, loaded: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
        return preemptibility(loaded, question)

    def effective_settings(self, configured: CompiledConfiguration, state: State | None) -> dict[str, Any]:
        return effective_settings(configured, state)

    def findings(self, configuration: Configuration) -> list[Finding]:
        return findings(configuration)
