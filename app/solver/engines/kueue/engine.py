"""Kueue as an engine: a state after a delta, an answer, which of its decisions Kueue itself would not have made,
rules.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced_in
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engine import Engine
from app.solver.engines.kueue import FACTS
from app.solver.engines.kueue.answer import answer, shares, waits_behind
from app.solver.engines.kueue.candidates import Recorder
from app.solver.engines.kueue.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kueue.cycle import OUTRUN, Cycle, alone, carried, check_asks, queues
from app.solver.engines.kueue.explain import drained, explain, kept_waiting, together
from app.solver.engines.kueue.findings import effective_settings, findings
from app.solver.engines.kueue.knobs import KNOBS, NONE, Knob, Run, check_knobs, knobs_set
from app.solver.engines.kueue.nomination import CycleUsage, Nomination, Overlay
from app.solver.engines.kueue.preemptibility import judge, preemptibility
from app.solver.engines.kueue.quota import Usage
from app.solver.engines.kueue.rounds import KueueRounds, replaced
from app.solver.engines.kueue.state import FEW, CompiledState, compile_state, local_queues_of, refuse_cohorts, rooms_of
from app.solver.engines.kueue.state import leaving as leaves
from app.solver.model.decision import Decision, Plan, Result, Step, each_alone, plan_of
from app.solver.model.problems import PROPOSALS, Rule
from app.solver.model.state import State, Workload
from app.solver.question import Question

_LARGE = 4
_FEW = 16
"""So many go that what lies between them is best taken as it is."""
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Workloads by what the delta did to them. Old indices, ascending: ``gone``, and ``remaining``, which are
    another now; new indices: ``fresh``, of those that are another or new. ``added``: how many are new."""

    gone: list[int]
    remaining: list[int]
    added: int
    fresh: list[int]

    @staticmethod
    def of(before: int, after: int, changes: Changes) -> "_Rows":
        """``before``, ``after``: how many there were and are."""
        gone = sorted({i for i, _, new in changes.workloads if i >= 0 and new is None})
        changed = sorted({i for i, _, new in changes.workloads if i >= 0 and new is not None})
        added = after - (before - len(gone))
        moved = [i - bisect_left(gone, i) for i in changed]
        return _Rows(gone, changed, added, [*moved, *range(after - added, after)])

    @property
    def leaving(self) -> list[int]:
        """Old indices of all that are no longer what they were."""
        return self.gone + self.remaining

    def column(self, old: Indices, fresh: Sequence[int]) -> Indices:
        """A column of the next version; ``fresh``: its values of those that are another now or new."""
        stays, start = list[Indices](), 0
        for gone in self.gone if len(self.gone) <= _FEW else ():
            stays.append(old[start:gone])
            start = gone + 1
        stays.append(old[start:] if len(self.gone) <= _FEW else np.delete(old, self.gone))
        if self.added:
            stays.append(np.array(fresh[len(self.remaining) :], dtype=np.int64))
        new = np.concatenate(stays)
        if self.remaining:
            new[self.fresh[: len(self.remaining)]] = fresh[: len(self.remaining)]
        return new


def update(
    before: CompiledState, configuration: CompiledConfiguration, state: State, changes: Changes
) -> CompiledState:
    """Equal to ``compile_state(configuration, state)``. Raises what that raises; ``before`` is not changed.

    Where the delta touches a good part of the state, or usage that no quota covers, it is compiled anew."""
    if configuration is not before.configuration or before.quotas is not configuration.quotas:
        return compile_state(configuration, state)
    if len(changes.workloads) * _LARGE > max(len(before.workloads), FEW):
        return compile_state(configuration, state)
    workloads = state.workloads
    rows = _Rows.of(len(before.workloads), len(workloads), changes)
    out = _columns(before, workloads, rows)
    nodes = frozenset([None, *(node.name for node in state.nodes)]) if changes.nodes else before.shapes.nodes
    fresh, leaving = rows.fresh, rows.leaving
    out.shapes, shape = before.shapes.copy(nodes), list[int]()
    if fresh:
        shape = out.shapes.column([workloads[i] for i in fresh], out.queue[fresh], fresh).tolist()
    out.shape = rows.column(before.shape, shape)
    wanted = ((int(out.queue[i]), fr) for i in fresh for fr, _ in out.amounts(i))
    if len(out.shapes.frs) > len(configuration.quotas.frs) or configuration.quotas.missing(wanted):
        return compile_state(configuration, state)
    out.quotas = configuration.quotas
    out.used = _used(before, out, rows)
    if before.rooms is None or changes.nodes:
        out.rooms = rooms_of(configuration, state)
    else:
        out.rooms = before.rooms.moved([before.workloads[i] for i in leaving], [workloads[i] for i in fresh])
    out.local_queues = local_queues_of(state) if changes.rest else before.local_queues
    if before.places is not None:
        out.places = before.places.moved(leaving, workloads, out.priority, fresh)
    out.settled_as(before)
    out.costs_as(before, fresh)
    out.lowest_as(before, leaving, fresh)
    return out


def _columns(before: CompiledState, workloads: list[Workload], rows: _Rows) -> CompiledState:
    """The next version as far as it does not depend on what workloads use. Raises InvalidInput, KeyError."""
    configuration, fresh = before.configuration, rows.fresh
    index = configuration.tree.index
    queues = [index[workloads[i].queue] for i in fresh]
    refuse_cohorts(configuration, queues, fresh)
    return CompiledState(
        configuration, workloads,
        rows.column(before.queue, queues), rows.column(before.priority, [workloads[i].priority for i in fresh]),
        evicted=_those_that_stay(before.evicted, rows).union([i for i in fresh if leaves(workloads[i])]),
        protected=_those_that_stay(before.protected, rows).union([i for i in fresh if not workloads[i].preemptible]),
    )  # fmt: skip


def _used(before: CompiledState, after: CompiledState, rows: _Rows) -> list[int]:
    """Usage by cell: what left taken off, what is fresh added."""
    usage = Usage(after.quotas, before.used.copy())
    for i in rows.leaving:
        usage.remove(int(before.queue[i]), before.amounts(i))
    for i in rows.fresh:
        usage.add(int(after.queue[i]), after.amounts(i))
    return usage.used


def _those_that_stay(old: frozenset[int], rows: _Rows) -> frozenset[int]:
    """Indices of marked workloads that stay, at their new places."""
    stay = old.difference(rows.leaving) if old else old
    return frozenset([i - bisect_left(rows.gone, i) for i in stay]) if stay and rows.gone else stay


_PREEMPTION = "pkg/scheduler/preemption/preemption.go"
_CLASSICAL = "pkg/scheduler/preemption/classical/hierarchical_preemption.go"
_POP = "pkg/scheduler/preemption/classical/candidate_generator.go"
_POLICY = "pkg/scheduler/preemption/common/preemption_policy.go"
_FAIR = "pkg/scheduler/preemption/fairsharing/strategy.go"
_ASSIGNER = "pkg/scheduler/flavorassigner/flavorassigner.go"
_SCHEDULER = "pkg/scheduler/scheduler.go"
_KEP_83 = "KEP-83 (deferred there)"
_ARBITER = "Arbiter"


def _rules(source: str, *pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(rule=rule, sentence=sentence, source=source) for rule, sentence in pairs)


RULES: tuple[Rule, ...] = (
    *_rules(
        _CLASSICAL,
        ("InClusterQueue", "It runs in the ask's own queue, whose within_cluster_queue lets the ask take it."),
        ("InCohortReclamation", "The ask's side takes back quota of its own that this workload's queue borrows."),
        ("InCohortReclaimWhileBorrowing", "The ask borrows, and borrow_within_cohort lets it take a lower priority."),
        ("ask-would-borrow", "It may go only for an ask that stays within nominal quota, and this ask borrows."),
        ("within-nominal", "Its queue, or classically a cohort above it, is within quota of all that is contested."),
    ),
    *_rules(
        _FAIR,
        (
            "InCohortFairSharing",
            "The share of its side of the lowest common cohort is so high that the strategy takes it.",
        ),
        ("share-too-low", "The share of its side is not high enough against that of the ask's side."),
    ),
    *_rules(
        _SCHEDULER,
        (
            "nodes-short",
            "Quota is there, but the flavor's nodes have no room for the pods as their topology request wants them.",
        ),
        (
            "domains-looked-at",
            "The domains of a level that a placement looks at, with how much fits in each and what is free there.",
        ),
        (
            "cohorts-tie",
            "With fair sharing the origin goes into one of several cohorts of equal share by chance; here by name.",
        ),
        (
            "trees-by-chance",
            "With fair sharing the origin takes cohort trees in an order left to chance; here the request's decides.",
        ),
        (
            "consumed",
            "Admission fair sharing: in its ClusterQueue, work of the LocalQueue that has consumed least goes first.",
        ),
        (
            "consumed-unknown",
            "Admission fair sharing: what its LocalQueue has consumed is not in the state, and counts as nothing.",
        ),
        ("places-taken", "Earlier heads of the cycle took its nodes: it is assigned again, with its flavors."),
        (
            "scan-resumes",
            "The scan of flavors goes on after the flavor at which the ask's last cycle stopped, not at the first.",
        ),
    ),
    *_rules(
        _POP,
        ("queue-back-within-quota", "When its turn comes, its queue or a cohort above it is within quota."),
    ),
    *_rules(
        _PREEMPTION,
        ("still-fits", "It was taken and put back, because the ask fits with it."),
        ("candidate-not-reached", "It could go, and the ask fits without."),
        ("not-enough", "It could go, and the ask does not fit even with all gone that may go."),
        ("outside-cohort", "Its queue is in another cohort tree than the ask's."),
        ("uses-nothing-contested", "It uses no flavor-resource that needs preemption."),
        ("already-leaving", "It stops for an earlier ask of the same cycle."),
        ("needs-preemption", "More of a flavor-resource is requested than is available."),
        ("attempt", "Classically candidates are taken in order, for an ask that may borrow or one that may not."),
        ("round", "Fair sharing goes through queues by share, and through their candidates by a strategy."),
        ("reclaim-within-nominal", "The ask's queue stays within nominal quota with it: no shares are compared."),
        ("candidate", "This ask could preempt it."),
        ("no-policy", "No queue that can reach it preempts there."),
    ),
    *_rules(
        _POLICY,
        ("within-cluster-queue-never", "It runs in the ask's own queue, where within_cluster_queue is Never."),
        (
            "reclaim-within-cohort-never",
            "It runs in another queue, and reclaim_within_cohort of the ask's queue is Never.",
        ),
        ("priority", "Its priority is not one that the policy takes: lower than the ask's, or equal and newer."),
        ("not-newer", "It has the ask's priority and is not newer than the ask."),
    ),
    *_rules(
        _ASSIGNER,
        ("flavor-refused", "The pod set may not use the flavor: taints, labels, or not the one nominated."),
        ("flavor-considered", "How well the flavor suits the pod set, and from how far up its quota would come."),
        ("ask-cannot-preempt", "No flavor could be had for the ask by preemption."),
        ("ask-fits", "The ask fits without stopping anybody."),
    ),
    *_rules(
        _SCHEDULER,
        ("partial-admission", "The full size can neither be had nor preempted for; a smaller one can."),
        ("cycle-order", "The place of the head among the heads of the cycle."),
        ("targets-overlap", "Some of its victims stop for an earlier head: it is assigned again without them."),
        ("reserves", "Nobody may stop for the head, and it keeps its capacity from later heads of the cycle."),
        ("skipped", "The head is skipped in this cycle, for what earlier heads took."),
        ("head-skipped", "It could go, and the ask is skipped in this cycle, for what earlier heads took."),
        ("inadmissible", "It is not tried: its queue is stopped or not active, or something about itself forbids it."),
        ("queue-inactive", "Its ClusterQueue is stopped or not active: what runs there is nobody's candidate."),
        ("ClusterQueueStopped", "Its ClusterQueue has the stop policy HoldAndDrain."),
        ("LocalQueueStopped", "Its LocalQueue has the stop policy HoldAndDrain."),
        ("NodeFailures", "A node of it failed and its pods find no other host, or several nodes of it failed."),
        ("behind-head", "One ask of a queue is tried in a cycle, and another one goes first."),
    ),
    *_rules(
        _KEP_83,
        ("waits-before-preempting", "The ask has not waited as long as its queue wants before it preempts."),
        ("waiting-boost", "After waiting the ask's priority counts as a higher one."),
        ("nobody-low-enough", "The lowest priority within reach is too high for the policies."),
    ),
    *_rules(
        _ARBITER,
        ("not-preemptible", "It is marked as not preemptible."),
        ("own-workload", "The ask belongs to it."),
        ("preemption-policy-never", "The ask's preemption policy is Never."),
        ("beyond-kueue", "What Kueue itself would have answered, and which setting beyond Kueue changed it."),
        ("steps-dropped", "Steps past a limit are counted only; the full explanation has them."),
    ),
    *PROPOSALS,
)


_SHOWN = 20


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask. Raises InvalidInput with every problem of the asks, or of a knob."""
    state.settle()
    check_asks(state, question.asks)
    waiting, evictions, second = kept_waiting(state, question), drained(state), replaced(state)
    evictions += second.evictions
    if not waiting and not evictions and not second.assignments:
        return _plan(state, question)
    tried = [ask for ask in question.asks if ask.id not in waiting]
    result = together(_plan(second.state, replaced_in(question, asks=tried)), question.asks, waiting, evictions)
    if not second.assignments:
        return result
    placements = [*second.placements, *result.plan.placements]
    return replace(
        result, plan=replace(result.plan, placements=placements), notes={"topology_assignments": second.assignments}
    )


def _plan(state: CompiledState, question: Question) -> Result:
    knobs = knobs_set(state, question.asks)
    if not knobs:
        return _run(state, question, NONE)
    check_knobs(state)
    full = _run(state, question, knobs)
    silent = Question(question.now, question.asks, question.mode, question.options)
    plain = _run(state, silent, NONE)
    changed = [i for i, usual in enumerate(plain.decisions) if _gist(full.decisions[i]) != _gist(usual)]
    if not changed:
        return full
    without = {knob: _run(state, silent, knobs - {knob}) for knob in KNOBS if knob in knobs} if len(knobs) > 1 else {}
    decisions = list(full.decisions)
    for i in changed:
        mine = _gist(full.decisions[i])
        guilty = [knob for knob, other in without.items() if _gist(other.decisions[i]) != mine]
        guilty = guilty or [knob for knob in KNOBS if knob in knobs]
        decisions[i] = _marked(full.decisions[i], plain.decisions[i], guilty)
    return replace(full, decisions=decisions)


def _run(state: CompiledState, question: Question, knobs: frozenset[Knob]) -> Result:
    run = Run(state, question.now, len(question.asks), knobs)
    return _cycle(run, question) if question.mode == "cycle" else _independent(run, question)


def _independent(run: Run, question: Question) -> Result:
    decided: list[tuple[Decision, Plan]] = []
    for ask in question.asks:
        record = explain(question.why())
        overlay, nomination = alone(run, ask, record)
        waiting = _outrun(overlay, nomination, record)
        decision = answer(overlay, nomination, record, waiting)
        decided.append((decision, plan_of([decision])))
    return each_alone(decided)


def _outrun(overlay: Overlay, nomination: Nomination, record: Recorder) -> str | None:
    """Why an ask alone stops nobody although victims were found: the search does not see its "pods", the fit does."""
    if nomination.targets and nomination.seeker is not nomination.preemptor:
        cycle_usage = CycleUsage(overlay)
        if cycle_usage.fits(nomination) != "yes":
            record.outrun(cycle_usage, nomination, OUTRUN)
            return OUTRUN
    return None


def _cycle(run: Run, question: Question) -> Result:
    heads, behind = queues(run, question.asks)
    cycle = Cycle(run, lambda: explain(question.why()))
    decided = list[Decision]()
    for outcome in cycle.outcomes(heads):
        decision = answer(cycle.overlay, outcome.head, outcome.record, outcome.waiting, outcome.cycle_usage)
        left = carried(outcome, decision.outcome)
        decided.append(decision if left is None else replace(decision, kueue=left))
    decisions = {decision.ask: decision for decision in decided}
    for ask, head in behind:
        record = explain(question.why())
        run.tell_consumed(ask, record)
        decisions[ask.id] = waits_behind(cycle.overlay, ask, head, record)
    order = [decision.ask for decision in decided]
    return Result(decisions=[decisions[ask.id] for ask in question.asks], order=order, plan=plan_of(decided))


def _gist(decision: Decision) -> tuple[Any, ...]:
    """What makes two decisions the same for a caller."""
    victims = [(victim.workload, victim.reason) for victim in decision.victims]
    return decision.outcome, decision.assignment, decision.borrowing, decision.counts, victims


def _marked(decision: Decision, plain: Decision, guilty: Sequence[str]) -> Decision:
    explanation = decision.explanation
    if explanation is not None:
        names = [victim.workload for victim in plain.victims]
        step = Step(
            rule="beyond-kueue", detail=f"Kueue itself: {plain.outcome}; changed by {', '.join(guilty)}",
            numbers={"outcome": plain.outcome, "victims": names[:_SHOWN], "victims_in_all": len(names)},
        )  # fmt: skip
        explanation = replace(explanation, steps=[*explanation.steps, step])
    beyond = [*guilty, *(decision.beyond or ())]
    return replace(decision, beyond=beyond, explanation=explanation)


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    looks=True,
    implicit_parents=True,  # Kueue: a cohort that is only referenced exists, without quota
    heads=True,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KueueRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Kueue's scheduler, as of commit ff69552e (August 2026), feature gates at their defaults."""
