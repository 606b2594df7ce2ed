"""From one state to another: a decision carried out on the state it was made for (evict, place and reserve what the
answer says), and the edit script between two states that a log keeps in place of the second.

The result is a delta, so that a kept snapshot moves on exactly as if the caller had reported it:

- a workload evicted whole is removed; an evicted task is removed from its workload, which stays;
- an eviction and a placement of the same task is a move: the task keeps everything but its node;
- a placed ask becomes (part of) the running workload that it names, its tasks on their nodes; what waits only for
  the victims to go (``pipelined``) is placed too, because the same delta removes them;
- an admitted ask without nodes (Kueue) becomes a running workload with its flavors and counts;
- an ask that preempts and was given a node (YuniKorn) holds a reservation of it.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from app.solver.model.base import Wire, to_datetime
from app.solver.model.decision import Decision, Placement, Plan
from app.solver.model.problems import Carried, InvalidInput, Problem, pointer
from app.solver.model.state import (
    Ask,
    Delta,
    DisruptionBudget,
    Node,
    QueueState,
    Reservation,
    ReservationChanges,
    ReservationName,
    State,
    Task,
    Workload,
    WorkloadChanges,
)
from app.solver.model.yunikorn import Application
from app.solver.question import safe_point

_ONE_BY_ONE = 16
L = TypeVar("L", list[Any], "array[int]")


def without(items: L, places: Iterable[int]) -> L:
    """``items`` without those at ``places``. A few close their gaps in place; of many each would move all that follows,
    so that what stays is put together in stretches."""
    ascending = sorted(places)
    if len(ascending) <= _ONE_BY_ONE:
        for place in reversed(ascending):
            del items[place]
        return items
    left, begin = items[:0], 0
    for place in ascending:
        left += items[begin:place]
        begin = place + 1
    left += items[begin:]
    return left


class Positions(Mapping[str, int]):
    """Positions in a list by id, the last one where an id is there twice. Immutable.

    Each id has a serial number, ascending along the list; a position is the place of its number among those that are
    left. So the next version of a list from whose middle something went costs two copies, not a new dictionary."""

    __slots__ = ("_numbers", "_order")

    def __init__(self, numbers: dict[str, int], order: "array[int] | None" = None) -> None:
        """``order``: the numbers that are left, ascending; None: all of them, from 0."""
        self._numbers = numbers
        self._order = order

    @staticmethod
    def of(workloads: Sequence[Workload]) -> "Positions":
        """Those of a list."""
        return Positions({w.id: place for place, w in enumerate(workloads)})

    def after(self, gone: Sequence[str], added: Iterable[str]) -> "Positions":
        """Those of the next version: what is ``gone`` closes the gap, what is ``added`` comes last. No id may be there
        twice."""
        numbers, order = self._numbers.copy(), self._order
        if gone or order is not None:
            order = array("q", range(len(numbers))) if order is None else order[:]
            order = without(order, [self[name] for name in gone])
        for name in gone:
            del numbers[name]
        following = len(numbers) if order is None else order[-1] + 1 if order else 0
        for name in added:
            numbers[name] = following
            if order is not None:
                order.append(following)
            following += 1
        return Positions(numbers, order)

    def __getitem__(self, name: str) -> int:
        number = self._numbers[name]
        return number if self._order is None else bisect_left(self._order, number)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class _Names:
    """Of the nodes of all states that have the same; each set is made when it is first asked for."""

    def __init__(self, state: State) -> None:
        self._nodes = state.nodes
        self.sound: dict[str, Ask] = {}

    @cached_property
    def nodes(self) -> frozenset[str]:
        return frozenset(node.name for node in self._nodes)

    @cached_property
    def places(self) -> frozenset[str | None]:
        return frozenset([None, *self.nodes])

    @cached_property
    def node_places(self) -> dict[str, int]:
        return {node.name: i for i, node in enumerate(self._nodes)}


class Index:
    """``workloads``: position by id."""

    __slots__ = ("_names", "_state", "workloads")

    def __init__(self, state: State, workloads: Positions | None = None, names: _Names | None = None):
        """``workloads`` and ``names``: where they are known from another state."""
        self._state = state
        self._names = _Names(state) if names is None else names
        self.workloads = Positions.of(state.workloads) if workloads is None else workloads

    def after(
        self, state: State, gone: Sequence[str], added: Sequence[str], *, same_nodes: bool = False
    ) -> "Index":  # fmt: skip
        """That of the next version, ``state``: from the workloads these have gone, and these were added.
        ``same_nodes``: no node came or went, and each is where it was."""
        workloads = self.workloads
        names = self._names if same_nodes or state.nodes is self._state.nodes else None
        return Index(state, workloads.after(gone, added) if gone or added else workloads, names)

    @property
    def is_distinct(self) -> bool:
        """Whether every node and every workload of the state has a name of its own."""
        state = self._state
        return len(self.nodes) == len(state.nodes) and len(self.workloads) == len(state.workloads)

    @property
    def nodes(self) -> frozenset[str]:
        """The names of all nodes."""
        return self._names.nodes

    @property
    def node_places(self) -> dict[str, int]:
        """Position of each node by its name, the last one where a name is there twice."""
        return self._names.node_places

    @property
    def sound(self) -> dict[str, Ask]:
        """Asks of rounds that name what is there, by id."""
        return self._names.sound

    @property
    def places(self) -> frozenset[str | None]:
        """Where a task may be: the names of all nodes, and None."""
        return self._names.places


def delta_of(
    state: State, index: Index, generation: int, asks: list[Ask], decisions: list[Decision], plan: Plan, now: int
) -> Delta:
    """The delta that carries the answer out. Raises InvalidInput where the state is no longer the one decided on."""
    draft = _Draft(state, index, now)
    by_id = {ask.id: ask for ask in asks}
    wanted: dict[str, dict[str, Task]] = {}
    moved = {(p.workload, p.task): p for p in plan.placements if p.workload is not None and p.ask is None}
    for i, eviction in enumerate(plan.evictions):
        if eviction.just_placed:
            continue
        if (move := moved.pop((eviction.workload, eviction.task or ""), None)) is not None:
            draft.move(eviction.workload, move, pointer("plan", "evictions", i))
        else:
            draft.evict(eviction.workload, eviction.task, pointer("plan", "evictions", i))
    for i, placement in enumerate(plan.placements):
        if placement.ask is None:
            continue
        ask = by_id.get(placement.ask)
        if ask is not None and ask.id not in wanted:
            wanted[ask.id] = {task.name: task for task in ask.tasks}
        task = None if ask is None else wanted[ask.id].get(placement.task)
        if ask is None or task is None:
            detail = f"no ask {placement.ask!r} with a task {placement.task!r}"
            raise InvalidInput([Problem(pointer=pointer("plan", "placements", i), detail=detail)])
        draft.place(ask, task, placement.node)
    placed = {p.ask for p in plan.placements}
    for decision in decisions:
        ask = by_id.get(decision.ask)
        if ask is None or decision.ask in placed:
            continue
        if decision.outcome == "admit":
            draft.admit(ask, decision)
        elif decision.outcome == "preempt" and decision.node is not None:
            draft.reserve(decision.node, ask)
    return draft.delta(generation)


class _Draft:
    """Workloads as they will be; None where one goes. What is evicted or placed task by task costs as much as there are
    tasks, not as much for each of them."""

    def __init__(self, state: State, index: Index, now: int) -> None:
        self._state = state
        self._index = index
        self._now = to_datetime(now)
        self._workloads: dict[str, Workload | None] = {}
        self._tasks: dict[str, dict[str, Task]] = {}
        """Of workloads whose tasks change, by name."""
        self._numbers: dict[tuple[str, str], int] = {}
        """By workload and task: the first that may be free for a unit of it."""
        self._reserved: list[Reservation] = []
        self._released: list[ReservationName] = []

    @cached_property
    def _held(self) -> dict[str, dict[str, ReservationName]]:
        """Reservations by ask and node."""
        held: dict[str, dict[str, ReservationName]] = {}
        for r in self._state.reservations:
            held.setdefault(r.ask.id, {})[r.node] = ReservationName(node=r.node, ask=r.ask.id)
        return held

    def _current(self, identity: str) -> Workload | None:
        if identity in self._workloads:
            return self._workloads[identity]
        position = self._index.workloads.get(identity)
        return None if position is None else self._state.workloads[position]

    def _running(self, identity: str, where: str) -> Workload:
        if (workload := self._current(identity)) is None:
            raise InvalidInput([Problem(pointer=where, detail=f"{identity!r} does not run in this snapshot")])
        return workload

    def _drafted(self, workload: Workload) -> dict[str, Task]:
        """The tasks of one that will be in the delta, by name, to be changed."""
        if (tasks := self._tasks.get(workload.id)) is None:
            self._workloads[workload.id] = workload
            tasks = self._tasks[workload.id] = {task.name: task for task in workload.tasks}
        return tasks

    def evict(self, identity: str, task: str | None, where: str) -> None:
        workload = self._running(identity, where)
        if task is None:
            self._workloads[identity] = None
            self._tasks.pop(identity, None)
        elif self._drafted(workload).pop(task, None) is None:
            raise InvalidInput([Problem(pointer=where, detail=f"{identity!r} runs no task {task!r} in this snapshot")])

    def move(self, identity: str, to: Placement, where: str) -> None:
        tasks = self._drafted(self._running(identity, where))
        if (task := tasks.get(to.task)) is not None:
            tasks[to.task] = msgspec.structs.replace(task, node=to.node)

    def place(self, ask: Ask, task: Task, node: str) -> None:
        tasks = self._to_run(ask)
        name = task.name if task.count == 1 else self._unit_name(ask, task.name, tasks)
        tasks.pop(name, None)  # who is placed again goes last
        tasks[name] = msgspec.structs.replace(task, name=name, count=1, node=node, started_at=self._now)
        self._release(ask)

    def _unit_name(self, ask: Ask, task: str, taken: dict[str, Task]) -> str:
        """A name for one unit of a task of several: the first number that no running task has."""
        key = ask.workload or ask.id, task
        number = self._numbers.get(key, 0)
        while (name := f"{task}-{number}") in taken:
            number += 1
        self._numbers[key] = number
        return name

    def admit(self, ask: Ask, decision: Decision) -> None:
        tasks = self._to_run(ask)
        admitted = {task.name: task for task in admitted_tasks(ask, decision, self._now)}
        if len(admitted) < len(ask.tasks):
            raise InvalidInput([Problem(pointer="/asks", detail=f"two tasks of {ask.id!r} have one name")])
        for name in admitted:
            tasks.pop(name, None)
        tasks.update(admitted)
        self._release(ask)

    def _to_run(self, ask: Ask) -> dict[str, Task]:
        identity = ask.workload or ask.id
        workload = self._current(identity)
        return self._drafted(workload_of(ask, identity, self._now) if workload is None else workload)

    def _release(self, ask: Ask) -> None:
        self._released += self._held.get(ask.id, {}).values()

    def reserve(self, node: str, ask: Ask) -> None:
        if node not in self._held.get(ask.id, {}):
            self._reserved.append(Reservation(node=node, ask=ask))

    def _as_drafted(self, identity: str, workload: Workload) -> Workload:
        tasks = self._tasks.get(identity)
        return workload if tasks is None else msgspec.structs.replace(workload, tasks=list(tasks.values()))

    def delta(self, generation: int) -> Delta:
        known = self._index.workloads
        there = {i: self._as_drafted(i, w) for i, w in self._workloads.items() if w is not None}
        return Delta(
            generation=generation,
            workloads=WorkloadChanges(
                add=[w for i, w in there.items() if i not in known],
                change=[w for i, w in there.items() if i in known],
                remove=[i for i in self._workloads if i not in there and i in known],
            ),
            reservations=ReservationChanges(add=self._reserved, remove=_once(self._released)),
        )


def _once(names: list[ReservationName]) -> list[ReservationName]:
    return list({(n.node, n.ask): n for n in names}.values())


def admitted_tasks(ask: Ask, decision: Decision, now: datetime) -> list[Task]:
    """The tasks of an ask that is admitted whole, as they run: with their flavors, sizes and nodes."""
    flavors, counts, placed = decision.assignment or {}, decision.counts or {}, decision.placements or {}
    domains = decision.topology_assignment or {}
    return [
        msgspec.structs.replace(
            task,
            count=counts.get(task.name, task.count),
            min_count=None,
            full_count=None,
            flavors=flavors.get(task.name, task.flavors),
            node=placed.get(task.name, decision.node),
            topology_assignment=domains.get(task.name),
            started_at=now,
        )
        for task in ask.tasks
    ]


def workload_of(ask: Ask, identity: str, now: datetime, tasks: Sequence[Task] = ()) -> Workload:
    """The running workload that an ask becomes, with these tasks."""
    return Workload(
        id=identity, queue=ask.queue, uid=ask.uid, priority=ask.priority or 0,
        created_at=ask.created_at, started_at=now,
        preemptible=True if ask.preemptible is None else ask.preemptible, min_available=ask.min_available,
        weight=ask.weight, limit=ask.limit, ytsaurus=ask.ytsaurus, yunikorn=_owner(ask), tasks=list(tasks),
    )  # fmt: skip


def _owner(ask: Ask) -> Application | None:
    """Whose application it is, where the ask says it."""
    known = ask.yunikorn
    owner = None if known is None else Application(user=known.user, groups=known.groups)
    return None if owner == Application() else owner


T = TypeVar("T")


class Patch(Wire, frozen=True, kw_only=True):
    """``nodes``, ``workloads``: steps; empty where the lists are the same. None: as before."""

    nodes: list[int | list[Node]] = []
    workloads: list[int | list[Workload]] = []
    reservations: list[Reservation] | None = None
    queues: dict[str, QueueState] | None = None
    disruption_budgets: list[DisruptionBudget] | None = None
    findings: Carried | None = None


def patch(old: State, index: Index, new: State) -> Patch:
    """What leads from ``old``, whose index is ``index``, to ``new``. Cost: that of what differs, where versions of a
    state share what did not change."""
    places = {} if new.nodes is old.nodes else {node.name: i for i, node in enumerate(old.nodes)}
    return Patch(
        nodes=_steps(old.nodes, new.nodes, places, lambda node: node.name),
        workloads=_steps(old.workloads, new.workloads, index.workloads, lambda workload: workload.id),
        reservations=None if new.reservations == old.reservations else new.reservations,
        queues=None if new.queues == old.queues else new.queues,
        disruption_budgets=None if new.disruption_budgets == old.disruption_budgets else new.disruption_budgets,
        findings=None if new.findings == old.findings else new.findings,
    )


def patched(old: State, change: Patch) -> State:
    """The state that ``change`` leads to. Raises InvalidInput where it is no change of ``old``."""
    return State(
        nodes=_after(old.nodes, change.nodes),
        workloads=_after(old.workloads, change.workloads),
        reservations=old.reservations if change.reservations is None else change.reservations,
        queues=old.queues if change.queues is None else change.queues,
        disruption_budgets=old.disruption_budgets if change.disruption_budgets is None else change.disruption_budgets,
        findings=old.findings if change.findings is None else change.findings,
    )


def _steps(old: list[T], new: list[T], places: Mapping[str, int], name: Callable[[T], str]) -> list[int | list[T]]:
    if new is old:
        return []
    steps: list[int | list[T]] = []
    i = j = 0
    while j < len(new):
        if (same := _common(old, i, new, j)) > 0:
            steps.append(same)
            i, j = i + same, j + same
            continue
        safe_point()
        place = places.get(name(new[j]), -1)
        if place > i:  # what stood between is gone; should it come again later, it is put in
            _leave_out(steps, place - i)
            i = place
            continue
        if place == i:
            _leave_out(steps, 1)
            i += 1
        _put_in(steps, new[j])
        j += 1
    if i < len(old):
        _leave_out(steps, len(old) - i)
    return steps


def _leave_out(steps: list[int | list[T]], count: int) -> None:
    """One step for neighbours; what is put in between may as well come before."""
    before = steps[-2:] if steps and isinstance(steps[-1], list) else steps[-1:]
    if before and isinstance(before[0], int) and before[0] < 0:
        steps[-len(before)] = before[0] - count
    else:
        steps.append(-count)


def _put_in(steps: list[int | list[T]], item: T) -> None:
    if steps and isinstance(last := steps[-1], list):
        last.append(item)
    else:
        steps.append([item])


def _common(old: list[T], i: int, new: list[T], j: int) -> int:
    """How many items from ``i`` and ``j`` on are the same. Slices of lists compare shared items by identity, so that a
    long stretch costs next to nothing."""
    size = min(len(old) - i, len(new) - j)
    same, step = 0, 1
    while step and same < size:
        step = min(step, size - same)
        if old[i + same : i + same + step] == new[j + same : j + same + step]:
            same += step
            step *= 2
        else:
            step //= 2
    return same


def _after(old: list[T], steps: list[int | list[T]]) -> list[T]:
    if not steps:
        return old
    out: list[T] = []
    i = 0
    for step in steps:
        if isinstance(step, list):
            out += step
            continue
        if i + abs(step) > len(old):
            raise InvalidInput([Problem(pointer="", detail="the change belongs to another state")])
        if step > 0:
            out += old[i : i + step]
        i += abs(step)
    return out
