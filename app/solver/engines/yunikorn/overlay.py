"""Pending work as allocation asks, and what a decision changes: an overlay on top of a compiled cluster."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.solver import kubernetes
from app.solver.compiled import ResourceIndex
from app.solver.engines.yunikorn.configuration import Amounts
from app.solver.engines.yunikorn.limits import Tracked, Whose, tracked, whose
from app.solver.engines.yunikorn.state import OLDEST, Bools, CompiledState, Ints
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Task

_DEMANDS = 256
"""Pods ask so many different things, and those are kept; one more begins anew."""
MOST_UNITS = 256
"""Allocation asks that one ask of the wire may stand for (tasks times count)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One allocation ask.

    ``amounts``: by index of ``resources`` (the cluster's, extended by what only the ask names), the same object for
    equal requests; ``needs``: those above 0, which it takes room for; ``created`` and ``checked`` in microseconds;
    ``required``: index of the only node it may run on; ``feasible``: indices of the nodes that pass the predicates,
    None when all do; ``workload``: canonical index of its application; ``unit``: its place among the ``units``
    allocation asks that ``ask`` stands for; ``whose``: by what limits it is counted.
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
    workload: int | None
    whose: Whose
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


def check_asks(state: CompiledState, asks: list[Ask]) -> None:
    """Raises InvalidInput with every ask that YuniKorn can't take; pointers start at /asks."""
    refuse([problem for i, ask in enumerate(asks) for problem in ask_problems(state, ask, "asks", i)])


def ask_problems(state: CompiledState, ask: Ask, *place: str | int) -> list[Problem]:
    """What is wrong with one ask; ``place`` leads to it."""
    problems: list[Problem] = []
    if not state.configuration.leaf[state.configuration.tree.index[ask.queue]]:
        detail = f"{ask.queue!r} is a parent queue: applications run in leaf queues"
        problems.append(Problem(pointer=pointer(*place, "queue"), detail=detail))
    if sum(task.count for task in ask.tasks) > MOST_UNITS:
        detail = f"more than {MOST_UNITS} allocation asks in one ask"
        problems.append(Problem(pointer=pointer(*place, "tasks"), detail=detail))
    if not any(task.count for task in ask.tasks):
        problems.append(Problem(pointer=pointer(*place, "tasks"), detail="asks for nothing"))
    for i, task in enumerate(ask.tasks):
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
    workload = state.application(ask.workload or ask.id)
    priority = task.priority if task.priority is not None else ask.priority
    if priority is None:
        priority = state.workloads[workload].priority if workload is not None else 0
    created = task.created_at or ask.created_at
    carried = ask.yunikorn
    checked = carried.last_preemption_check_at if carried is not None else None
    required = task.required_node or ask.required_node
    return Request(
        ask=ask, task=task, queue=state.configuration.tree.index[ask.queue],
        amounts=amounts, needs=needs, resources=resources, priority=priority,
        created=OLDEST if created is None else micros(created), checked=None if checked is None else micros(checked),
        triggered=carried is not None and carried.triggered_preemption,
        required=None if required is None else state.node_index[required],
        feasible=_feasible(state, ask, task),
        workload=workload, whose=whose(ask, None if workload is None else state.workloads[workload]),
    )  # fmt: skip


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
    attempts of each leaf in this cycle; ``vain``: what became of asks since anything was changed, for others that
    differ in nothing that counts, and the asks, so that nothing else gets their ``id``.
    """

    __slots__ = (
        "_tracked", "allocated", "attempts", "coming", "free", "gone", "held", "preempting", "slack", "state", "vain",
    )  # fmt: skip

    def __init__(self, state: CompiledState) -> None:
        self.state = state
        self.allocated = [list(row) for row in state.allocated]
        self.preempting = [list(row) for row in state.preempting]
        self.slack = list(state.slack)
        self.free: Ints = state.free.copy()
        self.gone: Bools | None = None
        self.held: dict[int, list[Held]] = {}
        self.coming: dict[tuple[int, int], int] = {}
        self.vain: dict[Hashable, tuple[Request, Any]] = {}
        self.attempts = Counter[int]()
        self._tracked: Tracked | None = None
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
        twin.vain = {}
        twin.attempts = self.attempts.copy()
        twin._tracked = None if self._tracked is None else self._tracked.copy()
        return twin

    def tracked(self) -> Tracked:
        """What users, groups and applications have, where something limits them."""
        if self._tracked is None:
            state = self.state
            if state.lazy.tracked is None:
                queues = state.configuration
                state.lazy.tracked = tracked(queues.limits, queues.paths, queues.tree.index, state.workloads)
            self._tracked = state.lazy.tracked.copy()
        return self._tracked

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
        self.vain.clear()
        queues = self.state.configuration
        if queues.limits.some:
            amounts = {request.resources.names[r]: amount for r, amount in request.amounts.items()}
            self.tracked().add(queues.limits, request.whose, queues.paths[request.queue], amounts)
        self._shift(self.allocated, request.queue, request.amounts, 1)
        self._slack(request.queue, request.amounts, -1)
        for r, amount in request.needs.items():
            self.free[node, r] -= amount
        self._release(node, request)

    def evict(self, tasks: Iterable[int]) -> None:
        """The tasks are being preempted: they still use their node and their queue."""
        self.vain.clear()
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
        self.vain.clear()
        held = Held(
            ask=request.ask, unit=unit, queue=request.queue, amounts=request.amounts, priority=request.priority,
            created=request.created, required=request.required is not None, triggered=triggered,
        )  # fmt: skip
        self.held.setdefault(node, []).append(held)
        if triggered:
            self._coming(held, 1)

    def cancel(self, node: int, held: Held) -> None:
        """The reservation is dropped."""
        self.vain.clear()
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
