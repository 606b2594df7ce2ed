"""Search by any part of a name, ``/v1/find``: what the log and followers told of, and what is stored and kept.

Names that are told are kept once each, however often they are told: a dictionary beside the log, bounded by number,
which one pass looks through. All else answers for itself, and is asked: see ``Source``.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from threading import Lock
from time import monotonic
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query, Response

from app.base.errors import Unavailable
from app.db.database import Database
from app.http.openapi import operation
from app.http.responses import json_response
from app.http.routing import provided
from app.search.repository import holding, prune, saving

Job = Literal["simulation", "sweep", "forecast", "backtest", "exposure"]
Kind = Literal["workload", "ask", "queue", "node", "configuration", "snapshot", "cluster", "decision", Job]
JOBS: tuple[Job, ...] = ("simulation", "sweep", "forecast", "backtest", "exposure")
ORDER: tuple[Kind, ...] = (
    "cluster", "snapshot", "configuration", *JOBS, "decision", "queue", "workload", "ask", "node",
)  # fmt: skip
"""Among names that fit alike: of what there are few goes first."""
MOST_NAMES = 200_000
"""Names that are kept: looking through them takes about 0.1 s of the database."""
_LONGEST = 2000
"""Bytes of a name that an index takes."""
_AGAIN = 3600.0
"""Seconds after which a name that goes on being told is told to the database again."""
_REMEMBERED = 100_000
_MOST_TOLD = 5000
"""Names of one report or decision: a larger one is found by its first."""
_PRUNE_EVERY = 600.0
_SHORTEST = 2
_DIGITS, _FEWEST_DIGITS = 32, 6
"""Of an id, and of what is taken for a part of one."""


class Hit(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Something whose name holds what is looked for."""

    kind: Kind
    """What it is."""
    name: str
    """Its name or id."""
    id: UUID | None = None
    """Of a simulation that is found by its name."""
    configuration: str | None = None
    """Of a queue: the stored configuration that has it. Of a snapshot: the one that it is compiled for."""
    snapshot: str | None = None
    """Of what runs, waits or is there now: the kept snapshot that has it."""
    seen_at: datetime | None = None
    """Of what the log or a follower told: about when last."""


Source = Callable[[str, int], Sequence[Hit]]
"""Up to so many whose names hold a text, which is folded. Raises Unavailable."""


class Names:
    """The dictionary. ``keep``: for how long after it was last told a name stays; None: however long."""

    def __init__(self, database: Database, keep: timedelta | None = None) -> None:
        self._database = database
        self._keep = keep
        self._stored: dict[tuple[Kind, str], float] = {}
        self._lock = Lock()
        self._prune_at = 0.0

    def tell(self, named: Iterable[tuple[Kind, str]]) -> None:
        """Keep names; those told within the hour cost nothing. Raises Unavailable."""
        now = monotonic()
        with self._lock:
            new = sorted({pair for pair in named if now - self._stored.get(pair, -_AGAIN) >= _AGAIN})[:_MOST_TOLD]
        rows = [(kind, name, fold(name)) for kind, name in new if 0 < len(name.encode()) <= _LONGEST]
        if rows:
            self._database.send(saving(rows))
        with self._lock:
            if len(self._stored) + len(new) > _REMEMBERED:
                self._stored.clear()
            self._stored.update(dict.fromkeys(new, now))
        if now >= self._prune_at:
            self._prune_at = now + _PRUNE_EVERY
            self._prune()

    def holding(self, part: str, limit: int) -> list[Hit]:
        """A ``Source``. Raises Unavailable."""
        with self._database.session() as session:
            rows = holding(session, part, limit)
        return [Hit(kind=row["kind"], name=row["name"], seen_at=row["seen_at"]) for row in rows]

    def _prune(self) -> None:
        before = None if self._keep is None else datetime.now(UTC) - self._keep
        with self._database.session() as session:
            prune(session, before=before, keep=MOST_NAMES)


class Found(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a text finds."""

    items: list[Hit]
    """Those that are it, then those that begin with it, then those that hold it."""
    nearest: list[Hit] = []
    """Where nothing holds it: what holds most of it, the likest first."""
    away: bool = False
    """Whether the database could not be asked: only what is kept in memory was looked through."""


class Finder:
    """Asks every source."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def find(self, text: str, limit: int) -> Found:
        """Whatever is called so, or nearly so."""
        part = fold(text.strip())
        if not part:
            return Found(items=[])
        hits, away = self._holding(part, limit)
        if hits or len(part) <= _SHORTEST:
            return Found(items=hits[:limit], away=away)
        for shorter in _shorter(part):
            near, away = self._holding(shorter, 5 * limit)
            if near:
                near.sort(key=lambda hit: -SequenceMatcher(None, part, fold(hit.name)[:500]).ratio())
                return Found(items=[], nearest=near[:limit], away=away)
        return Found(items=[], away=away)

    def _holding(self, part: str, limit: int) -> tuple[list[Hit], bool]:
        hits: dict[tuple[Kind, str, UUID | str | None, str | None], Hit] = {}
        away = False
        for source in self._sources:
            try:
                for hit in source(part, limit):
                    hits.setdefault((hit.kind, hit.name, hit.id or hit.configuration, hit.snapshot), hit)
            except Unavailable:
                away = True
        return sorted(_once(hits.values()), key=lambda hit: _rank(hit, part))[:limit], away


def fold(text: str) -> str:
    """``text`` as names are compared: without case, and as PostgreSQL can hold it."""
    return text.replace("\0", "\ufffd").casefold()


def ids_beginning(part: str) -> tuple[UUID, UUID] | None:
    """The first and the last id that begin with ``part``; None: it is no beginning of one, or too short to tell."""
    digits = part.replace("-", "")
    if not _FEWEST_DIGITS <= len(digits) <= _DIGITS or not set(digits) <= set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(_DIGITS, "0")), UUID(digits.ljust(_DIGITS, "f"))


def _once(hits: Iterable[Hit]) -> Iterable[Hit]:
    """Without what the log told of, where something that is there now has the name too."""
    hits = list(hits)
    here = {(hit.kind, hit.name) for hit in hits if hit.seen_at is None}
    return [hit for hit in hits if hit.seen_at is None or (hit.kind, hit.name) not in here]


def _rank(hit: Hit, part: str) -> tuple[bool, bool, int, float, str]:
    name = fold(hit.name)
    seen = float("inf") if hit.seen_at is None else hit.seen_at.timestamp()
    return name != part, not name.startswith(part), ORDER.index(hit.kind), -seen, hit.name


def _shorter(part: str) -> Iterable[str]:
    """Most of it from the front or from the back, then half, then a quarter."""
    for share in (3 / 4, 1 / 2, 1 / 4):
        size = max(_SHORTEST, round(share * len(part)))
        yield part[:size]
        yield part[-size:]


DOCUMENTED = (Found, Hit)

router = APIRouter(prefix="/v1/find", tags=["decision log"])


@router.get(
    "",
    operation_id="find",
    summary="What is called so?",
    **operation(needs="read", responses={200: Found}, errors=(503, 504)),
)
def find(
    finder: Annotated[Finder, provided(Finder)],
    text: Annotated[
        str,
        Query(min_length=1, max_length=2048, description="Any part of a name or id, in any case.", examples=["chat"]),
    ],
    limit: Annotated[int, Query(ge=1, le=100, description="How many at most")] = 20,
) -> Response:
    """Workloads, asks and queues that the log or a follower told of; what runs, waits and is there in kept snapshots;
    queues and names of configurations; snapshots, clusters; simulations by name; decisions and all that a worker plays
    (simulations, sweeps, forecasts, backtests, exposures) by the beginning of their ids."""
    return json_response(msgspec.json.encode(finder.find(text, limit)))
