"""Every operation on bytes of one process: the same table in a worker process and in a service without workers."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from app.answering.answers import Answered, Facts, answer, effective_settings, preemptibility, shares
from app.answering.comparison import compare
from app.answering.guarding import guard
from app.answering.operations import Configurations, Inquiry, Kept, Operation, Recorder, Sources, Used
from app.answering.plan import plan
from app.answering.snapshot_store import SnapshotStore
from app.answering.snapshots import SnapshotChanges
from app.formats import ImportedManifest, import_configuration
from app.formats.exported import Format
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.request import DecisionRequest
from app.solver.solve import Loaded


def imported(body: bytes, format: Format, *, lenient: bool = False) -> bytes:  # noqa: A002
    """The JSON of an ``ImportedManifest``. Parsing stops at safe points, as solving does. Raises InvalidInput for what
    is no manifest at all, and, if not ``lenient``, where what is read would be decided wrongly: each finding of
    severity error is a problem then."""
    found = import_configuration(body, format)
    errors = [one for one in found.findings if one.severity == "error"]
    if errors and not lenient:
        raise InvalidInput([Problem(pointer=one.pointer, detail=f"{one.detail} [{one.rule}]") for one in errors])
    return msgspec.json.encode(
        ImportedManifest(
            format=format,
            configuration=found.configuration,
            state=found.state,
            asks=found.asks,
            findings=found.findings,
            configuration_findings=_remarks(found.configuration),
        )
    )


def _remarks(configuration: Configuration) -> list[Finding]:
    """Nothing to say about a manifest that holds no configuration."""
    if configuration.engine is None or not configuration.queues:
        return []
    return solve.findings(configuration)


Question = Callable[[bytes, datetime, Sources], bytes]


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
    kept: list[Kept] = field(default_factory=list[Kept])
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
        self._questions: dict[Operation, Question] = {
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
        kept = self._kept(asked, *seen[0]) if seen else []
        return Reply(answered.body, answered.facts, answered.seconds, kept)

    def _guarded(self, asked: Inquiry, body: bytes) -> Reply:
        found = guard(body, asked.now, self._sources, asked.configuration, asked.snapshot)
        if found.answered is None or found.loaded is None:
            return Reply(found.result)
        logged = Logged(found.request, found.answered.body)
        kept = self._kept(asked, found.loaded, own=False)
        return Reply(found.result, found.answered.facts, found.answered.seconds, kept, logged)

    def _kept(self, asked: Inquiry, loaded: Loaded, own: bool) -> list[Kept]:
        """What the decision log lacks of the snapshot; ``own``: the configuration is the snapshot's."""
        if asked.known is None:
            return []
        self._recorder.forget(self.store.names())
        return self._recorder.kept(loaded, asked.known, own=own)


def _as_then(loaded: Loaded, used: Used) -> Loaded:
    """A state that was read back is called as it was when it was decided on."""
    then = used.state
    if loaded.snapshot is not None or then.snapshot is None or loaded.used.digest != then.digest:
        return loaded
    beside = replace(loaded.beside, resource_versions=then.resource_versions)
    return replace(loaded, snapshot=then.snapshot, generation=then.generation, beside=beside)
