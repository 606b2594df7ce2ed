"""What can be asked of a process that answers, and what its answer gives the decision log of a kept state.

An operation is one value, the same for whoever asks, carries and answers. The process that keeps snapshots writes what
the log is given; the log's own process says what it has.
"""

from collections import OrderedDict
from datetime import datetime
from enum import Enum
from threading import Lock

import msgspec

from app.formats.exported import Format
from app.solver.index import Index
from app.solver.model.configuration import Configuration
from app.solver.model.decision import ConfigurationUsed, StateUsed
from app.solver.model.state import State
from app.solver.patch import Patch, patch, patched
from app.solver.solve import Loaded

_VERSIONS = 4
"""Of a snapshot, that changes may be told against: decisions that are under way at once don't wait for one another."""


class Known(msgspec.Struct, frozen=True):
    """What the log has of a snapshot: digests, empty where nothing."""

    state: str = ""
    configuration: str = ""


class Kept(msgspec.Struct, frozen=True):
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

    def kept(self, loaded: Loaded, known: Known, *, own: bool) -> list[Kept]:
        """What the log lacks of a decision on ``loaded``. ``own``: the request named no configuration."""
        name, found = loaded.snapshot or "", list[Kept]()
        if loaded.used.digest != known.state:
            found.append(self._state(name, loaded, known.state))
        used = loaded.configured.used
        if own and used.name is None and used.digest != known.configuration:
            found.append(Kept(used.digest, msgspec.json.encode(loaded.configured.configuration)))
        return found

    def forget(self, alive: list[str]) -> None:
        """Let go of all snapshots but those ``alive``."""
        with self._lock:
            for name in self._given.keys() - set(alive):
                del self._given[name]

    def _state(self, name: str, loaded: Loaded, base: str) -> Kept:
        digest = loaded.used.digest
        with self._lock:
            given = self._given.setdefault(name, OrderedDict())
            before = given.get(base)
            given[digest] = (loaded.state, loaded.index)
            while len(given) > _VERSIONS:
                given.popitem(last=False)
        if before is not None:
            body = msgspec.json.encode(patch(*before, loaded.state))
            return Kept(digest, body, base)
        return Kept(digest, msgspec.json.encode(loaded.state))


def put_together(bodies: list[bytes]) -> State:
    """The state whose whole version is the first of ``bodies`` and whose changes are the others, in order."""
    state = msgspec.json.decode(bodies[0], type=State)
    for body in bodies[1:]:
        state = patched(state, msgspec.json.decode(body, type=Patch))
    return state


def configuration_of(body: bytes) -> Configuration:
    """A configuration that ``Recorder`` wrote."""
    return msgspec.json.decode(body, type=Configuration)


class Operation(Enum):
    """An operation on bytes. Those on a kept snapshot name it beside the bytes."""

    DECISION = "decision"
    COMPARISON = "comparison"
    PLAN = "plan"
    PREEMPTION = "preemption"
    SHARES = "shares"
    PREEMPTIBILITY = "preemptibility"
    EFFECTIVE_SETTINGS = "effective-settings"
    IMPORT = "import"
    SNAPSHOT_PUT = "snapshot-put"
    SNAPSHOT_DELTA = "snapshot-delta"
    SNAPSHOT_APPLY = "snapshot-apply"
    SNAPSHOT_GET = "snapshot-get"
    SNAPSHOT_STATE = "snapshot-state"
    SNAPSHOT_ASKS = "snapshot-asks"
    SNAPSHOT_DELETE = "snapshot-delete"
    SNAPSHOT_LIST = "snapshot-list"
    SNAPSHOT_FIND = "snapshot-find"


class Used(msgspec.Struct, frozen=True):
    """The part of a recorded answer that says what it was based on."""

    configuration: ConfigurationUsed
    state: StateUsed


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
