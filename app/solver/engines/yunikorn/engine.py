"""YuniKorn as an engine: wiring only, one file a stage."""

from app.solver.engine import Engine
from app.solver.engines.yunikorn.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.yunikorn.compile.state import CompiledState, compile_state
from app.solver.engines.yunikorn.compile.update import update
from app.solver.engines.yunikorn.plan import plan
from app.solver.engines.yunikorn.report.effective_settings import effective_settings
from app.solver.engines.yunikorn.report.findings import findings
from app.solver.engines.yunikorn.report.preemptibility import preemptibility
from app.solver.engines.yunikorn.report.proposals import judge
from app.solver.engines.yunikorn.report.shares import shares
from app.solver.engines.yunikorn.rounds import YuniKornRounds
from app.solver.engines.yunikorn.rules import RULES

ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    name="yunikorn",
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=YuniKornRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Guaranteed queues, fences and nodes."""
