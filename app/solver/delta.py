"""Apply a delta to a state: the result is the state that a caller would have sent whole.

Order is part of a state (ties are broken by it in some engines): what is changed keeps its place, what is
removed closes the gap, what is added comes last, in the delta's order. Nothing is written in place, so a
decision that runs on the old state never sees the new one, and a delta that fails changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.solver.index import Index
from app.solver.model.delta import Delta, TaskChanges
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Node, Reservation, State, Task, Workload

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changes:
    """What a delta did to the workloads, for engines that keep up instead of compiling again.

    ``workloads``: (position in the old state or -1, old, new) of each one touched; ``moved``: whether removals
    have shifted positions; ``nodes``, ``rest``: whether nodes, or anything else, changed.
    """

    workloads: list[tuple[int, Workload | None, Workload | None]]
    moved: bool
    nodes: bool
    rest: bool


def apply_delta(state: State, index: Index, delta: Delta) -> tuple[State, Index, Changes]:
    """The new state, its index and what changed. Raises InvalidInput with every problem; pointers start at /."""
    problems: list[Problem] = []
    nodes = _merge(
        state.nodes, delta.nodes.add, delta.nodes.change, delta.nodes.remove,
        key=_node_name, place={n.name: i for i, n in enumerate(state.nodes)} if _named(delta.nodes) else {},
        where=_place("nodes", "name"), kind="node", problems=problems,
    )  # fmt: skip
    changed = list(delta.workloads.change)
    changed += _with_tasks(state, index, delta, problems)
    workloads = _merge(
        state.workloads, delta.workloads.add, changed, delta.workloads.remove,
        key=_workload_id, place=index.workloads, where=_place("workloads", "id"), kind="workload", problems=problems,
    )  # fmt: skip
    reservations = _reservations(state.reservations, delta, problems)
    if problems:
        raise InvalidInput(problems)
    new = State(nodes=nodes, workloads=workloads, reservations=reservations, queues={**state.queues, **delta.queues})
    changes = Changes(
        workloads=_touched(state, index, delta, changed),
        moved=bool(delta.workloads.remove),
        nodes=_named(delta.nodes),
        rest=bool(delta.queues) or reservations is not state.reservations,
    )
    return new, _reindexed(index, state, new, delta), changes


def _node_name(node: Node) -> str:
    return node.name


def _place(kind: str, field: str) -> Callable[[str, int], str]:
    def where(operation: str, i: int) -> str:
        return pointer(kind, operation, i) if operation == "remove" else pointer(kind, operation, i, field)

    return where


def _workload_id(workload: Workload) -> str:
    return workload.id


def _named(changes: msgspec.Struct) -> bool:
    return any(getattr(changes, field) for field in ("add", "change", "remove"))


def _merge(
    old: list[T], add: Sequence[T], change: Sequence[T], remove: Sequence[str], *, key: Callable[[T], str],
    place: dict[str, int], where: Callable[[str, int], str], kind: str, problems: list[Problem],
) -> list[T]:  # fmt: skip
    if not (add or change or remove):
        return old
    named: set[str] = set()

    def wrong(operation: str, i: int, detail: str) -> None:
        problems.append(Problem(pointer=where(operation, i), detail=detail))

    def once(name: str, operation: str, i: int) -> bool:
        if name in named:
            wrong(operation, i, f"{kind} {name!r} is named twice in this delta")
            return False
        named.add(name)
        return True

    out = list(old)
    for i, item in enumerate(change):
        if once(key(item), "change", i):
            if (found := place.get(key(item))) is None:
                wrong("change", i, f"no {kind} {key(item)!r}")
            else:
                out[found] = item
    gone: list[int] = []
    for i, name in enumerate(remove):
        if once(name, "remove", i):
            if (found := place.get(name)) is None:
                wrong("remove", i, f"no {kind} {name!r}")
            else:
                gone.append(found)
    for i, item in enumerate(add):
        if once(key(item), "add", i) and key(item) in place:
            wrong("add", i, f"a second {kind} {key(item)!r}")
    for position in sorted(gone, reverse=True):
        del out[position]
    out.extend(add)
    return out


def _with_tasks(state: State, index: Index, delta: Delta, problems: list[Problem]) -> list[Workload]:
    """The workloads whose tasks the delta names one by one, with these tasks replaced."""
    changes = delta.tasks
    out: list[Workload] = []
    for identity, (first, of) in _by_owner(changes).items():
        position = index.workloads.get(identity)
        if position is None:
            problems.append(Problem(pointer=pointer("tasks", *first, "workload"), detail=f"no workload {identity!r}"))
            continue
        workload = state.workloads[position]
        tasks = _merge(
            workload.tasks,
            [changes.add[i].task for i in of["add"]],
            [changes.change[i].task for i in of["change"]],
            [changes.remove[i].task for i in of["remove"]],
            key=_task_name, place={t.name: i for i, t in enumerate(workload.tasks)},
            where=lambda operation, i, of=of: pointer("tasks", operation, of[operation][i], "task"),
            kind=f"task of {identity!r}", problems=problems,
        )  # fmt: skip
        out.append(msgspec.structs.replace(workload, tasks=tasks))
    return out


def _by_owner(changes: TaskChanges) -> dict[str, tuple[tuple[str, int], dict[str, list[int]]]]:
    """By workload named: the place that names it first, and the indices of its changes by operation."""
    owners: dict[str, tuple[tuple[str, int], dict[str, list[int]]]] = {}
    for operation in ("add", "change", "remove"):
        for i, item in enumerate(getattr(changes, operation)):
            found = owners.get(item.workload)
            if found is None:
                found = owners[item.workload] = ((operation, i), {"add": [], "change": [], "remove": []})
            found[1][operation].append(i)
    return owners


def _task_name(task: Task) -> str:
    return task.name


def _reservations(old: list[Reservation], delta: Delta, problems: list[Problem]) -> list[Reservation]:
    changes = delta.reservations
    if not (changes.add or changes.remove):
        return old
    held = {(r.node, r.ask.id): r for r in old}
    for i, name in enumerate(changes.remove):
        if held.pop((name.node, name.ask), None) is None:
            where = pointer("reservations", "remove", i)
            problems.append(Problem(pointer=where, detail=f"no reservation of {name.node!r} for {name.ask!r}"))
    for i, reservation in enumerate(changes.add):
        if (reservation.node, reservation.ask.id) in held:
            where = pointer("reservations", "add", i)
            problems.append(
                Problem(pointer=where, detail=f"{reservation.node!r} is reserved for {reservation.ask.id!r} already")
            )
        held[(reservation.node, reservation.ask.id)] = reservation
    return list(held.values())


def _touched(
    state: State, index: Index, delta: Delta, changed: list[Workload]
) -> list[tuple[int, Workload | None, Workload | None]]:
    place, old = index.workloads, state.workloads
    touched: list[tuple[int, Workload | None, Workload | None]] = [(place[w.id], old[place[w.id]], w) for w in changed]
    touched += [(place[name], old[place[name]], None) for name in delta.workloads.remove]
    touched += [(-1, None, w) for w in delta.workloads.add]
    return touched


def _reindexed(index: Index, old: State, new: State, delta: Delta) -> Index:
    nodes = index.nodes if new.nodes is old.nodes else None
    if delta.workloads.remove:
        return Index(new, None, nodes)
    if not delta.workloads.add:
        return Index(new, index.workloads, nodes)
    start = len(old.workloads)
    return Index(new, index.workloads | {w.id: start + i for i, w in enumerate(delta.workloads.add)}, nodes)
