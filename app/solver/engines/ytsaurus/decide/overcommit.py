"""A node whose allocations have used more than it has for too long: no protection holds any more."""

import numpy as np

from app.solver.engines.ytsaurus.compile.operations import NEVER
from app.solver.engines.ytsaurus.decide.overlay import Overlay
from app.solver.engines.ytsaurus.decide.victims import least_protected_first


def resolve(overlay: Overlay, node: int, now: int) -> None:
    """Keep what still fits, best protected first, and stop the rest, once the overcommit has lasted too long.

    ``now`` in microseconds. A heartbeat that started something leaves no overcommit, so all that runs here was there.
    """
    if not overlay.is_overcommitted(node):
        overlay.overcommit_since[node] = NEVER
        return
    since = int(overlay.overcommit_since[node])
    if since == NEVER:
        overlay.overcommit_since[node] = since = now
    situation = overlay.prepared.situation
    if now <= since + situation.config.settings.overcommit_duration:
        return
    cluster = situation.cluster
    rows = cluster.allocations_on(node)
    rows = rows[overlay.running[rows]]
    kept = np.zeros(len(cluster.total), np.int64)
    for row in least_protected_first(overlay, rows)[::-1].tolist():
        usage = cluster.allocations.usage[row]
        if (kept + usage <= cluster.node_limits[node]).all():
            kept += usage
        else:
            timeout = int(situation.operations.preemption_timeout[cluster.allocations.operation[row]])
            overlay.stop(row, node, "resource_overcommit", timeout)
    overlay.overcommit_since[node] = NEVER
