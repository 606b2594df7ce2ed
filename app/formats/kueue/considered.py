"""Whether Kueue considers a workload at all, as what it counts the pods, what they ask of a topology: what stands
beside its queues.

Sources: Kueue ``pkg/workload`` (IsAdmissible, dropExcludedResources, applyResourceTransformations),
``pkg/workload/resources.go`` (ValidateAdmissibility), ``pkg/controller/core/workload_controller.go``.
An assignment to a topology comes in two encodings: v1beta1 lists domains, v1beta2 slices of them, level by level, with
what their values have in common said once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, cast

import msgspec

from app.formats.admission import Admission
from app.formats.objects import Object
from app.formats.pods import Steps, read_tolerations
from app.formats.reader import Findings, Reader
from app.solver import kubernetes
from app.solver.model.base import Quantity, QuantityError, exact, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, Queue, Toleration
from app.solver.model.kueue import QueueState, SliceLayer, Topology, TopologyAssignment, TopologyDomain, TopologyRequest
from app.solver.model.state import Expression

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


def read_topology(manifest: Object) -> Topology:
    """A Topology object; what else it says is kept for an export."""
    spec, levels = manifest.spec, list[str]()
    for level in spec.children("levels"):
        levels.append(level.text("nodeLabel") or "")
        level.close()
    spec.close()
    return Topology(name=manifest.name, levels=[level for level in levels if level])


def placed_by_kueue(manifest: Object) -> bool:
    """Whether a pod was placed by its topology, so that its Workload says what it uses."""
    return any(name in manifest.annotations for name in (*ANNOTATIONS, _LAYERS))


def read_flavor_tolerations(spec: Reader) -> list[Toleration] | None:
    """What every pod tolerates that gets the flavor."""
    for toleration in spec.children("tolerations"):
        toleration.not_carried(
            "tolerationSeconds", "for how long a taint is tolerated does not bear on a decision", "info"
        )
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
    topology = TopologyRequest(
        required=request.text("required"), preferred=request.text("preferred"),
        unconstrained=request.boolean("unconstrained") is True,
        slice_required=request.text("podSetSliceRequiredTopology"), slice_size=request.count("podSetSliceSize") or None,
        slice_layers=layers or None, pod_set_group=request.text("podSetGroupName"),
    )  # fmt: skip
    request.ignore(*_LABELS_OF_PODS)
    request.close()
    if topology == TopologyRequest():
        return None
    if not decided:
        pod_set.warn("topologyRequest", UNDECIDED, "error", "not-carried")
        return None
    return topology


def request_of(annotations: Mapping[str, str]) -> TopologyRequest | None:
    """What the annotations of a pod template ask for, as Kueue's job integrations read them."""
    required, preferred, unconstrained, slices = (annotations.get(name) for name in ANNOTATIONS)
    size = annotations.get(_SLICE_SIZE, "")
    request = TopologyRequest(
        required=required, preferred=preferred, unconstrained=unconstrained == "true", slice_required=slices,
        slice_size=int(size) if size.isascii() and size.isdigit() and 0 < len(size) < 10 and int(size) > 0 else None,
        slice_layers=_layers(annotations.get(_LAYERS)), pod_set_group=annotations.get(_GROUP_NAME),
    )  # fmt: skip
    return None if request == TopologyRequest() else request


class _Layer(msgspec.Struct):
    topology: str
    size: int | str


def _layers(text: str | None) -> list[SliceLayer] | None:
    """Slices in layers as an annotation has them, JSON, sizes as numbers or in quotes; none where it can't be read, as
    Kueue takes no such job."""
    try:
        given = msgspec.json.decode(text or "[]", type=list[_Layer])
        layers = [SliceLayer(level=of.topology, size=int(of.size)) for of in given]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return layers if 0 < len(layers) <= _MOST_LAYERS and all(0 < of.size < 2**31 for of in layers) else None


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
        part.findings.add("bad-value", "error", part.path, f"a slice of {number} domains has as many values and counts")
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


STOP_POLICY = {word: word for word in ("None", "Hold", "HoldAndDrain")}
_NAME_LABEL = "kubernetes.io/metadata.name"
_OPERATORS = {word: word for word in ("In", "NotIn", "Exists", "DoesNotExist")}
_STRATEGY = {word: word for word in ("Retain", "Replace")}
_NANO = 10**9


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """``cluster_queue``: where it leads, empty where it says nothing; ``shared``: its weight and what it has consumed,
    which only the object itself says."""

    cluster_queue: str
    stop_policy: str = "None"
    shared: QueueState = field(default_factory=QueueState)

    @property
    def stopped(self) -> bool:
        """Whether nothing of it is admitted."""
        return self.stop_policy != "None"


def read_local_queue(spec: Reader) -> LocalQueue:
    """Of a LocalQueue's spec."""
    return LocalQueue(spec.text("clusterQueue") or "", spec.choice("stopPolicy", STOP_POLICY) or "None")


def read_consumed(spec: Reader, status: Reader) -> QueueState:
    """What a LocalQueue says of admission fair sharing: its weight, and what its work has consumed."""
    fair = spec.child("fairSharing")
    weight = fair.decimal("weight")
    fair.close()
    own = status.child("fairSharing").child("admissionFairSharingStatus")
    given, consumed = own.child("consumedResources"), dict[str, Quantity]()
    for name, amount in given.value.items():
        try:
            exact(amount)
            consumed[name] = amount
        except (QuantityError, TypeError) as error:
            given.warn(name, str(error), "error", "bad-value")
    return QueueState(
        consumed=consumed if own.value else None, updated_at=own.time("lastUpdate"),
        weight=1.0 if weight is None else weight,
    )  # fmt: skip


def usage_based(configuration: Configuration) -> frozenset[str]:
    """The ClusterQueues that go by what LocalQueues have consumed."""
    settings = configuration.settings.kueue
    if settings is None or settings.admission_fair_sharing is None:
        return frozenset()
    return frozenset(
        queue.name
        for queue in configuration.queues
        if queue.kueue is not None and queue.kueue.admission_mode == "UsageBasedAdmissionFairSharing"
    )


@dataclass(slots=True)
class Around:
    """What else there is of a cluster. ``local_queues`` by id; ``namespaces``: the labels of those that are known;
    ``complete``: whether there are no ClusterQueues beside the configuration's."""

    local_queues: Mapping[str, LocalQueue] = field(default_factory=dict[str, LocalQueue])
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    admission: Admission = field(default_factory=lambda: Admission(kueue=True))
    complete: bool = False

    def take(self, manifests: Iterable[Object]) -> None:
        """Namespaces, LimitRanges and RuntimeClasses."""
        for manifest in manifests:
            if manifest.kind == "Namespace":
                self.namespaces[manifest.name] = manifest.labels
            else:
                self.admission.add(manifest)


class Selectors:
    """The namespaces that each ClusterQueue of a configuration admits from. One that came from no manifest of Kueue
    admits from all; one whose manifest has no selector from none."""

    def __init__(self, configuration: Configuration, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._queues = {queue.name: queue for queue in configuration.queues}
        self._namespaces = namespaces
        self._read: dict[str, list[Expression] | None] = {}

    def refusal(self, queue: str, work: Object) -> str | None:
        """Why ``queue`` admits nothing from the namespace of ``work``, or None. Where the source does not show the
        namespace only its name is known: what is asked of other labels is taken for granted, which is a finding."""
        namespace, assumed = work.namespace, False
        if queue not in self._read:
            self._read[queue] = _selector(self._queues.get(queue))
        selector = self._read[queue]
        if selector is None:
            return f"ClusterQueue {queue} has no namespaceSelector, and so admits from no namespace"
        known = self._namespaces.get(namespace)
        labels = {_NAME_LABEL: namespace, **(known or {})}
        for expression in selector:
            if known is None and expression.key != _NAME_LABEL:
                assumed = True
            elif not kubernetes.matches(expression, labels):
                return f"namespace {namespace} does not match the namespaceSelector of ClusterQueue {queue}"
        if assumed:
            detail = f"namespace {namespace!r} is not in the source: it is taken to match the namespaceSelector"
            work.root.warn("metadata", detail, "warning", "assumed-namespace")
        return None


def selector_of(reader: Reader) -> list[Expression]:
    """A label selector as expressions that must all match."""
    expressions = [
        Expression(key=key, operator="In", values=[value]) for key, value in reader.labels("matchLabels").items()
    ]
    for expression in reader.children("matchExpressions"):
        key, operator, values = (
            expression.text("key"),
            expression.choice("operator", _OPERATORS),
            expression.strings("values"),
        )
        expression.close()
        if key is None or operator is None:
            expression.findings.add("bad-value", "error", expression.path, "an expression has a key and an operator")
        else:
            expressions.append(Expression(key=key, operator=cast(Any, operator), values=values))
    reader.close()
    return expressions


def _selector(queue: Queue | None) -> list[Expression] | None:
    spec: Any = None if queue is None or queue.native is None else queue.native.kueue.get("spec")
    if not isinstance(spec, dict) or "namespaceSelector" not in spec:
        return []
    given: Any = cast(dict[str, Any], spec)["namespaceSelector"]
    return None if given is None else selector_of(Reader(given, (), Findings()))


@dataclass(frozen=True, slots=True)
class _Transformation:
    """``outputs`` per unit of the input; ``multiply_by``: the resource whose amount multiplies the input."""

    retain: bool
    multiply_by: str | None
    outputs: dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class Counting:
    """As what the requests of a pod count: the manager's ``resources``. Without any, as they are."""

    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, _Transformation] = field(default_factory=dict[str, _Transformation])

    def __bool__(self) -> bool:
        return bool(self.excluded or self.transformations)

    def counted(self, requests: Steps) -> Steps:
        """``requests`` of one pod without what is excluded, and transformed. What outputs give is summed, and counts as
        0 where that is negative; amounts are rounded up as Kueue does, cpu to thousandths, others to whole units."""
        given = {name: value for name, value in requests.items() if not name.startswith(self.excluded)}
        retained: dict[str, Fraction] = {}
        generated: dict[str, Fraction] = {}
        units = {name: Fraction(value, scale_of(name)) for name, value in given.items()}
        for name, value in units.items():
            of = self.transformations.get(name)
            if of is None or of.retain:
                retained[name] = value
            if of is not None:
                amount = value * units.get(of.multiply_by or "", 1)
                for output, factor in of.outputs.items():
                    generated[output] = generated.get(output, Fraction(0)) + amount * factor
        out: Steps = {}
        for name in {**retained, **generated}:
            amount = retained.get(name, Fraction(0)) + max(Fraction(0), generated.get(name, Fraction(0)))
            out[name] = ceil(amount * 1000) if name == "cpu" else ceil(amount) * scale_of(name)
        return out


def read_counting(resources: Reader) -> Counting:
    """The manager's ``resources``."""
    transformations: dict[str, _Transformation] = {}
    for transformation in resources.children("transformations"):
        name, strategy = transformation.text("input"), transformation.choice("strategy", _STRATEGY) or "Retain"
        outputs = transformation.child("outputs")
        factors = {output: factor for output in outputs.value if (factor := _factor(outputs, output)) is not None}
        if not name or name in transformations:
            transformation.warn("input", "a transformation has an input, which no other one has", "error", "bad-value")
        else:
            transformations[name] = _Transformation(
                strategy == "Retain", transformation.text("multiplyBy") or None, factors
            )
        transformation.close()
    return Counting(tuple(resources.strings("excludeResourcePrefixes")), transformations)


def counting_of(configuration: Configuration) -> Counting:
    """That of a configuration, which keeps the manager's."""
    native = configuration.native
    return Counting() if native is None else read_counting(Reader(native.kueue.get("resources"), (), Findings()))


def _factor(outputs: Reader, name: str) -> Fraction | None:
    given = outputs.take(name)
    negative = isinstance(given, str) and given.startswith("-")
    try:
        if isinstance(given, bool) or not isinstance(given, (str, int, float)):
            raise QuantityError("a quantity is expected")
        if not isinstance(given, str) and given < 0:
            given, negative = -given, True
        amount = Fraction(parse_quantity(given.removeprefix("-") if isinstance(given, str) else given, _NANO), _NANO)
    except QuantityError as error:
        outputs.warn(name, str(error), "error", "bad-value")
        return None
    return -amount if negative else amount
