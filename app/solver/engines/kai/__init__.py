"""KAI Scheduler: minimum runtimes, fair shares, and the allocate, consolidation, reclaim and preempt actions."""

from app.solver.engines.kai.engine import ENGINE

__all__ = ["ENGINE"]
