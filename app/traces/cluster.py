"""The configuration that a trace is played on: a tree with a queue for each that its jobs name. Pure.

What the nodes have, by flavor where there are flavors, is shared among those queues as guarantees.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

import msgspec

from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Flavor, FlavorQuotas, Queue, Quota, ResourceGroup
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Node
from app.traces.ingest import Ingested, Work
from app.traces.mapping import Cluster, Each

Steps = dict[str, int]


def configuration(trace: Ingested) -> Configuration | None:
    """That of the mapping for ``trace``; None where the mapping has no cluster."""
    cluster = None if trace.mapping is None else trace.mapping.cluster
    if cluster is None:
        return None
    shares = _shares(trace.queues, cluster.each)
    parts = _parts(cluster, trace.nodes)
    queues = [_queue(name, work, shares[name], parts, cluster.each) for name, work in sorted(trace.queues.items())]
    groups = sorted({work.group for work in trace.queues.values() if work.group is not None})
    cohorts = [Queue(name=name, parent=cluster.each.queue.parent, kueue=None) for name in groups]
    return Configuration(
        engine=cluster.engine,
        settings=cluster.settings,
        flavors=cluster.flavors,
        queues=[*cluster.queues, *cohorts, *queues],
    )


def _shares(queues: Mapping[str, Work], each: Each) -> dict[str, dict[str, Fraction]]:
    """By queue, the part of each resource that it is guaranteed; the resources are those that any job asks for."""
    resources = sorted({resource for work in queues.values() for resource in work.steps})
    if each.share != "work":
        alike = Fraction(1 if each.share == "equal" else 0, max(len(queues), 1))
        return {name: dict.fromkeys(resources, alike) for name in queues}
    whole = {resource: sum(work.steps[resource] for work in queues.values()) for resource in resources}
    return {
        name: {resource: Fraction(work.steps[resource], whole[resource] or 1) for resource in resources}
        for name, work in queues.items()
    }


def _parts(cluster: Cluster, nodes: Iterable[Node]) -> list[tuple[str, Steps]]:
    """Each flavor with what its nodes have; a node belongs to the first flavor whose labels it has."""
    flavors = cluster.flavors or [Flavor(name="default")]
    found: list[tuple[str, Steps]] = [(flavor.name, {}) for flavor in flavors]
    for node in nodes:
        for flavor, (_, steps) in zip(flavors, found, strict=True):
            if flavor.node_labels.items() <= node.labels.items():
                for resource, amount in node.capacity.items():
                    steps[resource] = steps.get(resource, 0) + parse(amount, scale_of(resource))
                break
    return found


def _queue(
    name: str, work: Work, share: Mapping[str, Fraction], parts: Iterable[tuple[str, Steps]], each: Each
) -> Queue:
    flavors = [
        FlavorQuotas(name=flavor, quota={r: _quota(r, int(steps.get(r, 0) * part), each) for r, part in share.items()})
        for flavor, steps in parts
    ]
    made = msgspec.structs.replace(
        each.queue, name=name, parent=work.group if work.group is not None else each.queue.parent, quota=None
    )
    if len(flavors) == 1 and flavors[0].name == "default":
        return msgspec.structs.replace(made, quota=flavors[0].quota)
    return msgspec.structs.replace(made, resource_groups=[ResourceGroup(resources=list(share), flavors=flavors)])


def _quota(resource: str, steps: int, each: Each) -> Quota:
    given = (each.queue.quota or {}).get(resource, Quota())
    scale = scale_of(resource)
    amount: Quantity = steps // scale if steps % scale == 0 else f"{steps}m"
    return msgspec.structs.replace(given, guaranteed=amount)
