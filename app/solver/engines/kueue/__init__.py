"""Kueue: cohorts, quotas that are lent and reclaimed, classical and fair-sharing preemption."""

from app.solver.engines.kueue.engine import ENGINE

__all__ = ["ENGINE"]
