"""What another scheduler would evict, judged by Kueue: by whole workloads, from the candidates that a decision has,
taken together in Kueue's order.

Contested is everything that the ask requests, whether quota of it is short or not: a proposal is about room on a node.
An ask that belongs to running work holds its quota already; it is judged as if that work were decided on now.
"""

from dataclasses import replace

from app.solver.engines.kueue.compile.state import CompiledState
from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.independent import check_asks
from app.solver.engines.kueue.decide.nominate import nominate
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor
from app.solver.engines.kueue.decide.run import Run, check_knobs, knobs_set
from app.solver.engines.kueue.decide.victims import classical, fair
from app.solver.engines.kueue.decide.victims.targets import get_targets
from app.solver.engines.kueue.report.protection import Judge
from app.solver.model.decision import Refusal
from app.solver.model.request import Eviction
from app.solver.model.state import Ask

_Kept = dict[int, tuple[str, str]]
"""By workload: the rule that keeps it, and what it says of this one; empty: what it says of all."""


def judge(state: CompiledState, now: int, ask: Ask, proposals: list[list[Eviction]]) -> list[list[Refusal]]:
    """See ``Engine.judge``."""
    check_asks(state, [ask])
    check_knobs(state)
    run = Run(state, now, 1, knobs_set(state, [ask]))
    overlay = Overlay(run.state, now)
    run.prepare(overlay, ask)
    index = {w.id: i for i, w in enumerate(state.workloads)}
    chosen = [frozenset(index[eviction.workload] for eviction in of) for of in proposals]
    preemptor = _preemptor(run, overlay, ask, index)
    if isinstance(preemptor, str):
        kept = [dict.fromkeys(of, (preemptor, "")) for of in chosen]
    else:
        kept = _all_kept(overlay, preemptor, chosen)
    return [
        [_refusal(eviction, *of[index[eviction.workload]]) for eviction in evictions if index[eviction.workload] in of]
        for evictions, of in zip(proposals, kept, strict=True)
    ]


def _preemptor(run: Run, overlay: Overlay, ask: Ask, index: dict[str, int]) -> Preemptor | str:
    """Who asks, and for what; or the rule by which it may take from nobody."""
    search = run.search(ask)
    if search is not get_targets:
        return "preemption-policy-never" if ask.preemption_policy == "Never" else "waits-before-preempting"
    preemptor = run.preemptor(ask)
    own = index.get(ask.workload or "")
    if own is not None:
        overlay.remove(own)
        return replace(preemptor, request=tuple((fr, amount) for fr, amount in run.state.amounts(own) if amount > 0))
    nomination = nominate(overlay, ask, preemptor, search)
    return "ask-cannot-preempt" if nomination.assignment.mode is Mode.NO_FIT else nomination.preemptor


def _all_kept(overlay: Overlay, preemptor: Preemptor, chosen: list[frozenset[int]]) -> list[_Kept]:
    contested = frozenset(fr for fr, _ in preemptor.request)
    algorithm = fair if overlay.state.configuration.fair_sharing else classical
    proposals = algorithm.Proposals(overlay, preemptor, contested)
    judge = Judge(overlay, preemptor, contested)
    alone: _Kept = {}
    for workload in sorted(frozenset[int]().union(*chosen) - proposals.candidates):
        kept = judge.protection(workload)
        rule = "uses-nothing-contested" if kept is None else kept.rule
        alone[workload] = rule, "" if kept is None else kept.detail
    known: dict[frozenset[int], _Kept] = {}
    for of in chosen:
        if of not in known:
            known[of] = {workload: alone[workload] for workload in of if workload in alone}
            for workload, rule in proposals.stays(of & proposals.candidates).items():
                known[of][workload] = rule, ""
    return [known[of] for of in chosen]


def _refusal(eviction: Eviction, rule: str, detail: str) -> Refusal:
    return Refusal(workload=eviction.workload, task=eviction.task, rule=rule, detail=detail)
