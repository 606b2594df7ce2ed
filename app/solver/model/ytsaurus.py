"""YTsaurus' blocks. Owned by the ytsaurus engine; see docs/engines/ytsaurus.md for every setting."""

from typing import Literal

from app.solver.model.base import Duration, Resources, Time, Wire

Starvation = Literal["non_starving", "starving", "aggressively_starving"]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.ytsaurus``: the tree level of every setting."""

    rules: Literal["documented", "shipped"] = "documented"
    fair_share_starvation_tolerance: float | None = None
    fair_share_starvation_timeout: Duration | None = None


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.ytsaurus``: pool overrides."""

    mode: Literal["fair_share", "fifo"] = "fair_share"


class Workload(Wire, frozen=True, kw_only=True):
    """``workload.ytsaurus``: operation options, and the starvation state carried between requests."""

    starvation: Starvation | None = None
    below_fair_share_since: Time | None = None
    is_gang: bool = False
    non_preemptible_resource_usage_threshold: Resources | None = None


class PoolState(Wire, frozen=True, kw_only=True):
    """``state.queues.*.ytsaurus``: starvation state of a pool."""

    starvation: Starvation | None = None
    below_fair_share_since: Time | None = None


class Node(Wire, frozen=True, kw_only=True):
    """``node.ytsaurus``."""

    last_preemptive_scheduling_at: Time | None = None
    overcommit_since: Time | None = None


class Options(Wire, frozen=True, kw_only=True):
    """``options.ytsaurus``."""

    heartbeat_node: str | None = None
