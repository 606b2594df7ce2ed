"""Kubernetes pods and nodes as every importer needs them: where and how they are, what they ask for, which nodes suit.

Amounts of resources are summed as Kubernetes does, and rounded up to what Arbiter counts in.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast

from app.formats.objects import Classes, Object, named
from app.formats.reader import Reader
from app.solver.model.base import Quantity, QuantityError, parse_quantity, scale_of
from app.solver.model.configuration import Taint
from app.solver.model.state import Expression, Node, Task, Toleration

_NANO = 10**9

Steps = dict[str, int]
"""Amounts by resource in the steps of ``scale_of``: thousandths of cpu and GPUs, whole units of the rest."""


def steps(reader: Reader, key: str) -> Steps:
    """The resource list under ``key``. What is finer than a step is rounded up, as the Kubernetes scheduler does."""
    inner = reader.child(key)
    out: Steps = {}
    for name in inner.value:
        value = inner.take(name)
        if value is None:
            continue
        try:
            if not isinstance(value, (str, int, float)):
                raise QuantityError("a quantity is expected")
            out[name] = _rounded_up(value, scale_of(name))
        except QuantityError as error:
            inner.warn(name, str(error), "error", "bad-value")
    return out


def _rounded_up(value: Quantity, scale: int) -> int:
    try:
        return parse_quantity(value, scale)
    except QuantityError:
        return -(-parse_quantity(value, _NANO) * scale // _NANO)


def plus(first: Mapping[str, int], other: Mapping[str, int]) -> Steps:
    """The sum."""
    return {name: first.get(name, 0) + other.get(name, 0) for name in {**first, **other}}


def largest(first: Mapping[str, int], other: Mapping[str, int]) -> Steps:
    """The larger of both, resource by resource."""
    return {name: max(first.get(name, 0), other.get(name, 0)) for name in {**first, **other}}


def total(parts: Iterable[Mapping[str, int]]) -> Steps:
    """The sum of many."""
    out: Steps = {}
    for part in parts:
        for name, value in part.items():
            out[name] = out.get(name, 0) + value
    return out


def quantity(value: int, resource: str) -> Quantity:
    """Steps as a document shows them: whole units, or thousandths."""
    whole, rest = divmod(value, scale_of(resource))
    return whole if rest == 0 else f"{value}m"


def quantities(amounts: Mapping[str, int]) -> dict[str, Quantity]:
    """The same for a resource list."""
    return {name: quantity(value, name) for name, value in amounts.items()}


EFFECTS = {"NoSchedule": "NoSchedule", "PreferNoSchedule": "PreferNoSchedule", "NoExecute": "NoExecute"}
_OPERATORS = {word: word for word in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")}

NOT_SCHEDULING = (
    "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "ephemeralContainers", "hostAliases", "hostIPC", "hostPID", "hostUsers", "hostname", "imagePullSecrets",
    "readinessGates", "restartPolicy", "runtimeClassName", "schedulerName", "securityContext", "serviceAccount",
    "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds",
    "volumes", "os", "hostNetwork", "hostnameOverride",
)  # fmt: skip
"""What a pod is made of, and nothing that decides where or whether it runs."""


@dataclass(frozen=True, slots=True)
class PodSpec:
    """The part of a pod, or of a pod template, that a scheduler reads. ``requests`` of one pod, in steps.
    ``pinned_node``: the one node that a node affinity on the name allows."""

    requests: Steps
    node_name: str | None
    priority: int | None
    priority_class: str | None
    never_preempts: bool
    scheduler: str | None
    gated: bool
    node_selector: dict[str, str] | None
    tolerations: list[Toleration] | None
    node_affinity: list[list[Expression]] | None
    pinned_node: str | None


class Nodes(TypedDict):
    """Of a ``PodSpec``: which nodes suit."""

    node_selector: dict[str, str] | None
    tolerations: list[Toleration] | None
    node_affinity: list[list[Expression]] | None
    pinned_node: str | None


def read_nodes(spec: Reader, *, by_itself: bool = True) -> Nodes:
    """Which nodes ``spec`` allows: of a pod, or of what pods are made of. ``by_itself``: nobody decides on where other
    pods are."""
    affinity, pinned = _affinity(spec.child("affinity"), by_itself=by_itself)
    if by_itself:
        spec.not_carried("topologySpreadConstraints", "spreading over topology domains is not decided here")
    return Nodes(
        node_selector=spec.labels("nodeSelector") or None, tolerations=read_tolerations(spec) or None,
        node_affinity=affinity, pinned_node=pinned,
    )  # fmt: skip


def read_pod_spec(spec: Reader, *, by_itself: bool = True) -> PodSpec:
    """Read ``spec`` and close it: what bears on scheduling and has no place in Arbiter is a finding."""
    read = PodSpec(
        **read_nodes(spec, by_itself=by_itself),
        requests=pod_requests(spec),
        node_name=spec.text("nodeName") or None,
        priority=spec.integer("priority"),
        priority_class=spec.text("priorityClassName") or None,
        never_preempts=spec.text("preemptionPolicy") == "Never",
        scheduler=spec.text("schedulerName"),
        gated=bool(spec.children("schedulingGates")),
    )
    if by_itself:
        spec.not_carried("resourceClaims", "dynamic resource claims are not counted")
    spec.ignore("resourceClaims", "topologySpreadConstraints", *NOT_SCHEDULING)
    spec.close()
    return read


def pod_requests(spec: Reader) -> Steps:
    """What a pod asks for, by Kubernetes' rule: the containers and sidecars together, or the largest moment of starting
    up; plus overhead."""
    running: Steps = {}
    for container in spec.children("containers"):
        running = plus(running, _container(container))
    starting: Steps = {}
    sidecars: Steps = {}
    for container in spec.children("initContainers"):
        asked = _container(container)
        if container.text("restartPolicy") == "Always":
            sidecars = plus(sidecars, asked)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, plus(sidecars, asked))
    together = largest(plus(running, sidecars), starting)
    return plus({**together, **_of_whole_pod(spec, together)}, steps(spec, "overhead"))


def _of_whole_pod(spec: Reader, together: Steps) -> Steps:
    """What the pod as a whole asks for, which goes before what its containers do (KEP-2837); where it gives a limit
    only, that, unless containers ask."""
    resources = spec.child("resources")
    limits, requests = steps(resources, "limits"), steps(resources, "requests")
    resources.not_carried("claims", "dynamic resource claims are not counted")
    return {**{name: value for name, value in limits.items() if name not in together}, **requests}


def _container(container: Reader) -> Steps:
    """What one container asks for; where it gives a limit only, that."""
    resources = container.child("resources")
    return {**steps(resources, "limits"), **steps(resources, "requests")}


def read_tolerations(spec: Reader) -> list[Toleration]:
    """The tolerations of ``spec``."""
    tolerations: list[Toleration] = []
    for reader in spec.children("tolerations"):
        operator = reader.choice("operator", {"Equal": "Equal", "Exists": "Exists"}) or "Equal"
        tolerations.append(
            Toleration(
                key=reader.text("key") or "",
                operator=cast(Literal["Equal", "Exists"], operator),
                value=reader.text("value") or "",
                effect=cast(Any, reader.choice("effect", EFFECTS)),
            )
        )
        reader.ignore("tolerationSeconds")
        reader.close()
    return tolerations


def read_taints(reader: Reader, key: str) -> list[Taint]:
    """The taints under ``key``."""
    taints: list[Taint] = []
    for taint in reader.children(key):
        name, effect = taint.text("key"), taint.choice("effect", EFFECTS)
        if name is None or effect is None:
            taint.findings.add("bad-value", "error", taint.path, "a taint has a key and an effect")
            continue
        taints.append(Taint(key=name, value=taint.text("value") or "", effect=cast(Any, effect)))
        taint.ignore("timeAdded")
        taint.close()
    return taints


def _affinity(affinity: Reader, *, by_itself: bool) -> tuple[list[list[Expression]] | None, str | None]:
    if by_itself:
        affinity.not_carried("podAffinity", "affinity to other pods is not decided here")
        affinity.not_carried("podAntiAffinity", "affinity to other pods is not decided here")
    affinity.ignore("podAffinity", "podAntiAffinity")
    node = affinity.child("nodeAffinity")
    node.not_carried(
        "preferredDuringSchedulingIgnoredDuringExecution", "preferences among nodes are not weighed", "info"
    )
    required = node.child("requiredDuringSchedulingIgnoredDuringExecution")
    terms: list[list[Expression]] = []
    pinned: set[str] = set()
    for term in required.children("nodeSelectorTerms"):
        expressions = [
            expression for reader in term.children("matchExpressions") if (expression := _expression(reader))
        ]
        for reader in term.children("matchFields"):
            expression = _expression(reader)
            if expression and expression.key == "metadata.name" and expression.operator == "In":
                pinned.update(expression.values)
            elif expression:
                reader.findings.add("not-carried", "warning", reader.path, "only metadata.name In is understood")
        if expressions:
            terms.append(expressions)
        term.close()
    for reader in (required, node, affinity):
        reader.close()
    return terms or None, pinned.pop() if len(pinned) == 1 else None


def _expression(reader: Reader) -> Expression | None:
    key, operator, values = reader.text("key"), reader.choice("operator", _OPERATORS), reader.strings("values")
    reader.close()
    return None if key is None or operator is None else Expression(key=key, operator=cast(Any, operator), values=values)


Phase = Literal["pending", "running", "releasing", "done", "gated"]
_PRESSURE = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class SinglePod:
    """A pod by itself, whatever else there is. ``phase``: gated ones are not ready to be scheduled, done ones hold
    nothing."""

    manifest: Object
    spec: PodSpec
    phase: Phase
    tasks: dict[Hashable, Task] | None = field(default=None, compare=False, kw_only=True)
    """Tasks that were made of it, where they are kept, by what else they hang on."""

    def once(self, on: Hashable, make: Callable[[], Task]) -> Task:
        """What ``make`` gives, which hangs on the pod and on ``on`` alone."""
        if self.tasks is None:
            return make()
        if (task := self.tasks.get(on)) is None:
            self.tasks.clear()
            task = self.tasks[on] = make()
        return task


@dataclass(frozen=True, slots=True)
class Pod(SinglePod):
    """A pod among others. ``node``: where it is, if the source has that node."""

    node: str | None
    priority: int


def read_pod(manifest: Object, read: Callable[[Reader], PodSpec] = read_pod_spec) -> SinglePod | None:
    """None for one without a name. ``read``: reads its spec."""
    if not named(manifest):
        return None
    spec = read(manifest.spec)
    return SinglePod(manifest, spec, _phase(manifest, spec, manifest.status.text("phase")))


def read_pods(singles: Iterable[SinglePod | None], nodes: Collection[str], classes: Classes) -> list[Pod]:
    """Every pod of the source. ``nodes``: the names of its nodes."""
    pods: list[Pod] = []
    for single in singles:
        if single is None:
            continue
        manifest, spec, node = single.manifest, single.spec, single.spec.node_name
        if node is not None and node not in nodes:
            if single.phase != "done":
                manifest.root.warn("spec", f"node {node!r} is not in the source: the pod is on no node", rule="no-node")
            node = None
        pods.append(Pod(manifest, spec, single.phase, node, priority_of(spec, classes), tasks=single.tasks))
    return pods


def _phase(manifest: Object, spec: PodSpec, phase: str | None) -> Phase:
    if phase in ("Succeeded", "Failed"):
        return "done"
    if manifest.deleted:
        return "releasing" if spec.node_name else "done"
    if spec.node_name:
        return "running"
    return "gated" if spec.gated else "pending"


def priority_of(spec: PodSpec, classes: Classes) -> int:
    """The API server writes the number into every pod; a manifest may name the class only."""
    if spec.priority is not None:
        return spec.priority
    known = classes.find(spec.priority_class)
    return known.value if known else 0


def read_cluster_nodes(
    manifests: Iterable[Object], strangers: Iterable[Pod], *, rename: dict[str, str], conditions: bool = True
) -> list[Node]:
    """Nodes with what ``strangers``, pods of other schedulers, occupy there. ``rename``: resources by another name;
    ``conditions``: whether the scheduler looks at the nodes' conditions, and not only at their taints."""
    occupied: dict[str, list[Steps]] = {}
    for pod in strangers:
        if pod.phase in ("running", "releasing") and pod.spec.node_name:
            occupied.setdefault(pod.spec.node_name, []).append({**pod.spec.requests, "pods": 1})
    nodes: list[Node] = []
    for manifest in manifests:
        if not named(manifest):
            continue
        status, spec = manifest.status, manifest.spec
        capacity = steps(status, "allocatable") or steps(status, "capacity")
        taken = {name: value for name, value in total(occupied.get(manifest.name, [])).items() if name in capacity}
        nodes.append(
            Node(
                name=manifest.name,
                capacity=quantities(renamed(capacity, rename)),
                occupied=quantities(renamed(taken, rename)),
                labels=manifest.labels,
                taints=read_taints(spec, "taints"),
                schedulable=spec.boolean("unschedulable") is not True and not (conditions and not _ready(manifest)),
            )
        )
    return nodes


def _ready(manifest: Object) -> bool:
    """Ready, and under no pressure that makes schedulers leave a node alone. A manifest without conditions is ready."""
    for condition in manifest.status.children("conditions"):
        kind, holds = condition.text("type"), condition.take("status")
        if (kind == "Ready" and holds != "True") or (kind in _PRESSURE and holds not in ("False", None)):
            return False
    return True


def renamed(amounts: Steps, rename: dict[str, str]) -> Steps:
    """``amounts`` under other names."""
    return {rename.get(name, name): value for name, value in amounts.items()}


def as_task(pod: Pod, name: str, requests: Steps, **fields: Any) -> Task:
    """``pod`` as a task of a workload, or of an ask while it is pending: then it has no node and no state."""
    if pod.phase != "pending":
        fields["node"] = pod.node
        fields["uid"] = pod.manifest.uid
        fields["state"] = {"releasing": "releasing", "done": "released"}.get(pod.phase, "running")
    return Task(
        name=name,
        requests=quantities(requests),
        node_selector=pod.spec.node_selector,
        tolerations=pod.spec.tolerations,
        node_affinity=pod.spec.node_affinity,
        **fields,
    )
