"""YTsaurus: fair share, starvation and preemption at a node's heartbeat."""

from app.solver.engines.ytsaurus.engine import ENGINE

__all__ = ["ENGINE"]
