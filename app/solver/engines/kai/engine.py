"""KAI Scheduler as an engine: wiring only, one file a stage."""

from typing import Any

from app.solver.delta import Changes
from app.solver.engine import Engine, ProtectionQuestion, Question
from app.solver.engines.kai.compile.state import (
    CompiledConfiguration,
    CompiledState,
    compile_configuration,
    compile_state,
    input_problems,
    with_asks,
)
from app.solver.engines.kai.compile.update import updated
from app.solver.engines.kai.decide.plan import plan
from app.solver.engines.kai.report import effective_settings as effective
from app.solver.engines.kai.report import findings as remarks
from app.solver.engines.kai.report import preemptibility, shares
from app.solver.engines.kai.rules import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding, InvalidInput
from app.solver.model.state import Ask, State


class KaiEngine(Engine[CompiledConfiguration, CompiledState]):
    """Queues with deserved quotas, fair shares, minimum runtimes; actions on nodes with whole GPUs."""

    name = "kai"
    rules = RULES

    def configure(self, configuration: Configuration) -> CompiledConfiguration:
        """See ``Engine.configure``."""
        return compile_configuration(configuration)

    def load(self, configured: CompiledConfiguration, state: State) -> CompiledState:
        """See ``Engine.load``."""
        compiled = compile_state(configured, state)
        if problems := list(input_problems(state)):
            raise InvalidInput(problems)
        return compiled

    def update(
        self, loaded: CompiledState, configured: CompiledConfiguration, state: State, changes: Changes
    ) -> CompiledState:
        """See ``Engine.update``."""
        kept = updated(loaded, configured, state, changes)
        return self.load(configured, state) if kept is None else kept

    def plan(self, loaded: CompiledState, question: Question) -> Result:
        """See ``Engine.plan``."""
        return plan(loaded, question)

    def shares(self, loaded: CompiledState, asks: list[Ask], now: int) -> dict[str, Any]:
        """See ``Engine.shares``. KAI counts pending pods as requests, so the asks change the shares."""
        jobs, _ = with_asks(loaded, asks)
        return shares.answer(loaded, shares.divide(loaded, jobs))

    def preemptibility(self, loaded: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
        """See ``Engine.preemptibility``."""
        return preemptibility.answer(loaded, question)

    def effective_settings(self, configured: CompiledConfiguration, state: State | None) -> dict[str, Any]:
        """See ``Engine.effective_settings``."""
        return effective.answer(configured)

    def findings(self, configuration: Configuration) -> list[Finding]:
        """See ``Engine.findings``."""
        return remarks.findings(configuration)
