"""Every operation on bytes, in one table, the same in a worker process and in a service without workers; among them the
guard's, where kube-scheduler's proposals of whom to evict are decided on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from itertools import islice

import msgspec

from app.answering.answers import (
    Answered,
    Facts,
    Stopwatch,
    answered_on,
    effective_settings,
    encode,
    facts_of,
    preemptibility,
    shares,
)
from app.answering.comparison import compare
from app.answering.plan import plan
from app.answering.snapshot_store import SnapshotStore
from app.answering.snapshots import SnapshotChanges
from app.answering.sources import Configurations, Known, LogDocument, Recorder, Sources, Used
from app.base.decoding import decode
from app.formats import ImportedManifest, import_configuration
from app.formats.exported import Format
from app.formats.extender import (
    Around,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    MetaPod,
    MetaVictims,
    Recogniser,
    VictimPod,
    Victims,
    is_system_critical,
    read_pod,
)
from app.formats.manifests import system_of
from app.formats.pods import Pod
from app.solver import solve
from app.solver.engine import Loss, Lost, all_facts, engine_of
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Answer, ProposalVerdict
from app.solver.model.problems import Finding, InvalidInput, Problem, Unsupported, listed
from app.solver.model.request import DecisionRequest, Eviction, Proposal, StateOrReference
from app.solver.model.state import Task, Workload
from app.solver.question import Question
from app.solver.solve import Loaded

_MOST_NAMED = 1000
_NO_PROPOSALS = "one of NodeNameToVictims and NodeNameToMetaVictims is expected"


@dataclass(frozen=True, slots=True)
class Guarded:
    """``result`` for kube-scheduler; the decision behind it, as a request and its answer, where there is one."""

    result: bytes
    request: bytes = b""
    answered: Answered | None = None
    loaded: Loaded | None = None


class _Workloads(Mapping[str, Workload]):
    """Running workloads by id, without a copy."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def __getitem__(self, name: str) -> Workload:
        return self._loaded.state.workloads[self._loaded.index.workloads[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded.index.workloads)

    def __len__(self) -> int:
        return len(self._loaded.index.workloads)


def guard(body: bytes, now: datetime, sources: Sources, configuration: str, snapshot: str) -> Guarded:
    """The nodes of ``body`` whose victims the rules let go, as kube-scheduler reads them; all of them where the rules
    are its own, which then say whom it will evict. Raises InvalidInput, NotFound, Conflict."""
    watch = Stopwatch()
    with watch.stage("decode"):
        args = decode(body, ExtenderPreemptionArgs)
        pod = read_pod(args.pod)
        if pod is None:
            raise InvalidInput([Problem(pointer="/Pod/metadata/name", detail="a pod with a name is expected")])
        if args.victims is None and args.meta_victims is None:
            raise InvalidInput([Problem(pointer="/NodeNameToVictims", detail=_NO_PROPOSALS)])
    if is_system_critical(pod):
        return Guarded(_result(args, None))
    with watch.stage("compile"):
        configured = sources.configurations.named(configuration, None)
        loaded = sources.loaded(configured, snapshot)
        system = system_of(configured.engine.name)
        if system is None or system.recogniser is None:
            raise Unsupported([Problem(pointer="", detail=f"{configured.engine.name} has no pods")])
        recogniser = system.recogniser(
            Around(configured.configuration, _Workloads(loaded), {ask.id: ask for ask in loaded.beside.asks})
        )
        ask = recogniser.ask(pod)
        asks = [] if ask is None else [ask]
        request = DecisionRequest(
            configuration=configuration, state=StateOrReference(snapshot=snapshot), asks=asks,
            proposals=None if recogniser.predicts else _proposals(args, recogniser, loaded),
        )  # fmt: skip
    if recogniser.predicts and ask is None:
        return Guarded(_result(args, None))
    with watch.stage("solve"):
        answer = solve.decide(loaded, Question(micros(now), asks, proposals=request.proposals))
    with watch.stage("encode"):
        effect = "" if recogniser.predicts else _effect(answer.proposals or [])
        facts = facts_of(answer, micros(now), asks)
        facts = msgspec.structs.replace(facts, pods=_named_pods(pod, args), effect=effect)
        answered = Answered(body=encode(answer), facts=facts, seconds=watch.seconds)
        return Guarded(_result(args, None if recogniser.predicts else answer), encode(request), answered, loaded)


def _effect(verdicts: list[ProposalVerdict]) -> str:
    """Of what kube-scheduler would do without the guard. Of several nodes that it would draw from one is enough."""
    if not any(verdict.preferred for verdict in verdicts):
        return "unknown"
    if not any(verdict.taken for verdict in verdicts):
        return "stopped"
    return "same" if any(verdict.preferred and verdict.taken for verdict in verdicts) else "another"


def _named_pods(pod: Pod, args: ExtenderPreemptionArgs) -> list[str]:
    """The pod without room first, then those that kube-scheduler would evict, as far as they have names."""
    victims = (victim.metadata for of in (args.victims or {}).values() for victim in of.pods or ())
    names = (f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name for metadata in victims)
    return list(islice(dict.fromkeys((pod.manifest.id, *names)), _MOST_NAMED))


def _proposals(args: ExtenderPreemptionArgs, recogniser: Recogniser, loaded: Loaded) -> list[Proposal]:
    if args.victims is not None:
        ranks = _ranks(args.victims)
        return [
            Proposal(node=node, evict=_of_pods(of, recogniser), rank=ranks.get(node))
            for node, of in args.victims.items()
        ]
    by_uid = _by_uid(loaded)
    return [Proposal(node=node, evict=_of_uids(of, by_uid)) for node, of in (args.meta_victims or {}).items()]


def _ranks(victims: Mapping[str, Victims]) -> dict[str, int]:
    """By node: what kube-scheduler would do without anybody in its way. Its proposals are all that it found; what is
    left for it to do is to prefer one."""
    losses = {node: Loss(of.violations, [_lost(pod) for pod in of.pods]) for node, of in victims.items() if of.pods}
    ranks = engine_of(next(facts.name for facts in all_facts() if facts.proposes)).ranks
    return {} if ranks is None else dict(zip(losses, ranks(list(losses.values())), strict=True))


def _lost(pod: VictimPod) -> Lost:
    start = pod.status.start_time
    return Lost(pod.spec.priority or 0, None if start is None else micros(start))


def _of_pods(victims: Victims, recogniser: Recogniser) -> list[Eviction]:
    places = (recogniser.place(pod) for pod in victims.pods or ())
    return list(dict.fromkeys(place for place in places if place is not None))


def _of_uids(victims: MetaVictims, by_uid: dict[str, tuple[Workload, Task]]) -> list[Eviction]:
    """A UID that the snapshot does not have stands for a workload that it does not have: it is refused."""
    out: list[Eviction] = []
    for pod in victims.pods or ():
        known = by_uid.get(pod.uid)
        out.append(Eviction(workload=pod.uid) if known is None else Eviction(workload=known[0].id, task=known[1].name))
    return out


def _by_uid(loaded: Loaded) -> dict[str, tuple[Workload, Task]]:
    return {task.uid: (w, task) for w in loaded.state.workloads for task in w.tasks if task.uid is not None}


def _result(args: ExtenderPreemptionArgs, answer: Answer | None) -> bytes:
    """The nodes that stay, all of them without an answer. One without victims is of no use to kube-scheduler."""
    proposed = _as_meta(args)
    if answer is not None:
        stay = {verdict.node for verdict in answer.proposals or () if verdict.allowed}
        proposed = {node: victims for node, victims in proposed.items() if node in stay}
    return msgspec.json.encode(
        ExtenderPreemptionResult({node: victims for node, victims in proposed.items() if victims.pods})
    )


def _as_meta(args: ExtenderPreemptionArgs) -> dict[str, MetaVictims]:
    if args.victims is None:
        return args.meta_victims or {}
    return {
        node: MetaVictims([MetaPod(pod.metadata.uid) for pod in of.pods or ()], of.violations)
        for node, of in args.victims.items()
    }


def _imported(body: bytes, asked: "Inquiry") -> bytes:
    """The JSON of an ``ImportedManifest``. Parsing stops at safe points, as solving does. Raises InvalidInput for what
    is no manifest at all, and, if not ``lenient``, where what is read would be decided wrongly: each finding of
    severity error is a problem then."""
    assert asked.format is not None
    manifest = import_configuration(body, asked.format)
    errors = [finding for finding in manifest.findings if finding.severity == "error"]
    if errors and not asked.lenient:
        raise InvalidInput(
            [Problem(pointer=finding.pointer, detail=f"{finding.detail} [{finding.rule}]") for finding in errors]
        )
    return msgspec.json.encode(
        ImportedManifest(
            format=asked.format,
            configuration=manifest.configuration,
            state=manifest.state,
            asks=manifest.asks,
            findings=listed(manifest.findings),
            configuration_findings=listed(_remarks(manifest.configuration)),
        )
    )


def _remarks(configuration: Configuration) -> list[Finding]:
    """Nothing to say about a manifest that holds no configuration."""
    if configuration.engine is None or not configuration.queues:
        return []
    return solve.findings(configuration)


class Logged(msgspec.Struct, frozen=True):
    """A decision as the log has it, where whoever asked speaks in another way."""

    request: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer's bytes; ``facts`` and ``seconds`` by stage where it is a decision, and what its log entry needs to be
    decided again."""

    body: bytes
    facts: Facts | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    documents: list[LogDocument] = field(default_factory=list[LogDocument])
    logged: Logged | None = None

    def answered(self) -> Answered:
        """As the decision log takes it."""
        assert self.facts is not None
        body = self.body if self.logged is None else self.logged.answer
        return Answered(body=body, facts=self.facts, seconds=self.seconds)


class Answerer:
    """One process's operations over its configurations and the snapshots it keeps."""

    def __init__(self, configurations: Configurations, store: SnapshotStore) -> None:
        self.store = store
        self.sources = Sources(configurations, store)
        self.snapshots = SnapshotChanges(store, self.sources)
        self._recorder = Recorder()

    def run(self, asked: "Inquiry", body: bytes) -> Reply:
        """Run one operation. Raises InvalidInput and the errors of ``app.base.errors``."""
        reply = asked.operation.way.answer(self, asked, body)
        return Reply(reply) if isinstance(reply, bytes) else reply

    def decide(self, asked: "Inquiry", body: bytes) -> Reply:
        """A decision, as it was where ``asked`` is pinned."""
        used = asked.pinned
        if used is not None:
            sources = self.sources.pinned(used)
            answered, _, _ = answered_on(body, asked.now, sources, called=lambda loaded: _as_then(loaded, used))
            return Reply(answered.body, answered.facts, answered.seconds)
        answered, loaded, own = answered_on(body, asked.now, self.sources)
        states = [] if loaded.snapshot is None else self._lacking(asked, loaded, own)
        return Reply(answered.body, answered.facts, answered.seconds, states)

    def guard(self, asked: "Inquiry", body: bytes) -> Reply:
        """What kube-scheduler reads, and the decision behind it."""
        guarded = guard(body, asked.now, self.sources, asked.configuration, asked.snapshot)
        if guarded.answered is None or guarded.loaded is None:
            return Reply(guarded.result)
        logged = Logged(guarded.request, guarded.answered.body)
        states = self._lacking(asked, guarded.loaded, own=False)
        return Reply(guarded.result, guarded.answered.facts, guarded.answered.seconds, states, logged)

    def delete(self, asked: "Inquiry") -> bytes:
        """Keep a snapshot no longer, nor its versions. Raises NotFound."""
        self.store.delete(asked.snapshot)
        self._recorder.forget(self.store.names())
        return b""

    def _lacking(self, asked: "Inquiry", loaded: Loaded, own: bool) -> list[LogDocument]:
        """What the decision log lacks of the snapshot; ``own``: the configuration is the snapshot's."""
        if asked.known is None:
            return []
        self._recorder.forget(self.store.names())
        return self._recorder.lacking(loaded, asked.known, own=own)


@dataclass(frozen=True, slots=True)
class Way:
    """How an operation is answered. ``names``: its body may name a snapshot and a configuration; ``slow``: even a small
    body takes long; ``puts``, ``deletes``: the snapshot that it is about is new then, or gone."""

    name: str
    answer: Callable[[Answerer, "Inquiry", bytes], Reply | bytes]
    names: bool = False
    slow: bool = False
    puts: bool = False
    deletes: bool = False


class Operation(Enum):
    """An operation on bytes: all that can be asked. Those on a kept snapshot name it beside the bytes."""

    way: Way

    DECISION = Way("decision", Answerer.decide, names=True)
    COMPARISON = Way("comparison", lambda of, asked, body: compare(body, asked.now, of.sources), names=True)
    PLAN = Way("plan", lambda of, asked, body: plan(body, asked.now, of.sources), names=True)
    PREEMPTION = Way("preemption", Answerer.guard)
    SHARES = Way("shares", lambda of, asked, body: shares(body, asked.now, of.sources), names=True)
    PREEMPTIBILITY = Way(
        "preemptibility", lambda of, asked, body: preemptibility(body, asked.now, of.sources), names=True
    )
    EFFECTIVE_SETTINGS = Way("effective-settings", lambda of, _, body: effective_settings(body, of.sources), names=True)
    IMPORT = Way("import", lambda _, asked, body: _imported(body, asked), slow=True)
    SNAPSHOT_PUT = Way("snapshot-put", lambda of, asked, body: of.snapshots.put(asked.snapshot, body), puts=True)
    SNAPSHOT_DELTA = Way("snapshot-delta", lambda of, asked, body: of.snapshots.delta(asked.snapshot, body))
    SNAPSHOT_APPLY = Way("snapshot-apply", lambda of, asked, body: of.snapshots.apply(asked.snapshot, body, asked.now))
    SNAPSHOT_GET = Way("snapshot-get", lambda of, asked, _: of.snapshots.get(asked.snapshot))
    SNAPSHOT_STATE = Way("snapshot-state", lambda of, asked, _: of.snapshots.state(asked.snapshot))
    SNAPSHOT_ASKS = Way("snapshot-asks", lambda of, asked, _: of.snapshots.asks(asked.snapshot))
    SNAPSHOT_DELETE = Way("snapshot-delete", lambda of, asked, _: of.delete(asked), deletes=True)
    SNAPSHOT_LIST = Way("snapshot-list", lambda of, _, __: of.snapshots.listing())
    SNAPSHOT_FIND = Way("snapshot-find", lambda of, _, body: of.snapshots.find(body))

    def __new__(cls, way: Way) -> "Operation":
        """Its value, which processes send one another, is its name."""
        member = object.__new__(cls)
        member._value_, member.way = way.name, way
        return member


class Inquiry(msgspec.Struct, frozen=True):
    """One call, without the bytes of its body. ``now``: what stands for the request's own where it gives none.

    ``snapshot``: the one that it is about, where that is known. ``pinned``: decide on the revision and generation of
    an earlier answer. ``format``: of a manifest. ``known``: what the decision log has of the snapshot; None: it is to
    be given nothing. ``configuration``: the one that is meant, where the body does not name it.
    ``lenient``: whether a manifest is read although what is wrong in it is left out."""

    operation: Operation
    now: datetime
    snapshot: str = ""
    pinned: Used | None = None
    format: Format | None = None
    known: Known | None = None
    configuration: str = ""
    lenient: bool = False


def _as_then(loaded: Loaded, used: Used) -> Loaded:
    """A state that was read back is called as it was when it was decided on."""
    then = used.state
    if loaded.snapshot is not None or then.snapshot is None or loaded.used.digest != then.digest:
        return loaded
    beside = replace(loaded.beside, resource_versions=then.resource_versions)
    return replace(loaded, snapshot=then.snapshot, generation=then.generation, beside=beside)
