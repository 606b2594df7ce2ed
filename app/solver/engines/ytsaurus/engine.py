"""YTsaurus' scheduler as an engine: wiring only, one file a stage."""

from app.solver.engine import Engine
from app.solver.engines.ytsaurus.compile.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.ytsaurus.compile.state import CompiledState, compile_state
from app.solver.engines.ytsaurus.compile.update import update
from app.solver.engines.ytsaurus.plan import plan
from app.solver.engines.ytsaurus.report.effective_settings import effective_settings
from app.solver.engines.ytsaurus.report.findings import findings
from app.solver.engines.ytsaurus.report.preemptibility import preemptibility
from app.solver.engines.ytsaurus.report.shares import shares
from app.solver.engines.ytsaurus.rounds import YtsaurusRounds
from app.solver.engines.ytsaurus.rules import RULES

ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    name="ytsaurus",
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=YtsaurusRounds,
    shares=shares,
    preemptibility=preemptibility,
    effective_settings=effective_settings,
    findings=findings,
)
"""Pools with strong guarantees and weights, starving operations, preemption at a node's heartbeat."""
