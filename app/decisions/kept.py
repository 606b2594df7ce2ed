"""What is kept of a decision, compressed, the keys by which it is found again, and its request written out in full."""

from collections.abc import Iterable
from hashlib import blake2b
from threading import Lock
from typing import Any

import msgspec
import zstandard
from sqlalchemy import RowMapping

from app.answering.answers import Facts
from app.answering.sources import Documents, Known, LogDocument, Used, put_together
from app.base.errors import Conflict, NotFound
from app.db.database import Database
from app.decisions import repository
from app.decisions.repository import New, storable
from app.search.service import Kind
from app.solver.delta import StateDigest
from app.solver.model.base import to_datetime

WITHIN = 3600 * 10**6
"""Microseconds between the times that two decisions are made for."""
_MOST = 1000
"""Evictions of one decision that are looked at: a plan that stops more closes its circle with one of these."""


def pairs_of(facts: Facts) -> list[int] | None:
    """The keys of a decision's own evictions; None: it has none.

    Circles in the log: A evicted B, and B evicted A within an hour. Each eviction of a decision has a key: a hash of
    whose rules, on which configuration, who, whom and the hour. What would close a circle with it has the keys of the
    opposite pair in that hour and its neighbours: one look into an index, however long the log and however often
    somebody evicts somebody.
    """
    hour = facts.now // WITHIN
    return _keys(facts, facts.evictions[:_MOST], (hour,)) or None


def returns_of(facts: Facts) -> list[int]:
    """The keys of evictions that would close a circle with one of its own."""
    hour = facts.now // WITHIN
    back = ((victim, evictor) for evictor, victim in facts.evictions[:_MOST])
    return _keys(facts, back, (hour - 1, hour, hour + 1))


def _keys(facts: Facts, pairs: Iterable[tuple[str, str]], hours: tuple[int, ...]) -> list[int]:
    digests: dict[int, None] = {}
    where = f"{facts.engine}\0{facts.configuration.name or ''}"
    for name, other in pairs:
        for hour in hours:
            text = f"{where}\0{name}\0{other}\0{hour}"
            digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
            digests[int.from_bytes(digest, signed=True)] = None
    return list(digests)


def names_of(facts: Facts) -> list[tuple[Kind, str]]:
    """By which a decision is found: its asks, whose they are, whom it stops or spares, and all their queues."""
    asks: list[tuple[Kind, str]] = [("ask", storable(ask)) for ask in facts.asks[:_MOST]]
    queues: list[tuple[Kind, str]] = [("queue", storable(queue)) for queue in facts.queues[:_MOST]]
    others = () if facts.workloads == facts.asks else facts.workloads[:_MOST]
    named = dict.fromkeys((*others, *facts.evicted[:_MOST], *facts.spared[:_MOST], *facts.pods[:_MOST]))
    return [*asks, *queues, *(("workload", storable(name)) for name in named)]


_WHOLE_LEVEL, _CHANGE_LEVEL = 3, 12
"""Changes are small and many, a whole state is large and rare: each as far as it is worth the time."""


def squeezed(document: LogDocument) -> New:
    """``document`` for the database."""
    level = _WHOLE_LEVEL if document.base is None else _CHANGE_LEVEL
    content = zstandard.ZstdCompressor(level=level).compress(document.body)
    base = None if document.base is None else bytes.fromhex(document.base)
    return New(bytes.fromhex(document.digest), base, content)


def unsqueezed(content: bytes) -> bytes:
    """The JSON of a kept document."""
    return zstandard.ZstdDecompressor().decompress(content)


LONGEST = 1000
"""States that may build on one another: then one is kept whole again, so that the ones before can go some day, and
putting one together stays quick."""
MOST_SNAPSHOTS = 10_000


class LoggedStates:
    """By name of snapshot the latest state that was taken into the log, its configuration, and how many states lie
    between the state and a whole one. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Known, int]] = {}
        self._lock = Lock()

    def known(self, snapshot: str) -> Known:
        """What changes may be told against; nothing where it is time for a whole state."""
        with self._lock:
            entry = self._known.get(snapshot)
        if entry is None:
            return Known()
        known, depth = entry
        return known if depth < LONGEST else Known(configuration=known.configuration)

    def has(self, snapshot: str, state: str) -> bool:
        """Whether that state of the snapshot is in the log."""
        with self._lock:
            known = self._known.get(snapshot)
            return known is not None and known[0].state == state

    def taken(self, snapshot: str, state: str, configuration: str, documents: list[LogDocument]) -> None:
        """The log has taken a decision on that state, with ``documents``."""
        with self._lock:
            before, depth = self._known.pop(snapshot, (Known(), 0))
            for document in documents:
                if document.digest == state:
                    depth = 0 if document.base is None else depth + 1
            mine = any(document.digest == configuration for document in documents)
            self._known[snapshot] = Known(state, configuration if mine else before.configuration), depth
            while len(self._known) > MOST_SNAPSHOTS:
                del self._known[next(iter(self._known))]

    def lost(self, digests: set[str]) -> None:
        """The database has not got these: nothing more is told against them."""
        with self._lock:
            for name in [n for n, (k, _) in self._known.items() if {k.state, k.configuration} & digests]:
                del self._known[name]


_Fields = dict[str, Any]


class _State(msgspec.Struct, frozen=True):
    snapshot: str | None = None


class _Named(msgspec.Struct, frozen=True):
    """What a request leaves to the service."""

    state: _State = _State()
    configuration: msgspec.Raw = msgspec.Raw(b"null")


class Resolver:
    """Requests of logged decisions with what they only name written in: configuration, state and the time. Reads from
    the log and from the stored configurations, ``documents``."""

    def __init__(self, database: Database, documents: Documents | None) -> None:
        self._database = database
        self._documents = documents

    def resolved(self, row: RowMapping) -> bytes:
        """The request of ``row`` as it can be answered anywhere, and without a clock. Raises NotFound, Unavailable, and
        Conflict with code ``state_not_kept`` where the log has no state for it."""
        body, named = _read(row)
        written: _Fields = {"engine": row["engine"], "now": to_datetime(row["now"])}
        if bytes(named.configuration)[:1] in (b'"', b"n"):
            written["configuration"] = msgspec.Raw(self._configuration(row))
        if named.state.snapshot is not None:
            written["state"] = msgspec.Raw(self._state(row))
        written["mode"] = body.get("mode", "independent")
        return msgspec.json.encode(body | written)

    def as_then(self, row: RowMapping, used: Used) -> bytes:
        """The request of ``row`` for deciding it again: as it was, but with the state in place of a snapshot that has
        moved on. Where that is not kept, the snapshot may still be there. Raises Unavailable."""
        body, named = _read(row)
        if named.state.snapshot is None or row["kept_state"] is None:
            return unsqueezed(row["request"])
        body["state"] = msgspec.Raw(self._state(row))
        if bytes(named.configuration) == b"null":
            unnamed = used.configuration.name is None
            body["configuration"] = (
                msgspec.Raw(self._configuration(row))
                if unnamed
                else f"{used.configuration.name}@{used.configuration.revision}"
            )
        return msgspec.json.encode({"engine": row["engine"]} | body)

    def _configuration(self, row: RowMapping) -> bytes:
        """The document that was used. Raises NotFound, Conflict, Unavailable."""
        name, revision = row["configuration_name"], row["configuration_revision"]
        if name is not None:
            if self._documents is None:
                raise NotFound(f"nothing is stored here: no configuration {name!r}")
            return self._documents.document(name, revision)
        if row["kept_configuration"] is None:
            raise _not_kept("configuration")
        with self._database.session() as session:
            return unsqueezed(repository.chain(session, row["kept_configuration"])[0])

    def _state(self, row: RowMapping) -> bytes:
        """The state that was decided on. Raises Conflict, Unavailable."""
        if row["kept_state"] is None:
            raise _not_kept("state")
        with self._database.session() as session:
            contents = repository.chain(session, row["kept_state"])
        state = put_together([unsqueezed(content) for content in contents])
        if StateDigest(state).hexdigest() != row["state_digest"]:
            raise _not_kept("state")
        return msgspec.json.encode(state)


def _read(row: RowMapping) -> tuple[dict[str, Any], _Named]:
    request = unsqueezed(row["request"])
    return dict(msgspec.json.decode(request, type=dict[str, msgspec.Raw])), msgspec.json.decode(request, type=_Named)


def _not_kept(what: str) -> Conflict:
    return Conflict(
        f"the log has not kept the {what} that this was decided on: it was behind, or the database lost it",
        extra={"code": "state_not_kept"},
    )
