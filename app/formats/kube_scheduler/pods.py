"""Pods as kube-scheduler sees them: whoever is on a node holds it, those of its own that wait are asks.

A pod is a workload, or an ask, of its own: default preemption looks at pods, whatever made them. What only this
scheduler decides on is read here: ports, affinity to other pods, spread, budgets, nominations.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from app.base.documents import as_list, as_mapping
from app.formats.objects import Classes, Object, named
from app.formats.pods import Pod, PodSpec, as_task, read_pod_spec
from app.formats.reader import Reader
from app.solver.model.kube_scheduler import (
    HostPort,
    LabelExpression,
    LabelSelector,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from app.solver.model.state import Ask, DisruptionBudget, Reservation, Task, Workload

SCHEDULER = "default-scheduler"
"""What a pod says that says nothing."""
_OPERATORS = {word: word for word in ("In", "NotIn", "Exists", "DoesNotExist")}
_POLICIES = {word: word for word in ("Honor", "Ignore")}
_PROTOCOLS = {word: word for word in ("TCP", "UDP", "SCTP")}
_UNMET = {word: word for word in ("DoNotSchedule", "ScheduleAnyway")}
LOOKED_AT = ("persistentVolumeClaim", "ephemeral", "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "iscsi",
              "rbd")  # fmt: skip
"""Kinds of volumes that a filter looks at."""
_PREEMPTED = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class NearTerm:
    """A required term of affinity, and the labels of the pod whose values it adds to its selector."""

    term: PodAffinityTerm
    same: tuple[str, ...]
    different: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KubePodSpec(PodSpec):
    """With what only kube-scheduler decides on."""

    gates: tuple[str, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    near: tuple[NearTerm, ...] = ()
    apart: tuple[NearTerm, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()


def read_spec(spec: Reader) -> KubePodSpec:
    """``pods.read_pod_spec`` for this scheduler: what it can't decide of a pod that waits is a finding."""
    affinity = spec.child("affinity")
    fields: dict[str, Any] = {
        "gates": tuple(_gates(spec)),
        "host_ports": _host_ports(spec),
        "near": _terms(affinity.child("podAffinity")),
        "apart": _terms(affinity.child("podAntiAffinity")),
        "spread": _spread(spec),
    }
    if not spec.text("nodeName"):
        _volumes(spec)
        if spec.value.get("resourceClaims"):
            detail = "dynamic resources: whether a node has them is not decided here"
            spec.not_carried("resourceClaims", detail, "error")
    spec.not_carried("schedulingGroup", "the pods of a group are decided one by one")
    return _extended(read_pod_spec(spec, by_itself=False), **fields)


def _extended(plain: PodSpec, **fields: Any) -> KubePodSpec:
    return KubePodSpec(**{name: getattr(plain, name) for name in PodSpec.__dataclass_fields__}, **fields)


def _gates(spec: Reader) -> Iterator[str]:
    for gate in spec.children("schedulingGates"):
        if name := gate.text("name"):
            yield name
        gate.close()


def _volumes(spec: Reader) -> None:
    for i, volume in enumerate(as_list(spec.value.get("volumes"))):
        kind = next((kind for kind in LOOKED_AT if kind in as_mapping(volume)), None)
        if kind is not None:
            detail = f"{kind}: where its volume may be used is not decided here"
            spec.findings.add("not-carried", "error", (*spec.path, "volumes", i, kind), detail)


def _host_ports(spec: Reader) -> tuple[HostPort, ...]:
    """kube-scheduler: of containers and sidecars. In the network of the host a container's port is one of the node."""
    of_host = spec.value.get("hostNetwork") is True
    ports: list[HostPort] = []
    for key in ("containers", "initContainers"):
        for container in spec.children(key):
            if key == "initContainers" and container.value.get("restartPolicy") != "Always":
                continue
            for port in container.children("ports"):
                number = port.count("hostPort") or (port.count("containerPort") if of_host else None)
                if not number:
                    continue
                if number > 65535:
                    port.warn("hostPort", f"{number} is no port", "error", "bad-value")
                    continue
                protocol = cast(Any, port.choice("protocol", _PROTOCOLS)) or "TCP"
                ports.append(HostPort(port=number, protocol=protocol, ip=port.text("hostIP") or ""))
    return tuple(ports)


def _terms(affinity: Reader) -> tuple[NearTerm, ...]:
    detail = "preferences among nodes are not weighed: of several that fit another may be taken"
    affinity.not_carried("preferredDuringSchedulingIgnoredDuringExecution", detail)
    terms: list[NearTerm] = []
    for term in affinity.children("requiredDuringSchedulingIgnoredDuringExecution"):
        key = term.text("topologyKey")
        if not key:
            term.findings.add("bad-value", "error", term.path, "a term has a topologyKey")
            continue
        spaces = read_selector(term, "namespaceSelector")
        if spaces is not None and any(label != "kubernetes.io/metadata.name" for label in _keys(spaces)):
            term.warn("namespaceSelector", "namespaces are known by their names alone, not by their labels")
        affinity_term = PodAffinityTerm(
            topology_key=key,
            label_selector=read_selector(term, "labelSelector"),
            namespaces=term.strings("namespaces"),
            namespace_selector=spaces,
        )
        same, different = term.strings("matchLabelKeys"), term.strings("mismatchLabelKeys")
        term.close()
        terms.append(NearTerm(affinity_term, tuple(same), tuple(different)))
    affinity.close()
    return tuple(terms)


def _keys(selector: LabelSelector) -> list[str]:
    return [*selector.match_labels, *(expression.key for expression in selector.match_expressions)]


def read_selector(reader: Reader, key: str) -> LabelSelector | None:
    """The label selector under ``key``; None where there is none, which is another than an empty one."""
    if reader.value.get(key) is None:
        reader.take(key)
        return None
    selector = reader.child(key)
    expressions: list[LabelExpression] = []
    for expression in selector.children("matchExpressions"):
        name, operator = expression.text("key"), expression.choice("operator", _OPERATORS)
        values = expression.strings("values")
        expression.close()
        if name is None or operator is None or (operator in ("In", "NotIn")) != bool(values):
            detail = "a key, and In or NotIn with values, or Exists or DoesNotExist without, are expected"
            expression.findings.add("bad-value", "error", expression.path, detail)
            continue
        expressions.append(LabelExpression(key=name, operator=cast(Any, operator), values=values))
    labels = selector.labels("matchLabels")
    selector.close()
    return LabelSelector(match_labels=labels, match_expressions=expressions)


def _spread(spec: Reader) -> tuple[TopologySpreadConstraint, ...]:
    constraints: list[TopologySpreadConstraint] = []
    for constraint in spec.children("topologySpreadConstraints"):
        unmet = constraint.choice("whenUnsatisfiable", _UNMET) or "DoNotSchedule"
        key, skew, least = constraint.text("topologyKey"), constraint.count("maxSkew"), constraint.count("minDomains")
        selector, keys = read_selector(constraint, "labelSelector"), constraint.strings("matchLabelKeys")
        affinity, taints = (
            constraint.choice("nodeAffinityPolicy", _POLICIES),
            constraint.choice("nodeTaintsPolicy", _POLICIES),
        )
        constraint.close()
        if unmet == "ScheduleAnyway":
            constraint.warn(
                "whenUnsatisfiable", "a preferred spread is not weighed: of several nodes another may be taken"
            )
            continue
        if not key or not skew or least == 0:
            detail = "a spread constraint has a topologyKey, and a maxSkew and minDomains of at least 1"
            constraint.findings.add("bad-value", "error", constraint.path, detail)
            continue
        constraints.append(
            TopologySpreadConstraint(
                max_skew=skew, topology_key=key, label_selector=selector, min_domains=least,
                node_affinity_policy=cast(Any, affinity) or "Honor", node_taints_policy=cast(Any, taints) or "Ignore",
                match_label_keys=keys,
            )
        )  # fmt: skip
    return tuple(constraints)


def _required(terms: Iterable[NearTerm], labels: dict[str, str]) -> list[PodAffinityTerm] | None:
    """The API server writes ``matchLabelKeys`` into the selector when it makes the pod; a manifest may still have
    them."""
    required: list[PodAffinityTerm] = []
    for near in terms:
        term, selector = near.term, near.term.label_selector
        wanted = [(key, "In") for key in near.same] + [(key, "NotIn") for key in near.different]
        more = [
            LabelExpression(key=key, operator=cast(Any, operator), values=[labels[key]])
            for key, operator in wanted
            if key in labels
        ]
        if selector is not None:
            expressions = [
                *selector.match_expressions,
                *(expression for expression in more if expression not in selector.match_expressions),
            ]
            term = msgspec.structs.replace(
                term, label_selector=msgspec.structs.replace(selector, match_expressions=expressions)
            )
        required.append(term)
    return required or None


def task_of(pod: Pod) -> Task:
    """The pod as the one task of what it is."""
    manifest = pod.manifest
    spec = pod.spec if isinstance(pod.spec, KubePodSpec) else _extended(pod.spec)

    def make() -> Task:
        fields: dict[str, Any] = {
            "labels": manifest.labels or None, "host_ports": list(spec.host_ports) or None,
            "pod_affinity": _required(spec.near, manifest.labels),
            "pod_anti_affinity": _required(spec.apart, manifest.labels),
            "topology_spread": list(spec.spread) or None, "required_node": spec.pinned_node,
        }  # fmt: skip
        if pod.phase in ("pending", "gated"):
            task = as_task(pod, manifest.name, spec.requests, scheduling_gates=list(spec.gates) or None, **fields)
            return msgspec.structs.replace(task, node=None, uid=manifest.uid, state="running")
        task = as_task(pod, manifest.name, spec.requests, started_at=manifest.status.time("startTime"), **fields)
        return msgspec.structs.replace(task, state="preempted") if _preempted(pod) else task

    return pod.once((pod.node, pod.priority), make)


def _preempted(pod: Pod) -> bool:
    """Whether it terminates because a scheduler preempted it."""
    return pod.phase == "releasing" and any(
        condition.text("type") == "DisruptionTarget"
        and condition.text("status") == "True"
        and condition.text("reason") == _PREEMPTED
        for condition in pod.manifest.status.children("conditions")
    )


def read_workloads(
    pods: Iterable[Pod], names: Collection[str], nodes: Collection[str], classes: Classes
) -> tuple[list[Workload], list[Ask], list[Reservation]]:
    """What is on nodes, whichever scheduler put it there; the pods that wait for a scheduler of ``names``; and which of
    them is nominated to one of ``nodes``."""
    running: list[Workload] = []
    asks: list[Ask] = []
    held: list[Reservation] = []
    for pod in pods:
        manifest = pod.manifest
        space = manifest.namespace or "default"
        if pod.phase in ("running", "releasing"):
            if pod.node is not None:
                running.append(
                    Workload(
                        id=manifest.id,
                        queue=space,
                        priority=pod.priority,
                        created_at=manifest.created_at,
                        tasks=[task_of(pod)],
                    )
                )
        elif pod.phase != "done":
            if (pod.spec.scheduler or SCHEDULER) not in names:
                detail = f"it waits for another scheduler, {pod.spec.scheduler!r}: left out"
                manifest.root.warn("spec", detail, "info", "other-scheduler")
                continue
            ask = ask_of(pod, classes)
            asks.append(ask)
            if ask.nominated_node is not None and ask.nominated_node in nodes:
                held.append(Reservation(node=ask.nominated_node, ask=ask))
    return running, asks, held


def ask_of(pod: Pod, classes: Classes) -> Ask:
    """A pod that waits."""
    known = classes.find(pod.spec.priority_class)
    never = pod.spec.never_preempts or (known is not None and known.never_preempts)
    return Ask(
        id=pod.manifest.id, queue=pod.manifest.namespace or "default", uid=pod.manifest.uid, priority=pod.priority,
        created_at=pod.manifest.created_at, tasks=[task_of(pod)],
        preemption_policy="Never" if never else "PreemptLowerPriority",
        nominated_node=pod.manifest.status.text("nominatedNodeName") or None,
    )  # fmt: skip


def read_budgets(manifests: Iterable[Object]) -> list[DisruptionBudget]:
    """PodDisruptionBudgets, in the order of the source."""
    budgets: list[DisruptionBudget] = []
    for manifest in manifests:
        if not named(manifest):
            continue
        spec, status = manifest.spec, manifest.status
        allowed = status.integer("disruptionsAllowed")
        if allowed is None:
            manifest.root.warn("status", "no disruptionsAllowed: taken to allow none")
        disrupted = status.child("disruptedPods")
        selector = read_selector(spec, "selector")
        spec.ignore("minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy")
        spec.close()
        budgets.append(
            DisruptionBudget(
                name=manifest.name, queue=manifest.namespace or "default", selector=selector,
                disruptions_allowed=allowed or 0, disrupted=list(disrupted.value),
            )
        )  # fmt: skip
    return budgets
