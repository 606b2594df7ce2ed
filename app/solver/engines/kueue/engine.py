"""Kueue as an engine: wiring only, one file a stage."""

from app.solver.engine import Engine
from app.solver.engines.kueue.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kueue.compile.state import CompiledState, compile_state
from app.solver.engines.kueue.compile.update import update
from app.solver.engines.kueue.plan import plan
from app.solver.engines.kueue.report.effective_settings import effective_settings
from app.solver.engines.kueue.report.findings import findings
from app.solver.engines.kueue.report.preemptibility import preemptibility
from app.solver.engines.kueue.report.proposals import judge
from app.solver.engines.kueue.report.shares import shares
from app.solver.engines.kueue.rounds import KueueRounds
from app.solver.engines.kueue.rules import RULES

ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    name="kueue",
    rules=RULES,
    looks=True,
    implicit_parents=True,  # Kueue: a cohort that is only referenced exists, without quota
    heads=True,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KueueRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Kueue's scheduler, as of commit ff69552e (August 2026), feature gates at their defaults."""
