"""Quotas of a queue, whichever of their two forms it uses, where each stands in a document; promises beyond them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.problems import Finding, pointer
from app.solver.model.quantity import UNLIMITED, parse, scale_of, units

DEFAULT_FLAVOR = "default"
"""The flavor of quotas that are written in the short form (contract.md: quota)."""
Place = tuple[str | int, ...]
"""Parts of a JSON pointer."""


class PlacedQuota(NamedTuple):
    """One quota; ``at`` leads to it."""

    flavor: str
    resource: str
    quota: Quota
    at: Place


def quotas(queue: Queue, at: Place = ()) -> Iterator[PlacedQuota]:
    """``quota`` first, then ``resource_groups``, in document order. ``at`` leads to the queue.

    A document that uses both forms is refused elsewhere; here each quota is found at its own place.
    """
    for resource, quota in (queue.quota or {}).items():
        yield PlacedQuota(DEFAULT_FLAVOR, resource, quota, (*at, "quota", resource))
    for g, group in enumerate(queue.resource_groups or ()):
        for f, flavor in enumerate(group.flavors):
            here = (*at, "resource_groups", g, "flavors", f, "quota")
            for resource, quota in flavor.quota.items():
                yield PlacedQuota(flavor.name, resource, quota, (*here, resource))


RULE = "queues.oversubscribed-children"


def oversubscribed(configuration: Configuration) -> Iterator[Finding]:
    """Warnings in document order, one for each figure of a parent that its children's guarantees exceed together. That
    is legal in every engine, and worth knowing.

    Compared by flavor and resource with the parent's own guarantee and its limit. Quantities must have been checked.
    """
    promised: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for queue in configuration.queues:
        if queue.parent is not None:
            for own in quotas(queue):
                promised[queue.parent][own.flavor, own.resource] += _steps(own.quota.guaranteed, own.resource) or 0
    for i, queue in enumerate(configuration.queues):
        children = promised.get(queue.name, {})
        for flavor, resource, quota, at in quotas(queue, ("queues", i)):
            below = children.get((flavor, resource), 0)
            for field, value in (("guaranteed", quota.guaranteed), ("limit", quota.limit)):
                own = _steps(value, resource)
                if own is not None and below > own:
                    yield _warning(resource, pointer(*at, field), below, own, field)


def _warning(resource: str, at: str, promised: int, own: int, field: str) -> Finding:
    detail = (
        f"the queues below are guaranteed {units(promised, resource)} {resource} together, "
        f"more than the {units(own, resource)} that this queue has as {field}"
    )
    return Finding(rule=RULE, severity="warning", pointer=at, detail=detail)


def _steps(value: Quantity | None, resource: str) -> int | None:
    """``None``: no figure to compare with. A parent without a guarantee of its own says nothing about its children."""
    steps = None if value is None or value == UNLIMITED else parse(value, scale_of(resource))
    return steps or None
