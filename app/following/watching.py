"""A thread a kind: list, then watch from there; list again where the history is gone.

Only what a watch says ends the growing pauses: a server that gives lists and no history would else be listed for ever
without a pause."""

import random
import time
from threading import Event, Thread

import structlog

from app.following.mirror import Mirror
from app.following.objects import Kind
from app.following.reading import Absent, Broken, Denied, Gone, Reader

log = structlog.get_logger()

_FIRST, _LONGEST = 0.5, 30.0
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
        self._stopping = Event()
        self._recorder = reader.recorder
        self._failures = 0
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
                self._pause(self._backoff())
            except Absent as error:
                reason = "absent"
                if self._kind.needed:
                    self._broken(str(error))
                else:
                    self._absent()
                self._pause(_LOOK_AGAIN if not self._kind.needed else self._backoff())
            except Denied as error:
                reason = "denied"
                self._broken(str(error), missing=not self._kind.needed)
                self._pause(self._backoff())
            except Broken as error:
                reason = "broken"
                self._broken(str(error))
                self._pause(self._backoff())
            except Exception as error:  # an object or a server like none before: nobody else would notice
                log.exception("cluster.watch_failed", kind=self._kind.name)
                reason = "failed"
                self._broken(f"{type(error).__name__}: {error}")
                self._pause(self._backoff())

    def _follow(self, reason: str) -> None:
        """List, and watch until that can't go on. Raises Gone, Broken."""
        version = self._reader.version(self._kind)
        found = self._reader.list(self._kind, version, self._stopping.is_set)
        if self._stopping.is_set():
            return
        api_version = self._kind.api_version(version)
        if self._recorder is not None:
            self._recorder.listed(self._kind, api_version, len(found.items), found.version, reason)
        self._mirror.listed(self._kind, api_version, found, reason)
        since = found.version
        while not self._stopping.is_set():
            begun = time.monotonic()
            try:
                for event in self._reader.watch(self._kind, version, since):
                    if self._stopping.is_set():
                        return
                    if event.item is not None or event.version != since:  # only that it is connected proves nothing
                        self._failures, self._said = 0, None
                    since = event.version or since
                    self._mirror.apply(self._kind, event)
            except Absent:
                raise
            except Broken as error:  # the history may still be there: go on from where it ended
                self._broken(str(error), whole=True)
                self._pause(self._backoff())
            else:
                if time.monotonic() - begun < 1.0:
                    self._pause(_FIRST)
                else:
                    self._failures = 0
                if self._kind.placed and self._mirror.places() is False:
                    return

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

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(seconds * random.uniform(0.8, 1.2))
