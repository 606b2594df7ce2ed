"""What a cluster was a moment ago, and the preemptions seen meanwhile. Kept by a mirror, under its lock."""

import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from app.following.evidence import Evidence, ends, evidence
from app.following.reading import Item, Key
from app.solver.model.configuration import EngineName

Items = dict[str, dict[Key, Item]]

QUIET_SECONDS = 2.0
"""Without a further eviction for the same work: then all of them are known."""
_LONGEST_SECONDS = 20.0
_CYCLE_SECONDS = 1.0
"""Evictions so close may come of one look of the scheduler at the cluster."""
_KEPT_SECONDS = 120.0
_KEPT_CHANGES = 200_000
_WAITING = 1000


class _Change(NamedTuple):
    number: int
    heard: float
    kind: str
    key: Key
    old: Item | None


@dataclass(slots=True)
class Preemption:
    """Evictions for the same work. ``number``: of the change that showed the first of them; ``moments``: the numbers
    before which the scheduler may have decided, the likeliest first."""

    by: str
    number: int
    begun: float
    last: float
    seen_at: datetime
    victims: dict[Key, Evidence] = field(default_factory=dict[Key, Evidence])
    moments: list[int] = field(default_factory=list[int])


class Past:
    """The last changes, so that they can be undone, and what they say of preemptions."""

    def __init__(self, engine: EngineName, quiet: float = QUIET_SECONDS) -> None:
        self._engine: EngineName = engine
        self._quiet = quiet
        self._changes: deque[_Change] = deque()
        self._next = 0
        self._ended: dict[Key, int] = {}
        self._open: dict[str, Preemption] = {}
        self._begun: deque[tuple[float, int]] = deque(maxlen=_WAITING)

    def changed(self, kind: str, key: Key, old: Item | None, new: Item | None) -> None:
        """Something is no longer ``old``."""
        now, number = time.monotonic(), self._next
        self._next += 1
        self._changes.append(_Change(number, now, kind, key, old))
        self._forget(now)
        if ends(kind, old, new):
            self._ended[key] = number
        if new is not None and (found := evidence(self._engine, kind, old, new)) is not None:
            self._seen(found, number, now)

    def cleared(self) -> None:
        """Everything was listed anew: what was before is not known."""
        self._changes.clear()
        self._ended.clear()

    def ripe(self) -> list[Preemption]:
        """Preemptions of which nothing more is expected; each is told once."""
        now = time.monotonic()
        done = [
            one for one in self._open.values() if now - one.last >= self._quiet or now - one.begun >= _LONGEST_SECONDS
        ]
        for one in done:
            del self._open[one.by]
            first = min([one.number, *(self._ended.get(victim, one.number) for victim in one.victims)])
            near = [number for begun, number in self._begun if 0 <= one.begun - begun <= _CYCLE_SECONDS]
            one.moments = sorted({first, min([first, *near])}, reverse=True)
        return done

    def before(self, number: int, items: Items) -> Items | None:
        """``items`` as they were before that change; None where that is too long ago."""
        oldest = self._changes[0].number if self._changes else self._next
        if number < oldest:
            return None
        found = {kind: dict(of) for kind, of in items.items()}
        for change in reversed(self._changes):
            if change.number < number:
                break
            if change.old is None:
                found[change.kind].pop(change.key, None)
            else:
                found[change.kind][change.key] = change.old
        return found

    def _seen(self, found: Evidence, number: int, now: float) -> None:
        one = self._open.get(found.by)
        if one is None:
            if len(self._open) >= _WAITING:
                return
            one = self._open[found.by] = Preemption(found.by, number, now, now, found.at or datetime.now(UTC))
            self._begun.append((now, number))
        one.victims[found.victim] = found
        one.last = now

    def _forget(self, now: float) -> None:
        while len(self._changes) > _KEPT_CHANGES or self._changes[0].heard < now - _KEPT_SECONDS:
            gone = self._changes.popleft()
            if self._ended.get(gone.key) == gone.number:
                del self._ended[gone.key]
