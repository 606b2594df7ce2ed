"""kube-scheduler as an engine: the way from a question to decisions, and the order of one cycle."""

from dataclasses import replace
from typing import Any

from app.solver.engine import Engine
from app.solver.engines.kube_scheduler import FACTS
from app.solver.engines.kube_scheduler.answer import (
    decision,
    effective_settings,
    findings,
    judge,
    preemptibility,
    sampled,
    shares,
)
from app.solver.engines.kube_scheduler.attempt import Chance, Outcome, attempt
from app.solver.engines.kube_scheduler.filters import World
from app.solver.engines.kube_scheduler.pods import (
    CompiledConfiguration,
    CompiledState,
    Pod,
    compile_configuration,
    compile_state,
    update,
)
from app.solver.engines.kube_scheduler.rounds import KubeSchedulerRounds
from app.solver.engines.kube_scheduler.rules import RULES
from app.solver.model import kube_scheduler as wire
from app.solver.model.decision import Decision, Plan, Result, each_alone, plan_of
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.stopping import safe_point

_OLDEST = -(2**62)


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask. Raises InvalidInput for what kube-scheduler can't take."""
    options = question.options.kube_scheduler or wire.Options()
    if options.parallelism != 1:
        detail = "with more than 1 the released answer depends on timing: only 1 is decided on"
        raise InvalidInput([Problem(pointer="/options/kube_scheduler/parallelism", detail=detail)])
    chance = Chance(question.now, None if options.offset == "all" else options.offset)
    pods = {ask.id: state.pods_of(ask, "asks", i) for i, ask in enumerate(question.asks)}
    cycle = question.mode == "cycle"
    asks = sorted(question.asks, key=_turn) if cycle else question.asks
    world = World(state)
    decided: dict[str, tuple[Decision, Plan]] = {}
    cleared: list[dict[str, str]] = []
    for turn, ask in enumerate(asks):
        safe_point()
        if turn and not cycle:
            world = World(state)
        outcomes = _units(world, ask, pods[ask.id], chance, cleared)
        decided[ask.id] = decision(world, question, ask, outcomes)
    notes: dict[str, Any] | None = {"nominations_cleared": cleared} if cleared else None
    if not cycle:
        return each_alone([decided[ask.id] for ask in asks], notes)
    decisions = [decided[ask.id][0] for ask in question.asks]
    evictions = plan_of([decided[ask.id][0] for ask in asks]).evictions
    placements = [one for ask in asks for one in decided[ask.id][1].placements]
    return Result(
        decisions=decisions, order=[ask.id for ask in asks], notes=notes,
        plan=Plan(evictions=evictions, placements=placements),
    )  # fmt: skip


def _turn(ask: Ask) -> tuple[int, int]:
    """The order of the scheduling queue: priority, then age; equal ones as they are listed."""
    return -(ask.priority or 0), _OLDEST if ask.created_at is None else micros(ask.created_at)


def _units(world: World, ask: Ask, pods: list[Pod], chance: Chance, cleared: list[dict[str, str]]) -> list[Outcome]:
    """A gang at once; without the gate each pod of an ask for itself, seeing what those before it took."""
    units = [pods] if world.state.configuration.settings.workload_aware else [[pod] for pod in pods]
    outcomes: list[Outcome] = []
    for unit in units:
        outcome = attempt(world, ask, unit, chance)
        if chance.offset is None and outcome.run is not None:
            outcome = _with_sample(world, outcome)
        outcomes.append(outcome)
        _carry(world, ask, outcome, cleared)
    return outcomes


def _with_sample(world: World, outcome: Outcome) -> Outcome:
    run, settings = outcome.run, world.state.configuration.settings
    assert run is not None
    order = [at for at, status in enumerate(outcome.statuses) if status is not None and not status.final]
    most = max(len(order) * settings.min_candidate_nodes_percentage // 100, settings.min_candidate_nodes_absolute)
    if len(order) <= most or not run.candidates:
        return outcome
    return replace(outcome, sample=sampled({one.site.machine.at: one for one in run.candidates}, order, most))


def _carry(world: World, ask: Ask, outcome: Outcome, cleared: list[dict[str, str]]) -> None:
    """What later pods of the cycle see: bound pods, nominations, and victims on their way out. A nominated pod of lower
    priority loses its claim on a node where another preempts, but not where a gang does: the origin looks for such pods
    on the node where it preempted, which is called ``cluster`` then."""
    for pod, node in outcome.placed:
        world.withdraw(ask.id, pod)
        if outcome.kind == "admit":
            world.add(pod, node)
            continue
        kept: list[tuple[str, Pod]] = []
        for name, other in world.nominated.get(node, ()):
            if other.priority < pod.priority and not outcome.gang:
                cleared.append({"ask": name, "node": world.state.machines[node].node.name})
            else:
                kept.append((name, other))
        world.nominated[node] = [*kept, (ask.id, pod)]
    world.leaving.update(pod.place for pod in outcome.victims)


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=KubeSchedulerRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Default preemption: filters, priorities, budgets."""
