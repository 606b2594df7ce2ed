"""YTsaurus' scheduler as an engine: wiring only, one file a stage."""

from typing import Any

from app.solver.delta import Changes
from app.solver.engine import Engine, ProtectionQuestion, Question
from app.solver.engines.ytsaurus.compile.configuration import PoolTree, compile_configuration
from app.solver.engines.ytsaurus.compile.state import Cluster, load
from app.solver.engines.ytsaurus.compile.update import update
from app.solver.engines.ytsaurus.decide import plan as decide
from app.solver.engines.ytsaurus.report import effective_settings as effective
from app.solver.engines.ytsaurus.report import findings as remarks
from app.solver.engines.ytsaurus.report import preemptibility, shares
from app.solver.engines.ytsaurus.rules import RULES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding
from app.solver.model.request import Options
from app.solver.model.state import Ask, State


class YtsaurusEngine(Engine[PoolTree, Cluster]):
    """Pools with strong guarantees and weights, starving operations, preemption at a node's heartbeat."""

    name = "ytsaurus"
    rules = RULES

    def configure(self, configuration: Configuration) -> PoolTree:
        """See ``Engine.configure``."""
        return compile_configuration(configuration)

    def load(self, configured: PoolTree, state: State) -> Cluster:
        """See ``Engine.load``."""
        return load(configured, state)

    def update(self, loaded: Cluster, configured: PoolTree, state: State, changes: Changes) -> Cluster:
        """See ``Engine.update``."""
        return update(loaded, configured, state, changes)

    def plan(self, loaded: Cluster, question: Question) -> Result:
        """See ``Engine.plan``."""
        return decide.decide(loaded, question)

    def shares(self, loaded: Cluster, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
        """See ``Engine.shares``. Pending work is demand, so the asks change the shares."""
        return shares.answer(loaded, asks, now, options.ytsaurus)

    def preemptibility(self, loaded: Cluster, question: ProtectionQuestion) -> dict[str, Any]:
        """See ``Engine.preemptibility``."""
        return preemptibility.answer(loaded, question)

    def effective_settings(self, configured: PoolTree, state: State | None) -> dict[str, Any]:
        """See ``Engine.effective_settings``."""
        return effective.answer(configured, state)

    def findings(self, configuration: Configuration) -> list[Finding]:
        """See ``Engine.findings``."""
        return remarks.findings(configuration)
