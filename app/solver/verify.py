"""Engine-neutral laws, checked on every answer before it leaves.

An answer that breaks one is a defect of Arbiter, never of the input: the request fails with an internal
error rather than with a wrong victim.
"""

from app.solver.index import Index
from app.solver.model.decision import Decision, Plan, Result
from app.solver.model.state import State
from app.solver.question import Question


class BrokenLaw(Exception):
    """An engine's answer breaks a law that every answer keeps; the text says which."""


def verify(state: State, index: Index, question: Question, result: Result) -> None:
    """Raises BrokenLaw. Cost: one pass over the answer, whatever the size of the state."""
    _asks_answered(question, result)
    found = {name: state.workloads[at] for name in _touched(result) if (at := index.workloads.get(name)) is not None}
    tasks = {name: {t.name for t in workload.tasks} for name, workload in found.items()}
    asks = {a.id for a in question.asks}
    for decision in result.decisions:
        _decision(decision, tasks)
        if decision.plan is not None:
            _plan(decision.plan, [decision], tasks, index, {decision.ask})
    _plan(result.plan, [d for d in result.decisions if d.plan is None], tasks, index, asks)


def _asks_answered(question: Question, result: Result) -> None:
    asked = [ask.id for ask in question.asks]
    if [d.ask for d in result.decisions] != asked:
        raise BrokenLaw("every ask is answered once, in the order of the request")
    if result.order is not None and not set(result.order) <= set(asked):
        raise BrokenLaw("the order names only asks of the request")


def _touched(result: Result) -> set[str]:
    """The workloads that the answer evicts or places."""
    plans = [result.plan, *(d.plan for d in result.decisions if d.plan is not None)]
    touched = {eviction.workload for plan in plans for eviction in plan.evictions}
    touched.update(victim.workload for decision in result.decisions for victim in decision.victims)
    touched.update(p.workload for plan in plans for p in plan.placements if p.workload is not None)
    return touched


def _decision(decision: Decision, tasks: dict[str, set[str]]) -> None:
    seen: set[tuple[str, str | None]] = set()
    for victim in decision.victims:
        _runs(victim.workload, victim.task, tasks)
        if (key := (victim.workload, victim.task)) in seen:
            raise BrokenLaw(f"{key} is a victim twice")
        seen.add(key)
        if any(amount < 0 for amount in victim.freed.values()):
            raise BrokenLaw(f"{key} frees a negative amount")
    if decision.victims and decision.outcome not in ("preempt", "wait"):
        raise BrokenLaw(f"{decision.ask}: outcome {decision.outcome} evicts somebody")
    if decision.outcome in ("wait", "infeasible") and not decision.conditions:
        raise BrokenLaw(f"{decision.ask}: outcome {decision.outcome} without a condition that says why")


def _plan(
    plan: Plan, decisions: list[Decision], tasks: dict[str, set[str]], index: Index, asks: set[str]
) -> None:  # fmt: skip
    """``plan`` carries ``decisions`` out and places nothing but ``asks`` and what runs."""
    planned: set[tuple[str, str | None]] = set()
    for eviction in plan.evictions:
        _runs(eviction.workload, eviction.task, tasks)
        if (key := (eviction.workload, eviction.task)) in planned:
            raise BrokenLaw(f"{key} is planned for eviction twice")
        planned.add(key)
    for decision in decisions:
        for victim in decision.victims:
            if (victim.workload, victim.task) not in planned:
                raise BrokenLaw(f"{victim.workload} is a victim and not in the plan")
    nodes = index.nodes if plan.placements else frozenset[str]()
    for placement in plan.placements:
        if placement.node not in nodes:
            raise BrokenLaw(f"placement on unknown node {placement.node}")
        if placement.ask is not None and placement.ask not in asks:
            raise BrokenLaw(f"placement of unknown ask {placement.ask}")
        if placement.ask is None and placement.workload not in tasks:
            raise BrokenLaw(f"placement of unknown workload {placement.workload}")


def _runs(workload: str, task: str | None, tasks: dict[str, set[str]]) -> None:
    if workload not in tasks or (task is not None and task not in tasks[workload]):
        raise BrokenLaw(f"{workload}{'/' + task if task else ''} does not run and can't be evicted")
