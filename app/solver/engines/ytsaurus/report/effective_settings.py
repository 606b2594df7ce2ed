"""The body of ``POST /v1/effective-settings``: what each pool and operation inherits or overrides in the end."""

from typing import Any

from app.solver.engines.ytsaurus.compile.configuration import CompiledConfiguration, Inherited
from app.solver.engines.ytsaurus.compile.operations import operation_threshold, operation_timeout, operation_tolerance
from app.solver.engines.ytsaurus.compile.pool_flags import promised_tops, without_donor
from app.solver.engines.ytsaurus.compile.reading import Steps, Where
from app.solver.engines.ytsaurus.compile.settings import OperationSettings, operation_settings
from app.solver.model.duration import seconds
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.quantity import units
from app.solver.model.state import State


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
    return {"queues": queues} if state is None else {"queues": queues, "workloads": _operations(config, state)}


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
