"""A trace as the body of a simulation: its jobs, and the cluster that its mapping makes of it. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import msgspec

from app.base.errors import BadInput
from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Flavor, FlavorQuotas, Queue, Quota, ResourceGroup
from app.solver.model.problems import Problem
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Node
from app.traces.ingest import Ingested, Work, unpacked
from app.traces.mapping import Cluster, Each

Steps = dict[str, int]


def configuration(trace: Ingested) -> Configuration | None:
    """That of the mapping for ``trace``, on which it is played; None where the mapping has no cluster. A tree with a
    queue for each that its jobs name; what the nodes have, by flavor where there are flavors, is shared among those
    queues as guarantees."""
    cluster = None if trace.mapping is None else trace.mapping.cluster
    if cluster is None:
        return None
    shares = _shares(trace.queues, cluster.each)
    parts = _parts(cluster, trace.nodes)
    split = _Split(parts)
    queues = [_queue(name, work, split.next(shares[name]), cluster.each) for name, work in sorted(trace.queues.items())]
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


class _Split:
    """What each flavor has, handed out queue by queue in whole steps: rounded so that nothing is left over, for a job
    as large as the cluster must find all of it in the guarantees."""

    def __init__(self, parts: Iterable[tuple[str, Steps]]) -> None:
        self._parts = list(parts)
        self._shared: dict[str, Fraction] = {}
        self._given: dict[tuple[str, str], int] = {}

    def next(self, share: Mapping[str, Fraction]) -> list[tuple[str, Steps]]:
        """The next queue's part of each flavor."""
        for resource, part in share.items():
            self._shared[resource] = self._shared.get(resource, Fraction(0)) + part
        return [(flavor, {r: self._part(flavor, r, steps.get(r, 0)) for r in share}) for flavor, steps in self._parts]

    def _part(self, flavor: str, resource: str, steps: int) -> int:
        until = int(steps * self._shared[resource])
        before = self._given.get((flavor, resource), 0)
        self._given[flavor, resource] = until
        return until - before


def _queue(name: str, work: Work, given: Iterable[tuple[str, Steps]], each: Each) -> Queue:
    flavors = [
        FlavorQuotas(name=flavor, quota={r: _quota(r, amount, each) for r, amount in steps.items()})
        for flavor, steps in given
    ]
    made = msgspec.structs.replace(
        each.queue, name=name, parent=work.group if work.group is not None else each.queue.parent, quota=None
    )
    if len(flavors) == 1 and flavors[0].name == "default":
        return msgspec.structs.replace(made, quota=flavors[0].quota)
    return msgspec.structs.replace(
        made, resource_groups=[ResourceGroup(resources=list(flavors[0].quota), flavors=flavors)]
    )


def _quota(resource: str, steps: int, each: Each) -> Quota:
    given = (each.queue.quota or {}).get(resource, Quota())
    scale = scale_of(resource)
    amount: Quantity = steps // scale if steps % scale == 0 else f"{steps}m"
    return msgspec.structs.replace(given, guaranteed=amount)


_CHANGE = b'{"at"'
_encode = msgspec.json.Encoder(order="deterministic").encode


def body(trace: Ingested) -> Iterator[bytes]:
    """The JSON of a simulation, in pieces. Raises BadInput where the mapping has no cluster."""
    made = configuration(trace)
    if made is None:
        raise BadInput([Problem(pointer="/mapping/cluster", detail="the mapping has no cluster to play the trace on")])
    yield b'{"configuration":' + _encode(made)
    yield b',"trace":{'
    if trace.start is not None:
        yield b'"start":' + _encode(trace.start) + b","
    for name, wanted in ((b'"changes":[', True), (b'],"jobs":[', False)):
        yield name
        separator = b""
        for chunk in trace.chunks:
            found = [line for line in unpacked(chunk.data).splitlines() if line.startswith(_CHANGE) is wanted]
            if found:
                yield separator + b",\n".join(found)
                separator = b",\n"
    yield b"]}}\n"


def jobs_and_changes(trace: Ingested) -> Iterator[bytes]:
    """The lines of the trace, some at a time."""
    for chunk in trace.chunks:
        yield unpacked(chunk.data)
