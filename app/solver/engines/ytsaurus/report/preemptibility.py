"""The body of ``POST /v1/preemptibility``: what protects each running operation and allocation."""

from typing import Any

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags
from app.solver.engines.ytsaurus.compile.operations import Levels
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import fair_shares
from app.solver.engines.ytsaurus.decide.priority import (
    AGGRESSIVE,
    aggressive_allowed,
    levels,
    normally_takeable,
    priorities,
)
from app.solver.engines.ytsaurus.decide.situation import Situation, situate
from app.solver.engines.ytsaurus.decide.split import AGGRESSIVELY_PREEMPTIBLE, GROUPS, PREEMPTIBLE, bounds, groups
from app.solver.model.request import Eviction
from app.solver.question import ProtectionQuestion


def preemptibility(cluster: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """Groups by allocation, and why an operation's allocations can't be taken. Raises InvalidInput.

    ``evict_allowed``: whether every allocation of ``evict`` could be a victim: of the ask's own stage where an ask is
    given, else of some stage.
    """
    asks = [*question.asks, *([question.ask] if question.ask is not None and question.ask not in question.asks else [])]
    situation = situate(cluster, asks)
    shares = fair_shares(situation)
    group = groups(situation, bounds(situation, shares), np.arange(len(cluster.allocations)))
    level = levels(group, aggressive_allowed(situation)[cluster.allocations.operation])
    workloads = _workloads(situation, group, level)
    out: dict[str, Any] = {"workloads": workloads}
    if question.evict:
        out["evict_allowed"] = all(_allowed(workloads, e, _least(situation, question)) for e in question.evict)
    return out


def _workloads(situation: Situation, group: Levels, level: Levels) -> dict[str, Any]:
    allocations, state = situation.cluster.allocations, situation.cluster.state
    group_names, level_names = np.array(GROUPS)[group].tolist(), np.array(GROUPS)[level].tolist()
    reasons = _reasons(situation)
    gentle: Flags = aggressive_allowed(situation)
    out: dict[str, Any] = {}
    for i, workload in enumerate(state.workloads):
        rows = range(int(allocations.of[i]), int(allocations.of[i + 1]))
        tasks: dict[str, dict[str, str]] = {
            workload.tasks[int(allocations.task[row])].name: {
                "preemptibility": str(group_names[row]),
                "level": str(level_names[row]),
            }
            for row in rows
        }
        most = max((int(level[row]) for row in rows), default=0)
        reason = reasons[i] or _group_reason(most, bool(gentle[i]))
        out[workload.id] = {"preemptible": reasons[i] == "" and most > 0, "reason": reason, "tasks": tasks}
    return out


def _group_reason(most: int, aggressive: bool) -> str:
    if most == PREEMPTIBLE:
        return "uses more than its fair share times preemption_satisfaction_threshold"
    if most == AGGRESSIVELY_PREEMPTIBLE:
        return "uses more than its fair share times aggressive_preemption_satisfaction_threshold"
    return "within its protected share" + ("" if aggressive else "; aggressive preemption is not allowed here")


def _reasons(situation: Situation) -> list[str]:
    """What spares an operation as a whole; empty where nothing does."""
    settings = situation.config.settings
    operations = situation.operations
    normally = normally_takeable(situation)
    out: list[str] = []
    for i in range(len(operations)):
        if operations.graceful[i]:
            out.append("preemption_mode is graceful: its allocations are only asked to stop")
        elif operations.starvation[i] > 0 and not settings.allow_from_starving:
            out.append("starving itself, and allow_preemption_from_starving_operations is off")
        elif not normally[i] and not aggressive_allowed(situation)[i]:
            out.append("a pool above allows neither normal nor aggressive preemption")
        else:
            out.append("")
    return out


def _least(situation: Situation, question: ProtectionQuestion) -> int:
    """The lowest level that the ask's operation can take."""
    if question.ask is None:
        return AGGRESSIVELY_PREEMPTIBLE
    name = question.ask.workload or question.ask.id
    row = situation.operations.ids.index(name)
    return AGGRESSIVELY_PREEMPTIBLE if priorities(situation)[row] == AGGRESSIVE else PREEMPTIBLE


def _allowed(workloads: dict[str, Any], eviction: Eviction, least: int) -> bool:
    of = workloads.get(eviction.workload)
    if of is None or not of["preemptible"]:
        return False
    names = [eviction.task] if eviction.task is not None else list(of["tasks"])
    return all(name in of["tasks"] and GROUPS.index(of["tasks"][name]["level"]) >= least for name in names)
