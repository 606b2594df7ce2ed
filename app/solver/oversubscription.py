"""Children that are promised more than their parent has: legal in every engine, and worth knowing."""

from collections import defaultdict
from collections.abc import Iterator

from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.problems import Finding, pointer
from app.solver.model.quantity import UNLIMITED, parse, scale_of, units

RULE = "queues.oversubscribed-children"
_Key = tuple[str, str]


def oversubscribed(configuration: Configuration) -> Iterator[Finding]:
    """Warnings in document order, one for each figure of a parent that its children's guarantees exceed together.

    Compared by flavor and resource with the parent's own guarantee and its limit. Quantities must have been checked.
    """
    promised: dict[str, dict[_Key, int]] = defaultdict(lambda: defaultdict(int))
    for queue in configuration.queues:
        if queue.parent is not None:
            for key, _, quota in _quotas(queue):
                promised[queue.parent][key] += _steps(quota.guaranteed, key) or 0
    for i, queue in enumerate(configuration.queues):
        children = promised.get(queue.name, {})
        for key, at, quota in _quotas(queue):
            for field, value in (("guaranteed", quota.guaranteed), ("limit", quota.limit)):
                own = _steps(value, key)
                if own is not None and children.get(key, 0) > own:
                    yield _warning(key, pointer("queues", i, *at, field), children[key], own, field)


def _warning(key: _Key, at: str, promised: int, own: int, field: str) -> Finding:
    resource = key[1]
    detail = (
        f"the queues below are guaranteed {units(promised, resource)} {resource} together, "
        f"more than the {units(own, resource)} that this queue has as {field}"
    )
    return Finding(rule=RULE, severity="warning", pointer=at, detail=detail)


def _quotas(queue: Queue) -> Iterator[tuple[_Key, tuple[str | int, ...], Quota]]:
    for resource, quota in (queue.quota or {}).items():
        yield ("default", resource), ("quota", resource), quota
    for g, group in enumerate(queue.resource_groups or ()):
        for f, flavor in enumerate(group.flavors):
            for resource, quota in flavor.quota.items():
                yield (flavor.name, resource), ("resource_groups", g, "flavors", f, "quota", resource), quota


def _steps(value: Quantity | None, key: _Key) -> int | None:
    """``None``: no figure to compare with. A parent without a guarantee of its own says nothing about its children."""
    steps = None if value is None or value == UNLIMITED else parse(value, scale_of(key[1]))
    return steps or None
