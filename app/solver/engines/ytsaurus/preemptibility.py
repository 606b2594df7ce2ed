"""The bodies of ``POST /v1/preemptibility`` (what protects whom) and ``POST /v1/effective-settings``."""

from typing import Any

import numpy as np

from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, Inherited, promised_tops, without_donor
from app.solver.engines.ytsaurus.fair_shares import due_shares
from app.solver.engines.ytsaurus.operations import (
    Flags,
    Levels,
    operation_threshold,
    operation_timeout,
    operation_tolerance,
)
from app.solver.engines.ytsaurus.preparation import (
    AGGRESSIVE,
    AGGRESSIVELY_PREEMPTIBLE,
    GROUPS,
    PREEMPTIBLE,
    aggressive_allowed,
    bounds,
    groups,
    levels,
    normally_takeable,
    priorities,
)
from app.solver.engines.ytsaurus.reading import Steps, Where
from app.solver.engines.ytsaurus.settings import OperationSettings, operation_settings
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.duration import seconds
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.quantity import units
from app.solver.model.request import Eviction
from app.solver.model.state import State
from app.solver.question import ProtectionQuestion


def preemptibility(cluster: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """Groups by allocation, and why an operation's allocations can't be taken. Raises InvalidInput.

    ``evict_allowed``: whether every allocation of ``evict`` could be a victim: of the ask's own stage where an ask is
    given, else of some stage.
    """
    asks = [*question.asks, *([question.ask] if question.ask is not None and question.ask not in question.asks else [])]
    situation = situate(cluster, asks)
    shares = due_shares(situation)
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


def effective_settings(config: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, amounts in whole units. Raises InvalidInput for bad options of an operation."""
    settings = config.settings
    queues = {
        name: _common(pool) | {
            "allow_normal_preemption": pool.allow_normal,
            "mode": config.pools[i].mode,
            "preemption_satisfaction_threshold": settings.threshold,
            "aggressive_preemption_satisfaction_threshold": settings.aggressive_threshold,
            "fair_share_aggressive_starvation_timeout": seconds(settings.aggressive_timeout),
        } | _shares(config, i)
        for i, (name, pool) in enumerate(zip(config.tree.names, config.inherited, strict=True))
    }  # fmt: skip
    out: dict[str, Any] = {"settings": {"rules": settings.rules.name, "release": settings.release}, "queues": queues}
    return out if state is None else out | {"workloads": _operations(config, state)}


def _shares(config: CompiledConfiguration, i: int) -> dict[str, Any]:
    """What of the flags of fair share counts for pool ``i``; ``integral_guarantees`` where it has some."""
    tree, own = config.settings.shares, config.pools[i].shares
    gang_steps = tree.gang_steps and own.gang_steps
    out = {
        "enable_step_function_for_gang_operations": gang_steps,
        "enable_fifo_children_reordering_for_guarantee_utilization": (
            gang_steps and tree.reorder_fifo and own.reorder_fifo
        ),
        "enable_fair_share_truncation_in_fifo_pool": own.truncate_fifo,
        "compute_promised_guarantee_fair_share": i in promised_tops(config),
        "enable_priority_strong_guarantee_adjustment": own.priority and i not in without_donor(config),
        "enable_priority_strong_guarantee_adjustment_donorship": own.donor,
    }
    integral = own.integral
    if integral.kind == "none":
        return out
    limit, distribute = integral.multiplier_limit, integral.distribute
    return out | {
        "integral_guarantees": {
            "guarantee_type": integral.kind,
            "resource_flow": _amounts(integral.flow),
            "burst_guarantee_resources": _amounts(integral.burst),
            "relaxed_share_multiplier_limit": tree.multiplier_limit if limit is None else limit,
            "can_accept_free_volume": integral.accept,
            "should_distribute_free_volume_among_children": (
                tree.distribute_volume if distribute is None else distribute
            ),
            "smooth_period": seconds(tree.smooth_period),
            "pool_capacity_saturation_period": seconds(tree.saturation_period),
        }
    }


def _operations(config: CompiledConfiguration, state: State) -> dict[str, Any]:
    problems: list[Problem] = []
    out: dict[str, Any] = {}
    for i, workload in enumerate(state.workloads):
        pool = config.inherited[config.tree.index[workload.queue]]
        options = workload.ytsaurus
        at: Where = ("state", "workloads", i, "ytsaurus")
        own = OperationSettings() if options is None else operation_settings(options, at, problems)
        gang = options is not None and options.is_gang and not config.settings.allow_gang
        out[workload.id] = _common(pool) | {
            "allow_aggressive_preemption": pool.allow_aggressive and not gang,
            "fair_share_starvation_timeout": seconds(operation_timeout(pool, own)),
            "fair_share_starvation_tolerance": operation_tolerance(pool, own),
            "non_preemptible_resource_usage_threshold": _amounts(operation_threshold(pool, own)),
            "allocation_preemption_timeout": _seconds(own.preemption_timeout, config.settings.preemption_timeout),
            "allocation_graceful_preemption_timeout": _seconds(own.graceful_timeout, config.settings.graceful_timeout),
            "preemption_mode": "normal" if options is None else options.preemption_mode,
        }
    if problems:
        raise InvalidInput(problems)
    return out


def _common(pool: Inherited) -> dict[str, Any]:
    return {
        "allow_aggressive_preemption": pool.allow_aggressive,
        "enable_aggressive_starvation": pool.enable_aggressive_starvation,
        "fair_share_starvation_timeout": seconds(pool.timeout),
        "fair_share_starvation_tolerance": pool.tolerance,
        "non_preemptible_resource_usage_threshold": _amounts(pool.non_preemptible),
    }


def _amounts(steps: Steps) -> dict[str, int | float]:
    return {name: units(value, name) for name, value in steps.items()}


def _seconds(own: int | None, default: int) -> int | float:
    return seconds(default if own is None else own)
