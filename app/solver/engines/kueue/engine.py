"""Kueue as an engine: an answer, which of its decisions Kueue itself would not have made, and the wiring."""

from collections.abc import Sequence
from dataclasses import replace as replaced_in
from typing import Any

from msgspec.structs import replace

from app.solver.engine import Engine
from app.solver.engines.kueue import FACTS
from app.solver.engines.kueue.answer import answer, shares, waits_behind
from app.solver.engines.kueue.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kueue.cycle import OUTRUN, Cycle, alone, carried, check_asks, queues
from app.solver.engines.kueue.explain import explain
from app.solver.engines.kueue.failed_nodes import replaced
from app.solver.engines.kueue.findings import effective_settings, findings
from app.solver.engines.kueue.inadmissible import drained, kept_waiting, together
from app.solver.engines.kueue.knobs import KNOBS, NONE, Knob, Run, check_knobs, knobs_set
from app.solver.engines.kueue.nomination import Books, Nomination
from app.solver.engines.kueue.overlay import Overlay
from app.solver.engines.kueue.preemptibility import judge, preemptibility
from app.solver.engines.kueue.recorder import Recorder
from app.solver.engines.kueue.rounds import KueueRounds
from app.solver.engines.kueue.rules import RULES
from app.solver.engines.kueue.state import CompiledState, compile_state
from app.solver.engines.kueue.update import update
from app.solver.model.decision import Decision, Plan, Result, Step, each_alone, plan_of
from app.solver.question import Question

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
    changed = [at for at, kept in enumerate(plain.decisions) if _gist(full.decisions[at]) != _gist(kept)]
    if not changed:
        return full
    without = {knob: _run(state, silent, knobs - {knob}) for knob in KNOBS if knob in knobs} if len(knobs) > 1 else {}
    decisions = list(full.decisions)
    for at in changed:
        mine = _gist(full.decisions[at])
        guilty = [knob for knob, other in without.items() if _gist(other.decisions[at]) != mine]
        guilty = guilty or [knob for knob in KNOBS if knob in knobs]
        decisions[at] = _marked(full.decisions[at], plain.decisions[at], guilty)
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
        books = Books(overlay)
        if books.fits(nomination) != "yes":
            record.outrun(books, nomination, OUTRUN)
            return OUTRUN
    return None


def _cycle(run: Run, question: Question) -> Result:
    heads, behind = queues(run, question.asks)
    cycle = Cycle(run, lambda: explain(question.why()))
    decided = list[Decision]()
    for outcome in cycle.outcomes(heads):
        decision = answer(cycle.overlay, outcome.head, outcome.record, outcome.waiting, outcome.books)
        left = carried(outcome, decision.outcome)
        decided.append(decision if left is None else replace(decision, kueue=left))
    found = {decision.ask: decision for decision in decided}
    for ask, head in behind:
        record = explain(question.why())
        run.tell_consumed(ask, record)
        found[ask.id] = waits_behind(cycle.overlay, ask, head, record)
    order = [decision.ask for decision in decided]
    return Result(decisions=[found[ask.id] for ask in question.asks], order=order, plan=plan_of(decided))


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
