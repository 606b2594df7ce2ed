"""What waits in one ClusterQueue, by class: asks that Kueue does not tell apart step aside and come back together."""

from collections.abc import Mapping
from heapq import heappop, heappush

import msgspec
from msgspec.structs import replace

from app.solver.engines.kueue.state import instant
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Ask, Task

Key = tuple[int, int, str, str, int]
"""Queue order: higher priority, older, lower UID, lower id; with a serial number, so that asks are never compared."""
_encode = msgspec.msgpack.Encoder(order="sorted").encode


def shape_of(ask: Ask) -> bytes:
    """Equal for asks of one class: priority, and of each pod set all but how its requests are written. Whether it may
    preempt at all is part of it too, which Kueue does not know. Raises QuantityError."""
    return _encode((ask.priority or 0, ask.preemption_policy == "Never", [_exact(task) for task in ask.tasks]))


def _exact(task: Task) -> Task:
    return replace(task, requests={r: parse(amount, scale_of(r)) for r, amount in task.requests.items()})


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
    that comes again is given anew, once it has left. ``sticky``: the id of the one that goes first wherever it stands
    (Kueue: sticky workload); None: nobody. ``mark`` stands for who is aside: equal for equal."""

    __slots__ = ("_active", "_aside", "_classes", "_serial", "_shapes", "_waiting", "mark", "sticky")

    def __init__(self, waiting: Mapping[str, Ask]) -> None:
        self._waiting = waiting
        self._active: list[tuple[Key, _Class]] = []
        self._aside: list[_Class] = []
        self._classes: dict[bytes, _Class] = {}
        self._shapes: dict[str, bytes] = {}
        self._serial = 0
        self.sticky: str | None = None
        self.mark = 0

    def arrive(self, ask: Ask, shape: bytes) -> None:
        """``ask`` waits; it is aside at once where its class is."""
        of = self._classes.get(shape)
        if of is None:
            of = self._classes[shape] = _Class(shape)
        self._serial += 1
        key = -(ask.priority or 0), instant(ask.created_at), ask.uid or "", ask.id, self._serial
        heappush(of.asks, (key, ask))
        self._shapes[ask.id] = shape
        if not of.aside:
            self._enter(of)

    def leave(self, ask: str) -> None:
        """It waits no longer."""
        self._shapes.pop(ask, None)
        if self.sticky == ask:
            self.sticky = None

    def head(self) -> Ask | None:
        """The first that is not aside."""
        if self.sticky is not None and not self._classes[self._shapes[self.sticky]].aside:
            return self._waiting[self.sticky]
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

    def step_aside(self, ask: str) -> None:
        """It does, and with it everybody of its class, now and later."""
        of = self._classes[self._shapes[ask]]
        of.entry, of.aside = None, True
        self._aside.append(of)
        self.mark ^= hash(of.shape)

    def come_back(self, shape: bytes | None = None) -> None:
        """Everybody who is aside comes back, or the class of one shape."""
        for of in self._aside:
            if shape is None or of.shape == shape:
                of.aside = False
                self.mark ^= hash(of.shape)
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
