"""What waits in one ClusterQueue, by class: asks that Kueue does not tell apart step aside and come back together.

Source: Kueue ``pkg/cache/queue/cluster_queue.go`` (requeueIfNotPresent, handleInadmissibleHash, PushOrUpdate) and
``pkg/workload/workload.go`` (computeSchedulingHash); the feature gate SchedulingEquivalenceHashing is on by default.
"""

from collections.abc import Mapping
from heapq import heappop, heappush

import msgspec
from msgspec.structs import replace

from app.solver.engines.kueue.compile.state import instant
from app.solver.model.state import Ask

Key = tuple[int, int, str, str, int]
"""Queue order: higher priority, older, lower UID, lower id; with a serial number, so that asks are never compared."""
_encode = msgspec.msgpack.Encoder().encode


def shape_of(ask: Ask) -> bytes:
    """Equal for asks of one class: everything but who it is and since when it waits."""
    return _encode(replace(ask, id="-", uid=None, created_at=None, priority=ask.priority or 0))


class _Class:
    """Asks of one shape, the first of them on top of a heap. ``entry``: by which key it stands in its line; None:
    it stands nowhere, for it is ``aside`` or has nobody left."""

    __slots__ = ("aside", "asks", "entry", "shape")

    def __init__(self, shape: bytes) -> None:
        self.shape = shape
        self.asks: list[tuple[Key, Ask]] = []
        self.entry: Key | None = None
        self.aside = False


class Line:
    """``waiting``: the asks of all lines that still wait, by id; what has left is dropped when its turn comes. An ask
    that comes again is given anew, once it has left."""

    __slots__ = ("_active", "_aside", "_classes", "_serial", "_waiting")

    def __init__(self, waiting: Mapping[str, Ask]) -> None:
        self._waiting = waiting
        self._active: list[tuple[Key, _Class]] = []
        self._aside: list[_Class] = []
        self._classes: dict[bytes, _Class] = {}
        self._serial = 0

    def arrive(self, ask: Ask, shape: bytes) -> None:
        """``ask`` waits; it is aside at once where its class is."""
        of = self._classes.get(shape)
        if of is None:
            of = self._classes[shape] = _Class(shape)
        self._serial += 1
        key = -(ask.priority or 0), instant(ask.created_at), ask.uid or "", ask.id, self._serial
        heappush(of.asks, (key, ask))
        if not of.aside:
            self._enter(of)

    def head(self) -> Ask | None:
        """The first that is not aside."""
        while self._active:
            key, of = self._active[0]
            first = self._first(of)
            if key == of.entry and first is not None and first[0] == key:
                return first[1]
            heappop(self._active)
            if key == of.entry:
                of.entry = None
                self._enter(of)
        return None

    def step_aside(self) -> None:
        """The head does, and with it everybody of its class, now and later."""
        _, of = heappop(self._active)
        of.entry, of.aside = None, True
        self._aside.append(of)

    def come_back(self, shape: bytes | None = None) -> None:
        """Everybody who is aside comes back, or the class of one shape."""
        for of in self._aside:
            if shape is None or of.shape == shape:
                of.aside = False
                self._enter(of)
        self._aside = [of for of in self._aside if of.aside]

    def _enter(self, of: _Class) -> None:
        """Its first ask stands in line for all; a class with nobody left is forgotten."""
        first = self._first(of)
        if first is None:
            del self._classes[of.shape]
        elif first[0] != of.entry:
            of.entry = first[0]
            heappush(self._active, (first[0], of))

    def _first(self, of: _Class) -> tuple[Key, Ask] | None:
        asks = of.asks
        while asks and self._waiting.get(asks[0][1].id) is not asks[0][1]:
            heappop(asks)
        return asks[0] if asks else None
