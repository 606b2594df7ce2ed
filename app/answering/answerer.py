"""Every operation on bytes of one process: the same table in a worker process and in a service without workers; among
them the guard's, where kube-scheduler's proposals of whom to evict are decided on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

import msgspec

from app.answering.answers import (
    Answered,
    Facts,
    Stopwatch,
    answer,
    effective_settings,
    encode,
    facts_of,
    preemptibility,
    shares,
)
from app.answering.comparison import compare
from app.answering.operations import Configurations, Inquiry, Kept, Operation, Recorder, Sources, Used
from app.answering.plan import plan
from app.answering.snapshot_store import SnapshotStore
from app.answering.snapshots import SnapshotChanges
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
from app.solver.model.problems import Finding, InvalidInput, Problem, Unsupported
from app.solver.model.request import DecisionRequest, Eviction, Proposal, StateOrReference
from app.solver.model.state import Ask, Task, Workload
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
        recogniser = system.recogniser(Around(configured.configuration, _Workloads(loaded), _waiting(loaded)))
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


def _waiting(loaded: Loaded) -> dict[str, Ask]:
    """What waits beside the snapshot, by id."""
    return {ask.id: ask for ask in loaded.beside.asks}


def imported(body: bytes, format: Format, *, lenient: bool = False) -> bytes:  # noqa: A002
    """The JSON of an ``ImportedManifest``. Parsing stops at safe points, as solving does. Raises InvalidInput for what
    is no manifest at all, and, if not ``lenient``, where what is read would be decided wrongly: each finding of
    severity error is a problem then."""
    manifest = import_configuration(body, format)
    errors = [finding for finding in manifest.findings if finding.severity == "error"]
    if errors and not lenient:
        raise InvalidInput(
            [Problem(pointer=finding.pointer, detail=f"{finding.detail} [{finding.rule}]") for finding in errors]
        )
    return msgspec.json.encode(
        ImportedManifest(
            format=format,
            configuration=manifest.configuration,
            state=manifest.state,
            asks=manifest.asks,
            findings=manifest.findings,
            configuration_findings=_remarks(manifest.configuration),
        )
    )


def _remarks(configuration: Configuration) -> list[Finding]:
    """Nothing to say about a manifest that holds no configuration."""
    if configuration.engine is None or not configuration.queues:
        return []
    return solve.findings(configuration)


Answering = Callable[[bytes, datetime, Sources], bytes]


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
    documents: list[Kept] = field(default_factory=list[Kept])
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
        self._sources = Sources(configurations, store)
        self._recorder = Recorder()
        self._questions: dict[Operation, Answering] = {
            Operation.COMPARISON: compare,
            Operation.PLAN: plan,
            Operation.SHARES: shares,
            Operation.PREEMPTIBILITY: preemptibility,
            Operation.EFFECTIVE_SETTINGS: lambda body, _, sources: effective_settings(body, sources),
        }
        changes = SnapshotChanges(store, self._sources)
        self._snapshots: dict[Operation, Callable[[str, bytes, datetime], bytes]] = {
            Operation.SNAPSHOT_PUT: changes.put,
            Operation.SNAPSHOT_DELTA: changes.delta,
            Operation.SNAPSHOT_APPLY: changes.apply,
            Operation.SNAPSHOT_GET: changes.get,
            Operation.SNAPSHOT_STATE: changes.state,
            Operation.SNAPSHOT_ASKS: changes.asks,
            Operation.SNAPSHOT_DELETE: changes.delete,
            Operation.SNAPSHOT_LIST: changes.listing,
            Operation.SNAPSHOT_FIND: changes.find,
        }

    def run(self, asked: Inquiry, body: bytes) -> Reply:
        """Run one operation. Raises InvalidInput and the errors of ``app.base.errors``."""
        if asked.operation is Operation.DECISION:
            return self._decided(asked, body)
        if asked.operation is Operation.PREEMPTION:
            return self._guarded(asked, body)
        if asked.operation is Operation.IMPORT:
            assert asked.format is not None
            return Reply(imported(body, asked.format, lenient=asked.lenient))
        if (question := self._questions.get(asked.operation)) is not None:
            return Reply(question(body, asked.now, self._sources))
        reply = Reply(self._snapshots[asked.operation](asked.snapshot, body, asked.now))
        if asked.operation is Operation.SNAPSHOT_DELETE:
            self._recorder.forget(self.store.names())
        return reply

    def _decided(self, asked: Inquiry, body: bytes) -> Reply:
        seen: list[tuple[Loaded, bool]] = []

        def through(request: DecisionRequest, loaded: Loaded) -> Loaded:
            if asked.pinned is not None:
                return _as_then(loaded, asked.pinned)
            if loaded.snapshot is not None:
                seen.append((loaded, request.configuration is None))
            return loaded

        sources = self._sources if asked.pinned is None else self._sources.pinned(asked.pinned)
        answered = answer(body, asked.now, sources, through=through)
        states = self._lacking(asked, *seen[0]) if seen else []
        return Reply(answered.body, answered.facts, answered.seconds, states)

    def _guarded(self, asked: Inquiry, body: bytes) -> Reply:
        guarded = guard(body, asked.now, self._sources, asked.configuration, asked.snapshot)
        if guarded.answered is None or guarded.loaded is None:
            return Reply(guarded.result)
        logged = Logged(guarded.request, guarded.answered.body)
        states = self._lacking(asked, guarded.loaded, own=False)
        return Reply(guarded.result, guarded.answered.facts, guarded.answered.seconds, states, logged)

    def _lacking(self, asked: Inquiry, loaded: Loaded, own: bool) -> list[Kept]:
        """What the decision log lacks of the snapshot; ``own``: the configuration is the snapshot's."""
        if asked.known is None:
            return []
        self._recorder.forget(self.store.names())
        return self._recorder.lacking(loaded, asked.known, own=own)


def _as_then(loaded: Loaded, used: Used) -> Loaded:
    """A state that was read back is called as it was when it was decided on."""
    then = used.state
    if loaded.snapshot is not None or then.snapshot is None or loaded.used.digest != then.digest:
        return loaded
    beside = replace(loaded.beside, resource_versions=then.resource_versions)
    return replace(loaded, snapshot=then.snapshot, generation=then.generation, beside=beside)
