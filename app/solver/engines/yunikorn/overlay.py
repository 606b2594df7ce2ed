"""Pending work as allocation asks, and what a decision changes: an overlay on top of a compiled cluster."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from app.solver import kubernetes
from app.solver.compiled import ResourceIndex
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.limits import Tracked, Whose, tracked, whose
from app.solver.engines.yunikorn.state import OLDEST, Bools, CompiledState, Doubles, Ints
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Reservation, Task
from app.solver.question import goes_on

_DEMANDS = 256
"""Pods ask so many different things, and those are kept; one more begins anew."""
MOST_UNITS = 256
"""Allocation asks that one ask of the wire may stand for (tasks times count)."""


class Request(msgspec.Struct, frozen=True, eq=False):
    """One allocation ask.

    ``amounts``: by index of ``resources`` (the cluster's, extended by what only the ask names), the same object for
    equal requests; ``needs``: those above 0, which it takes room for; ``created`` and ``checked`` in microseconds;
    ``required``: index of the only node it may run on; ``feasible``: indices of the nodes that pass the predicates,
    None when all do; ``application``: its id, whether it runs or not; ``unit``: its place among the ``units``
    allocation asks that ``ask`` stands for. ``alike``: equal for asks that hold no node and find room, or don't,
    together.
    """

    ask: Ask
    task: Task
    queue: int
    amounts: Amounts
    needs: Amounts
    resources: ResourceIndex
    priority: int
    created: int
    checked: int | None
    triggered: bool
    required: int | None
    feasible: frozenset[int] | None
    application: str
    alike: Hashable
    unit: int = 0
    units: int = 1


def requests_of(state: CompiledState, ask: Ask) -> list[Request]:
    """The allocation asks of ``ask``, a task after the other. Raises QuantityError."""
    requests = [request for task in ask.tasks for request in [_request(state, ask, task)] * task.count]
    return (
        requests
        if len(requests) == 1
        else [replace(request, unit=i, units=len(requests)) for i, request in enumerate(requests)]
    )


def holder_of(state: CompiledState, ask: Ask) -> Request | None:
    """The allocation ask that holds a reservation: the first of ``ask``. Raises QuantityError."""
    return _request(state, ask, ask.tasks[0]) if ask.tasks else None


def check_asks(state: CompiledState, asks: Sequence[Ask]) -> None:
    """Raises InvalidInput with every ask that YuniKorn can't take; pointers start at /asks."""
    refuse([problem for i, ask in enumerate(asks) for problem in ask_problems(state, ask, "asks", i)])


def ask_problems(state: CompiledState, ask: Ask, *place: str | int) -> list[Problem]:
    """What is wrong with one ask; ``place`` leads to it."""
    problems: list[Problem] = []
    if not state.configuration.leaf[state.configuration.tree.index[ask.queue]]:
        detail = f"{ask.queue!r} is a parent queue: applications run in leaf queues"
        problems.append(Problem(pointer=pointer(*place, "queue"), detail=detail))
    counts = [task.count for task in ask.tasks]
    if sum(counts) > MOST_UNITS:
        detail = f"more than {MOST_UNITS} allocation asks in one ask"
        problems.append(Problem(pointer=pointer(*place, "tasks"), detail=detail))
    if not any(counts):
        problems.append(Problem(pointer=pointer(*place, "tasks"), detail="asks for nothing"))
    for i, task in enumerate(ask.tasks):
        if task.tolerations or task.node_affinity:
            problems += kubernetes.problems(task, (*place, "tasks", i))
    return problems


def refuse(problems: list[Problem]) -> None:
    """Raises InvalidInput when there are problems."""
    if problems:
        raise InvalidInput(problems)


def _feasible(state: CompiledState, ask: Ask, task: Task) -> frozenset[int] | None:
    """Indices of the nodes that pass the predicates, those that the ask names and those of Kubernetes that the shim
    asks (k8shim, pkg/plugin/predicates: taints, node selector and required node affinity); None: all do."""
    named = None if ask.feasible_nodes is None else frozenset(state.node_index[n] for n in ask.feasible_nodes)
    if not (state.tainted or task.node_selector or task.node_affinity):
        return named
    known, key = state.lazy.passing, kubernetes.demands(task)
    if (passing := known.get(key)) is None:
        if len(known) >= _DEMANDS:
            known.clear()
        passing = frozenset(i for i, node in enumerate(state.nodes) if kubernetes.allows(task, node))
        known[key] = passing
    return passing if named is None else passing & named


def _amounts(state: CompiledState, task: Task) -> tuple[ResourceIndex, Amounts, Amounts]:
    """Resources, with those that the task may name beyond the cluster's, what it requests, and of that what is above
    0. Raises QuantityError."""
    known, key = state.lazy.wanted, tuple(task.requests.items())
    if (wanted := known.get(key)) is None:
        if len(known) >= _DEMANDS:
            known.clear()
        resources = ResourceIndex(state.resources.names)
        amounts = resources.steps(task.requests)
        wanted = known[key] = resources, amounts, {r: amount for r, amount in amounts.items() if amount > 0}
    return wanted


def _request(state: CompiledState, ask: Ask, task: Task) -> Request:
    resources, amounts, needs = _amounts(state, task)
    application = ask.workload or ask.id
    priority = task.priority if task.priority is not None else ask.priority
    if priority is None:
        running = state.application(application)
        priority = state.workloads[running].priority if running is not None else 0
    queue, feasible = state.configuration.tree.index[ask.queue], _feasible(state, ask, task)
    created = task.created_at or ask.created_at
    checked, triggered = _carried(ask)
    required = task.required_node or ask.required_node
    node = None if required is None else state.node_index[required]
    return Request(
        ask=ask, task=task, queue=queue,
        amounts=amounts, needs=needs, resources=resources, priority=priority,
        created=OLDEST if created is None else micros(created), checked=checked, triggered=triggered,
        required=node, feasible=feasible, application=application, alike=(queue, id(amounts), node, feasible),
    )  # fmt: skip


def whose_is(state: CompiledState, request: Request) -> Whose:
    """By what limits the ask is counted."""
    running = state.application(request.application)
    return whose(request.ask, None if running is None else state.workloads[running])


Turn = tuple[int, int, str]
"""The order of a cycle: priority as the root sees it, then age, then id."""


class Asked(NamedTuple):
    """An ask and its allocation asks: one at least. ``inherits``: see ``_inherits``."""

    turn: Turn
    ask: Ask
    requests: list[Request]
    inherits: bool


def in_turn(state: CompiledState, asks: Sequence[Ask]) -> list[Asked]:
    """What a round asks for, in the order of its cycle. Asks that go on are neither checked nor compiled again. Raises
    InvalidInput with every other one that YuniKorn can't take, QuantityError."""
    known: dict[str, Asked] = state.lazy.asked
    asked: list[Asked] = []
    new: list[Ask] = []
    for ask in asks:
        before = known.get(ask.id)
        if before is not None and not before.inherits and (ask.priority is not None or not _inherits(state, ask)):
            if before.ask is ask:
                asked.append(before)
                continue
            if goes_on(before.ask, ask):
                known[ask.id] = of = _gone_on(state, before, ask)
                asked.append(of)
                continue
        new.append(ask)
    if new:
        check_asks(state, new)
        if len(known) > 2 * len(asks) + _SPARE_ASKS:
            known.clear()
        for ask in new:
            known[ask.id] = of = asked_of(state, ask)
            asked.append(of)
    asked.sort(key=turn_of)
    return asked


def _gone_on(state: CompiledState, before: Asked, ask: Ask) -> Asked:
    """An ask that ``goes_on``."""
    if len(before.requests) > 1:
        return asked_of(state, ask)
    (request,), (checked, triggered) = before.requests, _carried(ask)
    request = replace(request, ask=ask, application=ask.workload or ask.id, checked=checked, triggered=triggered)
    return Asked(before.turn, ask, [request], inherits=False)


turn_of = itemgetter(0)
_SPARE_ASKS = 256
"""So many are kept, whether they are asked for or not."""
CHECK_EVERY = 15 * 10**6
"""Microseconds between two checks of one ask (YuniKorn: preemptAttemptFrequency)."""


def asked_of(state: CompiledState, ask: Ask) -> Asked:
    """Raises QuantityError."""
    requests = requests_of(state, ask)
    first, queues = requests[0], state.configuration
    priority = first.priority
    for q in queues.paths[first.queue]:
        settings = queues.settings[q]
        priority = settings.priority_offset if settings.priority_fence else priority + settings.priority_offset
    turn = -priority, first.created, ask.id
    return Asked(turn, ask, requests, _inherits(state, ask))


def _inherits(state: CompiledState, ask: Ask) -> bool:
    """Whether its priority may be that of what runs of its application."""
    return ask.priority is None and (ask.workload or ask.id) in state.queue_of


def _carried(ask: Ask) -> tuple[int | None, bool]:
    """When it last looked for victims, and whether it has found some."""
    block = ask.yunikorn
    if block is None:
        return None, False
    checked = block.last_preemption_check_at
    return None if checked is None else micros(checked), block.triggered_preemption


class Held(msgspec.Struct, frozen=True):
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


class Effect(NamedTuple):
    """What a task of ``queue`` takes: of rows of what is allocated, of the slack of cells; ``asked``: all of it."""

    queue: int
    amounts: Amounts
    rows: list[tuple[list[int], int, int]]
    slack: list[tuple[int, int]]
    asked: int


class Overlay:
    """Mutable. ``allocated`` and ``preempting`` by queue; ``slack`` by cell; ``free`` nodes x resources, now.

    ``held``: by node, who has it reserved; ``coming``: by queue, what asks that evicted somebody will take once
    their victims are gone (documented rules count it, so that nobody is evicted in vain); ``attempts``: preemption
    attempts of each leaf in this cycle; ``vain``: what became of asks since anything was changed, for others that
    differ in nothing that counts, and the asks, so that nothing else gets their ``id``; ``victims``: of asks
    that are alike, see ``candidates.Alone``; ``touched``: nodes whose room has changed, in order.
    """

    __slots__ = (
        "_holders", "_tracked", "_use", "allocated", "attempts", "coming", "free", "gone", "held", "preempting",
        "slack", "state", "touched", "vain", "victims",
    )  # fmt: skip

    def __init__(self, state: CompiledState) -> None:
        self.state = state
        self.allocated = [list(row) for row in state.allocated]
        self.preempting = [list(row) for row in state.preempting]
        self.slack = list(state.slack)
        self.free: Ints = state.free.copy(order="F")  # looked at by resource
        self._use: Doubles | None = None
        self.gone: Bools | None = None
        self.touched: list[int] = []
        self.held: dict[int, list[Held]] = {}
        self.coming: dict[tuple[int, int], int] = {}
        self.vain: dict[Hashable, tuple[Request, Any]] = {}
        self.victims: Any = None
        self.attempts = defaultdict[int, int](int)
        self._tracked: Tracked | None = None
        self._holders: frozenset[str] | None = None
        self.reserve(state.reservations)

    def alone(self) -> "Overlay":
        """It shares nothing with its state that changes."""
        self._use = self.state.use().copy()
        return self

    def copy(self) -> "Overlay":
        """An overlay that can be given up without trace."""
        twin = Overlay.__new__(Overlay)
        twin.state = self.state
        twin.allocated = [list(row) for row in self.allocated]
        twin.preempting = [list(row) for row in self.preempting]
        twin.slack = list(self.slack)
        twin.free = self.free.copy(order="F")
        twin._use = None if self._use is None else self._use.copy()
        twin.touched = []
        twin.gone = None if self.gone is None else self.gone.copy()
        twin.held = {node: list(holders) for node, holders in self.held.items()}
        twin.coming = dict(self.coming)
        twin.vain, twin.victims = {}, None
        twin.attempts = self.attempts.copy()
        twin._holders = self._holders
        twin._tracked = None if self._tracked is None else self._tracked.copy()
        return twin

    def reserve(self, reservations: Iterable[Reservation]) -> None:
        """These are held now, and no others."""
        self.held, self.coming, self._holders = {}, {}, None
        for reservation in reservations:
            request = holder_of(self.state, reservation.ask)
            if request is not None:
                self._hold(self.state.node_index[reservation.node], request, None, triggered=request.triggered)

    def effect(self, queue: int, amounts: Amounts) -> Effect:
        """What a task of ``queue`` that requests this changes in here, which is no copy."""
        path, cells = self.state.configuration.paths[queue], self.state.configuration.path_cells[queue]
        rows = [(self.allocated[q], r, amount) for q in path for r, amount in amounts.items()]
        slack = [(cell, amount) for r, amount in amounts.items() for cell in cells.get(r, ())]
        return Effect(queue, amounts, rows, slack, sum(amounts.values()))

    def run(self, effect: Effect, node: int | None, sign: int, *, leaving: bool) -> None:
        """A task runs, or (``sign`` -1) does no longer; ``leaving``: it is being preempted."""
        for row, r, amount in effect.rows:
            row[r] += sign * amount
        if leaving:
            self._shift(self.preempting, effect.queue, effect.amounts, sign)
        else:
            slack = self.slack
            for cell, amount in effect.slack:
                slack[cell] -= sign * amount
        if node is not None:
            free = self.free[node]
            for r, amount in effect.amounts.items():
                free[r] -= sign * amount
            if self.state.scored:
                self.use()[node] = self.state.use_of(node, free)
            self.touched.append(node)

    def mark(self, effect: Effect) -> None:
        """A task that runs is being preempted."""
        self._shift(self.preempting, effect.queue, effect.amounts, 1)
        for cell, amount in effect.slack:
            self.slack[cell] += amount

    def holders(self) -> frozenset[str]:
        """The asks that hold a node."""
        if self._holders is None:
            self._holders = frozenset(held.ask.id for holders in self.held.values() for held in holders)
        return self._holders

    def tracked(self) -> Tracked:
        """What users, groups and applications have, where something limits them."""
        if self._tracked is None:
            state = self.state
            if state.lazy.tracked is None:
                queues = state.configuration
                state.lazy.tracked = tracked(queues.limits, queues.paths, queues.tree.index, state.workloads)
            self._tracked = state.lazy.tracked.copy()
        return self._tracked

    def use(self) -> Doubles:
        """See ``CompiledState.use``; as it is now."""
        if self._use is None:
            self._use = self.state.use()
        return self._use

    def used(self, queue: int, resource: int) -> int:
        """Allocated in ``queue``, what is being preempted included, of a resource that the cluster has."""
        return self.allocated[queue][resource]

    def used_after(self, queue: int, resource: int, but: Request) -> int:
        """Usage once everybody that is being preempted has left and everybody that waits for it has come."""
        return self.used(queue, resource) - self.preempting[queue][resource] + self.expected(queue, resource, but)

    def expected(self, queue: int, resource: int, but: Request) -> int:
        """What other asks that hold a node and evicted somebody for it will take in ``queue``."""
        coming = self.coming.get((queue, resource), 0)
        if but.ask.id not in self.holders():
            return coming
        return coming - sum(
            held.amounts.get(resource, 0)
            for holders in self.held.values()
            for held in holders
            if held.triggered and held.is_of(but) and queue in self.state.configuration.paths[held.queue]
        )

    def place(self, node: int, request: Request, *, holds: bool = True) -> None:
        """The ask runs on ``node`` now. ``holds``: whether it may hold a node."""
        self._forget()
        use = self.use()
        queues = self.state.configuration
        if queues.limits.some:
            amounts = {request.resources.names[r]: amount for r, amount in request.amounts.items()}
            self.tracked().add(queues.limits, whose_is(self.state, request), queues.paths[request.queue], amounts)
        self._shift(self.allocated, request.queue, request.amounts, 1)
        self._slack(request.queue, request.amounts, -1)
        for r, amount in request.needs.items():
            self.free[node, r] -= amount
        if use is self.state.lazy.use:
            use = self._use = use.copy()
        use[node] = self.state.use_of(node, self.free[node])
        self.touched.append(node)
        if holds:
            self._release(node, request)

    def evict(self, tasks: Iterable[int]) -> None:
        """The tasks are being preempted: they still use their node and their queue."""
        self._forget()
        state = self.state
        if self.gone is None:
            self.gone = np.zeros(state.task_count, dtype=bool)
        for task in tasks:
            self.gone[task] = True
            amounts = state.amounts(task)
            self._shift(self.preempting, int(state.queue[task]), amounts, 1)
            self._slack(int(state.queue[task]), amounts, 1)

    def hold(self, node: int, request: Request, *, triggered: bool = True) -> None:
        """The ask reserves ``node``, and no other. ``triggered``: it evicted somebody."""
        self._release(node, request)
        self._hold(node, request, request.unit, triggered=triggered)

    def _hold(self, node: int, request: Request, unit: int | None, *, triggered: bool) -> None:
        self._forget()
        self._holders = None
        held = Held(
            ask=request.ask, unit=unit, queue=request.queue, amounts=request.amounts, priority=request.priority,
            created=request.created, required=request.required is not None, triggered=triggered,
        )  # fmt: skip
        self.held.setdefault(node, []).append(held)
        if triggered:
            self._coming(held, 1)

    def cancel(self, node: int, held: Held) -> None:
        """The reservation is dropped."""
        self._forget()
        self._holders = None
        self.held[node] = [other for other in self.held[node] if other is not held]
        if not self.held[node]:
            del self.held[node]
        if held.triggered:
            self._coming(held, -1)

    def _release(self, node: int, request: Request) -> None:
        """The ask has got ``node``, and lets go of what it holds; what its later tasks may still want is kept."""
        last = request.unit == request.units - 1
        for other, holders in list(self.held.items()):
            for held in holders:
                if held.is_of(request) and (last or other == node or held.unit is not None):
                    self.cancel(other, held)

    def _coming(self, held: Held, sign: int) -> None:
        for queue in self.state.configuration.paths[held.queue]:
            for r, amount in held.amounts.items():
                self.coming[queue, r] = self.coming.get((queue, r), 0) + sign * amount

    def _forget(self) -> None:
        """What was found holds no longer."""
        self.vain.clear()
        self.victims = None

    def _shift(self, table: list[list[int]], queue: int, amounts: Amounts, sign: int) -> None:
        width = len(self.state.resources)
        known = [(r, sign * amount) for r, amount in amounts.items() if r < width]
        for q in self.state.configuration.paths[queue]:
            row = table[q]
            for r, amount in known:
                row[r] += amount

    def _slack(self, queue: int, amounts: Amounts, sign: int) -> None:
        cells = self.state.configuration.path_cells[queue]
        for r, amount in amounts.items():
            for cell in cells.get(r, ()):
                self.slack[cell] += sign * amount
