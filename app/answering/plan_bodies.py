"""What a plan is made of: the bodies of ``POST /v1/plans``, its cluster, and cycles until all that waits is tried."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import msgspec

from app.answering.answers import asks_of, configure, load
from app.answering.overrides import with_fields
from app.answering.snapshots import FollowedAge
from app.answering.sources import Sources
from app.base.documents import Path, read
from app.formats import Imported, import_configuration
from app.formats.kueue.considered import LocalQueue
from app.formats.manifests import kept_objects
from app.formats.objects import PriorityClass
from app.formats.reader import Findings
from app.formats.work.read import Beside, read_beside
from app.formats.ytsaurus.documents import is_yson
from app.solver import solve
from app.solver.engine import Facts, facts_of
from app.solver.model.base import Duration, Name, Priority, Quantity, Time, Wire
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.decision import (
    STARTS,
    Answer,
    ConfigurationUsed,
    Decision,
    Outcome,
    Placement,
    Plan,
    PlannedEviction,
    StateUsed,
    Units,
)
from app.solver.model.problems import Finding, InvalidInput, Problem, pointing
from app.solver.model.request import Asks, Explain, Options, StateOrReference
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.solve import Loaded


class PlanRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/plans``: would this work run, if it were submitted to this cluster?

    The cluster is a configuration and a state, as a decision takes them, or ``cluster``, the manifests of one.
    """

    manifest: str | dict[str, Any] | None = None
    """The work: the text of its manifest (YAML or JSON, one document or several), or one object of it, also a `List`.
    YTsaurus: the specification of an operation. Exactly one of this and `work` is given."""
    work: Annotated[list[Ask], msgspec.Meta(max_length=1000)] = []
    """The same as asks, as a decision takes them. Each is an object of its own."""
    engine: EngineName | None = None
    """Whose rules decide. Absent: the engine of the configuration, or of the manifests of the cluster."""
    release: str | None = None
    """Of which release, whatever the configuration says: would it run after an upgrade? Absent: as it says."""
    now: Time | None = None
    """The time of the decision. Absent: when the state of `cluster` was taken, where it says so; else the host's
    clock."""
    cluster: str | None = None
    """Manifests of the cluster, as `POST /v1/configurations:import` takes them: queues, nodes, what runs and waits.
    Absent: `configuration` and `state` say it."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. With `cluster` it takes the
    place of the queues there."""
    state: StateOrReference | None = None
    """What runs: the state itself, or `{snapshot: name}`. Absent: what runs in `cluster`, else nothing."""
    asks: Asks = []
    """What waits already; it is decided in the same cycle. `pending`: what is kept waiting beside the snapshot."""
    queue: Name | None = None
    """The queue that the work goes to, whatever it says itself. Absent: the one it names."""
    namespace: Name = "default"
    """The namespace of objects that name none."""
    local_queues: dict[str, str] = {}
    """The ClusterQueue of each LocalQueue, by `namespace/name` (Kueue); added to those in the manifests. Where there is
    none at all, the label is taken for the name of the ClusterQueue."""
    priority_classes: dict[str, Priority] = {}
    """The value of each priority class, by name; added to those in the manifests."""
    workload_priority_classes: dict[str, Priority] = {}
    """The same of Kueue's WorkloadPriorityClasses. Absent: `priority_classes` are its own too."""
    waited: Duration = 0
    """For how long the work is taken to have waited: some rules let work preempt only after a delay. Default: submitted
    just now."""
    set: dict[str, Any] = {}
    """Fields of the configuration to set, by path, as a variant of a comparison has them: would it run, if the
    configuration were so?"""
    options: Options = Options()
    """Options of the engine for this request."""
    explain: Explain = "summary"
    """How much to tell about why; `summary` says what would let in what has to wait."""


class PlannedWork(Wire, frozen=True, kw_only=True):
    """An object of the manifest, as the system takes it."""

    object: str
    """Kind, namespace and name of the object."""
    queue: str
    """The queue that it is charged to."""
    priority: Priority
    """The priority that it has."""
    pods: int
    """How many pods (YTsaurus: jobs) it starts."""
    requests: dict[str, Quantity]
    """What they ask for together, by resource."""
    outcome: Outcome
    """The outcome of all of it: the worst of its asks."""
    asks: list[str]
    """The ids of the asks that it became."""
    behind: list[str] = []
    """The asks that wait already and that the system tries before it, in that order."""


class ResourceChange(Wire, frozen=True, kw_only=True):
    """One resource of one queue, in whole units, before the plan and when it is carried out."""

    guaranteed: Quantity | None = None
    """What the queue is entitled to by its configuration, all flavors together. Absent: nothing."""
    limit: Quantity | None = None
    """The most that it may use by its configuration. Absent: no limit."""
    used_before: Units
    """What it uses now."""
    used_after: Units
    """What it will use."""
    fair_share_before: Units | str | None = None
    """What the engine finds it entitled to now. Absent: the engine does not say."""
    fair_share_after: Units | str | None = None
    """The same once the plan is carried out."""


class QueueChange(Wire, frozen=True, kw_only=True):
    """One queue before the plan and when it is carried out."""

    queue: str
    """Its name."""
    resources: dict[str, ResourceChange]
    """The resources of which it will use more or less; of the queues of the work, those that it asks for too."""
    share_before: Units | None = None
    """Its share as the engine compares queues. Absent: the engine has none."""
    share_after: Units | None = None
    """The same once the plan is carried out."""


class PlanAnswer(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """What would become of the work, and of the others."""

    engine: str
    """Whose rules decided."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    state: StateUsed
    """The state that was used."""
    outcome: Outcome
    """`admit`: all of it would run now; `preempt`: once others have stopped; else the worst outcome of its asks."""
    work: list[PlannedWork]
    """The objects of the manifest, in its order."""
    asks: list[Ask]
    """What the work became, as a decision takes it."""
    decisions: list[Decision]
    """The decisions on those asks."""
    waiting: list[Decision]
    """The decisions on the asks that waited already."""
    plan: Plan
    """What to carry out: who would stop, and what would be placed."""
    queues: list[QueueChange]
    """The queues whose use changes, and those of the work."""
    findings: list[Finding]
    """What could not be carried over; pointers lead into `/manifest` and `/cluster`. With one of severity `error`
    something of the manifest is left out."""
    stats: dict[str, float]
    """Milliseconds by stage."""
    followed: FollowedAge | None = None
    """How old the snapshot is that was planned on. Absent: no follower keeps it."""


Families = list[list[Ask]]
"""Asks alike by the family: they go in turn, and where one can't start the others can't."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of it: the last answer with everything to carry out, the decision on each ask, and the state after
    that. ``left``: asks that wait on. ``order``: the ids of the asks, as they were first tried."""

    answer: Answer
    decisions: dict[str, Decision]
    after: Loaded
    left: list[Ask]
    order: list[str]


def settle(loaded: Loaded, families: Families, question: Question) -> Settled:
    """Decide ``families`` until nothing changes. ``question`` says all but the asks.

    Cycle after cycle until everything that waits has been tried: Kueue tries one ask of a queue in each. Between two
    cycles the answer is carried out. A head that can't be admitted steps aside, as in Kueue; in a StrictFIFO queue it
    stays, and everything behind it waits.
    """
    asks = [ask for family in families for ask in family]
    rounds = _Rounds(loaded, question)
    if loaded.configured.engine.heads:
        rounds.run(families)
        rounds.rest(asks)
    else:
        rounds.turn(asks)
    plan = Plan(evictions=rounds.evictions, placements=rounds.placements)
    answer = msgspec.structs.replace(rounds.answer, state=loaded.used, plan=plan)
    left = [ask for ask in asks if rounds.decisions[ask.id].outcome not in STARTS]
    return Settled(answer, rounds.decisions, rounds.after, left, list(rounds.order))


class _Rounds:
    """Cycles under way. ``after``: the state as the cycles so far leave it."""

    def __init__(self, loaded: Loaded, question: Question) -> None:
        self.after = loaded
        self.decisions: dict[str, Decision] = {}
        self.evictions: list[PlannedEviction] = []
        self.placements: list[Placement] = []
        self.order: dict[str, None] = {}
        self._question = question
        self._strict = {
            queue.name
            for queue in loaded.configured.configuration.queues
            if queue.kueue is not None and queue.kueue.queueing_strategy == "StrictFIFO"
        }
        self._blocked: list[Ask] = []

    def run(self, families: Families) -> None:
        """The first of each family, until none is left that could start."""
        waiting: Families = [family for family in families if family]
        while waiting:
            tried, started = self.turn([family[0] for family in waiting])
            if started:
                waiting = [rest for family in waiting if (rest := family[family[0].id in started :])]
                continue
            aside = {ask.id for ask in tried if ask.queue not in self._strict}
            if not aside:
                self._blocked = [family[0] for family in waiting]
                return
            waiting = [family for family in waiting if family[0].id not in aside]

    def turn(self, asks: list[Ask]) -> tuple[list[Ask], set[str]]:
        """One cycle, carried out: the asks that were tried, and the ids of those that start."""
        question = self._question_of(asks)
        self.answer = solve.decide(self.after, question)
        order = None if self.answer.order is None else set(self.answer.order)
        tried = [ask for ask in asks if order is None or ask.id in order]
        by_ask = {decision.ask: decision for decision in self.answer.decisions}
        self.order |= dict.fromkeys(self.answer.order or (ask.id for ask in tried))
        self.decisions |= {ask.id: by_ask[ask.id] for ask in tried}
        self.evictions += self.answer.plan.evictions
        self.placements += self.answer.plan.placements
        started = {ask.id for ask in tried if by_ask[ask.id].outcome in STARTS}
        if started or self.answer.plan.evictions:
            self.after = solve.carried_out(self.after, question, self.answer)
        return tried, started

    def rest(self, asks: list[Ask]) -> None:
        """Say of those that were never tried what they wait for."""
        left = [ask for ask in asks if ask.id not in self.decisions]
        if left:
            known = {ask.id for ask in left}
            heads = [ask for ask in self._blocked if ask.id not in known]
            for decision in solve.decide(self.after, self._question_of([*heads, *left])).decisions:
                self.decisions.setdefault(decision.ask, decision)
                self.order.setdefault(decision.ask)

    def _question_of(self, asks: list[Ask]) -> Question:
        question = self._question
        return Question(question.now, asks, "cycle", question.options, question.explain)


_CLUSTER = "/cluster"
_KUBERNETES, _KUEUE = "scheduling.k8s.io", "kueue.x-k8s.io"


@dataclass(slots=True)
class Situation:
    """A cluster compiled. ``asks``: what waits there; ``imported``: of which manifests it was made."""

    loaded: Loaded
    asks: list[Ask]
    beside: Beside
    findings: list[Finding] = field(default_factory=list[Finding])
    imported: Imported | None = None

    def carried(self) -> list[Finding]:
        """What configuration and state carry beside ``findings``: from documents that are not in the request."""
        said = {(finding.rule, finding.pointer.removeprefix(_CLUSTER), finding.detail) for finding in self.findings}
        return [other for other in self.loaded.findings or () if (other.rule, other.pointer, other.detail) not in said]


def situation(request: PlanRequest, sources: Sources) -> Situation:
    """The cluster that work is planned for, however the request gives it. Raises InvalidInput, NotFound, Conflict,
    Unavailable."""
    beside = Beside()
    if request.cluster is None:
        state = request.state or StateOrReference()
        if request.configuration is None and state.snapshot is None:
            detail = "what cluster? give `configuration` and `state`, or `cluster`"
            raise InvalidInput([Problem(pointer="/configuration", detail=detail)])
        loaded = load(request.configuration, request.engine, state, sources)
        cluster = Situation(loaded, asks_of(request.asks, loaded), beside)
    else:
        cluster = _of_manifests(request, request.cluster.encode(), beside, sources)
    fields = {**request.set, **_release(request, cluster.loaded.configured.engine.facts)}
    if fields:
        cluster.loaded = with_configuration(
            cluster.loaded, with_fields(cluster.loaded.configured.configuration, fields)
        )
    objects = kept_objects(cluster.loaded.configured.configuration)
    of_configuration = Beside()
    read_beside(objects, of_configuration, Findings())
    beside.complete(of_configuration)
    for name, queue in request.local_queues.items():
        known = beside.local_queues.get(name)
        beside.local_queues[name] = LocalQueue(queue) if known is None else replace(known, cluster_queue=queue)
    own, kueue = request.priority_classes, request.workload_priority_classes
    for group, classes in ((_KUBERNETES, own), (_KUEUE, kueue or own)):
        for name, value in classes.items():
            beside.classes.put(group, name, PriorityClass(value, False, False, None))
    return cluster


def _release(request: PlanRequest, facts: Facts) -> dict[str, Any]:
    """The field that says under which release the plan is made. Raises InvalidInput."""
    if request.release is None:
        return {}
    if request.release not in facts.releases:
        detail = f"{facts.title} is known here as {', '.join(facts.releases)}"
        raise InvalidInput([Problem(pointer="/release", detail=detail)])
    return {f"settings.{facts.block}.release": request.release}


def _of_manifests(request: PlanRequest, text: bytes, beside: Beside, sources: Sources) -> Situation:
    known = None
    if request.configuration is not None:
        state = request.state or StateOrReference()
        known = configure(request.configuration, request.engine, sources, state).configuration
    said = Findings()
    with pointing(lambda place: _CLUSTER + place):
        imported = import_configuration(text, request.engine or "kubernetes", known)
        read_beside(_objects(text), beside, said)
    configuration = imported.configuration
    engine = request.engine or configuration.engine
    if not configuration.queues and (engine is None or facts_of(engine).quotas):
        detail = "there are no queues in it: give them with `configuration`"
        raise InvalidInput([Problem(pointer=_CLUSTER, detail=detail)])
    state = request.state or StateOrReference(**_fields(imported.state))
    named = known is not None and configuration.queues == known.queues
    loaded = load((request.configuration if named else None) or configuration, request.engine, state, sources)
    more = (f for f in said.all() if f.rule != "unknown-kind")  # what is an object at all the import says
    every = [*imported.findings, *(f for f in more if f not in imported.findings)]
    findings = [msgspec.structs.replace(f, pointer=_CLUSTER + f.pointer) for f in every]
    return Situation(loaded, [*imported.asks, *asks_of(request.asks, loaded)], beside, findings, imported)


def _objects(text: bytes) -> list[tuple[Path, Any]]:
    """The documents, where they can be objects that stand beside work."""
    return [] if is_yson(text) else read(text)


def with_queues(loaded: Loaded, queues: list[Queue]) -> Loaded:
    """The same cluster with more queues. Raises InvalidInput."""
    document = loaded.configured.configuration
    return with_configuration(loaded, msgspec.structs.replace(document, queues=[*document.queues, *queues]))


def with_configuration(loaded: Loaded, document: Configuration) -> Loaded:
    """The same cluster with another configuration. Raises InvalidInput."""
    was = loaded.configured
    configured = solve.configure(document, was.engine.name, name=was.used.name, revision=was.used.revision)
    again = solve.load(configured, loaded.state, snapshot=loaded.snapshot, generation=loaded.generation)
    return replace(again, beside=loaded.beside)


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
