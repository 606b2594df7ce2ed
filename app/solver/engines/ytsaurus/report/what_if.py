"""Which difference between the rule sets decided: found by deciding again under the other one."""

from collections.abc import Sequence

from app.solver.engines.ytsaurus.compile.rule_sets import DIFFERENCES, RULE_SETS, Difference, RuleSet
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.decide.cycle import heartbeats
from app.solver.engines.ytsaurus.decide.overlay import NOBODY, Overlay, Started, Stopped
from app.solver.engines.ytsaurus.decide.prepare import prepare
from app.solver.engines.ytsaurus.report.explain import under
from app.solver.model.state import Ask
from app.solver.question import Question


def differences(
    cluster: CompiledState, asks: Sequence[Ask], nodes: Sequence[int], question: Question, overlay: Overlay
) -> list[list[Difference]]:
    """For each ask the differences between the rule sets that change what becomes of it, found by deciding again."""
    settings = cluster.config.settings
    mine = _outcomes(overlay, len(asks))

    def others(rules: RuleSet) -> list[tuple[list[Started], list[Stopped]]]:
        twin = Overlay(prepare(under(cluster, rules), asks))
        heartbeats(twin, nodes, question.now)
        return _outcomes(twin, len(asks))

    if others(RULE_SETS["shipped" if settings.rules.name == "documented" else "documented"]) == mine:
        return [[] for _ in asks]
    alone = [(difference, others(difference.only(settings.rules))) for difference in DIFFERENCES]
    return [[difference for difference, other in alone if other[i] != mine[i]] for i in range(len(asks))]


def _outcomes(overlay: Overlay, asks: int) -> list[tuple[list[Started], list[Stopped]]]:
    """What becomes of each ask, to compare."""
    wants = overlay.prepared.situation.wants.ask
    out: list[tuple[list[Started], list[Stopped]]] = [([], []) for _ in range(asks)]
    for one in overlay.started:
        out[int(wants[one.want])][0].append(one)
    for one in overlay.stopped:
        if one.want != NOBODY:
            out[int(wants[one.want])][1].append(one)
    return out
