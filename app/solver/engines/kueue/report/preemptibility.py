"""``POST /v1/preemptibility`` for Kueue: which running workloads an ask could touch, and the rule that protects each
of the others.

Candidates come from the same code that a decision uses, so the two can't disagree; the rule for the others is the
first that keeps them out. A candidate is not yet a victim: order, fit and shares decide among candidates.
"""

from typing import Any

from app.solver.engine import ProtectionQuestion
from app.solver.engines.kueue.compile.state import Loaded
from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.independent import check_asks
from app.solver.engines.kueue.decide.nominate import Nomination, nominate
from app.solver.engines.kueue.decide.overlay import Reason, Snapshot
from app.solver.engines.kueue.decide.run import Rules, check_knobs, knobs_set
from app.solver.engines.kueue.decide.victims import classical, fair
from app.solver.engines.kueue.decide.victims.targets import get_targets
from app.solver.engines.kueue.report.protection import Judge
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask

_DETAIL = {
    "candidate": "this ask could preempt it",
    "ask-fits": "the ask fits without stopping anybody",
    "ask-cannot-preempt": "no flavor could be had for the ask by preemption",
    "preemption-policy-never": "the ask's preemption policy is Never",
    "waits-before-preempting": "the ask has not waited as long as its queue wants before it preempts",
    "not-preemptible": "the workload is marked as not preemptible",
    "within-nominal": "its queue is within its quota",
    "no-policy": "no queue that can reach it preempts there",
}


def report(loaded: Loaded, question: ProtectionQuestion) -> dict[str, Any]:
    """The body. Raises InvalidInput. With ``evict`` and ``ask``: whether the ask may touch all of them."""
    if question.ask is None:
        anybody = _Anybody(loaded)
        return {"workloads": {w.id: _line(anybody.rule(i)) for i, w in enumerate(loaded.workloads)}}
    _check(loaded, question.ask)
    reasons = _reasons(loaded, question.ask, question.now)
    out: dict[str, Any] = {"workloads": {w.id: reasons[i] for i, w in enumerate(loaded.workloads)}}
    if question.evict:
        index = {w.id: i for i, w in enumerate(loaded.workloads)}
        unknown = [e for e, eviction in enumerate(question.evict) if eviction.workload not in index]
        if unknown:
            raise InvalidInput(
                Problem(pointer=pointer("evict", e, "workload"), detail="no such workload") for e in unknown
            )
        out["evict_allowed"] = all(reasons[index[e.workload]]["preemptible"] for e in question.evict)
    return out


def _check(loaded: Loaded, ask: Ask) -> None:
    try:
        check_asks(loaded, [ask])
    except InvalidInput as invalid:
        raise InvalidInput(
            Problem(pointer=p.pointer.replace("/asks/0", "/ask", 1), detail=p.detail) for p in invalid.problems
        ) from invalid
    check_knobs(loaded)


def _line(rule: str, would_be: Reason | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {"preemptible": rule == "candidate", "reason": rule, "detail": _DETAIL[rule]}
    if would_be is not None:
        out["preemption_reason"] = would_be
    return out


def _reasons(loaded: Loaded, ask: Ask, now: int) -> list[dict[str, Any]]:
    rules = Rules(loaded, now, 1, knobs_set(loaded, [ask]))
    snapshot = Snapshot(rules.loaded, now)
    rules.prepare(snapshot, ask)
    search = rules.search(ask)
    nomination = nominate(snapshot, ask, rules.preemptor(ask), search)
    everybody = _for_everybody(nomination, ask, may_search=search is get_targets)
    if everybody is not None:
        return [_line(everybody)] * len(loaded.workloads)
    candidates = _candidates(snapshot, nomination)
    judge = Judge(snapshot, nomination.preemptor, frozenset(nomination.contested))
    out: list[dict[str, Any]] = []
    for i in range(len(loaded.workloads)):
        kept = None if i in candidates else judge.protection(i)
        if kept is None:
            out.append(_line("candidate", candidates[i]))
        else:
            out.append({"preemptible": False, "reason": kept.rule, "detail": kept.detail, "numbers": kept.numbers})
    return out


def _for_everybody(nomination: Nomination, ask: Ask, *, may_search: bool) -> str | None:
    """A rule that protects all workloads alike."""
    if nomination.assignment.mode is Mode.FIT:
        return "ask-fits"
    if not may_search:
        return "preemption-policy-never" if ask.preemption_policy == "Never" else "waits-before-preempting"
    return "ask-cannot-preempt" if nomination.assignment.mode is Mode.NO_FIT else None


def _candidates(snapshot: Snapshot, nomination: Nomination) -> dict[int, Reason]:
    """Candidates with the reason that their preemption would carry."""
    preemptor, contested = nomination.preemptor, frozenset(nomination.contested)
    out: dict[int, Reason] = {}
    if snapshot.loaded.configured.fair_sharing:
        snapshot.usage.add(preemptor.queue, preemptor.request)
        within = not snapshot.usage.exceeds(preemptor.queue, contested)
        snapshot.usage.remove(preemptor.queue, preemptor.request)
        for queue, workloads in fair.collect(snapshot, preemptor, contested).items():
            across: Reason = "InCohortReclamation" if within else "InCohortFairSharing"
            out |= dict.fromkeys(workloads, "InClusterQueue" if queue == preemptor.queue else across)
        return out
    found = classical.collect(snapshot, preemptor, contested)
    out |= dict.fromkeys(found.own.tolist(), "InClusterQueue")
    out |= dict.fromkeys([*found.hierarchical.tolist(), *found.priority.tolist()], "InCohortReclamation")
    out |= dict.fromkeys(found.with_borrowing, "InCohortReclaimWhileBorrowing")
    return out


class _Anybody:
    """Whether any ask at all could touch a workload as things stand."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._usage = loaded.usage()
        configured = loaded.configured
        reclaims: dict[int, list[int]] = {}
        for node, policy in enumerate(configured.policy):
            if policy.reclaim_within_cohort != "Never" and not configured.is_cohort[node]:
                reclaims.setdefault(configured.root[node], []).append(node)
        self._reclaims = reclaims

    def rule(self, workload: int) -> str:
        """The rule that protects it, or "candidate"."""
        loaded, configured = self._loaded, self._loaded.configured
        queue = int(loaded.queue[workload])
        if workload in loaded.protected:
            return "not-preemptible"
        if configured.policy[queue].within_cluster_queue != "Never":
            return "candidate"
        if all(other == queue for other in self._reclaims.get(configured.root[queue], ())[:2]):
            return "no-policy"
        return (
            "candidate" if self._usage.exceeds(queue, [fr for fr, _ in loaded.amounts(workload)]) else "within-nominal"
        )
