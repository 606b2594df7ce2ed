"""What waits in one ClusterQueue, by class: asks that Kueue does not tell apart step aside and come back together."""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush

import msgspec
from msgspec.structs import replace

from app.solver.engines.kueue.admission_sharing import local_queue
from app.solver.engines.kueue.state import instant
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.state import Ask, Task

Key = tuple[int, int, str, str, int]
"""Queue order: higher priority, older, lower UID, lower id; with a serial number, so that asks are never compared."""
_encode = msgspec.msgpack.Encoder(order="sorted").encode


def shape_of(ask: Ask) -> bytes:
    """Equal for asks of one class: priority, and of each pod set all but how its requests are written. Whether it may
    preempt at all is part of it too, which Kueue does not know. Raises QuantityError."""
    return _encode((ask.priority or 0, ask.preemption_policy == "Never", [_exact(task) for task in ask.tasks]))


def _exact(task: Task) -> Task:
    return replace(task, requests={r: parse_quantity(amount, scale_of(r)) for r, amount in task.requests.items()})


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
        # One that may not be tried yet stands in no line, and is sticky once it does.
        if self.sticky in self._shapes and not self._classes[self._shapes[self.sticky]].aside:
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
        self.put_aside(self._shapes[ask])

    def put_aside(self, shape: bytes) -> None:
        """Everybody of that class, now and later."""
        of = self._classes.setdefault(shape, _Class(shape))
        if of.aside:
            return
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


class SharedLine(Line):
    """A line by what LocalQueues have consumed: of the first of each, the one goes first whose LocalQueue has consumed
    least; then who is sticky, then queue order (Kueue: queueOrderingFunc). ``used``: what one has consumed."""

    __slots__ = ("_aside_shapes", "_of", "_parts", "_used")

    def __init__(self, waiting: Mapping[str, Ask], used: Callable[[str], float]) -> None:
        super().__init__(waiting)
        self._used = used
        self._parts: dict[str, Line] = {}
        self._of: dict[str, tuple[str, bytes]] = {}
        self._aside_shapes: dict[bytes, None] = {}

    def arrive(self, ask: Ask, shape: bytes) -> None:
        name = local_queue(ask)
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = Line(self._waiting)
            for other in self._aside_shapes:
                part.put_aside(other)
        self._of[ask.id] = name, shape
        part.arrive(ask, shape)

    def leave(self, ask: str) -> None:
        super().leave(ask)
        if (found := self._of.pop(ask, None)) is not None:
            self._parts[found[0]].leave(ask)

    def head(self) -> Ask | None:
        firsts: list[Ask] = []
        for part in self._parts.values():
            part.sticky = self.sticky
            if (ask := part.head()) is not None:
                firsts.append(ask)
        return min(firsts, key=self._order, default=None)

    def firsts(self) -> list[str]:
        """The LocalQueues of which somebody is not aside."""
        return [name for name, part in self._parts.items() if part.head() is not None]

    def _order(self, ask: Ask) -> tuple[float, bool, int, int, str, str]:
        return (
            self._used(local_queue(ask)), ask.id != self.sticky, -(ask.priority or 0), instant(ask.created_at),
            ask.uid or "", ask.id,
        )  # fmt: skip

    def step_aside(self, ask: str) -> None:
        shape = self._of[ask][1]
        self._aside_shapes[shape] = None
        self.mark ^= hash(shape)
        for part in self._parts.values():
            part.put_aside(shape)

    def come_back(self, shape: bytes | None = None) -> None:
        for one in list(self._aside_shapes) if shape is None else [shape]:
            if one in self._aside_shapes:
                del self._aside_shapes[one]
                self.mark ^= hash(one)
        for part in self._parts.values():
            part.come_back(shape)
