"""``POST /v1/effective-settings``: what every queue inherits or overrides in the end."""

from typing import Any

from app.solver.engines.kai.compile.configuration import CompiledConfiguration
from app.solver.engines.kai.compile.min_runtime import NODE_POOL, MinRuntime
from app.solver.engines.kai.compile.resources import Share
from app.solver.engines.kai.report.shares import answer_names, in_units
from app.solver.model.duration import seconds
from app.solver.model.state import State


def effective_settings(configuration: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, quantities in whole units. ``reclaim_min_runtime`` is what protects a queue against its
    own siblings; with method ``lca`` another queue meets the value of the branch that it reclaims from."""
    del state  # nothing that runs changes a setting
    policy = configuration.policy
    return {
        "settings": {
            "rules": policy.rules,
            "default_reclaim_min_runtime": seconds(policy.default_reclaim),
            "default_preempt_min_runtime": seconds(policy.default_preempt),
            "reclaim_resolve_method": policy.method,
            "actions": list(policy.actions),
            "use_scheduling_signatures": policy.use_scheduling_signatures,
            "max_consolidation_preemptees": policy.max_consolidation_preemptees,
            "allow_consolidating_reclaim": policy.allow_consolidating_reclaim,
        },
        "queues": {name: _queue(configuration, q) for q, name in enumerate(configuration.tree.names)},
    }


def _queue(configuration: CompiledConfiguration, queue: int) -> dict[str, Any]:
    names = answer_names(configuration, None)
    reclaim = configuration.min_runtimes.reclaim_at(queue)
    preempt = configuration.min_runtimes.for_preempt(queue)
    return {
        "reclaim_min_runtime": seconds(reclaim.micros),
        "reclaim_min_runtime_set_by": _set_by(configuration, reclaim),
        "preempt_min_runtime": seconds(preempt.micros),
        "preempt_min_runtime_set_by": _set_by(configuration, preempt),
        "priority": configuration.priority[queue],
        "deserved": _amounts(configuration.deserved[queue], names),
        "limit": _amounts(configuration.limit[queue], names),
        "over_quota_weight": dict(zip(names, configuration.weight[queue], strict=True)),
    }


def _set_by(configuration: CompiledConfiguration, minimum: MinRuntime) -> str | None:
    """The queue that sets the value; None for the node pool's default."""
    return None if minimum.set_by == NODE_POOL else configuration.tree.names[minimum.set_by]


def _amounts(values: Share, names: tuple[str, str, str]) -> dict[str, int | float | str]:
    return {name: in_units(value, step) for name, value, step in zip(names, values, (1000, 1, 1000), strict=True)}
