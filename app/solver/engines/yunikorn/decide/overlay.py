"""What a decision changes: an overlay on top of a compiled cluster, fresh for each independent ask, one for a cycle."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.solver.engines.yunikorn.compile.configuration import Amounts
from app.solver.engines.yunikorn.compile.state import Bools, CompiledState, Ints
from app.solver.engines.yunikorn.decide.request import Request, holder_of
from app.solver.model.state import Ask


@dataclass(frozen=True, slots=True)
class Held:
    """An ask that holds a node. ``unit``: which of its allocation asks; None: whichever comes first, since the request
    says only that the ask holds it."""

    ask: Ask
    unit: int | None
    queue: int
    amounts: Amounts
    priority: int
    created: int
    required: bool
    triggered: bool

    def is_of(self, request: Request) -> bool:
        """Whether the node is held for this allocation ask."""
        return self.ask.id == request.ask.id and self.unit in (None, request.unit)


class Overlay:
    """Mutable. ``allocated`` and ``preempting`` by queue; ``slack`` by cell; ``free`` nodes x resources, now.

    ``held``: by node, who has it reserved; ``coming``: by queue, what asks that evicted somebody will take once
    their victims are gone (documented rules count it, so that nobody is evicted in vain); ``attempts``: preemption
    attempts of each leaf in this cycle.
    """

    __slots__ = ("allocated", "attempts", "coming", "free", "gone", "held", "preempting", "slack", "state")

    def __init__(self, state: CompiledState) -> None:
        self.state = state
        self.allocated = [list(row) for row in state.allocated]
        self.preempting = [list(row) for row in state.preempting]
        self.slack = list(state.slack)
        self.free: Ints = state.free.copy()
        self.gone: Bools | None = None
        self.held: dict[int, list[Held]] = {}
        self.coming: dict[tuple[int, int], int] = {}
        self.attempts = Counter[int]()
        for reservation in state.reservations:
            request = holder_of(state, reservation.ask)
            if request is not None:
                self._hold(state.node_index[reservation.node], request, None, triggered=request.triggered)

    def copy(self) -> "Overlay":
        """An overlay that can be given up without trace."""
        twin = Overlay.__new__(Overlay)
        twin.state = self.state
        twin.allocated = [list(row) for row in self.allocated]
        twin.preempting = [list(row) for row in self.preempting]
        twin.slack = list(self.slack)
        twin.free = self.free.copy()
        twin.gone = None if self.gone is None else self.gone.copy()
        twin.held = {node: list(holders) for node, holders in self.held.items()}
        twin.coming = dict(self.coming)
        twin.attempts = self.attempts.copy()
        return twin

    def used(self, queue: int, resource: int) -> int:
        """Allocated in ``queue``, what is being preempted included, of a resource that the cluster has."""
        return self.allocated[queue][resource]

    def used_after(self, queue: int, resource: int, but: Request) -> int:
        """Usage once everybody that is being preempted has left and everybody that waits for it has come."""
        return self.used(queue, resource) - self.preempting[queue][resource] + self.expected(queue, resource, but)

    def expected(self, queue: int, resource: int, but: Request) -> int:
        """What other asks that hold a node and evicted somebody for it will take in ``queue``."""
        own = sum(
            held.amounts.get(resource, 0)
            for holders in self.held.values()
            for held in holders
            if held.triggered and held.is_of(but) and queue in self.state.configuration.paths[held.queue]
        )
        return self.coming.get((queue, resource), 0) - own

    def place(self, node: int, request: Request) -> None:
        """The ask runs on ``node`` now."""
        self._shift(self.allocated, request.queue, request.amounts, 1)
        self._slack(request.queue, request.amounts, -1)
        for r, amount in request.needs.items():
            self.free[node, r] -= amount
        self._release(node, request)

    def evict(self, tasks: Iterable[int]) -> None:
        """The tasks are being preempted: they still use their node and their queue."""
        state = self.state
        if self.gone is None:
            self.gone = np.zeros(state.task_count, dtype=bool)
        for task in tasks:
            self.gone[task] = True
            amounts = state.amounts(task)
            self._shift(self.preempting, int(state.queue[task]), amounts, 1)
            self._slack(int(state.queue[task]), amounts, 1)

    def hold(self, node: int, request: Request) -> None:
        """The ask evicted somebody and reserves ``node``, and no other."""
        self._release(node, request)
        self._hold(node, request, request.unit, triggered=True)

    def _hold(self, node: int, request: Request, unit: int | None, *, triggered: bool) -> None:
        held = Held(
            ask=request.ask, unit=unit, queue=request.queue, amounts=request.amounts, priority=request.priority,
            created=request.created, required=request.required is not None, triggered=triggered,
        )  # fmt: skip
        self.held.setdefault(node, []).append(held)
        if triggered:
            self._coming(held, 1)

    def cancel(self, node: int, held: Held) -> None:
        """The reservation is dropped."""
        self.held[node] = [other for other in self.held[node] if other is not held]
        if not self.held[node]:
            del self.held[node]
        if held.triggered:
            self._coming(held, -1)

    def _release(self, node: int, request: Request) -> None:
        """The ask has got ``node``, and lets go of what it holds; what its later tasks may still want is kept."""
        last = request.unit == request.units - 1
        for at, holders in list(self.held.items()):
            for held in holders:
                if held.is_of(request) and (last or at == node or held.unit is not None):
                    self.cancel(at, held)

    def _coming(self, held: Held, sign: int) -> None:
        for queue in self.state.configuration.paths[held.queue]:
            for r, amount in held.amounts.items():
                self.coming[queue, r] = self.coming.get((queue, r), 0) + sign * amount

    def _shift(self, table: list[list[int]], queue: int, amounts: Amounts, sign: int) -> None:
        width = len(self.state.resources)
        for q in self.state.configuration.paths[queue]:
            for r, amount in amounts.items():
                if r < width:
                    table[q][r] += sign * amount

    def _slack(self, queue: int, amounts: Amounts, sign: int) -> None:
        cells = self.state.configuration.path_cells[queue]
        for r, amount in amounts.items():
            for cell in cells.get(r, ()):
                self.slack[cell] += sign * amount
