"""What is known of an engine, and what it offers, judging another scheduler's proposals included; engines by name.
One engine is one system's algorithm;
``engines.ENGINES`` lists them, and a module is imported when somebody first asks for it.

Whoever is no engine asks the record and never the name: what holds for one system stands in that system's folder.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

import msgspec

from app.solver.apply import Index
from app.solver.delta import Changes
from app.solver.engines import ENGINES, FIRST
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.decision import Condition, Decision, Plan, ProposalVerdict, Refusal, Result, label
from app.solver.model.problems import Finding, InvalidInput, Problem, Rule, Unsupported, pointer
from app.solver.model.request import Eviction, Options, Proposal, RunOptions
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """What a queue may count on, in the engine's words and in its answer to ``POST /v1/shares``."""

    word: str
    """What the engine calls it."""
    field: str
    """The amounts of a queue's line that state it."""
    above: str
    """What it calls the use beyond that."""
    borrowed: str | None = None
    """The amounts of a queue's line that state what is used beyond it. None: the difference says it."""
    remaining: str | None = None
    """The amounts of a queue's line that state what is left of it, below zero where more is used. None: no such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What an example of the HTTP document about this engine is made of, as JSON."""

    parent: dict[str, Any]
    """A queue whose children lend to each other."""
    preempting: dict[str, Any]
    """The block of a queue that preempts."""
    reclaiming: dict[str, Any]
    """That of one which only takes back what it lent."""
    variant: dict[str, Any]
    """A variant under other settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the rest of Arbiter must know of an engine without running it. Absent capabilities are those of the
    plainest engine: work that waits and runs, in queues without guarantees."""

    name: str
    """As requests and documents say it."""
    title: str
    """As people call the system."""
    short: str
    """As the descriptions of the wire's fields call it in ``Read by``."""
    schema: str = ""
    """What the names of its structs begin with in the OpenAPI document."""
    releases: Mapping[str, str]
    """Those whose rules it speaks, the oldest first, and what each is; ``settings.<block>.release`` names one,
    else it is the oldest."""
    formats: str | None = None
    """The module with what is known of its documents, ``SYSTEM``: by its name, for it knows more than a solver may.
    None: it has no documents of its own."""
    entitlement: Entitlement | None = None
    """None: queues have no shares."""
    cpu: str = "cpu"
    """The resource that counts processors."""
    gpu: str | None = None
    """The resource that counts GPUs whoever makes them. None: those of each vendor are a resource of their own."""
    resources: frozenset[str] | None = None
    """All that there are. None: a resource is whatever is called one."""
    own_resources: frozenset[str] = frozenset()
    """Those that no other system has."""
    places: bool = False
    """Whether it puts tasks on nodes, so that running work stands on some."""
    tasks_are_pods: bool = False
    """Whether a task is one pod, whatever its ``count``."""
    asks_together: bool = False
    """Whether what else waits decides on an ask too, so that a question is about all of it."""
    queues_nest: bool = True
    """Whether queues have parents."""
    quotas: bool = True
    """Whether queues have quotas."""
    weights: bool = True
    """Whether queues have weights."""
    borrows: bool = False
    """Whether a quota is nominal and lent, by flavors, with bounds on borrowing, instead of a guarantee and a limit."""
    boundless: bool = False
    """Whether a guarantee may be without bound."""
    weighs_resources: bool = False
    """Whether a queue may have another weight for each resource."""
    prefers_queues: bool = False
    """Whether queues have priorities (``queue.priority``)."""
    offsets_priority: Callable[[Queue], dict[str, Any]] | None = None
    """What a queue's priority is where queues only shift those of their work: the fields that say it. None: nothing."""
    shares_by_priority: Callable[[Queue], dict[str, Any]] | None = None
    """Where a queue without a quota has nothing: the fields with which it borrows from the queue above it and priority
    alone decides who stops. None: such a queue has no bound."""
    pod_by_pod: bool = False
    """Whether the pods of an ask start one after the other, as they find room, and not together."""
    remembers: bool = False
    """Whether it decides by what it remembers from one cycle to the next and no object says: work that it assumes to be
    admitted, scans of flavors that go on."""
    draws: bool = False
    """Whether it draws lots among nodes that are equally good, of which Arbiter takes the first."""
    proposes: bool = False
    """Whether it asks others, before it evicts anybody, which of the nodes that it found it may take."""
    exact_amounts: tuple[str, ...] = ()
    """Amounts in its block of a queue's state that may be of any fineness."""
    example: Example | None = None
    """Of the first engine: examples are about it."""
    root: Queue | None = None
    """The queue above all others, whose names are paths below it. None: names are free."""

    @property
    def block(self) -> str:
        """What its blocks are called in ``settings``, ``options``, queues, asks and ``native``."""
        return self.name.replace("-", "_")

    def release(self, configuration: Configuration) -> str | None:
        """The one of several releases whose rules decide under the configuration. None: there is one."""
        if len(self.releases) < 2:
            return None
        settings: Any = getattr(configuration.settings, self.block)
        return next(iter(self.releases)) if settings is None else settings.release


@dataclass(frozen=True, slots=True)
class Lost:
    """A pod that a node would lose. ``start``: microseconds; None: it says none."""

    priority: int
    start: int | None


@dataclass(frozen=True, slots=True)
class Loss:
    """What a node would lose to a pod, at least one, the most important first. ``violations``: how many of them break a
    PodDisruptionBudget."""

    violations: int
    victims: list[Lost]


def _nothing_set(_: object, __: State | None) -> dict[str, Any]:
    return {}


def _nothing_found(_: Configuration) -> list[Finding]:
    return []


C = TypeVar("C")
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine(Generic[C, S]):
    """``C``: a compiled configuration; ``S``: a state compiled against one. Both are immutable once built,
    kept by the service and shared between threads; everything a decision changes is its own."""

    facts: Facts
    rules: tuple[Rule, ...]
    """Every rule that its explanations name: the catalogue that ``GET /v1/rules`` serves."""
    implicit_parents: bool = False
    """Whether a parent that the configuration does not list is a queue all the same."""
    looks: bool = False
    """Whether ``load`` raises KeyError or ValueError for a workload in an unknown queue and for tasks of one workload
    that share a name or stand on an unknown node, before anything else, so that nobody has to look before."""
    heads: bool = False
    """Whether a cycle decides on one ask of each queue only, its head, so that the others take further cycles."""
    configure: Callable[[Configuration], C]
    """Compile a configuration alone. Raises InvalidInput with every problem."""
    load: Callable[[C, State], S]
    """Compile a state against it. Raises InvalidInput, QuantityError or KeyError; the caller diagnoses."""
    plan: Callable[[S, Question], Result]
    """Decide. Pure: the same arguments give the same result."""
    update: Callable[[S, C, State, Changes], S] | None = None
    """The state compiled, given what a delta changed since the first argument, which must not change: equal to
    ``load``, and compiled anew where following costs more. None: it is always compiled anew."""
    rounds: Callable[[C, Configuration, RunOptions], Rounds[C, S]] | None = None
    """The keeper of what waits in one simulation, by the configuration compiled and as written. None: it is not
    simulated."""
    shares: Callable[[S, list[Ask], int, Options], dict[str, Any]] | None = None
    """The body of ``POST /v1/shares`` at an instant in microseconds: ``{queues: {...}, workloads?: {...}}``. None:
    queues have no shares."""
    after_shares: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None
    """A state as JSON with what that answer's fair shares carry over to the next update, at
    ``options.<block>.last_update_at``. None: nothing is carried over."""
    waited: Callable[[S, Ask, int], Ask] | None = None
    """An ask that nobody has made, with what it would carry at an instant in microseconds if it had waited alone since
    its ``created_at``. None: nothing but that time counts."""
    preemptibility: Callable[[S, ProtectionQuestion], dict[str, Any]] | None = None
    """The body of ``POST /v1/preemptibility``. None: it can't be told of work by itself."""
    judge: Callable[[S, int, Ask, list[list[Eviction]]], list[list[Refusal]]] | None = None
    """Who of each proposal may not be evicted for the ask at an instant in microseconds, given that all of it would be:
    by the rules that a decision finds victims by. Every eviction is of something in the state; a refusal without a
    detail says what its rule says. None: the engine has no say in who else is evicted."""
    ranks: Callable[[list[Loss]], list[int]] | None = None
    """Which node it would rather take, told what each would lose: its place, from 1; it draws among those of one place.
    None: there is no such order among nodes."""
    changed: Callable[[C, C], tuple[str, ...]] | None = None
    """Ids of the rules that the second configuration's release changed since the first's; none where they differ in
    anything else, or the second's is not the later one. None: the engine has one release, or can't tell."""
    undone: Callable[[C, Collection[str]], C] | None = None
    """The configuration with these rules as they were in the release before its own. Given with ``changed``."""
    noted: Callable[[C], tuple[C, Callable[[], Collection[str]]]] | None = None
    """A configuration that decides alike, and which of the rules that can be undone it has been asked for since: any
    other changes nothing of what was decided by it alone. Given with ``changed``."""
    effective_settings: Callable[[C, State | None], dict[str, Any]] = _nothing_set
    """The body of ``POST /v1/effective-settings``; durations in seconds."""
    findings: Callable[[Configuration], list[Finding]] = _nothing_found
    """What an administrator should know: pointers are relative to the configuration document."""

    @property
    def name(self) -> str:
        """As requests and documents say it."""
        return self.facts.name


@cache
def engine_of(name: str) -> Engine[Any, Any]:
    """The engine called ``name``; imported on first use, so that a CLI call loads one system only. Raises KeyError."""
    module = _module(name)
    return (module if hasattr(module, "ENGINE") else import_module(f"{module.__name__}.engine")).ENGINE


@cache
def facts_of(name: str) -> Facts:
    """What is known of the engine called ``name``, without its algorithm. Raises KeyError."""
    return _module(name).FACTS


def example() -> Example:
    """That of the document's examples, which are about the engine ``FIRST``."""
    pieces = facts_of(FIRST).example
    assert pieces is not None, "the first engine has one"
    return pieces


def all_facts() -> list[Facts]:
    """Of every engine, in the order of ``ENGINES``."""
    return [facts_of(name) for name in ENGINES]


def _module(name: str) -> ModuleType:
    return import_module(ENGINES[name])


_ALLOWED = "ProposalAllowed"
_NO_QUEUE = "what asks is in no queue of the configuration"


def judged(engine: Engine[Any, Any], loaded: Any, situation: tuple[State, Index], question: Question) -> Result:
    """The verdicts on ``question.proposals``; ``loaded`` is ``situation``, compiled. Raises InvalidInput."""
    proposals = question.proposals or []
    judge = engine.judge
    if judge is None:
        detail = f"{engine.name} chooses its victims itself, and judges nobody else's"
        raise Unsupported([Problem(pointer="/proposals", detail=detail)])
    _check(question, proposals)
    ask = question.asks[0] if question.asks else None
    running = _Running(situation)
    strange = [[_unknown(e) for e in p.evict if e not in running] for p in proposals]
    known = [[e for e in p.evict if e in running] for p in proposals]
    if ask is None:
        refused = [[_refusal(e, "no-queue", _NO_QUEUE) for e in of] for of in known]
    else:
        refused = _with_sentences(engine, judge(loaded, question.now, ask, known))
    refusals = [[*a, *b] for a, b in zip(strange, refused, strict=True)]
    first = min((p.rank for p in proposals if p.rank is not None), default=None)
    first_left = min(
        (p.rank for p, of in zip(proposals, refusals, strict=True) if p.rank is not None and not of), default=None
    )
    verdicts = [
        ProposalVerdict(
            node=proposal.node, allowed=not of, refusals=of,
            preferred=proposal.rank is not None and proposal.rank == first,
            taken=proposal.rank is not None and not of and proposal.rank == first_left,
        )
        for proposal, of in zip(proposals, refusals, strict=True)
    ]  # fmt: skip
    decisions = [] if ask is None else [_decision(ask, verdicts, question.now)]
    return Result(decisions=decisions, plan=Plan(evictions=[], placements=[]), proposals=verdicts)


def _with_sentences(engine: Engine[Any, Any], refused: list[list[Refusal]]) -> list[list[Refusal]]:
    """With the rule's own sentence where the engine has nothing to add."""
    sentences = {rule.rule: rule.sentence for rule in engine.rules}
    return [
        [
            refusal if refusal.detail else msgspec.structs.replace(refusal, detail=sentences[refusal.rule])
            for refusal in of
        ]
        for of in refused
    ]


def _check(question: Question, proposals: list[Proposal]) -> None:
    problems: list[Problem] = []
    if len(question.asks) > 1:
        problems.append(Problem(pointer=pointer("asks"), detail="proposals are for one ask"))
    seen: set[str] = set()
    for i, proposal in enumerate(proposals):
        if proposal.node in seen:
            detail = f"a second proposal for node {proposal.node!r}"
            problems.append(Problem(pointer=pointer("proposals", i, "node"), detail=detail))
        seen.add(proposal.node)
    if problems:
        raise InvalidInput(problems)


class _Running:
    """Which evictions are of what runs. The tasks of a workload are looked through once, however many are proposed."""

    def __init__(self, situation: tuple[State, Index]) -> None:
        self._state, self._index = situation
        self._tasks: dict[str, set[str]] = {}

    def __contains__(self, eviction: Eviction) -> bool:
        index = self._index.workloads.get(eviction.workload)
        if index is None or eviction.task is None:
            return index is not None
        names = self._tasks.get(eviction.workload)
        if names is None:
            names = self._tasks[eviction.workload] = {task.name for task in self._state.workloads[index].tasks}
        return eviction.task in names


def _unknown(eviction: Eviction) -> Refusal:
    return _refusal(eviction, "unknown-workload", f"the state has no {label(eviction.workload, eviction.task)!r}")


def _refusal(eviction: Eviction, rule: str, detail: str) -> Refusal:
    return Refusal(workload=eviction.workload, task=eviction.task, rule=rule, detail=detail)


def _decision(ask: Ask, verdicts: list[ProposalVerdict], now: int) -> Decision:
    """The ask may preempt where one proposal is allowed, and waits where none is: for the commonest reason."""
    allowed = sum(verdict.allowed for verdict in verdicts)
    total = len(verdicts)
    reason, message = _ALLOWED, f"{allowed} of {total} proposals are lawful"
    if not allowed:
        refusals = [refusal for verdict in verdicts for refusal in verdict.refusals]
        rules = Counter(refusal.rule for refusal in refusals)
        reason = min(rules, key=lambda rule: (-rules[rule], rule), default="nothing-proposed")
        example = next((refusal for refusal in refusals if refusal.rule == reason), None)
        message = f"none of {total} proposals is lawful" + (
            "" if example is None else f": {example.workload}: {example.detail}"
        )
    condition = Condition(
        type=_ALLOWED, status="True" if allowed else "False", reason=reason, message=message,
        last_transition_time=to_datetime(now),
    )  # fmt: skip
    return Decision(ask=ask.id, outcome="preempt" if allowed else "wait", victims=[], conditions=[condition])
