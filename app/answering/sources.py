"""Where a process that answers has configurations and states from, and what the decision log is given of kept ones.

The process that keeps snapshots writes what the log is given; the log's own process says what it has.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

import msgspec

from app.base import Lru
from app.base.decoding import decode
from app.base.errors import Conflict, NotFound
from app.base.ticket import may_take_long
from app.solver import solve
from app.solver.apply import Index, Patch, patch, patched
from app.solver.delta import digest
from app.solver.model.configuration import Configuration
from app.solver.model.decision import ConfigurationUsed, StateUsed
from app.solver.model.problems import Problem
from app.solver.model.state import State
from app.solver.solve import Configured, Loaded

_VERSIONS = 4
"""Of a snapshot, that changes may be told against: decisions that are under way at once don't wait for one another."""


class Known(msgspec.Struct, frozen=True):
    """What the log has of a snapshot: digests, empty where nothing."""

    state: str = ""
    configuration: str = ""


class LogDocument(msgspec.Struct, frozen=True):
    """A document for the log by its digest: whole, or as the changes since ``base``; ``body`` is JSON."""

    digest: str
    body: bytes
    base: str | None = None


class Recorder:
    """What the log is given of kept states, so that decisions on them can be made again: a state once, then what
    changed since one that the log has. Holds the versions of snapshots that were given to it, while this process
    lives."""

    def __init__(self) -> None:
        self._given: dict[str, OrderedDict[str, tuple[State, Index]]] = {}
        self._lock = Lock()

    def lacking(self, loaded: Loaded, known: Known, *, own: bool) -> list[LogDocument]:
        """What the log lacks of a decision on ``loaded``. ``own``: the request named no configuration."""
        name, lacking = loaded.snapshot or "", list[LogDocument]()
        if loaded.used.digest != known.state:
            lacking.append(self._state(name, loaded, known.state))
        used = loaded.configured.used
        if own and used.name is None and used.digest != known.configuration:
            lacking.append(LogDocument(used.digest, msgspec.json.encode(loaded.configured.configuration)))
        return lacking

    def forget(self, alive: list[str]) -> None:
        """Let go of all snapshots but those ``alive``."""
        with self._lock:
            for name in self._given.keys() - set(alive):
                del self._given[name]

    def _state(self, name: str, loaded: Loaded, base: str) -> LogDocument:
        digest = loaded.used.digest
        with self._lock:
            given = self._given.setdefault(name, OrderedDict())
            before = given.get(base)
            given[digest] = (loaded.state, loaded.index)
            while len(given) > _VERSIONS:
                given.popitem(last=False)
        if before is not None:
            body = msgspec.json.encode(patch(*before, loaded.state))
            return LogDocument(digest, body, base)
        return LogDocument(digest, msgspec.json.encode(loaded.state))


def put_together(bodies: list[bytes]) -> State:
    """The state whose whole version is the first of ``bodies`` and whose changes are the others, in order."""
    state = msgspec.json.decode(bodies[0], type=State)
    for body in bodies[1:]:
        state = patched(state, msgspec.json.decode(body, type=Patch))
    return state


def configuration_of(body: bytes) -> Configuration:
    """A configuration that ``Recorder`` wrote."""
    return msgspec.json.decode(body, type=Configuration)


class Used(msgspec.Struct, frozen=True):
    """The part of a recorded answer that says what it was based on."""

    configuration: ConfigurationUsed
    state: StateUsed


_KEPT = 64
_BYTES_OF_A_QUEUE = 8192
"""Of a compiled configuration, its document included; measured on Kueue and YuniKorn, and tripled."""

_LARGE, _MANY_QUEUES = 512 << 10, 4096
"""So large is a document, in bytes or queues, that compiling it, or a state for it, takes 20 ms and more."""


class Documents(Protocol):
    """Where stored configurations are found, not compiled."""

    def head(self, reference: str) -> tuple[str, int]:
        """Name and revision that ``name``, ``name@revision`` or ``name@label`` means now. Raises NotFound, BadInput,
        Unavailable."""
        ...

    def document(self, name: str, revision: int) -> bytes:
        """The JSON of a revision. Raises NotFound, Unavailable."""
        ...


class States(Protocol):
    """Where kept states are found."""

    def own(self, name: str) -> tuple[str | Configuration, str | None]:
        """The configuration and the engine that the snapshot of that name was put with. Raises NotFound."""
        ...

    def loaded(self, configured: Configured, name: str) -> Loaded:
        """The snapshot of that name, compiled against ``configured``. Raises NotFound, Conflict."""
        ...


class Configurations(Protocol):
    """Where compiled configurations are found. Implementations keep what they compile."""

    def named(self, reference: str, engine: str | None) -> Configured:
        """What ``reference`` means now, compiled for ``engine`` (None: its own). Raises what ``Documents`` does."""
        ...

    def written(self, document: Configuration, engine: str | None) -> Configured:
        """A configuration that the request wrote out in full, compiled for ``engine``. Raises InvalidInput."""
        ...


class Compiled:
    """Configurations compiled once: stored ones by revision, written ones by digest, for callers that send their whole
    cluster send the same queues each time. The least used goes first.

    ``documents``: None where nothing is stored. ``most`` of each kind are kept, ``budget`` bytes as estimated.
    """

    def __init__(self, documents: Documents | None, *, most: int = _KEPT, budget: int = 64 << 20) -> None:
        self._documents = documents
        self._stored: Lru[Hashable, Configured] = Lru(most, budget)
        self._written: Lru[Hashable, Configured] = Lru(most, budget)

    def named(self, reference: str, engine: str | None) -> Configured:
        """See ``Configurations``."""
        if self._documents is None:
            raise unknown("configuration", f"nothing is stored here: write configuration {reference!r} out in full")
        name, revision = self._documents.head(reference)
        key = (name, revision, engine)
        if (known := self._stored.get(key)) is not None:
            if len(known.configuration.queues) > _MANY_QUEUES:
                may_take_long()
            return known
        body = self._documents.document(name, revision)
        if len(body) > _LARGE:
            may_take_long()
        document = decode(body, Configuration)
        configured = solve.configure(document, engine, name=name, revision=revision)
        self._stored.put(key, configured, _bytes_of(document))
        return configured

    def written(self, document: Configuration, engine: str | None) -> Configured:
        """See ``Configurations``."""
        key = (digest(document, "configuration"), engine)
        if (known := self._written.get(key)) is not None:
            return known
        configured = solve.configure(document, engine)
        self._written.put(key, configured, _bytes_of(document))
        return configured


@dataclass(frozen=True, slots=True)
class Sources:
    """Both. ``states``: None where nothing is kept."""

    configurations: Configurations
    states: States | None = None

    def own(self, snapshot: str, engine: str | None) -> Configured:
        """The configuration that the snapshot was put with; a name means what it means now. Raises NotFound."""
        document, compiled_for = self._states(snapshot).own(snapshot)
        engine = engine or compiled_for
        if isinstance(document, str):
            return self.configurations.named(document, engine)
        return self.configurations.written(document, engine)

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        """The snapshot of that name, compiled against ``configured``. Raises NotFound, Conflict."""
        return self._states(snapshot).loaded(configured, snapshot)

    def _states(self, snapshot: str) -> States:
        if self.states is None:
            raise unknown("state/snapshot", f"nothing is stored here: write the state of {snapshot!r} out in full")
        return self.states

    def pinned(self, used: Used) -> "Sources":
        """The same as they were: the configuration in the revision used then, a snapshot only in its generation."""
        states = None if self.states is None else _PinnedStates(self.states, used)
        return replace(self, configurations=_PinnedConfigurations(self.configurations, used), states=states)


def nothing_stored() -> Sources:
    """Sources of somebody who keeps nothing: the request must bring everything along (the command line)."""
    return Sources(Compiled(None))


@dataclass(frozen=True, slots=True)
class _PinnedConfigurations:
    configurations: Configurations
    used: Used

    def named(self, reference: str, engine: str | None) -> Configured:
        used = self.used.configuration
        return self.configurations.named(f"{used.name}@{used.revision}", engine)

    def written(self, document: Configuration, engine: str | None) -> Configured:
        return self.configurations.written(document, engine)


@dataclass(frozen=True, slots=True)
class _PinnedStates:
    states: States
    used: Used

    def own(self, name: str) -> tuple[str | Configuration, str | None]:
        return self.states.own(name)

    def loaded(self, configured: Configured, name: str) -> Loaded:
        loaded = self.states.loaded(configured, name)
        if loaded.generation != self.used.state.generation or loaded.used.digest != self.used.state.digest:
            raise Conflict(f"snapshot {name!r} has moved on from generation {self.used.state.generation}")
        return loaded


def unknown(where: str, detail: str) -> NotFound:
    """The error for a name that means nothing here."""
    return NotFound(detail, problems=[Problem(pointer=f"/{where}", detail=detail)])


def _bytes_of(configuration: Configuration) -> int:
    return _BYTES_OF_A_QUEUE * (1 + len(configuration.queues))
