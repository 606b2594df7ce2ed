"""Nodes for a situation that has none: running work of an engine that knows only quotas, for one that places on nodes.

Each pod goes to the first node with room, in the order of the request. That is no claim about where it runs: only how
much room is left in all, and that a node can't be overfull.
"""

import msgspec

from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration
from app.solver.model.quantity import UNLIMITED, QuantityError, parse, scale_of, units
from app.solver.model.state import Node, Task, Workload
from app.solver.quotas import quotas

_NAME = "all-quota"
_SLOTS = {"pods": 100_000, "user_slots": 100_000}


def one_node(configuration: Configuration) -> Node:
    """A node with as much as the quotas of all queues guarantee together."""
    steps: dict[str, int] = {}
    for queue in configuration.queues:
        for _, resource, quota, _ in quotas(queue):
            try:
                given = quota.guaranteed
                steps[resource] = steps.get(resource, 0) + (
                    0 if given is None or given == UNLIMITED else parse(given, scale_of(resource))
                )
            except QuantityError:
                continue
    capacity: dict[str, Quantity] = {name: units(value, name) for name, value in steps.items()}
    return Node(name=_NAME, capacity={**_SLOTS, **capacity})


class Room:
    """What is free on each node while work is put there."""

    def __init__(self, nodes: list[Node], workloads: list[Workload]) -> None:
        self._free = {node.name: _steps(node.capacity) for node in nodes}
        for node in nodes:
            self._take(node.name, _steps(node.occupied))
        for task in (task for workload in workloads for task in workload.tasks):
            if task.node in self._free:
                self._take(task.node, {name: value * task.count for name, value in _steps(task.requests).items()})

    def placed(self, task: Task) -> Task | None:
        """``task``, one pod, on the first node with room; None where no node has any."""
        wanted = _steps(task.requests)
        for node, free in self._free.items():
            if all(free.get(name, 0) >= value for name, value in wanted.items() if value):
                self._take(node, wanted)
                return msgspec.structs.replace(task, node=node)
        return None

    def _take(self, node: str, amounts: dict[str, int]) -> None:
        free = self._free[node]
        for name, value in amounts.items():
            free[name] = free.get(name, 0) - value


def _steps(amounts: dict[str, Quantity]) -> dict[str, int]:
    """What is no quantity is left for the engine to refuse."""
    out: dict[str, int] = {}
    for name, value in amounts.items():
        try:
            out[name] = parse(value, scale_of(name))
        except QuantityError:
            continue
    return out
