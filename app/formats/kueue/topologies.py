"""Topologies in Kueue's objects: levels, what a pod set asks of them, where its pods are, and whose pods are whose.

An assignment comes in two encodings: v1beta1 lists domains, v1beta2 slices of them, level by level, with what their
values have in common said once.
"""

from collections.abc import Mapping

import msgspec

from app.formats.objects import Object
from app.formats.pods import read_tolerations
from app.formats.reader import Reader
from app.solver.model.configuration import Toleration
from app.solver.model.kueue import SliceLayer, Topology, TopologyAssignment, TopologyDomain, TopologyRequest

ANNOTATIONS = tuple(
    f"kueue.x-k8s.io/podset-{name}"
    for name in ("required-topology", "preferred-topology", "unconstrained-topology", "slice-required-topology")
)
"""Of a pod template: any of them says that its pods are placed by a topology."""
_SLICE_SIZE, _GROUP_NAME = "kueue.x-k8s.io/podset-slice-size", "kueue.x-k8s.io/podset-group-name"
_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
_MOST_DOMAINS, _MOST_LAYERS = 100_000, 3
_LABELS_OF_PODS = ("podIndexLabel", "subGroupIndexLabel", "subGroupCount")
UNDECIDED = "topology-aware scheduling is decided where the source has the Topology and the cluster's Nodes"


def read_topology(made: Object) -> Topology:
    """A Topology object; what else it says is kept for an export."""
    spec, levels = made.spec, list[str]()
    for level in spec.children("levels"):
        levels.append(level.text("nodeLabel") or "")
        level.close()
    spec.close()
    return Topology(name=made.name, levels=[level for level in levels if level])


def placed_by_kueue(made: Object) -> bool:
    """Whether a pod was placed by its topology, so that its Workload says what it uses."""
    return any(name in made.annotations for name in (*ANNOTATIONS, _LAYERS))


def read_flavor_tolerations(spec: Reader) -> list[Toleration] | None:
    """What every pod tolerates that gets the flavor."""
    for one in spec.children("tolerations"):
        one.not_carried("tolerationSeconds", "for how long a taint is tolerated does not bear on a decision", "info")
    return read_tolerations(spec) or None


def read_request(pod_set: Reader, *, decided: bool) -> TopologyRequest | None:
    """What the pod set asks. The index that Kueue gives the pods of every Job asks for nothing. ``decided``: whether
    the source has what a decision needs."""
    request = pod_set.child("topologyRequest")
    if not request.value:
        return None
    layers = [
        SliceLayer(level=layer.text("topology") or "", size=layer.count("size") or 1)
        for layer in request.children("podsetSliceRequiredTopologyConstraints")
    ]
    found = TopologyRequest(
        required=request.text("required"), preferred=request.text("preferred"),
        unconstrained=request.boolean("unconstrained") is True,
        slice_required=request.text("podSetSliceRequiredTopology"), slice_size=request.count("podSetSliceSize") or None,
        slice_layers=layers or None, pod_set_group=request.text("podSetGroupName"),
    )  # fmt: skip
    request.ignore(*_LABELS_OF_PODS)
    request.close()
    if found == TopologyRequest():
        return None
    if not decided:
        pod_set.warn("topologyRequest", UNDECIDED, "error", "not-carried")
        return None
    return found


def request_of(annotations: Mapping[str, str]) -> TopologyRequest | None:
    """What the annotations of a pod template ask for, as Kueue's job integrations read them."""
    required, preferred, unconstrained, slices = (annotations.get(name) for name in ANNOTATIONS)
    size = annotations.get(_SLICE_SIZE, "")
    found = TopologyRequest(
        required=required, preferred=preferred, unconstrained=unconstrained == "true", slice_required=slices,
        slice_size=int(size) if size.isascii() and size.isdigit() and 0 < len(size) < 10 and int(size) > 0 else None,
        slice_layers=_layers(annotations.get(_LAYERS)), pod_set_group=annotations.get(_GROUP_NAME),
    )  # fmt: skip
    return None if found == TopologyRequest() else found


class _Layer(msgspec.Struct):
    topology: str
    size: int | str


def _layers(text: str | None) -> list[SliceLayer] | None:
    """Slices in layers as an annotation has them, JSON, sizes as numbers or in quotes; none where it can't be read, as
    Kueue takes no such job."""
    try:
        given = msgspec.json.decode(text or "[]", type=list[_Layer])
        found = [SliceLayer(level=of.topology, size=int(of.size)) for of in given]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if 0 < len(found) <= _MOST_LAYERS and all(0 < of.size < 2**31 for of in found) else None


def read_assignment(of: Reader, *, decided: bool) -> TopologyAssignment | None:
    """Where the pods of an admitted pod set are."""
    assignment = of.child("topologyAssignment")
    if not assignment.value:
        return None
    levels = assignment.strings("levels")
    domains = [
        TopologyDomain(values=domain.strings("values"), count=domain.count("count") or 0)
        for domain in assignment.children("domains")
    ]
    for part in assignment.children("slices"):
        domains += _slice(part, len(levels))
    assignment.close()
    if not decided:
        of.warn("topologyAssignment", UNDECIDED, "info", "not-carried")
        return None
    return TopologyAssignment(levels=levels, domains=domains)


def _slice(part: Reader, levels: int) -> list[TopologyDomain]:
    number = part.count("domainCount") or 0
    if number > _MOST_DOMAINS:
        part.warn("domainCount", f"more than {_MOST_DOMAINS} domains in one slice", "error", "bad-value")
        number = 0
    columns = [_column(values, number) for values in part.children("valuesPerLevel")]
    counts = part.child("podCounts")
    universal = counts.count("universal")
    given = counts.counts("individual") if "individual" in counts.value else []
    counts.close()
    part.close()
    individual = [universal] * number if universal is not None else given
    if len(columns) != levels or len(individual) != number or any(len(column) != number for column in columns):
        part.findings.add("bad-value", "error", part.at, f"a slice of {number} domains has as many values and counts")
        return []
    return [TopologyDomain(values=[column[i] for column in columns], count=individual[i]) for i in range(number)]


def _column(values: Reader, number: int) -> list[str]:
    """The values of one level, one for each domain."""
    universal = values.text("universal")
    individual = values.child("individual")
    before, after = individual.text("prefix") or "", individual.text("suffix") or ""
    roots = individual.strings("roots")
    individual.close()
    values.close()
    return [universal] * number if universal is not None else [before + root + after for root in roots]
