"""Heartbeats, one node after another, until nothing is pending any more."""

from collections.abc import Sequence

import numpy as np

from app.solver.engines.ytsaurus.decide import heartbeat
from app.solver.engines.ytsaurus.decide.overlay import Overlay
from app.solver.engines.ytsaurus.decide.quiet import quiet_nodes
from app.solver.stopping import safe_point


def heartbeats(overlay: Overlay, nodes: Sequence[int], now: int) -> list[int]:
    """Process heartbeats in order until nothing is pending any more; the nodes that were heard."""
    waits = bool(len(overlay.left))
    heard: list[int] = []
    skips = len(nodes) > 1 and overlay.log is None
    quiet = quiet_nodes(overlay, now) if skips else np.zeros(len(overlay.node_usage), bool)
    exceeds = bool(overlay.prepared.situation.pool_limits_tolerance.any())
    for node in nodes:
        safe_point()
        heard.append(node)
        before = len(overlay.started)
        if quiet[node]:
            heartbeat.pass_over(overlay, node, now)
        else:
            heartbeat.process(overlay, node, now)
        if waits and len(nodes) > 1 and not overlay.left.any():
            break
        if skips and exceeds and len(overlay.started) > before and overlay.started[-1].stage != "regular":
            quiet &= quiet_nodes(overlay, now)
    return heard
