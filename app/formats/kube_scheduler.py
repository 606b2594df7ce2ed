"""kube-scheduler's configuration, and pods as it sees them: whoever is on a node holds it, those of its own that wait
are asks.

A pod is a workload, or an ask, of its own: default preemption looks at pods, whatever made them. What only this
scheduler decides on is read here: ports, affinity to other pods, spread, budgets, nominations.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from app.base.documents import Path
from app.formats.exported import Exported, Lost, dump
from app.formats.objects import Classes, Object, instead, named, whole
from app.formats.pods import Pod, PodSpec, as_task, read_pod_spec
from app.formats.reader import Findings, Reader
from app.solver.model.base import NativeDocuments, micros
from app.solver.model.base import at as instant_at
from app.solver.model.configuration import Configuration, Queue, Settings
from app.solver.model.kube_scheduler import (
    DisruptionBudget,
    HostPort,
    LabelExpression,
    LabelSelector,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from app.solver.model.kube_scheduler import Settings as KubeSettings
from app.solver.model.state import Ask, Reservation, Task, Workload

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
    volumes = spec.value.get("volumes")
    for i, volume in enumerate(cast(list[Any], volumes) if isinstance(volumes, list) else ()):
        kind = next((kind for kind in LOOKED_AT if isinstance(volume, dict) and kind in volume), None)
        if kind is not None:
            detail = f"{kind}: where its volume may be used is not decided here"
            spec.findings.add("not-carried", "error", (*spec.at, "volumes", i, kind), detail)


def _host_ports(spec: Reader) -> tuple[HostPort, ...]:
    """kube-scheduler: of containers and sidecars. In the network of the host a container's port is one of the node."""
    of_host = spec.value.get("hostNetwork") is True
    found: list[HostPort] = []
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
                found.append(HostPort(port=number, protocol=protocol, ip=port.text("hostIP") or ""))
    return tuple(found)


def _terms(affinity: Reader) -> tuple[NearTerm, ...]:
    detail = "preferences among nodes are not weighed: of several that fit another may be taken"
    affinity.not_carried("preferredDuringSchedulingIgnoredDuringExecution", detail)
    found: list[NearTerm] = []
    for term in affinity.children("requiredDuringSchedulingIgnoredDuringExecution"):
        key = term.text("topologyKey")
        if not key:
            term.findings.add("bad-value", "error", term.at, "a term has a topologyKey")
            continue
        spaces = read_selector(term, "namespaceSelector")
        if spaces is not None and any(one != "kubernetes.io/metadata.name" for one in _keys(spaces)):
            term.warn("namespaceSelector", "namespaces are known by their names alone, not by their labels")
        made = PodAffinityTerm(
            topology_key=key,
            label_selector=read_selector(term, "labelSelector"),
            namespaces=term.strings("namespaces"),
            namespace_selector=spaces,
        )
        same, different = term.strings("matchLabelKeys"), term.strings("mismatchLabelKeys")
        term.close()
        found.append(NearTerm(made, tuple(same), tuple(different)))
    affinity.close()
    return tuple(found)


def _keys(selector: LabelSelector) -> list[str]:
    return [*selector.match_labels, *(one.key for one in selector.match_expressions)]


def read_selector(reader: Reader, key: str) -> LabelSelector | None:
    """The label selector under ``key``; None where there is none, which is another than an empty one."""
    if reader.value.get(key) is None:
        reader.take(key)
        return None
    selector = reader.child(key)
    expressions: list[LabelExpression] = []
    for one in selector.children("matchExpressions"):
        name, operator = one.text("key"), one.choice("operator", _OPERATORS)
        values = one.strings("values")
        one.close()
        if name is None or operator is None or (operator in ("In", "NotIn")) != bool(values):
            detail = "a key, and In or NotIn with values, or Exists or DoesNotExist without, are expected"
            one.findings.add("bad-value", "error", one.at, detail)
            continue
        expressions.append(LabelExpression(key=name, operator=cast(Any, operator), values=values))
    labels = selector.labels("matchLabels")
    selector.close()
    return LabelSelector(match_labels=labels, match_expressions=expressions)


def _spread(spec: Reader) -> tuple[TopologySpreadConstraint, ...]:
    found: list[TopologySpreadConstraint] = []
    for one in spec.children("topologySpreadConstraints"):
        unmet = one.choice("whenUnsatisfiable", _UNMET) or "DoNotSchedule"
        key, skew, least = one.text("topologyKey"), one.count("maxSkew"), one.count("minDomains")
        selector, keys = read_selector(one, "labelSelector"), one.strings("matchLabelKeys")
        affinity, taints = one.choice("nodeAffinityPolicy", _POLICIES), one.choice("nodeTaintsPolicy", _POLICIES)
        one.close()
        if unmet == "ScheduleAnyway":
            one.warn("whenUnsatisfiable", "a preferred spread is not weighed: of several nodes another may be taken")
            continue
        if not key or not skew or least == 0:
            detail = "a spread constraint has a topologyKey, and a maxSkew and minDomains of at least 1"
            one.findings.add("bad-value", "error", one.at, detail)
            continue
        found.append(
            TopologySpreadConstraint(
                max_skew=skew, topology_key=key, label_selector=selector, min_domains=least,
                node_affinity_policy=cast(Any, affinity) or "Honor", node_taints_policy=cast(Any, taints) or "Ignore",
                match_label_keys=keys,
            )
        )  # fmt: skip
    return tuple(found)


def _required(terms: Iterable[NearTerm], labels: dict[str, str]) -> list[PodAffinityTerm] | None:
    """The API server writes ``matchLabelKeys`` into the selector when it makes the pod; a manifest may still have
    them."""
    found: list[PodAffinityTerm] = []
    for near in terms:
        term, selector = near.term, near.term.label_selector
        wanted = [(key, "In") for key in near.same] + [(key, "NotIn") for key in near.different]
        more = [
            LabelExpression(key=key, operator=cast(Any, operator), values=[labels[key]])
            for key, operator in wanted
            if key in labels
        ]
        if selector is not None:
            kept = [*selector.match_expressions, *(one for one in more if one not in selector.match_expressions)]
            term = msgspec.structs.replace(
                term, label_selector=msgspec.structs.replace(selector, match_expressions=kept)
            )
        found.append(term)
    return found or None


def task_of(pod: Pod) -> Task:
    """The pod as the one task of what it is."""
    made = pod.made
    spec = pod.spec if isinstance(pod.spec, KubePodSpec) else _extended(pod.spec)

    def make() -> Task:
        fields: dict[str, Any] = {
            "labels": made.labels or None, "host_ports": list(spec.host_ports) or None,
            "pod_affinity": _required(spec.near, made.labels), "pod_anti_affinity": _required(spec.apart, made.labels),
            "topology_spread": list(spec.spread) or None, "required_node": spec.pinned_node,
        }  # fmt: skip
        if pod.phase in ("pending", "gated"):
            task = as_task(pod, made.name, spec.requests, scheduling_gates=list(spec.gates) or None, **fields)
            return msgspec.structs.replace(task, node=None, uid=made.uid, state="running")
        task = as_task(pod, made.name, spec.requests, started_at=made.status.time("startTime"), **fields)
        return msgspec.structs.replace(task, state="preempted") if _preempted(pod) else task

    return pod.once((pod.node, pod.priority), make)


def _preempted(pod: Pod) -> bool:
    """Whether it terminates because a scheduler preempted it."""
    return pod.phase == "releasing" and any(
        one.text("type") == "DisruptionTarget" and one.text("status") == "True" and one.text("reason") == _PREEMPTED
        for one in pod.made.status.children("conditions")
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
        made = pod.made
        space = made.namespace or "default"
        if pod.phase in ("running", "releasing"):
            if pod.node is not None:
                running.append(
                    Workload(
                        id=made.id, queue=space, priority=pod.priority, created_at=made.created_at, tasks=[task_of(pod)]
                    )
                )
        elif pod.phase != "done":
            if (pod.spec.scheduler or SCHEDULER) not in names:
                detail = f"it waits for another scheduler, {pod.spec.scheduler!r}: left out"
                made.root.warn("spec", detail, "info", "other-scheduler")
                continue
            ask = ask_of(pod, classes)
            asks.append(ask)
            if ask.nominated_node is not None and ask.nominated_node in nodes:
                held.append(Reservation(node=ask.nominated_node, ask=ask))
    return running, asks, held


def ask_of(pod: Pod, classes: Classes) -> Ask:
    """A pod that waits."""
    found = classes.find(pod.spec.priority_class)
    never = pod.spec.never_preempts or (found is not None and found.never_preempts)
    return Ask(
        id=pod.made.id, queue=pod.made.namespace or "default", uid=pod.made.uid, priority=pod.priority,
        created_at=pod.made.created_at, tasks=[task_of(pod)],
        preemption_policy="Never" if never else "PreemptLowerPriority",
        nominated_node=pod.made.status.text("nominatedNodeName") or None,
    )  # fmt: skip


def read_budgets(found: Iterable[Object]) -> list[DisruptionBudget]:
    """PodDisruptionBudgets, in the order of the source."""
    budgets: list[DisruptionBudget] = []
    for made in found:
        if not named(made):
            continue
        spec, status = made.spec, made.status
        allowed = status.integer("disruptionsAllowed")
        if allowed is None:
            made.root.warn("status", "no disruptionsAllowed: taken to allow none")
        disrupted = status.child("disruptedPods")
        selector = read_selector(spec, "selector")
        spec.ignore("minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy")
        spec.close()
        budgets.append(
            DisruptionBudget(
                name=made.name, queue=made.namespace or "default", selector=selector,
                disruptions_allowed=allowed or 0, disrupted=list(disrupted.value),
            )
        )  # fmt: skip
    return budgets


GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"
_PLUGIN = "DefaultPreemption"
_FILTERS = frozenset({
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "PodTopologySpread", "InterPodAffinity", "SchedulingGates", "PrioritySort", _PLUGIN, "DefaultBinder",
})  # fmt: skip
"""What is decided here as released, whatever it is called in ``disabled``."""
_FILTERING = {
    "NodeAffinity": ("addedAffinity",), "NodeResourcesFit": ("ignoredResources", "ignoredResourceGroups"),
    "PodTopologySpread": ("defaultConstraints",),
}  # fmt: skip
"""Arguments by which a filter decides otherwise, by plugin."""
_ALL_NODES = "nodes are looked at until enough fit: here all are, so that another of them may be taken"
_OTHER = ("clientConnection", "leaderElection", "enableProfiling", "enableContentionProfiling")


def read_configuration(found: Iterable[Object], spaces: Iterable[Object], findings: Findings) -> Configuration:
    """The settings that the last of ``found`` says, and the namespaces."""
    settings = KubeSettings()
    kept: list[dict[str, Any]] = []
    for made in found:
        if made.kind != KIND:
            continue
        if kept:
            instead(made, findings)
        settings = _settings(made.root.keep())
        document = whole(made)
        kept = [] if document is None else [{key: value for key, value in document.items() if value != {}}]
        if kept == [_document({}, settings)]:
            kept = []
    queues = [Queue(name=made.name, created_at=made.created_at) for made in spaces if made.name]
    return Configuration(
        engine="kube-scheduler", settings=Settings(kube_scheduler=settings), queues=queues,
        native=NativeDocuments(objects=kept) if kept else None,
    )  # fmt: skip


def schedulers(found: Iterable[Object]) -> set[str]:
    """What the schedulers of these configurations are called: pods say by it whose they are."""
    names: set[str] = set()
    for made in found:
        if made.kind == KIND:
            for profile in Reader(made.root.value, (), Findings()).children("profiles"):
                names.add(profile.text("schedulerName") or SCHEDULER)
    return names or {SCHEDULER}


def _settings(root: Reader) -> KubeSettings:
    profiles = [profile.keep() for profile in root.children("profiles")]
    said = [_profile(profile) for profile in profiles]
    first = said[0] if said else KubeSettings()
    for profile, settings in zip(profiles, said, strict=True):
        if settings != first:
            detail = f"another {_PLUGIN} than in the first profile, which holds for all"
            profile.warn("pluginConfig", detail, rule="not-decided")
    root.not_carried("percentageOfNodesToScore", _ALL_NODES)
    root.not_carried("extenders", "what an extender says is not asked for", "error")
    root.not_carried("parallelism", "one node after the other is looked at here", "info")
    for key in ("podInitialBackoffSeconds", "podMaxBackoffSeconds", "delayCacheUntilActive"):
        root.not_carried(key, "when a pod is tried again is not decided here", "info")
    root.ignore("metadata", "apiVersion", "kind", *_OTHER)
    root.close()
    return first


def _profile(profile: Reader) -> KubeSettings:
    profile.take("schedulerName")
    profile.not_carried("percentageOfNodesToScore", _ALL_NODES)
    _plugins(profile.child("plugins"))
    settings = KubeSettings()
    for one in profile.children("pluginConfig"):
        name, arguments = one.text("name"), one.keep().child("args")
        arguments.ignore("apiVersion", "kind")
        if name == _PLUGIN:
            settings = _arguments(arguments)
        else:
            for key in _FILTERING.get(name or "", ()):
                arguments.not_carried(key, f"{name} filters by it, which is not decided here", "error")
            arguments.close()
        one.close()
    profile.close()
    return settings


def _arguments(arguments: Reader) -> KubeSettings:
    default = KubeSettings()
    percentage = arguments.count("minCandidateNodesPercentage")
    if percentage is not None and percentage > 100:
        arguments.warn("minCandidateNodesPercentage", "at most 100 is expected", "error", "bad-value")
        percentage = None
    absolute = arguments.count("minCandidateNodesAbsolute")
    arguments.close()
    return KubeSettings(
        min_candidate_nodes_percentage=default.min_candidate_nodes_percentage if percentage is None else percentage,
        min_candidate_nodes_absolute=default.min_candidate_nodes_absolute if absolute is None else absolute,
    )


def _plugins(plugins: Reader) -> None:
    """Points at which plugins are on or off. Off by a star is all that are on by default."""
    for point in plugins.value:
        reader = plugins.child(point)
        scores = point in ("score", "preScore")
        off: list[tuple[Reader, str]] = [(one, one.text("name") or "") for one in reader.children("disabled")]
        on: list[tuple[Reader, str]] = [(one, one.text("name") or "") for one in reader.children("enabled")]
        again = {name for _, name in on}
        for one, name in off:
            if name in again or (name == "*" and again >= _FILTERS):
                continue
            told = scores or (name not in _FILTERS and name != "*")
            detail = f"{name} is off: decided as if it were on"
            one.warn("name", detail, "warning" if told else "error", "not-decided")
        for one, name in on:
            if name not in _FILTERS and not scores:
                one.warn("name", f"{name} is not known here: decided without it", rule="not-decided")
            elif scores:
                one.warn("name", f"{name}: nodes are scored by the default weights", rule="not-decided")
            one.ignore("weight")
        reader.ignore("disabled", "enabled")
        reader.close()
    plugins.close()


def export(configuration: Configuration) -> Exported:
    """Namespaces, and a KubeSchedulerConfiguration where there is something to say, with what was kept of it."""
    lost = Lost()
    lost.other_blocks(configuration, "kube-scheduler")
    lost.flavors(configuration, "kube-scheduler")
    documents: list[dict[str, Any]] = []
    kept = lost.objects(configuration, "kube-scheduler", (GROUP, "scheduling.k8s.io"))
    own = next((one for one in kept if one.get("kind") == KIND), None)
    settings = configuration.settings.kube_scheduler or KubeSettings()
    if settings.workload_aware:
        detail = "a gate of kube-scheduler (--feature-gates=GenericWorkload=true), no part of its configuration"
        lost.add(("settings", "kube_scheduler", "workload_aware"), detail)
    if own is not None or _shown(settings):
        documents.append(_document(own or {}, settings))
    documents += [one for one in kept if one is not own]
    documents += [_namespace(queue, ("queues", i), lost) for i, queue in enumerate(configuration.queues)]
    return dump(documents, lost)


def _namespace(queue: Queue, at: Path, lost: Lost) -> dict[str, Any]:
    if queue.parent is not None:
        lost.add((*at, "parent"), "a namespace has no parent")
    for key in ("quota", "resource_groups"):
        if getattr(queue, key):
            lost.add((*at, key), "kube-scheduler knows no quotas of namespaces")
    lost.queue(at, queue, "kube-scheduler", weight=False, priority=False, created=True)
    metadata: dict[str, Any] = {"name": queue.name}
    if queue.created_at is not None:
        metadata["creationTimestamp"] = instant_at(micros(queue.created_at)).isoformat().replace("+00:00", "Z")
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _shown(settings: KubeSettings) -> dict[str, int]:
    """Arguments other than the default ones."""
    default, found = KubeSettings(), dict[str, int]()
    if settings.min_candidate_nodes_percentage != default.min_candidate_nodes_percentage:
        found["minCandidateNodesPercentage"] = settings.min_candidate_nodes_percentage
    if settings.min_candidate_nodes_absolute != default.min_candidate_nodes_absolute:
        found["minCandidateNodesAbsolute"] = settings.min_candidate_nodes_absolute
    return found


def _document(own: dict[str, Any], settings: KubeSettings) -> dict[str, Any]:
    """``own`` with these arguments in each of its profiles, unless they say so already."""
    made = {"apiVersion": f"{GROUP}/v1", "kind": KIND, **own}
    meant, wanted = _settings(Reader(own, (), Findings())), msgspec.structs.replace(settings, workload_aware=False)
    if own and meant == wanted:
        return made
    arguments = _shown(settings)
    mine: list[Any] = [{"name": _PLUGIN, "args": arguments}] if arguments else []
    shown: list[Any] = []
    for one in _mappings(own.get("profiles")) or [{}]:
        others = [of for of in _mappings(one.get("pluginConfig")) if of.get("name") != _PLUGIN]
        shown.append({**one, "pluginConfig": [*others, *mine]})
    return {**made, "profiles": shown}


def _mappings(listed: Any) -> list[dict[str, Any]]:
    every = cast(list[Any], listed) if isinstance(listed, list) else []
    return [cast(dict[str, Any], one) for one in every if isinstance(one, dict)]
