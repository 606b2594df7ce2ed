"""Quota-change preemption: a queue over its limit gives up tasks (YuniKorn: quota_preemptor.go)."""

from app.solver.engine import Question
from app.solver.engines.yunikorn.cluster import Cluster
from app.solver.model.decision import Plan, Result


def enforce(cluster: Cluster, question: Question, name: str) -> Result:
    return Result(decisions=[], plan=Plan(evictions=[], placements=[]))
