"""Problems of the state that a delta leads to, as problems of the delta: pointers into what the caller sent."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from app.solver.model.delta import Delta
from app.solver.model.problems import Problem, pointer
from app.solver.model.state import State

_ITEM = re.compile(r"/state/(workloads|nodes|reservations)/([0-9]+)(.*)", re.DOTALL)
_TASK = re.compile(r"/tasks/([0-9]+)(.*)", re.DOTALL)


def in_delta(problems: Iterable[Problem], state: State, delta: Delta) -> Iterator[Problem]:
    """``problems``: of ``state``, which ``delta`` led to. What the delta did not bring but broke is put down to the
    node that it removed; what can't be put down to anything keeps its pointer."""
    for problem in problems:
        found = _ITEM.fullmatch(problem.pointer)
        if found is None:
            yield Problem(pointer=problem.pointer.removeprefix("/state"), detail=problem.detail)
        else:
            yield _item(problem, found[1], int(found[2]), found[3], state, delta)


def _item(problem: Problem, kind: str, at: int, rest: str, state: State, delta: Delta) -> Problem:
    where: str | None
    if kind == "workloads":
        where = _workload(state.workloads[at].id, rest, state, at, delta)
    elif kind == "nodes":
        where = _among([("nodes", op, [n.name for n in of]) for op, of in _brought(delta.nodes)], state.nodes[at].name)
    else:
        held = state.reservations[at]
        names = [f"{r.node}\0{r.ask.id}" for r in delta.reservations.add]
        where = _among([("reservations", "add", names)], f"{held.node}\0{held.ask.id}")
    if where is not None:
        return Problem(pointer=where + ("" if where.startswith("/tasks") else rest), detail=problem.detail)
    return _collateral(problem, kind, at, rest, state, delta)


def _workload(name: str, rest: str, state: State, at: int, delta: Delta) -> str | None:
    where = _among([("workloads", op, [w.id for w in of]) for op, of in _brought(delta.workloads)], name)
    task = _TASK.fullmatch(rest)
    if where is not None or task is None:
        return where
    named = f"{name}\0{state.workloads[at].tasks[int(task[1])].name}"
    parts = [("tasks", op, [f"{t.workload}\0{t.task.name}" for t in of]) for op, of in _brought(delta.tasks)]
    where = _among(parts, named)
    return None if where is None else f"{where}/task{task[2]}"


def _collateral(problem: Problem, kind: str, at: int, rest: str, state: State, delta: Delta) -> Problem:
    """Something that stays names a node that this delta removes."""
    task = _TASK.fullmatch(rest)
    node: str | None = None
    if kind == "workloads" and task is not None:
        node = state.workloads[at].tasks[int(task[1])].node
    elif kind == "reservations":
        node = state.reservations[at].node
    if node is None or node not in delta.nodes.remove:
        return problem
    of = state.workloads[at].id if kind == "workloads" else state.reservations[at].ask.id
    detail = f"{of!r} still needs node {node!r}"
    return Problem(pointer=pointer("nodes", "remove", delta.nodes.remove.index(node)), detail=detail)


def _brought(changes: Any) -> list[tuple[str, Sequence[Any]]]:
    return [(operation, getattr(changes, operation)) for operation in ("add", "change")]


def _among(parts: list[tuple[str, str, list[str]]], name: str) -> str | None:
    for kind, operation, names in parts:
        if name in names:
            return pointer(kind, operation, len(names) - 1 - names[::-1].index(name))
    return None
