"""What asks and running workloads hold, added up: integer steps by resource."""

from collections.abc import Iterable

from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Task

Amounts = dict[str, int]


def amounts_of(tasks: Iterable[Task]) -> Amounts:
    """Steps by resource, over all units of all tasks. Raises QuantityError."""
    found: Amounts = {}
    for task in tasks:
        for resource, value in task.requests.items():
            found[resource] = found.get(resource, 0) + task.count * parse(value, scale_of(resource))
    return found


def work(area: int, resource: str) -> int | float:
    """Steps times microseconds as units times seconds."""
    whole, rest = divmod(area, scale_of(resource) * 10**6)
    return whole if rest == 0 else area / (scale_of(resource) * 10**6)
