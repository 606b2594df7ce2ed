"""The quotas of a queue, whichever of its two forms it uses, and where each one stands in the document."""

from collections.abc import Iterator
from typing import NamedTuple

from app.solver.model.configuration import Queue, Quota

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
