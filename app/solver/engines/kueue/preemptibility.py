"""Which running workloads an ask could touch, and the first rule that protects the others.

What another scheduler would evict is judged by the same rules.
"""

from typing import Any

from app.solver.engines.kueue import fair_preemption as fair_preemption
from app.solver.engines.kueue import preemption as preemption
from app.solver.engines.kueue.cycle import check_asks, inadmissible, nominate
from app.solver.engines.kueue.explain import Judge
from app.solver.engines.kueue.knobs import Run, check_knobs, knobs_set
from app.solver.engines.kueue.nomination import Mode, Nomination, Reason
from app.solver.engines.kueue.overlay import Overlay, Preemptor, Usage
from app.solver.engines.kueue.preemption import get_targets
from app.solver.engines.kueue.state import CompiledState
from app.solver.model.decision import Refusal
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.request import Eviction
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion

_DETAIL = {
    "candidate": "this ask could preempt it",
    "ask-fits": "the ask fits without stopping anybody",
    "ask-cannot-preempt": "no flavor could be had for the ask by preemption",
    "preemption-policy-never": "the ask's preemption policy is Never",
    "waits-before-preempting": "the ask has not waited as long as its queue wants before it preempts",
    "inadmissible": "the ask is not tried at all",
    "queue-inactive": "its ClusterQueue is stopped or not active",
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
    if inadmissible(state.configuration, ask, now) is not None:
        return [_line("inadmissible")] * len(state.workloads)
    run = Run(state, now, 1, knobs_set(state, [ask]))
    overlay = Overlay(run.state, now)
    preemptor, search = run.begin(overlay, ask)
    nomination = nominate(overlay, ask, preemptor, search)
    everybody = _for_everybody(nomination, ask, may_search=search is get_targets)
    if everybody is not None:
        return [_line(everybody)] * len(state.workloads)
    candidates = _candidates(overlay, nomination)
    judge = Judge(overlay, nomination.seeker, frozenset(nomination.contested))
    out: list[dict[str, Any]] = []
    for i in range(len(state.workloads)):
        why = None if i in candidates else judge.protection(i)
        if why is None:
            out.append(_line("candidate", candidates[i]))
        else:
            out.append({"preemptible": False, "reason": why.rule, "detail": why.detail, "numbers": why.numbers})
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
        for queue, workloads in fair_preemption.collect(overlay, preemptor, contested).items():
            across: Reason = "InCohortReclamation" if within else "InCohortFairSharing"
            out |= dict.fromkeys(workloads, "InClusterQueue" if queue == preemptor.queue else across)
        return out
    candidates = preemption.collect(overlay, preemptor, contested)
    out |= dict.fromkeys(candidates.own.tolist(), "InClusterQueue")
    out |= dict.fromkeys([*candidates.hierarchical.tolist(), *candidates.priority.tolist()], "InCohortReclamation")
    out |= dict.fromkeys(candidates.with_borrowing, "InCohortReclaimWhileBorrowing")
    return out


class _Anybody:
    """Whether any ask at all could touch a workload as things stand."""

    def __init__(self, state: CompiledState) -> None:
        self._state = state
        self._usage = Usage.of(state)
        configuration = state.configuration
        reclaims: dict[int, list[int]] = {}
        for node, policy in enumerate(configuration.policy):
            active = not configuration.is_cohort[node] and configuration.inactive[node] is None
            if policy.reclaim_within_cohort != "Never" and active:
                reclaims.setdefault(configuration.root[node], []).append(node)
        self._reclaims = reclaims

    def rule(self, workload: int) -> str:
        """The rule that protects it, or "candidate"."""
        state, configuration = self._state, self._state.configuration
        queue = int(state.queue[workload])
        if workload in state.protected:
            return "not-preemptible"
        if configuration.inactive[queue] is not None:
            return "queue-inactive"
        if configuration.policy[queue].within_cluster_queue != "Never":
            return "candidate"
        if all(other == queue for other in self._reclaims.get(configuration.root[queue], ())[:2]):
            return "no-policy"
        return (
            "candidate" if self._usage.exceeds(queue, [fr for fr, _ in state.amounts(workload)]) else "within-nominal"
        )


_Kept = dict[int, tuple[str, str]]
"""By workload: the rule that keeps it, and what it says of this one; empty: what it says of all."""


def judge(state: CompiledState, now: int, ask: Ask, proposals: list[list[Eviction]]) -> list[list[Refusal]]:
    """See ``Engine.judge``."""
    check_asks(state, [ask])
    check_knobs(state)
    run = Run(state, now, 1, knobs_set(state, [ask]))
    overlay = Overlay(run.state, now)
    index = {w.id: i for i, w in enumerate(state.workloads)}
    chosen = [frozenset(index[eviction.workload] for eviction in of) for of in proposals]
    preemptor = _preemptor(run, overlay, ask, index)
    if isinstance(preemptor, str):
        refused = [dict.fromkeys(of, (preemptor, "")) for of in chosen]
    else:
        refused = _all_kept(overlay, preemptor, chosen)
    return [
        [_refusal(eviction, *of[index[eviction.workload]]) for eviction in evictions if index[eviction.workload] in of]
        for evictions, of in zip(proposals, refused, strict=True)
    ]


def _preemptor(run: Run, overlay: Overlay, ask: Ask, index: dict[str, int]) -> Preemptor | str:
    """Who asks, and for what; or the rule by which it may take from nobody."""
    if inadmissible(run.state.configuration, ask, run.now) is not None:
        return "inadmissible"
    preemptor, search = run.begin(overlay, ask)
    if search is not get_targets:
        return "preemption-policy-never" if ask.preemption_policy == "Never" else "waits-before-preempting"
    own = index.get(ask.workload or "")
    if own is not None:
        overlay.remove(own)
        return preemptor._replace(request=tuple((fr, amount) for fr, amount in run.state.amounts(own) if amount > 0))
    nomination = nominate(overlay, ask, preemptor, search)
    return "ask-cannot-preempt" if nomination.assignment.mode is Mode.NO_FIT else nomination.preemptor


def _all_kept(overlay: Overlay, preemptor: Preemptor, chosen: list[frozenset[int]]) -> list[_Kept]:
    contested = frozenset(fr for fr, _ in preemptor.request)
    algorithm = fair_preemption if overlay.state.configuration.fair_sharing else preemption
    proposals = algorithm.Proposals(overlay, preemptor, contested)
    judge = Judge(overlay, preemptor, contested)
    alone: _Kept = {}
    for workload in sorted(frozenset[int]().union(*chosen) - proposals.candidates):
        protection = judge.protection(workload)
        rule = "uses-nothing-contested" if protection is None else protection.rule
        alone[workload] = rule, "" if protection is None else protection.detail
    known: dict[frozenset[int], _Kept] = {}
    for of in chosen:
        if of not in known:
            known[of] = {workload: alone[workload] for workload in of if workload in alone}
            for workload, rule in proposals.stays(of & proposals.candidates).items():
                known[of][workload] = rule, ""
    return [known[of] for of in chosen]


def _refusal(eviction: Eviction, rule: str, detail: str) -> Refusal:
    return Refusal(workload=eviction.workload, task=eviction.task, rule=rule, detail=detail)
