"""Operations on kept snapshots with their bodies, bytes in and bytes out: the same in the service and in a worker."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import nsmallest
from typing import Any, Literal

import msgspec

from app.answering.answers import configure
from app.answering.snapshot_store import Snapshot, SnapshotStore, check_generation
from app.answering.sources import Sources
from app.base.decoding import decode
from app.base.errors import BadInput
from app.solver.apply import delta_of
from app.solver.model.base import Time, Total, Wire, micros
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import ConfigurationUsed, Decision, Plan
from app.solver.model.problems import Finding, InvalidInput, Problem, pointing
from app.solver.model.state import Ask, AskChanges, Delta, State
from app.solver.solve import Beside


class SnapshotRequest(Wire, frozen=True, kw_only=True):
    """``PUT /v1/snapshots/{name}``: the whole state, and the configuration that it is compiled for."""

    engine: EngineName | None = None
    """Whose rules it is compiled for. Absent: the configuration's engine."""
    configuration: str | Configuration
    """The configuration it is compiled for: `name`, `name@revision`, `name@label`, or the document itself."""
    state: State
    """The whole state."""
    asks: list[Ask] = []
    """What waits, kept beside the state: a decision decides it with `"asks": "pending"`."""
    resource_versions: dict[str, str] | None = None
    """Where the state follows a cluster: the resource version, by kind, that it has been followed to. Answers name
    them."""


class Counts(Wire, frozen=True, kw_only=True):
    nodes: Total
    """How many nodes."""
    workloads: Total
    """How many workloads."""
    tasks: Total
    """How many tasks."""
    reservations: Total
    """How many reservations."""
    asks: Total = 0
    """How many asks wait beside it."""


class SnapshotStatus(Wire, frozen=True, kw_only=True):
    """What is kept. ``age_seconds``: since the state was put whole; ``bytes``: estimated memory."""

    name: str
    """The name of the snapshot."""
    generation: int
    """Counts up with every change."""
    engine: str
    """Whose rules it is compiled for."""
    configuration: ConfigurationUsed
    """The configuration it is compiled for."""
    counts: Counts
    """What is in it."""
    age_seconds: float
    """Seconds since the state was put whole."""
    idle_seconds: float
    """Seconds since it was last used; one that is idle for long is dropped."""
    bytes: int
    """Estimated memory, in bytes."""
    digest: str | None = None
    """The digest of the state. Absent: not worked out."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them: every answer about the snapshot
    says it. Absent: nothing."""


class Sought(msgspec.Struct, frozen=True):
    """A text, without case, that names are to hold; up to ``limit`` of each kind and snapshot, those first that begin
    with it."""

    part: str
    limit: int


class There(msgspec.Struct, frozen=True):
    """What is in a kept snapshot by that name. ``configuration``: what it is compiled for, where that has a name."""

    kind: Literal["snapshot", "queue", "workload", "ask", "node"]
    name: str
    snapshot: str
    configuration: str | None


def _holding(snapshot: Snapshot, sought: Sought) -> Iterator[There]:
    """All of a snapshot that is called so."""
    loaded = snapshot.loaded
    named: tuple[tuple[Any, Iterable[str]], ...] = (
        ("snapshot", (snapshot.name,)),
        ("queue", sorted(loaded.configured.names)),
        ("workload", (workload.id for workload in loaded.state.workloads)),
        ("ask", (ask.id for ask in loaded.beside.asks)),
        ("node", (node.name for node in loaded.state.nodes)),
    )
    for kind, names in named:
        hits = [(position, name) for name in names if (position := name.casefold().find(sought.part)) >= 0]
        for _, name in nsmallest(sought.limit, hits, key=lambda hit: (hit[0] > 0, len(hit[1]), hit[1])):
            yield There(kind, name, snapshot.name, snapshot.used.name)


_OLD_SECONDS = 90.0
"""An API server is silent for up to a minute where nothing happens."""


class FollowedAge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How old a snapshot is that follows a cluster."""

    cluster: str
    """The cluster: `GET /v1/clusters/{name}` says more."""
    age_seconds: float
    """Since its follower last knew it to be the cluster."""
    warning: str | None = None
    """What is wrong with that. Absent: nothing."""

    @classmethod
    def of(cls, cluster: str, seconds: float) -> "FollowedAge":
        """With a warning where that is long ago."""
        warning = f"cluster {cluster} was last known {seconds:.0f} s ago: its follower or its API server is away"
        return cls(cluster=cluster, age_seconds=seconds, warning=warning if seconds > _OLD_SECONDS else None)


class SnapshotList(Wire, frozen=True, kw_only=True):
    items: list[SnapshotStatus]
    """By name."""


class PendingAsks(Wire, frozen=True, kw_only=True):
    """What waits beside a kept state."""

    generation: int
    """The generation that they belong to."""
    items: list[Ask]
    """By id: the order in which they are decided, whichever way they came."""


class Carried(Wire, frozen=True, kw_only=True):
    """An answer to carry out, with the asks that it answers; a logged decision is expanded to this."""

    asks: list[Ask]
    """The asks that the decisions answer."""
    decisions: list[Decision]
    """The decisions to carry out."""
    plan: Plan
    """The plan to carry out."""


class ApplyRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/snapshots/{name}/apply``. ``decision``: the id of a logged one, or an answer with its asks.

    ``generation``: refuse (409) unless the snapshot is still at it; absent: the one the decision was made on.
    """

    decision: str | Carried
    """The id of a logged decision, or an answer with its asks."""
    ask: str | None = None
    """Carry out the decision on this ask alone. Needed where several asks were decided each alone (mode `independent`):
    their plans exclude one another."""
    generation: Total | None = None
    """Refuse (409) unless the snapshot is still at it. Absent: the one that the decision was made on."""
    now: Time | None = None
    """When what is placed starts. Absent: the host's clock."""


_DECISION, _PLAN = "/decision", "/plan"
_EACH_ALONE = (
    "missing: the asks were decided each alone, and only the plan of one of them can be carried out: say which"
)
_TOGETHER = "the asks were decided together, as one cycle: they are carried out together, without this"


class SnapshotChanges:
    """The snapshot operations of one process. Each returns the response body."""

    def __init__(self, store: SnapshotStore, sources: Sources) -> None:
        self._store = store
        self._sources = sources

    def put(self, name: str, body: bytes) -> bytes:
        """Raises InvalidInput, NotFound for an unknown configuration."""
        request = decode(body, SnapshotRequest)
        configured = configure(request.configuration, request.engine, self._sources)
        own = (request.configuration, request.engine)
        beside = Beside(request.asks, request.resource_versions)
        return self._status(self._store.put(name, configured, request.state, len(body), own, beside))

    def delta(self, name: str, body: bytes) -> bytes:
        """Raises InvalidInput, NotFound, Conflict; then nothing has changed."""
        return self._status(self._store.apply(name, decode(body, Delta)))

    def apply(self, name: str, body: bytes, now: datetime) -> bytes:
        """Carry a decision out. Raises InvalidInput, NotFound, Conflict; then nothing has changed."""
        request = decode(body, ApplyRequest)
        if not isinstance(request.decision, Carried):
            raise BadInput([Problem(pointer=_DECISION, detail="no decision log here: give the answer and its asks")])
        snapshot = self._store.get(name)
        moment = micros(request.now or now)
        carried, plan = _only(request.decision, request.ask)
        generation = snapshot.generation if request.generation is None else request.generation
        check_generation(snapshot, generation)
        with pointing(lambda where: plan + where[len(_PLAN) :] if where.startswith(_PLAN) else _DECISION + where):
            delta = delta_of(
                snapshot.loaded.state,
                snapshot.loaded.index,
                generation,
                carried.asks,
                carried.decisions,
                carried.plan,
                moment,
            )
        started = {workload.id for workload in delta.workloads.add}
        waited = [ask.id for ask in snapshot.loaded.beside.asks if ask.id in started]
        delta = msgspec.structs.replace(delta, asks=AskChanges(remove=waited))
        with pointing(lambda _: _DECISION):  # nobody sent the delta
            return self._status(self._store.apply(name, delta))

    def get(self, name: str) -> bytes:
        """With the digest, which an answer over this generation carries too. Raises NotFound."""
        return self._status(self._store.get(name), digest=True)

    def state(self, name: str) -> bytes:
        """The generation in decimal, a line break, and the state as it could be put again. Raises NotFound."""
        snapshot = self._store.get(name)
        return b"%d\n%b" % (snapshot.generation, msgspec.json.encode(snapshot.loaded.state))

    def asks(self, name: str) -> bytes:
        """What waits beside the state. Raises NotFound."""
        snapshot = self._store.get(name)
        return msgspec.json.encode(PendingAsks(generation=snapshot.generation, items=snapshot.loaded.beside.asks))

    def listing(self) -> bytes:
        """Everything that this process keeps."""
        snapshots = [self._describe(self._store.get(name)) for name in self._store.names()]
        return msgspec.json.encode(SnapshotList(items=snapshots))

    def find(self, body: bytes) -> bytes:
        """What is in kept snapshots and is called so: see ``Sought``."""
        sought = msgspec.json.decode(body, type=Sought)
        snapshots = (self._store.peek(name) for name in self._store.names())
        hits = [there for snapshot in snapshots if snapshot is not None for there in _holding(snapshot, sought)]
        return msgspec.json.encode(hits)

    def _status(self, snapshot: Snapshot, *, digest: bool = False) -> bytes:
        return msgspec.json.encode(self._describe(snapshot, digest=digest))

    def _describe(self, snapshot: Snapshot, *, digest: bool = False) -> SnapshotStatus:
        loaded = snapshot.loaded
        return SnapshotStatus(
            name=snapshot.name,
            generation=snapshot.generation,
            engine=loaded.configured.engine.name,
            configuration=snapshot.used,
            counts=Counts(
                nodes=len(loaded.state.nodes),
                workloads=len(loaded.state.workloads),
                tasks=snapshot.tasks,
                reservations=len(loaded.state.reservations),
                asks=len(loaded.beside.asks),
            ),
            age_seconds=round(self._store.age_seconds(snapshot), 3),
            idle_seconds=round(self._store.idle_seconds(snapshot.name), 3),
            bytes=snapshot.size,
            digest=loaded.used.digest if digest else None,
            findings=loaded.findings,
        )


def _only(carried: Carried, ask: str | None) -> tuple[Carried, str]:
    """What is to be carried out of an answer: the decision on ``ask``, or all of it; and where its plan stands. Raises
    InvalidInput."""
    whole = _DECISION + _PLAN
    if ask is not None:
        chosen = [decision for decision in carried.decisions if decision.ask == ask]
        if not chosen:
            raise InvalidInput([Problem(pointer="/ask", detail=f"no ask {ask!r} in the decision")])
        if (plan := chosen[0].plan) is None and len(carried.decisions) > 1:
            raise InvalidInput([Problem(pointer="/ask", detail=_TOGETHER)])
        alone = Carried(asks=carried.asks, decisions=chosen, plan=plan or carried.plan)
        return alone, whole if plan is None else f"{_DECISION}/decisions/{carried.decisions.index(chosen[0])}{_PLAN}"
    if len(carried.decisions) > 1 and any(decision.plan is not None for decision in carried.decisions):
        raise InvalidInput([Problem(pointer="/ask", detail=_EACH_ALONE)])
    return carried, whole
