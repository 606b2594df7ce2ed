"""KAI Scheduler as an engine: wiring only, one file a stage."""

from app.solver.engine import Engine
from app.solver.engines.kai.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kai.compile.state import CompiledState, compile_state
from app.solver.engines.kai.compile.update import update
from app.solver.engines.kai.plan import plan
from app.solver.engines.kai.report.effective_settings import effective_settings
from app.solver.engines.kai.report.findings import findings
from app.solver.engines.kai.report.preemptibility import preemptibility
from app.solver.engines.kai.report.proposals import judge
from app.solver.engines.kai.report.shares import shares
from app.solver.engines.kai.rounds import KaiRounds
from app.solver.engines.kai.rules import RULES

ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    name="kai",
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KaiRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Queues with deserved quotas, fair shares, minimum runtimes; actions on nodes with whole GPUs."""
