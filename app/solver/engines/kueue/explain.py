"""Why, recorded when a choice is made. Nothing here decides anything, and nothing here runs unless asked for."""

from collections.abc import Iterable
from typing import Any

from app.solver.engines.kueue.protection import Judge, fr_name
from app.solver.engines.kueue.snapshot import Preemptor, Snapshot, Target
from app.solver.model.quantity import units
from app.solver.model.trace import Verdict
from app.solver.trace import Why


def search_begins(snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], why: Why) -> None:
    """What is contested, and for every running workload what protects it, or that it is a candidate."""
    usage, queue = snapshot.usage, preemptor.queue
    for fr, amount in preemptor.request:
        if fr in contested:
            cell, resource = usage.quotas.cells[queue][fr], usage.quotas.frs[fr][1]
            available = usage.available(queue, fr)
            why.step(
                "needs-preemption", f"{fr_name(snapshot, fr)}: more is requested than available",
                requested=units(amount, resource), available=units(available, resource),
                used=units(usage.used[cell], resource), nominal=units(usage.quotas.nominal[cell], resource),
            )  # fmt: skip
    judge = Judge(snapshot, preemptor, contested)
    for workload in range(len(snapshot.loaded.workloads)):
        found = judge.protection(workload)
        if found is None:
            detail = "it could go, but was not needed before the ask fitted"
            record(snapshot, why, workload, "not-needed", "candidate-not-reached", detail)
        else:
            record(snapshot, why, workload, "protected", found.rule, found.detail, **found.numbers)


def record(
    snapshot: Snapshot, why: Why, workload: int, verdict: Verdict, rule: str, detail: str, **numbers: Any
) -> None:
    """What became of one running workload. Its queue and priority are always shown."""
    loaded = snapshot.loaded
    shown: dict[str, Any] = {"priority": int(loaded.priority[workload]), **numbers}
    queue = loaded.configured.tree.names[int(loaded.queue[workload])]
    why.candidate(verdict, rule, loaded.workloads[workload].id, queue=queue, detail=detail, **shown)


def taken(
    snapshot: Snapshot, preemptor: Preemptor, why: Why, target: Target, place: int, fits: bool, **numbers: Any
) -> None:
    """A candidate was taken out; ``place`` counts from 1, ``fits``: whether the ask fits now."""
    workload, reason = target
    after = {
        fr_name(snapshot, fr): {
            "requested": units(amount, snapshot.usage.quotas.frs[fr][1]),
            "available": units(snapshot.usage.available(preemptor.queue, fr), snapshot.usage.quotas.frs[fr][1]),
        }
        for fr, amount in preemptor.request
    }
    detail = f"number {place} to go" + ("; now the ask fits" if fits else "; the ask does not fit yet")
    record(snapshot, why, workload, "victim", reason, detail, order=place, after=after, **numbers)


def attempt_failed(snapshot: Snapshot, why: Why, targets: Iterable[Target], detail: str) -> None:
    """Everybody who was taken in vain stays."""
    for workload, reason in targets:
        record(snapshot, why, workload, "not-needed", "not-enough", detail, reason=reason)
