"""``POST /v1/effective-settings``: what every queue ends up with, and which document it comes from."""

from typing import Any

from app.solver.engines.yunikorn.compile.configuration import CompiledConfiguration
from app.solver.engines.yunikorn.compile.settings import (
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    PRIORITY_OFFSET,
    PRIORITY_POLICY,
    QUOTA_DELAY,
    SECOND,
    QueueSettings,
)
from app.solver.model.state import State


def effective_settings(queues: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, quotas in whole units; ``sources`` names where each property that isn't default is set.
    What runs has no say."""
    del state
    return {"queues": {queues.tree.names[i]: _queue(queues, i) for i in queues.by_path}}


def _queue(queues: CompiledConfiguration, i: int) -> dict[str, Any]:
    settings = queues.settings[i]
    return {
        **_properties(settings),
        "leaf": queues.leaf[i],
        "guaranteed": queues.resources.units(queues.guaranteed[i] or {}),
        "limit": queues.resources.units(queues.limit[i] or {}),
        "sources": settings.sources,
    }


def _properties(settings: QueueSettings) -> dict[str, Any]:
    return {
        PREEMPTION_POLICY: settings.preemption_policy,
        PREEMPTION_DELAY: _seconds(settings.preemption_delay),
        PRIORITY_POLICY: "fence" if settings.priority_fence else "default",
        PRIORITY_OFFSET: settings.priority_offset,
        QUOTA_DELAY: _seconds(settings.quota_delay),
    }


def _seconds(nanoseconds: int) -> int | float:
    whole, rest = divmod(nanoseconds, SECOND)
    return nanoseconds / SECOND if rest else whole
