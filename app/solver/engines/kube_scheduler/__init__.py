"""kube-scheduler's default preemption, as released in Kubernetes 1.37."""

from app.solver.engines.kube_scheduler.engine import ENGINE

__all__ = ["ENGINE"]
