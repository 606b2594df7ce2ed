"""The whole path on one screen: configure -> load -> engine -> verify -> Answer.

``configure`` and ``load`` are what a service keeps: a compiled configuration per revision, a compiled state
per snapshot. Everything here is pure; ``now`` is an input. Laws that hold for every engine are checked on every answer
before it leaves: one that breaks a law is a defect of Arbiter, never of the input, so the request fails with an
internal error rather than with a wrong victim.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from app.solver import check
from app.solver.apply import Index, delta_of
from app.solver.delta import Changes, StateDigest, apply_delta, digest
from app.solver.engine import ENGINES, Engine, engine_of, judged
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration, oversubscribed
from app.solver.model.decision import (
    STARTS,
    Answer,
    Condition,
    ConfigurationUsed,
    Decision,
    Plan,
    Result,
    StateUsed,
)
from app.solver.model.problems import Finding, InvalidInput, Problem, Unsupported, carried
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, PendingReason, State, Workload
from app.solver.question import CandidateCount, ProtectionQuestion, Question, goes_on, safe_point
from app.solver.rounds import Rounds

_NO_NODES = "there are no nodes in the state"


class BrokenLaw(Exception):
    """An engine's answer breaks a law that every answer keeps; the text says which."""


def verify(
    question: Question, result: Result, running: Callable[[str], Workload | None], nodes: Callable[[], Container[str]]
) -> None:  # fmt: skip
    """``running``: what runs, by id; ``nodes``: the names of all. Raises BrokenLaw. Cost: one pass over the answer,
    whatever the size of the state."""
    _asks_answered(question, result)
    touched = {name: workload for name in _touched(result) if (workload := running(name)) is not None}
    tasks = {name: {t.name for t in workload.tasks} for name, workload in touched.items()}
    asks = {a.id: a for a in question.asks}
    for decision in result.decisions:
        _decision(decision, tasks)
        if decision.plan is not None:
            _plan(decision.plan, [decision], tasks, nodes, {decision.ask: asks[decision.ask]})
    _plan(result.plan, [d for d in result.decisions if d.plan is None], tasks, nodes, asks)


def _asks_answered(question: Question, result: Result) -> None:
    asked = [ask.id for ask in question.asks]
    answered = [decision.ask for decision in result.decisions]
    if question.brief:
        named = set(answered)
        asked_for = [name for name in asked if name in named]
    else:
        asked_for = asked
    if answered != asked_for:
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
    plan: Plan, decisions: list[Decision], tasks: dict[str, set[str]], nodes: Callable[[], Container[str]],
    asks: Mapping[str, Ask],
) -> None:  # fmt: skip
    """``plan`` carries ``decisions`` out and places nothing but ``asks`` and what runs."""
    planned: set[tuple[str, str | None]] = set()
    asked: set[tuple[str, str]] | None = None
    for eviction in plan.evictions:
        if eviction.just_placed:
            asked = {(a.workload or a.id, t.name) for a in asks.values() for t in a.tasks} if asked is None else asked
            if (eviction.workload, eviction.task) not in asked:
                label = f"{eviction.workload}/{eviction.task}"
                raise BrokenLaw(f"{label} is no pod of an ask, so that nothing can have placed it")
        else:
            _runs(eviction.workload, eviction.task, tasks)
        if (key := (eviction.workload, eviction.task)) in planned:
            raise BrokenLaw(f"{key} is planned for eviction twice")
        planned.add(key)
    for decision in decisions:
        for victim in decision.victims:
            if (victim.workload, victim.task) not in planned:
                raise BrokenLaw(f"{victim.workload} is a victim and not in the plan")
    known = nodes() if plan.placements else ()
    for placement in plan.placements:
        if placement.node not in known:
            raise BrokenLaw(f"placement on unknown node {placement.node}")
        if placement.ask is not None and placement.ask not in asks:
            raise BrokenLaw(f"placement of unknown ask {placement.ask}")
        if placement.ask is None and placement.workload not in tasks:
            raise BrokenLaw(f"placement of unknown workload {placement.workload}")


def _runs(workload: str, task: str | None, tasks: dict[str, set[str]]) -> None:
    if workload not in tasks or (task is not None and task not in tasks[workload]):
        raise BrokenLaw(f"{workload}{'/' + task if task else ''} does not run and can't be evicted")


T = TypeVar("T")
NO_OPTIONS = Options()
_FEW = 1024
"""So many asks of rounds are remembered, whether they are asked still or not."""
_ALL_AGAIN = 8
"""So few asks are checked as soon as compared with what they were."""
NO_RUN_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration compiled for one engine. ``names``: every queue that a state or an ask may name; ``release``: by
    whose rules is decided, None where the engine has those of one."""

    engine: Engine[Any, Any]
    configuration: Configuration
    compiled: Any
    names: set[str]
    used: ConfigurationUsed
    release: str | None


@dataclass(frozen=True, slots=True)
class Beside:
    """What is kept beside a state, and belongs to the same generation: asks that wait, and where it follows a cluster,
    the resource version by kind that it has been followed to."""

    asks: list[Ask] = field(default_factory=list[Ask])
    resource_versions: dict[str, str] | None = None


NOTHING_BESIDE = Beside()


@dataclass(frozen=True)
class Loaded:
    """A state compiled against a configuration; with its name and generation where it is a kept snapshot."""

    configured: Configured
    state: State
    index: Index
    digest: StateDigest
    compiled: Any
    snapshot: str | None = None
    generation: int | None = None
    beside: Beside = NOTHING_BESIDE

    def workload(self, name: str) -> Workload | None:
        """One that runs, or None."""
        place = self.index.workloads.get(name)
        return None if place is None else self.state.workloads[place]

    @property
    def findings(self) -> list[Finding] | None:
        """What every answer says of where configuration and state come from."""
        ours, theirs = self.configured.configuration.findings, self.state.findings
        return carried(ours, theirs) if ours or theirs else None

    @cached_property
    def used(self) -> StateUsed:
        """What an answer says of its state. The digest is worked out once, when first asked for."""
        return StateUsed(
            digest=self.digest.hexdigest(), snapshot=self.snapshot, generation=self.generation,
            resource_versions=self.beside.resource_versions,
        )  # fmt: skip


def engine_name(requested: str | None, configuration: Configuration) -> str:
    """The engine a request means: its own, else the configuration's. Raises InvalidInput."""
    name = requested or configuration.engine
    if name is None:
        raise InvalidInput(
            [Problem(pointer="/engine", detail="neither the request nor its configuration names an engine")]
        )
    if name not in ENGINES:
        raise InvalidInput([Problem(pointer="/engine", detail=f"no engine {name!r}")])
    return name


def configure(
    configuration: Configuration, engine: str | None = None, *, name: str | None = None, revision: int | None = None
) -> Configured:
    """Compile a configuration. Raises InvalidInput with every problem; pointers start at /configuration."""
    chosen = engine_of(engine_name(engine, configuration))
    safe_point()
    if problems := check.configuration_problems(configuration, implicit_parents=chosen.implicit_parents):
        raise InvalidInput(problems)
    names = {q.name for q in configuration.queues}
    if chosen.implicit_parents:
        names |= {q.parent for q in configuration.queues if q.parent is not None}
    return Configured(
        engine=chosen,
        configuration=configuration,
        compiled=chosen.configure(configuration),
        names=names,
        used=ConfigurationUsed(name=name, revision=revision, digest=digest(configuration, "configuration")),
        release=chosen.facts.release(configuration),
    )


def load(configured: Configured, state: State, *, snapshot: str | None = None, generation: int | None = None) -> Loaded:
    """Compile a state. Raises InvalidInput with every problem; pointers start at /state."""

    def problems() -> list[Problem]:
        return check.state_problems(configured.names, state)

    safe_point()
    index = Index(state)
    if not check.quick_state(configured.names, state, index, engine_looks=configured.engine.looks):
        _refuse(problems())
    safe_point()
    return Loaded(
        configured=configured,
        state=state,
        index=index,
        digest=StateDigest(state),
        compiled=_diagnosed(lambda: configured.engine.load(configured.compiled, state), problems),
        snapshot=snapshot,
        generation=generation,
    )


def update(loaded: Loaded, state: State, index: Index, changes: Changes, *, generation: int | None) -> Loaded:
    """The state after a delta, compiled from what changed; ``generation``: None where it is no kept snapshot.

    Raises InvalidInput; ``loaded`` stays as it was."""
    configured = loaded.configured

    def problems() -> list[Problem]:
        return check.state_problems(configured.names, state)

    if not check.quick_changes(configured.names, loaded.state, state, index, changes):
        _refuse(problems())
    return Loaded(
        configured=configured,
        state=state,
        index=index,
        digest=loaded.digest.after(state, changes),
        compiled=_diagnosed(lambda: _updated(loaded, state, changes), problems),
        snapshot=loaded.snapshot,
        generation=generation,
        beside=loaded.beside,
    )


def _updated(loaded: Loaded, state: State, changes: Changes) -> Any:
    engine, compiled = loaded.configured.engine, loaded.configured.compiled
    if engine.update is None:
        return engine.load(compiled, state)
    return engine.update(loaded.compiled, compiled, state, changes)


def with_beside(loaded: Loaded, beside: Beside) -> Loaded:
    """``loaded`` with what is kept beside it. Raises InvalidInput; pointers start at /asks."""
    _check_asks(loaded, beside.asks)
    return replace(loaded, beside=beside)


def decide(loaded: Loaded, question: Question) -> Answer:
    """Answer a decision request. Raises InvalidInput for asks that can't be understood."""
    return answer_of(loaded, planned(loaded, question))


def answer_of(loaded: Loaded, result: Result) -> Answer:
    """What the engine returned, as the answer to a decision request."""
    of = loaded.configured
    return Answer(
        engine=of.engine.facts.name, release=of.release, configuration=of.used, state=loaded.used,
        proposals=result.proposals, order=result.order, decisions=result.decisions, plan=result.plan,
        notes=result.notes, findings=loaded.findings,
    )  # fmt: skip


def planned(loaded: Loaded, question: Question) -> Result:
    """What the engine returns, verified. Raises InvalidInput for asks that can't be understood."""
    configured = loaded.configured
    if question.brief and len(question.asks) > _ALL_AGAIN:
        _check_new(loaded, question.asks)
    else:
        _check_asks(loaded, question.asks)
    safe_point()
    if question.proposals is not None:
        result = judged(configured.engine, loaded.compiled, (loaded.state, loaded.index), question)
    else:
        if question.explain == "full":
            question = replace(question, candidate_count=CandidateCount())
        result = _with_reasons(question, configured.engine.plan(loaded.compiled, _without_held(question)))
        if configured.engine.facts.places and not loaded.state.nodes:
            result = msgspec.structs.replace(
                result, decisions=[_without_nodes(decision) for decision in result.decisions]
            )
    safe_point()
    verify(question, result, loaded.workload, lambda: loaded.index.nodes)
    return result


def _is_held(ask: Ask) -> bool:
    return ask.pending_reason is not None and not ask.pending_reason.tried_again


def _without_held(question: Question) -> Question:
    """Without asks that their own scheduler does not try: nobody has to go for them, and they are in nobody's way."""
    if not any(map(_is_held, question.asks)):
        return question
    return replace(question, asks=[ask for ask in question.asks if not _is_held(ask)])


def _with_reasons(question: Question, result: Result) -> Result:
    """With those that are not tried, and beside why others wait what their scheduler says of it."""
    if question.brief:
        return result
    reasons = {ask.id: ask.pending_reason for ask in question.asks if ask.pending_reason is not None}
    if not reasons:
        return result
    said = {decision.ask: decision for decision in result.decisions}
    decisions: list[Decision] = []
    for ask in question.asks:
        decision = said.get(ask.id) or Decision(ask=ask.id, outcome="wait", victims=[], conditions=[])
        if ask.id in reasons and decision.outcome not in STARTS:
            condition = _pending(reasons[ask.id], question.now)
            decision = msgspec.structs.replace(decision, conditions=[*decision.conditions, condition])
        decisions.append(decision)
    return msgspec.structs.replace(result, decisions=decisions)


def _pending(said: PendingReason, now: int) -> Condition:
    since = said.since or to_datetime(now)
    return Condition(
        type="Pending", status="True", reason=said.reason, message=said.message, last_transition_time=since
    )  # fmt: skip


def _without_nodes(decision: Decision) -> Decision:
    """With what is wrong said in words that an engine, which looks at each of its nodes in turn, has none for."""
    unmet = [i for i, condition in enumerate(decision.conditions) if condition.status == "False"]
    if decision.outcome in STARTS or not unmet or _NO_NODES in decision.conditions[unmet[0]].message:
        return decision
    conditions = list(decision.conditions)
    message = f"{conditions[unmet[0]].message}; {_NO_NODES}"
    conditions[unmet[0]] = msgspec.structs.replace(conditions[unmet[0]], message=message)
    return msgspec.structs.replace(decision, conditions=conditions)


def carried_out(loaded: Loaded, question: Question, result: Answer | Result) -> Loaded:
    """The state that ``result`` was decided on, once everybody who has to has stopped, and everything that can has
    started."""
    decisions = [
        msgspec.structs.replace(decision, outcome="admit") if decision.outcome == "preempt" else decision
        for decision in result.decisions
    ]
    delta = delta_of(loaded.state, loaded.index, 0, question.asks, decisions, result.plan, question.now)
    state, index, changes = apply_delta(loaded.state, loaded.index, delta)
    return update(loaded, state, index, changes, generation=None)


def shares(loaded: Loaded, asks: list[Ask], now: int, options: Options = NO_OPTIONS) -> dict[str, Any]:
    """The body of ``POST /v1/shares``."""
    engine = loaded.configured.engine
    if engine.shares is None:
        raise _unsupported(engine, "queues have no shares")
    _check_asks(loaded, asks)
    return engine.shares(loaded.compiled, asks, now, options)


def waited(loaded: Loaded, ask: Ask, now: int) -> Ask:
    """``ask``, which nobody has made, as if it had waited since it was created. Raises InvalidInput."""
    engine = loaded.configured.engine
    return ask if engine.waited is None else engine.waited(loaded.compiled, ask, now)


def preemptibility(loaded: Loaded, question: ProtectionQuestion) -> dict[str, Any]:
    """The body of ``POST /v1/preemptibility``."""
    engine = loaded.configured.engine
    if engine.preemptibility is None:
        raise _unsupported(engine, "nothing can be told of work by itself")
    _check_asks(loaded, question.asks)
    if question.ask is not None:
        _refuse(check.one_ask_problems(loaded.configured.names, loaded.index, question.ask))
    return engine.preemptibility(loaded.compiled, question)


def rounds(configured: Configured, options: RunOptions = NO_RUN_OPTIONS) -> Rounds[Any, Any]:
    """The keeper of what waits in one simulation. Raises Unsupported."""
    engine = configured.engine
    if engine.rounds is None:
        raise _unsupported(engine, "it is not simulated")
    return engine.rounds(configured.compiled, configured.configuration, options)


def asides(configured: Configured, asks: Iterable[Ask], now: int) -> dict[str, tuple[str, str]]:
    """The asks that are not tried at all, with the engine's word for that, and a sentence."""
    if configured.engine.rounds is None:
        return {}
    waiting = rounds(configured)
    return {ask.id: why for ask in asks if (why := waiting.aside(ask, now)) is not None}


def effective_settings(configured: Configured, state: State | None) -> dict[str, Any]:
    """The body of ``POST /v1/effective-settings``."""
    if state is not None:
        _refuse(check.state_problems(configured.names, state))
    return configured.engine.effective_settings(configured.compiled, state)


def findings(configuration: Configuration, engine: str | None = None) -> list[Finding]:
    """What an administrator should know before storing ``configuration``; pointers are relative to the document."""
    chosen = engine_of(engine_name(engine, configuration))
    problems = check.configuration_problems(configuration, implicit_parents=chosen.implicit_parents)
    warnings = [as_finding(problem) for problem in problems]
    if not problems:
        try:
            chosen.configure(configuration)
        except InvalidInput as invalid:
            warnings += [as_finding(problem) for problem in invalid.problems]
        warnings += chosen.findings(configuration)
        warnings += oversubscribed(configuration)
    return list({(f.rule, f.pointer): f for f in warnings}.values())


def as_finding(problem: Problem) -> Finding:
    """What makes a document unusable, as a finding about it."""
    return Finding(
        rule="invalid-document", severity="error",
        pointer=problem.pointer.removeprefix("/configuration"), detail=problem.detail,
    )  # fmt: skip


def _unsupported(engine: Engine[Any, Any], why: str) -> Unsupported:
    return Unsupported([Problem(pointer="/engine", detail=f"{engine.name}: {why}")])


def _check_asks(loaded: Loaded, asks: list[Ask]) -> None:
    if not check.plain_asks(loaded.configured.names, asks):  # the index is not looked at for nothing
        _refuse(check.ask_problems(loaded.configured.names, loaded.index, asks))


def _check_new(loaded: Loaded, asks: list[Ask]) -> None:
    """The same of asks that a round was not asked before."""
    sound = loaded.index.sound
    others = [ask for ask in asks if sound.get(ask.id) is not ask]
    new = [ask for ask in others if (before := sound.get(ask.id)) is None or not goes_on(before, ask)]
    if new:
        _check_asks(loaded, new)
    if len(sound) > 2 * len(asks) + _FEW:
        sound.clear()
    sound.update((ask.id, ask) for ask in others)


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise InvalidInput(problems)


def _diagnosed(build: Callable[[], T], problems: Callable[[], list[Problem]]) -> T:
    """Build at full speed; where that stumbles over the input, say everything that is wrong with it."""
    try:
        return build()
    except (KeyError, ValueError, OverflowError) as stumble:
        if faults := problems():
            raise InvalidInput(faults) from stumble
        raise
