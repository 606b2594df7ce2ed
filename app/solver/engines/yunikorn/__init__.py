"""YuniKorn: guaranteed queues, preemption fences and nodes (yunikorn-core be3bb487 and its preemption design)."""

from app.solver.engines.yunikorn.engine import ENGINE

__all__ = ["ENGINE"]
