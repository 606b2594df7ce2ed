"""Kueue as an engine: a state after a delta, an answer, what becomes of queues that are stopped or not active, and
which of its decisions Kueue itself would not have made.
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
from app.solver.engines.kueue.cycle import INADMISSIBLE, OUTRUN, Cycle, alone, carried, check_asks, inadmissible, queues
from app.solver.engines.kueue.explain import explain
from app.solver.engines.kueue.findings import RULES, effective_settings, findings
from app.solver.engines.kueue.knobs import KNOBS, NONE, Knob, Run, check_knobs, knobs_set
from app.solver.engines.kueue.nomination import CycleUsage, Nomination
from app.solver.engines.kueue.overlay import Overlay, Usage
from app.solver.engines.kueue.preemptibility import judge, preemptibility
from app.solver.engines.kueue.rounds import KueueRounds, replaced
from app.solver.engines.kueue.state import FEW, CompiledState, compile_state, local_queues_of, refuse_cohorts, rooms_of
from app.solver.engines.kueue.state import leaving as leaves
from app.solver.model.base import to_datetime
from app.solver.model.decision import Condition, Decision, Plan, PlannedEviction, Result, Step, each_alone, plan_of
from app.solver.model.state import Ask, State, Workload
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
        was = rows.column(np.arange(len(before.workloads)), [-1] * len(fresh))
        out.places = before.places.moved(was, workloads, out.priority)
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


def kept_waiting(state: CompiledState, question: Question) -> dict[str, Decision]:
    """The decisions on asks that are not nominated, by ask. They are not tried at all: their queue is stopped or not
    active, they are not admissible themselves, or they step back after an eviction.

    Source: Kueue ``pkg/scheduler/scheduler.go`` (nominate), ``pkg/cache/queue/cluster_queue.go``
    (backoffWaitingTimeExpired).
    """
    decisions: dict[str, Decision] = {}
    for ask in question.asks:
        why = inadmissible(state.configuration, ask, question.now)
        if why is None:
            continue
        record = explain(question.why())
        record.inadmissible(ask, why)
        condition = Condition(
            type="QuotaReserved", status="False", reason=INADMISSIBLE, message=why,
            last_transition_time=to_datetime(question.now),
        )  # fmt: skip
        decisions[ask.id] = Decision(
            ask=ask.id, outcome="wait", victims=[], conditions=[condition], explanation=record.explanation()
        )
    return decisions


def drained(state: CompiledState) -> list[PlannedEviction]:
    """What runs in queues that are drained and is not on its way out yet, in the order of the state: it is evicted
    although nobody needs it.

    Source: Kueue ``pkg/cache/scheduler/snapshot.go`` (skipInactiveCQReason: what runs in such a ClusterQueue uses its
    quota and is nobody's candidate), ``pkg/controller/core/workload_controller.go``
    (reconcileOnClusterQueueActiveState, reconcileOnLocalQueueActiveState).
    """
    configuration = state.configuration
    if not configuration.drains and not state.evicted:
        return []
    evictions: list[PlannedEviction] = []
    nodes: list[int] = state.queue.tolist()
    for i in range(len(nodes)) if configuration.drains else sorted(state.evicted):  # who is drained leaves, too
        workload, node = state.workloads[i], nodes[i]
        stopped = "ClusterQueueStopped" if node in configuration.drains else None
        if stopped is None and workload.kueue is not None and workload.kueue.drained:
            stopped = "LocalQueueStopped"
        if stopped is not None and not workload.evicted:
            evictions.append(PlannedEviction(workload=workload.id, queue=workload.queue, reason=stopped))
    return evictions


def together(
    result: Result, asks: Sequence[Ask], waiting: dict[str, Decision], evictions: list[PlannedEviction]
) -> Result:
    """``result`` with the decisions on asks ``waiting`` and with ``evictions`` before those of its plan."""
    decided = {decision.ask: decision for decision in result.decisions} | waiting
    known = {eviction.workload for eviction in evictions}
    rest = [eviction for eviction in result.plan.evictions if eviction.workload not in known]
    return replace(
        result, decisions=[decided[ask.id] for ask in asks],
        plan=replace(result.plan, evictions=[*evictions, *rest]),
    )  # fmt: skip


_SHOWN = 20


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask. Raises InvalidInput with every problem of the asks, or of a knob."""
    state.settle()
    check_asks(state, question.asks)
    waiting, evictions = kept_waiting(state, question), drained(state)
    second = None if state.rooms is None else replaced(state, state.rooms)
    if second is not None:
        state, evictions = second.state, evictions + second.evictions
    if not waiting and not evictions and second is None:
        return _plan(state, question)
    tried = [ask for ask in question.asks if ask.id not in waiting]
    result = together(_plan(state, replaced_in(question, asks=tried)), question.asks, waiting, evictions)
    if second is None or not second.assignments:
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
