"""The objects of a cluster as they are known now, whole or not at all; a thread a kind lists them, then watches from
there.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Condition, Thread
from typing import Protocol

import structlog

from app.following.history import Eviction, History, Preemption, Rewind
from app.following.objects import Absent, Broken, Denied, Event, Gone, Listed
from app.formats.objects import Item, Key, Kind, key_of, part


class Notes(Protocol):
    """Who writes down what was read."""

    def listed(self, kind: Kind, api_version: str, count: int, version: str, reason: str) -> None: ...
    def absent(self, kind: Kind) -> None: ...
    def broken(self, kind: Kind, error: str) -> None: ...


class Reader(Protocol):
    """Who reads a server: ``app.following.reading``, which alone needs a client of Kubernetes."""

    @property
    def recorder(self) -> Notes | None: ...
    def version(self, kind: Kind) -> str: ...
    def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed: ...
    def watch(self, kind: Kind, version: str, since: str) -> Iterator[Event]: ...


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
    seconds of the monotonic clock; ``now``: when it was so."""

    items: dict[str, dict[Key, Item]]
    versions: dict[str, str]
    changed: set[tuple[str, Key]] | None
    since: float | None
    now: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)


class Mirror:
    """Written by one thread a kind, read by one."""

    def __init__(self, kinds: tuple[Kind, ...], history: History | None = None) -> None:
        """``history``: is told of every change."""
        self._followed = {kind.name: Followed(kind) for kind in kinds}
        self._changed: set[tuple[str, Key]] | None = None
        self._since: float | None = None
        self._news = Condition()
        self._history = history
        self.lists: Counter[str] = Counter()

    def listed(self, kind: Kind, api_version: str, listed: Listed, reason: str) -> None:
        """All objects of ``kind`` are those of a list now."""
        with self._news:
            of = self._followed[kind.name]
            before, of.items = of.items, {key_of(item): item for item in listed.items}
            known = bool(of.version)
            of.version, of.api_version, of.whole, of.absent, of.error = listed.version, api_version, True, False, None
            of.heard_at = datetime.now(UTC)
            self.lists[reason] += 1
            if self._history is not None:
                if kind.state and (self._history.restored(kind.name, listed.version) or not known):
                    self._history.cleared()
                    self._history.there(kind.name, of.items)
                elif known:
                    self._relisted(self._history, kind, before, of)
            if kind.state:
                self._changed = None
                self._heard()

    def _relisted(self, history: History, kind: Kind, before: dict[Key, Item], of: Followed) -> None:
        """What changed while nobody heard: all of it when the list was made, or the object written last."""
        for key, old in before.items():
            if key not in of.items:
                history.changed(kind.name, key, old, None, of.version, state=kind.state, listed=True)
        for key, new in of.items.items():
            if (old := before.get(key)) != new:
                history.changed(kind.name, key, old, new, of.version, state=kind.state, listed=True)

    def absent(self, kind: Kind) -> bool:
        """The server has no such kind, and it is not needed, or it is not used; whether that is news."""
        with self._news:
            of = self._followed[kind.name]
            of.heard_at = datetime.now(UTC)
            if not of.absent:
                of.items, of.version, of.whole, of.absent, of.error = {}, "", True, True, None
                self._changed = None
                self._heard()
                return True
            return False

    def broken(self, kind: Kind, error: str, *, whole: bool, missing: bool = False) -> None:
        """``kind`` can't be followed now. ``whole``: whether its watch may go on from where it is; ``missing``: what is
        known of it may be old or nothing, and the others are followed all the same."""
        with self._news:
            of = self._followed[kind.name]
            of.error, of.whole = error, missing or (whole and of.whole)
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
            if self._history is not None:
                new = None if event.gone else event.item
                self._history.changed(kind.name, key, old, new, event.version, state=kind.state)
            if not kind.state:
                return
            if self._changed is not None:
                self._changed.add((kind.name, key))
            self._heard()

    def places(self) -> bool | None:
        """Whether a flavor of Kueue has a topology; None: that is not known yet."""
        with self._news:
            flavors = self._followed.get("ResourceFlavor")
            if flavors is None or not flavors.whole:
                return None
            return any(part(item, "spec").get("topologyName") for item in flavors.items.values())

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

    def complete(self) -> bool:
        """Whether all that says how the cluster is was listed once."""
        with self._news:
            return all(of.whole or of.version for of in self._followed.values() if of.kind.state)

    def known_at(self) -> datetime | None:
        """Up to when all that says how the cluster is was heard: of each kind what came last, if only that nothing
        changed. None: of some nothing was."""
        with self._news:
            heard = [of.heard_at for of in self._followed.values() if of.kind.state]
        return (
            None if any(moment is None for moment in heard) else min(moment for moment in heard if moment is not None)
        )

    def preemptions(self) -> list[Preemption]:
        """Those that have been seen whole; each is told once."""
        with self._news:
            return [] if self._history is None else self._history.ripe(known=True)

    def evictions(self) -> list[Eviction]:
        """Those that are nobody's preemption; each is told once."""
        with self._news:
            return [] if self._history is None else self._history.others()

    def rewind(self) -> Rewind:
        """What the cluster is, to go back from. Raises LookupError where no history is kept."""
        with self._news:
            if self._history is None:
                raise LookupError("no history is kept")
            return self._history.rewind({name: of.items for name, of in self._followed.items() if of.kind.state})

    def _heard(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
        self._news.notify_all()


log = structlog.get_logger()

_FIRST, _LONGEST = 0.5, 30.0
_OF_USE = 60.0
"""Seconds that a list must have served for so that the next one is no repetition of it."""
_DEAREST = 300.0
"""Seconds that are waited at most because a list took as long."""
_CREDIT = 1
"""Watches that broke before anything was heard, after which that one is connected still counts as hearing of it."""
_UNUSED, _UNKNOWN = 2.0, 0.1
"""Seconds between looks whether flavors have topologies."""
_LOOK_AGAIN = 60.0
"""Seconds between looks for a kind that the server did not have."""


class Watcher(Thread):
    """Follows one kind until it is stopped."""

    def __init__(self, kind: Kind, reader: Reader, mirror: Mirror) -> None:
        super().__init__(name=f"follow-{kind.plural}", daemon=True)
        self._kind = kind
        self._reader = reader
        self._mirror = mirror
        self._stopping = threading.Event()
        self._recorder = reader.recorder
        self._failures = self._lists = 0
        self._listed_at: float | None = None
        self._cost = 0.0
        self._said: str | None = None

    def stop(self) -> None:
        """End soon; what it reads is not taken any more."""
        self._stopping.set()

    def run(self) -> None:
        """Follow, and say what goes wrong."""
        reason = "start"
        while not self._stopping.is_set():
            if self._kind.placed and not (places := self._mirror.places()):
                self._unused(known=places is not None)
                continue
            try:
                self._follow(reason)
            except Gone:
                reason = "gone"
                self._broken("the history is gone: everything is listed again")
                self._pause(self._before_listing())
            except Absent as error:
                reason = "absent"
                if self._kind.needed:
                    self._broken(str(error))
                else:
                    self._absent()
                self._pause(_LOOK_AGAIN if not self._kind.needed else self._before_listing())
            except Denied as error:
                reason = "denied"
                self._broken(str(error), missing=not self._kind.needed)
                self._pause(max(self._before_listing(), error.retry_after))
            except Broken as error:
                reason = "broken"
                self._broken(str(error))
                self._pause(max(self._before_listing(), error.retry_after))
            except Exception as error:  # an object or a server like none before: nobody else would notice
                log.exception("cluster.watch_failed", kind=self._kind.name)
                reason = "failed"
                self._broken(f"{type(error).__name__}: {error}")
                self._pause(self._before_listing())

    def _follow(self, reason: str) -> None:
        """List, and watch until that can't go on. Raises Gone, Broken."""
        self._listed_at, begun = None, time.monotonic()
        try:
            version = self._reader.version(self._kind)
            listed = self._reader.list(self._kind, version, self._stopping.is_set)
        finally:
            self._cost = time.monotonic() - begun
        if self._stopping.is_set():
            return
        self._listed_at = time.monotonic()
        api_version = self._kind.api_version(version)
        if self._recorder is not None:
            self._recorder.listed(self._kind, api_version, len(listed.items), listed.version, reason)
        self._mirror.listed(self._kind, api_version, listed, reason)
        since = listed.version
        while not self._stopping.is_set():
            since = self._go_on(version, since)
            if self._kind.placed and self._mirror.places() is False:
                return

    def _go_on(self, version: str, since: str) -> str:
        """Watch from ``since``, once; from where to go on. Raises Gone, Absent."""
        begun, heard = time.monotonic(), False
        try:
            for event in self._reader.watch(self._kind, version, since):
                if self._stopping.is_set():
                    return since
                if event.item is not None or event.version != since:  # only that it is connected proves nothing
                    self._failures, self._said, heard = 0, None, True
                since = event.version or since
                if heard or self._failures <= _CREDIT:
                    self._mirror.apply(self._kind, event)
        except Absent:
            raise
        except Broken as error:  # the history may still be there: go on from where it ended
            self._broken(str(error), whole=True)
            self._pause(max(self._backoff(), error.retry_after))
        else:
            if time.monotonic() - begun >= 1.0:
                self._failures = 0
            else:
                self._pause(_FIRST if heard else self._backoff())
        return since

    def _unused(self, *, known: bool) -> None:
        """No flavor has a topology, or nobody knows yet: nothing is read of the kind, and it is looked for again."""
        if known:
            self._absent()
        self._pause(_UNUSED if known else _UNKNOWN)

    def _absent(self) -> None:
        if self._mirror.absent(self._kind) and self._recorder is not None:
            self._recorder.absent(self._kind)

    def _broken(self, error: str, *, whole: bool = False, missing: bool = False) -> None:
        """Let others know, and say so once. ``missing``: what is followed without it may be followed on."""
        if error != self._said:
            log.warning("cluster.kind_not_followed", kind=self._kind.name, error=error)
        self._said = error
        if self._recorder is not None:
            self._recorder.broken(self._kind, error)
        self._mirror.broken(self._kind, error, whole=whole, missing=missing)

    def _backoff(self) -> float:
        self._failures += 1
        longest = min(_LONGEST, _FIRST * 2 ** min(self._failures, 10))
        return random.uniform(longest / 2, longest)

    def _before_listing(self) -> float:
        """Seconds until everything is listed again: ever more while no list is of use for long, whatever a watch says
        in between, and from the second on at least as many as the last one took."""
        if self._listed_at is not None and time.monotonic() - self._listed_at >= _OF_USE:
            self._lists = 0
        self._lists += 1
        self._failures = max(self._failures, self._lists - 1)
        seconds = self._backoff()
        return seconds if self._lists == 1 else max(seconds, min(self._cost, _DEAREST))

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(seconds * random.uniform(0.8, 1.2))
