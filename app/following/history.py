"""What a cluster was over the last minutes, and the evictions seen meanwhile. Kept by a mirror, under its lock.

Kinds are heard one by one, in any order among them. What was first is told by resource versions where they are numbers,
which the API server counts up over all kinds; an object that they say nothing of stands where it was heard.
"""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from app.base.decoding import whole
from app.following.objects import WORK, ends, evidence, preempts, reserves
from app.formats.objects import Evidence, Item, Key, id_of, part
from app.solver.model.configuration import EngineName

Items = dict[str, dict[Key, Item]]
Position = tuple[int, int]
"""The order of a change, and its number as it was heard."""

QUIET_SECONDS = 2.0
"""Without a further eviction for the same work: then all of them are known."""
KEPT_SECONDS = 180.0
_LONGEST_SECONDS = 20.0
MOST_CHANGES = 200_000
MOST_WAITING = 1000
_EVICTIONS = 10_000
_PREEMPTORS = 20_000


class Change(NamedTuple):
    """One object was ``old`` and is ``new`` since; None: there was none, or is none. ``heard``: in seconds."""

    position: Position
    heard: float
    kind: str
    key: Key
    old: Item | None
    new: Item | None


class Eviction(NamedTuple):
    """One that was seen. ``position``: of the first change that shows it; ``listed``: only a list shows it, which
    was read because what happened before was missed."""

    position: Position
    heard: float
    seen: Evidence
    listed: bool = False


class Ended(NamedTuple):
    """A pod was told to end, or was gone."""

    position: Position
    heard: float
    listed: bool


@dataclass(slots=True)
class Preemption:
    """Evictions for the same work, in their order. ``begun``, ``last``: when the first and the last of them were
    heard."""

    by: str
    begun: float
    last: float
    seen_at: datetime
    evictions: list[Eviction] = field(default_factory=list[Eviction])


class Sign(NamedTuple):
    """A Workload awaits victims since then, or, as it has quota, no more."""

    position: Position
    key: Key
    awaits: bool


@dataclass(slots=True)
class Rewind:
    """A cluster that goes back in time, change by change. ``items`` is what it was; ``evictions``: all that were seen
    of late; ``since``: when the change was heard that was undone last."""

    items: Items
    evictions: list[Eviction]
    _changes: list[Change]
    _left: int
    _forgotten: Position
    _signs: list[Sign] = field(default_factory=list[Sign])
    _known: Mapping[str, "Met"] = field(default_factory=dict[str, "Met"])
    since: float | None = None

    def to(self, position: Position) -> bool:
        """Undo all changes from ``position`` on; whether that is not too long ago."""
        if position <= self._forgotten:
            return False
        first = bisect_left(self._changes, position, key=_position)
        while self._left > first:
            self.back()
        return True

    def back(self) -> Change | None:
        """Undo one more change; None: nothing earlier is known."""
        if not self._left:
            return None
        self._left -= 1
        change = self._changes[self._left]
        self.since = change.heard
        of = self.items.setdefault(change.kind, {})
        if change.old is None:
            of.pop(change.key, None)
        else:
            of[change.key] = change.old
        return change

    def before(self, position: Position) -> bool:
        """Whether one more step back goes before ``position``, which was the last to change then."""
        return self._left > 0 and self._changes[self._left - 1].position <= position

    def preemptors(self, before: Position) -> dict[str, Position]:
        """The Workloads that had ended a cycle by then with victims that must stop first, and had got no quota since;
        each with when it did last."""
        by_uid = {part(item, "metadata").get("uid"): key for key, item in self.items.get("Workload", {}).items()}
        evicting = (
            Sign(eviction.position, by_uid[eviction.seen.by], awaits=True)
            for eviction in self.evictions
            if eviction.seen.by in by_uid
        )
        waiting: dict[str, Position] = {}
        for sign in sorted((*self._signs, *evicting), key=_position):
            if sign.position >= before:
                break
            if sign.awaits:
                waiting[id_of(sign.key)] = sign.position
            else:
                waiting.pop(id_of(sign.key), None)
        return waiting

    def undone(self, seconds: float) -> Iterable[Change]:
        """What is undone now, the oldest first, as far as it was heard within ``seconds`` of the first of it."""
        changes = self._changes[self._left :]
        begun = changes[0].heard if changes else 0.0
        return (change for change in changes if change.heard <= begun + seconds)

    def earlier(self) -> Iterable[Change]:
        """What could still be undone, the youngest first."""
        return (self._changes[place] for place in range(self._left - 1, -1, -1))

    def known(self, kind: str, key: Key) -> Item:
        """An object as it was known last; an empty one where it never was."""
        if (item := self.items.get(kind, {}).get(key)) is not None:
            return item
        gone = (change.old for change in reversed(self._changes) if (change.kind, change.key) == (kind, key))
        return next((item for item in gone if item is not None), dict[str, Any]())

    def preemptor(self, name: str) -> Key | None:
        """Whom evictions call so that were for it: what is there, or was of late."""
        met = self._known.get(name)
        return None if met is None else met.key

    def copy(self) -> "Rewind":
        """Another one that stands where this does."""
        items = {kind: dict(of) for kind, of in self.items.items()}
        return Rewind(
            items, self.evictions, self._changes, self._left, self._forgotten, self._signs, self._known, self.since
        )


class Met(NamedTuple):
    """Who may preempt. ``number``: of the last change of it."""

    key: Key
    number: int


class History:
    """The last changes, and what they say of evictions. ``clock``: in seconds; ``window``: for how long changes are
    kept, 0: none are, and evictions are seen all the same."""

    def __init__(
        self, engine: EngineName, quiet: float = QUIET_SECONDS, *, window: float = KEPT_SECONDS,
        clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self._engine: EngineName = engine
        self._preemptors = WORK[engine][0]
        self._known: dict[str, Met] = {}
        self._gone: deque[tuple[float, str, int]] = deque()
        self._heard: dict[str, int] = {}
        self._quiet = quiet
        self._window = window
        self._clock = clock or time.monotonic
        self._changes: deque[Change] = deque()
        self._forgotten: Position = (-1, 0)
        self._number = 0
        self._order = self._base = 0
        self._ended: dict[Key, Ended] = {}
        self._open: dict[str, Preemption] = {}
        self._evictions: deque[Eviction] = deque(maxlen=_EVICTIONS)
        self._evidence: dict[Evidence, None] = {}
        self._others: list[Eviction] = []
        self._signs: deque[Sign] = deque(maxlen=_PREEMPTORS)

    def changed(
        self, kind: str, key: Key, old: Item | None, new: Item | None, version: str, *, state: bool,
        listed: bool = False,
    ) -> None:  # fmt: skip
        """Something is no longer ``old``. ``version``: its resource version; ``state``: whether the kind says how the
        cluster is; ``listed``: a list says so, of that version."""
        now = self._clock()
        position = self._position(kind, version, state=state)
        if state and self._window:
            self._changes.append(Change(position, now, kind, key, old, new))
            self._forget(now)
        if kind == self._preemptors:
            self._meet(key, old, new, position[1])
        if kind == "Workload" and new is not None:
            if reserves(new) and not reserves(old):
                self._signs.append(Sign(position, key, awaits=False))
            elif preempts(new) and not (old is not None and preempts(old)):
                self._signs.append(Sign(position, key, awaits=True))
        if ends(kind, old, new):
            self._ended[key] = Ended(position, now, listed)
        if new is not None and (seen := evidence(self._engine, kind, old, new)) is not None:
            self._see(Eviction(position, now, seen, listed), seen, now)

    def cleared(self) -> None:
        """What was before is not known: the server began anew, or this is the first that is known of a kind. Whom
        evictions were for is known all the same."""
        self._changes.clear()
        self._ended.clear()
        self._forgotten = self._order, self._number

    def there(self, kind: str, items: dict[Key, Item]) -> None:
        """All of a kind, of which what happened to them before is not known."""
        if kind != self._preemptors:
            return
        listed = {self._name(key, item): Met(key, self._number) for key, item in items.items()}
        for name in [name for name in self._known if name not in listed]:
            self._went(name, self._number)
        self._known |= listed

    def restored(self, kind: str, version: str) -> bool:
        """Whether a list of ``version`` is older than what was heard of the kind itself: the server was restored from
        an older state, and counts from there. Of other kinds more may have been heard while it was on its way."""
        counted = _counted(version)
        if counted is None or self._base + counted >= self._heard.get(kind, 0):
            return False
        self._base = self._order
        return True

    def ripe(self, *, known: bool = False) -> list[Preemption]:
        """Preemptions of which nothing more is expected. ``known``: and whose preemptor is there, or was of late: kinds
        are heard one by one, and an event may come long before its pod. Each is told once."""
        now = self._clock()
        done = [
            preemption for preemption in self._open.values()
            if now - preemption.begun >= _LONGEST_SECONDS
            or (now - preemption.last >= self._quiet and (not known or self.knows(preemption.by)))
        ]  # fmt: skip
        for preemption in done:
            del self._open[preemption.by]
            preemption.evictions = sorted(map(self._first_sign, preemption.evictions))
        return done

    def knows(self, by: str) -> bool:
        """Whether it is there, or was of late; nobody always is."""
        return not by or by in self._known

    def _name(self, key: Key, item: Item) -> str:
        """As evictions name whom they are for."""
        return id_of(key) if self._preemptors == "PodGroup" else str(part(item, "metadata").get("uid") or "")

    def _meet(self, key: Key, old: Item | None, new: Item | None, number: int) -> None:
        if new is not None:
            self._known[self._name(key, new)] = Met(key, number)
        elif old is not None:
            self._went(self._name(key, old), number)

    def _went(self, name: str, number: int) -> None:
        """Who is gone stays known as long as changes are kept; where none are not at all."""
        if not self._window:
            self._known.pop(name, None)
        else:
            self._gone.append((self._clock(), name, number))

    def _let_go(self, now: float) -> None:
        """Who went long ago is forgotten, unless one of that name has come since."""
        while self._gone and (self._gone[0][0] < now - self._window or len(self._gone) > MOST_CHANGES):
            _, name, number = self._gone.popleft()
            if name in self._known and self._known[name].number <= number:
                del self._known[name]

    def others(self) -> list[Eviction]:
        """Evictions that are nobody's preemption; each is told once."""
        evictions, self._others = self._others, []
        return evictions

    def rewind(self, items: Items) -> Rewind:
        """From ``items``, as they are now."""
        changes = sorted(self._changes, key=_position)
        objects = {kind: dict(of) for kind, of in items.items()}
        evictions = list(map(self._first_sign, self._evictions))
        return Rewind(objects, evictions, changes, len(changes), self._forgotten, list(self._signs), self._known)

    def _position(self, kind: str, version: str, *, state: bool) -> Position:
        """Events may be kept in a store of their own, with versions of its own: they stand no earlier than all that was
        heard, and nothing stands by them."""
        self._number += 1
        counted = _counted(version)
        order = self._order if counted is None else self._base + counted
        if not state:
            return max(order, self._order), self._number
        self._order = max(self._order, order)
        self._heard[kind] = max(self._heard.get(kind, 0), order)
        return order, self._number

    def _first_sign(self, eviction: Eviction) -> Eviction:
        """A pod that is told to end, or is gone, may be heard of before the event that says why, and after it."""
        ended = self._ended.get(eviction.seen.victim)
        if ended is None or abs(ended.heard - eviction.heard) > _LONGEST_SECONDS:
            return eviction
        return Eviction(ended.position, ended.heard, eviction.seen, ended.listed)

    def _see(self, eviction: Eviction, seen: Evidence, now: float) -> None:
        """What is said again, with its time, is the same eviction: a server may tell of older versions once more."""
        if seen.at is not None:
            if seen in self._evidence:
                return
            self._evidence[seen] = None
            if len(self._evidence) > _EVICTIONS:
                del self._evidence[next(iter(self._evidence))]
        if not seen.preempted:
            if len(self._others) < _EVICTIONS:
                self._others.append(eviction)
            return
        preemption = self._open.get(seen.by)
        if preemption is None:
            if len(self._open) >= MOST_WAITING:
                return
            preemption = self._open[seen.by] = Preemption(seen.by, now, now, seen.at or datetime.now(UTC))
        self._evictions.append(eviction)
        preemption.evictions.append(eviction)
        preemption.last = now

    def _forget(self, now: float) -> None:
        self._let_go(now)
        while len(self._changes) > MOST_CHANGES or self._changes[0].heard < now - self._window:
            gone = self._changes.popleft()
            self._forgotten = max(self._forgotten, gone.position)
            ended = self._ended.get(gone.key)
            if ended is not None and ended.position == gone.position:
                del self._ended[gone.key]


def _position(change: Change | Sign) -> Position:
    return change.position


def _counted(version: str) -> int | None:
    """A version as a number; None where the server counts otherwise."""
    number = whole(version)
    return number if number is not None and number >= 0 else None
