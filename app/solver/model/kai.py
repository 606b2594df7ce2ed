"""KAI Scheduler's blocks."""

from typing import Literal

from app.solver.model.base import Count, Duration, Wire

Action = Literal["allocate", "consolidation", "reclaim", "preempt"]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.kai``: rule set, node-pool defaults of the minimum runtimes, actions of a cycle."""

    rules: Literal["documented", "shipped"] = "documented"
    default_reclaim_min_runtime: Duration | None = None
    default_preempt_min_runtime: Duration | None = None
    reclaim_resolve_method: str = "lca"
    actions: list[Action] | None = None
    use_scheduling_signatures: bool = True
    max_consolidation_preemptees: Count | None = None
    allow_consolidating_reclaim: bool = True


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.kai``."""

    reclaim_min_runtime: Duration | None = None
    preempt_min_runtime: Duration | None = None


class Options(Wire, frozen=True, kw_only=True):
    """``options.kai``: nothing yet."""
