"""``POST /v1/preemptibility`` for Kueue: which running workloads an ask could touch, and the rule that protects each
of the others.

Candidates come from the same code that a decision uses, so the two can't disagree; the rule for the others is the
first that keeps them out. A candidate is not yet a victim: order, fit and shares decide among candidates.
"""

from typing import Any

from app.solver.engines.kueue.compile.state import CompiledState
from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.independent import check_asks
from app.solver.engines.kueue.decide.nominate import nominate
from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay, Reason
from app.solver.engines.kueue.decide.run import Run, check_knobs, knobs_set
from app.solver.engines.kueue.decide.victims import classical, fair
from app.solver.engines.kueue.decide.victims.targets import get_targets
from app.solver.engines.kueue.report.protection import Judge
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion

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


def preemptibility(state: CompiledState, question: ProtectionQuestion) -> dict[str, Any]:
    """The body. Raises InvalidInput. With ``evict`` and ``ask``: whether the ask may touch all of them."""
    if question.ask is None:
        anybody = _Anybody(state)
        return {"workloads": {w.id: _line(anybody.rule(i)) for i, w in enumerate(state.workloads)}}
    _check(state, question.ask)
    reasons = _reasons(state, question.ask, question.now)
    out: dict[str, Any] = {"workloads": {w.id: reasons[i] for i, w in enumerate(state.workloads)}}
    if question.evict:
        index = {w.id: i for i, w in enumerate(state.workloads)}
        unknown = [e for e, eviction in enumerate(question.evict) if eviction.workload not in index]
        if unknown:
            raise InvalidInput(
                Problem(pointer=pointer("evict", e, "workload"), detail="no such workload") for e in unknown
            )
        out["evict_allowed"] = all(reasons[index[e.workload]]["preemptible"] for e in question.evict)
    return out


def _check(state: CompiledState, ask: Ask) -> None:
    try:
        check_asks(state, [ask])
    except InvalidInput as invalid:
        raise InvalidInput(
            Problem(pointer=p.pointer.replace("/asks/0", "/ask", 1), detail=p.detail) for p in invalid.problems
        ) from invalid
    check_knobs(state)


def _line(rule: str, would_be: Reason | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {"preemptible": rule == "candidate", "reason": rule, "detail": _DETAIL[rule]}
    if would_be is not None:
        out["preemption_reason"] = would_be
    return out


def _reasons(state: CompiledState, ask: Ask, now: int) -> list[dict[str, Any]]:
    run = Run(state, now, 1, knobs_set(state, [ask]))
    overlay = Overlay(run.state, now)
    run.prepare(overlay, ask)
    search = run.search(ask)
    nomination = nominate(overlay, ask, run.preemptor(ask), search)
    everybody = _for_everybody(nomination, ask, may_search=search is get_targets)
    if everybody is not None:
        return [_line(everybody)] * len(state.workloads)
    candidates = _candidates(overlay, nomination)
    judge = Judge(overlay, nomination.seeker, frozenset(nomination.contested))
    out: list[dict[str, Any]] = []
    for i in range(len(state.workloads)):
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


def _candidates(overlay: Overlay, nomination: Nomination) -> dict[int, Reason]:
    """Candidates with the reason that their preemption would carry."""
    preemptor, contested = nomination.seeker, frozenset(nomination.contested)
    out: dict[int, Reason] = {}
    if overlay.state.configuration.fair_sharing:
        overlay.usage.add(preemptor.queue, preemptor.request)
        within = not overlay.usage.exceeds(preemptor.queue, contested)
        overlay.usage.remove(preemptor.queue, preemptor.request)
        for queue, workloads in fair.collect(overlay, preemptor, contested).items():
            across: Reason = "InCohortReclamation" if within else "InCohortFairSharing"
            out |= dict.fromkeys(workloads, "InClusterQueue" if queue == preemptor.queue else across)
        return out
    found = classical.collect(overlay, preemptor, contested)
    out |= dict.fromkeys(found.own.tolist(), "InClusterQueue")
    out |= dict.fromkeys([*found.hierarchical.tolist(), *found.priority.tolist()], "InCohortReclamation")
    out |= dict.fromkeys(found.with_borrowing, "InCohortReclaimWhileBorrowing")
    return out


class _Anybody:
    """Whether any ask at all could touch a workload as things stand."""

    def __init__(self, state: CompiledState) -> None:
        self._state = state
        self._usage = state.usage()
        configuration = state.configuration
        reclaims: dict[int, list[int]] = {}
        for node, policy in enumerate(configuration.policy):
            if policy.reclaim_within_cohort != "Never" and not configuration.is_cohort[node]:
                reclaims.setdefault(configuration.root[node], []).append(node)
        self._reclaims = reclaims

    def rule(self, workload: int) -> str:
        """The rule that protects it, or "candidate"."""
        state, configuration = self._state, self._state.configuration
        queue = int(state.queue[workload])
        if workload in state.protected:
            return "not-preemptible"
        if configuration.policy[queue].within_cluster_queue != "Never":
            return "candidate"
        if all(other == queue for other in self._reclaims.get(configuration.root[queue], ())[:2]):
            return "no-policy"
        return (
            "candidate" if self._usage.exceeds(queue, [fr for fr, _ in state.amounts(workload)]) else "within-nominal"
        )
