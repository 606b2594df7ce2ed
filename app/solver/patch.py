"""From one state to another as an edit script: what a log keeps of a state whose predecessor it has.

A list of nodes or workloads is walked from its front: a positive number copies so many items, a negative one leaves so
many out, a list puts its items in. So order is kept, and what did not change costs nothing. Reservations,
budgets, findings and what queues carry over are few: they are given whole where they differ.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from app.solver.apply import Index
from app.solver.model.base import Wire
from app.solver.model.kube_scheduler import DisruptionBudget
from app.solver.model.problems import Carried, InvalidInput, Problem
from app.solver.model.state import Node, QueueState, Reservation, State, Workload
from app.solver.question import safe_point

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
    at = {} if new.nodes is old.nodes else {node.name: i for i, node in enumerate(old.nodes)}
    return Patch(
        nodes=_steps(old.nodes, new.nodes, at, lambda node: node.name),
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


def _steps(old: list[T], new: list[T], at: Mapping[str, int], name: Callable[[T], str]) -> list[int | list[T]]:
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
        found = at.get(name(new[j]), -1)
        if found > i:  # what stood between is gone; should it come again later, it is put in
            _leave_out(steps, found - i)
            i = found
            continue
        if found == i:
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
