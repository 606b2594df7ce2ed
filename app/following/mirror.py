"""What objects say of preemptions: who was evicted, for whom, and why. Pure.

Kueue: the conditions `Evicted` (reason `Preempted`) and `Preempted` of a Workload; their message names the UID of the
Workload that it was for (pkg/scheduler/preemption). KAI: an Event with reason `Evict`, whose message names the pod and
the PodGroup that it was for (pkg/scheduler/api). YuniKorn: an Event on the pod, whose message names the allocation that
it was for, which is the UID of a pod (pkg/scheduler/objects/events).

What a cluster was a moment ago, and the preemptions seen meanwhile. Kept by a mirror, under its lock.

The objects of a cluster as they are known now, whole or not at all.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Condition
from typing import Any, NamedTuple, cast

import msgspec

from app.following.kinds import Kind
from app.following.reading import Event, Item, Listed, part
from app.solver.model.configuration import EngineName

Key = tuple[str, str]
NOT_NAMED = "the cluster does not say for whom"

_KUEUE = re.compile(r"\(UID: ([^,)\s]+)")
_KAI = re.compile(r"Pod ([^/\s]+)/(\S+) was preempted by (higher priority )?workload ([^/\s]+)/(\S+)")
_KAI_MOVED = re.compile(r"Pod ([^/\s]+)/(\S+) was preempted and rescheduled")
_YUNIKORN = re.compile(r"Preempted by (\S+) from application (\S+) in (\S+)")
_YUNIKORN_QUOTA = re.compile(r"Preempted by [Qq]uota change")
_UNKNOWN = "UNKNOWN"
"""What Kueue writes where it does not know."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One eviction. ``victim``: namespace and name of its Workload or Pod; ``by``: the UID of whom it was for, or
    `namespace/name`; empty where nobody is named; ``at``: when, as the cluster says it."""

    victim: Key
    by: str
    reason: str | None
    at: datetime | None


def evidence(engine: EngineName, kind: str, old: Item | None, new: Item) -> Evidence | None:
    """What ``new`` says of an eviction that ``old`` did not; None for nearly every object."""
    reader = _READERS.get((engine, kind))
    return None if reader is None else reader(old, new)


def ends(kind: str, old: Item | None, new: Item | None) -> bool:
    """Whether a pod is told to end by this change, or is gone without."""
    if kind != "Pod" or old is None or "deletionTimestamp" in part(old, "metadata"):
        return False
    return new is None or "deletionTimestamp" in part(new, "metadata")


def _kueue(old: Item | None, new: Item) -> Evidence | None:
    evicted = _condition(new, "Evicted")
    if evicted is None or evicted.get("reason") != "Preempted":
        return None
    if old is None or (was := _condition(old, "Evicted")) == evicted:
        return None
    if was is not None and was.get("lastTransitionTime") == evicted.get("lastTransitionTime"):
        return None
    preempted = _condition(new, "Preempted") or {}
    message = _text(preempted.get("message")) or _text(evicted.get("message"))
    found = _KUEUE.search(message)
    by = found[1] if found is not None and found[1] != _UNKNOWN else ""
    return Evidence(_key(new), by, _text(preempted.get("reason")) or None, _time(evicted.get("lastTransitionTime")))


def _condition(item: Item, kind: str) -> dict[str, Any] | None:
    """The condition of that type, where it holds."""
    found = part(item, "status").get("conditions")
    for one in cast(list[Any], found) if isinstance(found, list) else ():
        if not isinstance(one, dict):
            continue
        condition = cast(dict[str, Any], one)
        if condition.get("type") == kind and condition.get("status") == "True":
            return condition
    return None


def _kai(old: Item | None, new: Item) -> Evidence | None:
    message = _new_message(old, new)
    if new.get("reason") != "Evict" or message is None:
        return None
    if (found := _KAI.match(message)) is not None:
        space, pod, higher, by_space, by = found.groups()
        reason = "preempt" if higher else "reclaim"
        return Evidence((space, pod), f"{by_space}/{by.removesuffix('.')}", reason, _event_time(new))
    if (moved := _KAI_MOVED.match(message)) is not None:
        return Evidence((moved[1], moved[2]), "", None, _event_time(new))
    return None


def _yunikorn(old: Item | None, new: Item) -> Evidence | None:
    message, about = _new_message(old, new), part(new, "involvedObject")
    if message is None or about.get("kind") != "Pod":
        return None
    victim = _text(about.get("namespace")), _text(about.get("name"))
    if (found := _YUNIKORN.match(message)) is not None:
        return Evidence(victim, found[1], None, _event_time(new))
    if _YUNIKORN_QUOTA.match(message):
        return Evidence(victim, "", None, _event_time(new))
    return None


def _new_message(old: Item | None, new: Item) -> str | None:
    """What an Event says; None where it is only counted on."""
    message = _text(new.get("message"))
    return message if old is None or old.get("message") != message else None


def _event_time(event: Item) -> datetime | None:
    times = (_time(event.get(name)) for name in ("eventTime", "lastTimestamp", "firstTimestamp"))
    return next((at for at in times if at is not None), None)


def _time(value: object) -> datetime | None:
    try:
        found = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _key(item: Item) -> Key:
    metadata = part(item, "metadata")
    return metadata.get("namespace") or "", metadata.get("name") or ""


_READERS: dict[tuple[EngineName, str], Callable[[Item | None, Item], Evidence | None]] = {
    ("kueue", "Workload"): _kueue,
    ("kai", "Event"): _kai,
    ("yunikorn", "Event"): _yunikorn,
}


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


@dataclass(slots=True)
class Followed:
    """One kind. ``whole``: whether a list of it is complete; ``error``: why it can't be followed now; ``changes``,
    ``breaks``: how often an object changed, and how often it could not be followed."""

    kind: Kind
    api_version: str = ""
    items: dict[Key, Item] = field(default_factory=dict[Key, Item])
    version: str = ""
    whole: bool = False
    absent: bool = False
    error: str | None = None
    heard_at: datetime | None = None
    changes: int = 0
    breaks: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """All kinds at one moment. ``items`` are sorted by namespace and name, as a list is; ``changed``: which objects are
    not what they were in the last view, None: any may be; ``since``: when the oldest of these changes was heard, in
    seconds of the monotonic clock."""

    items: dict[str, dict[Key, Item]]
    versions: dict[str, str]
    changed: set[tuple[str, Key]] | None
    since: float | None


class Mirror:
    """Written by one thread a kind, read by one."""

    def __init__(self, kinds: tuple[Kind, ...], past: Past | None = None) -> None:
        """``past``: keeps what was before each change."""
        self._followed = {kind.name: Followed(kind) for kind in kinds}
        self._changed: set[tuple[str, Key]] | None = None
        self._since: float | None = None
        self._news = Condition()
        self._past = past
        self.lists: Counter[str] = Counter()

    def listed(self, kind: Kind, api_version: str, found: Listed, reason: str) -> None:
        """All objects of ``kind`` are those of a list now."""
        with self._news:
            of = self._followed[kind.name]
            of.items = {key_of(item): item for item in found.items}
            of.version, of.api_version, of.whole, of.absent, of.error = found.version, api_version, True, False, None
            of.heard_at = datetime.now(UTC)
            self.lists[reason] += 1
            if self._past is not None:
                self._past.cleared()
            if kind.state:
                self._changed = None
                self._heard()

    def absent(self, kind: Kind) -> None:
        """The server has no such kind, and it is not needed."""
        with self._news:
            of = self._followed[kind.name]
            if not of.absent:
                of.items, of.version, of.whole, of.absent, of.error = {}, "", True, True, None
                self._changed = None
                self._heard()

    def broken(self, kind: Kind, error: str, *, whole: bool) -> None:
        """``kind`` can't be followed now. ``whole``: whether its watch may go on from where it is."""
        with self._news:
            of = self._followed[kind.name]
            of.error, of.whole = error, whole and of.whole
            of.breaks += 1
            self._news.notify_all()

    def apply(self, kind: Kind, event: Event) -> None:
        """What a watch says."""
        with self._news:
            of = self._followed[kind.name]
            of.version, of.error, of.heard_at = event.version or of.version, None, datetime.now(UTC)
            if event.item is None:
                return
            of.changes += 1
            key = key_of(event.item)
            old = of.items.pop(key, None) if event.gone else of.items.get(key)
            if not event.gone:
                if old == event.item:
                    return  # only what is not read has changed
                of.items[key] = event.item
            if self._past is not None:
                self._past.changed(kind.name, key, old, None if event.gone else event.item)
            if not kind.state:
                return
            if self._changed is not None:
                self._changed.add((kind.name, key))
            self._heard()

    def wait(self, seconds: float) -> None:
        """Until something has changed, or ``seconds`` are over."""
        with self._news:
            if self._since is None:
                self._news.wait(seconds)

    def wake(self) -> None:
        """Let who waits look again."""
        with self._news:
            self._news.notify_all()

    def view(self) -> View | None:
        """What changed since the last view is told once. None while a kind is not whole."""
        with self._news:
            followed = {name: of for name, of in self._followed.items() if of.kind.state}
            if not all(of.whole for of in followed.values()):
                return None
            view = View(
                {name: dict(of.items) for name, of in followed.items()},
                {name: of.version for name, of in followed.items() if of.version},
                self._changed,
                self._since,
            )
            self._changed, self._since = set(), None
            return view

    def forget(self) -> None:
        """What was told of the last view did not arrive: the next one is told whole."""
        with self._news:
            self._changed = None
            self._heard()

    def kinds(self) -> list[Followed]:
        """Of each kind how it is; the objects themselves may change meanwhile."""
        with self._news:
            return list(self._followed.values())

    def preemptions(self) -> list[Preemption]:
        """Those that have been seen whole; each is told once."""
        with self._news:
            return [] if self._past is None else self._past.ripe()

    def before(self, number: int) -> Items | None:
        """All objects before a change; None where that is too long ago."""
        with self._news:
            items = {name: of.items for name, of in self._followed.items()}
            found = None if self._past is None else self._past.before(number, items)
        return None if found is None else {k: of for k, of in found.items() if self._followed[k].kind.state}

    def _heard(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
        self._news.notify_all()


def key_of(item: Item) -> Key:
    """Where an object is."""
    metadata = part(item, "metadata")
    return metadata.get("namespace") or "", metadata.get("name") or ""
