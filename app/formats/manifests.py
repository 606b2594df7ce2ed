"""Kubernetes objects of any of the systems on it, put together: configuration, what runs, what waits."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from msgspec.structs import replace

from app.base.documents import Path
from app.formats import kube_scheduler as kube_scheduler_import
from app.formats import kube_scheduler as kube_scheduler_pods
from app.formats.admission import KINDS as OF_ADMISSION
from app.formats.kai import configuration as kai_import
from app.formats.kai import pods as kai_pods
from app.formats.kueue import importing as kueue_import
from app.formats.kueue import workloads as kueue_workloads
from app.formats.kueue.considered import Around, LocalQueue, placed_by_kueue, usage_based
from app.formats.objects import (
    KAI_SCHEDULER,
    SYSTEM_CLASSES,
    YUNIKORN_QUEUES,
    Classes,
    Object,
    objects,
    read_classes,
    unique,
    unknown_kind,
    whole,
)
from app.formats.pods import Pod, SinglePod, read_cluster_nodes, read_pod, read_pod_spec, read_pods
from app.formats.reader import Findings, Imported, Reader, as_of
from app.formats.yunikorn import configuration as yunikorn_import
from app.formats.yunikorn import pods as yunikorn_pods
from app.formats.yunikorn.pods import Placement
from app.solver.model.base import NativeDocuments
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.problems import pointer
from app.solver.model.state import Ask, Node, QueueState, State, Workload

_KUEUE_KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor")
_KAI_KINDS = ("SchedulingShard", "Config", "Topology")
_GROUPS = (
    kueue_import.GROUP, kueue_import.CONFIGURATION_GROUP, kai_import.QUEUE_GROUP, kai_import.SHARD_GROUP,
    kube_scheduler_import.GROUP,
)  # fmt: skip
"""A kind of theirs may matter; clusters have many others."""
_ORDER: tuple[EngineName, ...] = ("kueue", "kai", "yunikorn", "kube-scheduler")

OF_STATE = frozenset({"Workload", "PodGroup", "Pod", "Node", "Namespace", "PodDisruptionBudget", *OF_ADMISSION})
"""Kinds of objects that run, wait or are there; the others are read for a configuration."""
_Belongs = Callable[[Pod], bool]


class _Sorted:
    """The objects of a source by what reads them."""

    def __init__(self, documents: list[tuple[Path, Any]], findings: Findings) -> None:
        self.kueue: list[Object] = []
        self.workloads: list[Object] = []
        self.kai: list[Object] = []
        self.groups: list[Object] = []
        self.yunikorn: list[Object] = []
        self.kube_scheduler: list[Object] = []
        self.classes: list[Object] = []
        self.pods: list[Object] = []
        self.nodes: list[Object] = []
        self.around: list[Object] = []
        for made in objects(documents, findings):
            place = self._place(made)
            if place is None:
                unknown_kind(made, "warning" if made.group in _GROUPS else "info")
            else:
                place.append(made)

    @property
    def of_state(self) -> frozenset[str]:
        """Pointers of the objects of those kinds."""
        every = (*self.workloads, *self.groups, *self.pods, *self.nodes, *self.around, *self.kube_scheduler)
        return frozenset(pointer(*made.root.at) for made in every if made.kind in OF_STATE)

    def _place(self, made: Object) -> list[Object] | None:
        kind, group = made.kind, made.group
        if group == kueue_import.GROUP:
            if kind == "WorkloadPriorityClass":
                return self.classes
            return self.workloads if kind == "Workload" else self.kueue
        if group == kueue_import.CONFIGURATION_GROUP:
            return self.kueue if kind == "Configuration" else None
        if kind == "PriorityClass":
            return self.classes
        if group == kai_import.QUEUE_GROUP:
            return self.groups if kind == "PodGroup" else self.kai if kind == "Queue" else None
        if kind == KAI_SCHEDULER or (group == kai_import.SHARD_GROUP and kind in _KAI_KINDS):
            return self.kai
        if kind == YUNIKORN_QUEUES:
            return self.yunikorn
        if kind == kube_scheduler_import.KIND or (kind == "PodDisruptionBudget" and group == "policy"):
            return self.kube_scheduler
        if kind in OF_ADMISSION:
            return self.around
        if group == "":
            return {"Pod": self.pods, "Node": self.nodes, "Namespace": self.around}.get(kind)
        return None


def is_object(document: Any) -> bool:
    """Whether this is an object of Kubernetes, or a file of YuniKorn or KAI Scheduler that says no kind."""
    if not isinstance(document, dict):
        return False
    if "kind" in document:
        return isinstance(document["kind"], str) and bool(document["kind"])  # pyright: ignore[reportUnknownArgumentType]
    return any(key in document for key in ("partitions", "tiers", "actions", "rawObjects"))


@dataclass(frozen=True, slots=True)
class Within:
    """Pods that were read before, and what else there is of the cluster of which they are some: the names of all its
    nodes, and the ClusterQueue and Kueue's LocalQueues by id."""

    pods: list[SinglePod]
    nodes: Collection[str]
    local_queues: Mapping[str, LocalQueue] = field(default_factory=dict[str, LocalQueue])


def read_manifests(
    documents: list[tuple[Path, Any]], engine: EngineName | None, findings: Findings,
    known: Configuration | None = None, within: Within | None = None, now: datetime | None = None,
) -> Imported:  # fmt: skip
    """Read the objects of one system. ``engine`` None: the one that most of them belong to. ``known``: the
    configuration that counts in place of the source's. ``within``: the documents are no whole source. ``now``: when all
    of this is so; None: as the source tells, else now."""
    found = _Sorted(documents, findings)
    for kind, listed in (("PodGroup", found.groups), ("Workload", found.workloads), ("Pod", found.pods)):
        unique(((made.id, made) for made in listed), kind, findings)
    kept = _Sorted(kept_objects(known), Findings())
    classes = read_classes(found.classes).over(read_classes(kept.classes))
    nodes = {made.name for made in found.nodes} if within is None else within.nodes
    chosen = engine or (known.engine if known is not None else None) or _engine(found, findings)
    read_spec = kube_scheduler_pods.read_spec if chosen == "kube-scheduler" else read_pod_spec
    read = (read_pod(made, read_spec) for made in found.pods)
    pods = read_pods(chain(within.pods if within else (), read), nodes, classes)
    _report_others(found, chosen)
    now = as_of(_taken(found), datetime.now(UTC)) if now is None else now
    reading = _Reading(found, pods, classes, known, within, findings, now)
    if chosen == "kueue":
        _, local = kueue_import.read_configuration(kept.kueue, Findings())
        made = _kueue(reading, {**(within.local_queues if within else {}), **local})
        return with_(made, taken=_taken(found), about=True, of_state=found.of_state)
    readers = {"kai": _kai, "yunikorn": _yunikorn, "kube-scheduler": _kube_scheduler}
    if chosen is not None and (reader := readers.get(chosen)) is not None:
        return with_(reader(reading), taken=_taken(found), about=True, of_state=found.of_state)
    findings.add("no-engine", "warning", (), "nothing here waits, runs or says how it is scheduled")
    nodes = read_cluster_nodes(found.nodes, pods, rename={})
    return Imported(Configuration() if known is None else known, State(nodes=nodes), [], findings.all())


def kept_objects(configuration: Configuration | None) -> list[tuple[Path, Any]]:
    """The objects that a configuration keeps whole: LocalQueues and priority classes among them."""
    native = None if configuration is None else configuration.native
    return [(("native", "objects", i), made) for i, made in enumerate(native.objects if native is not None else ())]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What every system's reader gets."""

    found: _Sorted
    pods: list[Pod]
    classes: Classes
    known: Configuration | None
    within: Within | None
    findings: Findings
    now: datetime

    def counting(self, own: Configuration) -> Configuration:
        """The configuration that counts: ``known``, else the source's ``own``."""
        if self.known is None:
            return own
        if own.queues:
            detail = f"{len(own.queues)} queues of the source: the configuration that is given takes their place"
            self.findings.add("replaced", "info", (), detail)
        return self.known if self.known.engine is not None else replace(self.known, engine=own.engine)


def _engine(found: _Sorted, findings: Findings) -> EngineName | None:
    """The system that most objects are of; kube-scheduler, which is in every cluster, where they are of no other."""
    pods = [pod for made in found.pods if (pod := read_pod(with_(made, root=_unheard(made.root)))) is not None]
    counts: Counter[EngineName] = Counter(
        {
            "kueue": len(found.kueue) + len(found.workloads),
            "kai": len(found.kai) + len(found.groups) + sum(map(kai_pods.belongs, pods)),
            "yunikorn": len(found.yunikorn) + sum(map(yunikorn_pods.belongs, pods)),
        }
    )
    present: list[EngineName] = [name for name in _ORDER if counts[name]]
    if not present:
        return "kube-scheduler" if found.kube_scheduler or found.pods else None
    chosen = min(present, key=lambda name: (-counts[name], _ORDER.index(name)))
    if len(present) > 1:
        others = ", ".join(f"{name} ({counts[name]})" for name in present if name != chosen)
        findings.add("several-engines", "warning", (), f"objects of {chosen} are read; there are also some of {others}")
    return chosen


def _unheard(root: Reader) -> Reader:
    return Reader(root.value, root.at, Findings())


def _report_others(found: _Sorted, chosen: EngineName | None) -> None:
    """Objects of the systems that were not chosen."""
    of: dict[EngineName, list[list[Object]]] = {
        "kueue": [found.kueue, found.workloads], "kai": [found.kai, found.groups], "yunikorn": [found.yunikorn],
        "kube-scheduler": [found.kube_scheduler],
    }  # fmt: skip
    for name, lists in of.items():
        for made in (made for listed in lists for made in listed if name != chosen):
            made.root.warn("kind", f"an object of {name} in an import of {chosen}: left out", rule="other-engine")


def _duplicates(found: list[Object], kinds: dict[str, str], findings: Findings) -> None:
    for kind, shown in kinds.items():
        unique(((made.name, made) for made in found if made.kind == kind and made.name), shown, findings)


def _kueue(reading: _Reading, kept: dict[str, LocalQueue]) -> Imported:
    """``kept``: the LocalQueues that the configuration keeps."""
    found, findings = reading.found, reading.findings
    _duplicates(found.kueue, {kind: kind for kind in _KUEUE_KINDS}, findings)
    own, local = kueue_import.read_configuration(found.kueue, findings)
    configuration = reading.counting(_with_classes(own, found.classes))
    around = Around({**kept, **local})
    around.take(found.around)
    workloads, asks = kueue_workloads.read_workloads(found.workloads, configuration, around, reading.classes)
    if not (reading.within.nodes if reading.within else found.nodes):
        _report_no_nodes(configuration, asks, findings)
    strangers: list[Pod] = []
    if configuration.topologies:
        strangers = [pod for pod in reading.pods if not placed_by_kueue(pod.made)]
    elif reading.pods:
        findings.add("not-carried", "info", (), f"Kueue decides on Workloads: {len(reading.pods)} pods are left out")
    based, every = usage_based(configuration), sorted(around.local_queues.items())
    queues = {name: QueueState(kueue=of.shared) for name, of in every if of.cluster_queue in based}
    nodes = read_cluster_nodes(found.nodes, strangers, rename={})
    return _imported(configuration, nodes, workloads, asks, findings, queues)


def _report_no_nodes(configuration: Configuration, asks: list[Ask], findings: Findings) -> None:
    """Pods that a topology places have no place where there are no nodes."""
    placed = {flavor.name for flavor in configuration.flavors if flavor.topology is not None}
    asked = {ask.queue for ask in asks}
    of = {
        flavor.name
        for queue in configuration.queues
        for group in queue.resource_groups or ()
        for flavor in group.flavors
        if queue.name in asked
    }
    if names := sorted(placed & of):
        detail = f"there are no nodes in the source, and topologies place the pods of {', '.join(names)} on nodes"
        findings.add("no-nodes", "error", (), detail)


def _with_classes(configuration: Configuration, classes: list[Object]) -> Configuration:
    """With its priority classes kept whole, but for those that every cluster has."""
    kept = [made for made in map(whole, (made for made in classes if made.name not in SYSTEM_CLASSES)) if made]
    if not kept:
        return configuration
    native = configuration.native or NativeDocuments()
    return replace(configuration, native=replace(native, objects=[*native.objects, *kept]))


def _kai(reading: _Reading) -> Imported:
    found, findings = reading.found, reading.findings
    _duplicates(found.kai, {"Queue": "Queue"}, findings)
    own = kai_import.read_configuration(found.kai, findings)
    pool = kai_import.pool_of(own if any(made.kind == "SchedulingShard" for made in found.kai) else reading.known)
    kept_nodes, groups, own, pods = _of_pool(reading, pool, own)
    configuration = reading.counting(_with_classes(own, found.classes))
    queues = {queue.name for queue in configuration.queues}
    members, strangers = _parted(pods, kai_pods.belongs)
    workloads, asks = kai_pods.read_groups(groups, members, queues, reading.classes, reading.now)
    nodes = kai_pods.with_gpu_memory(read_cluster_nodes(kept_nodes, strangers, rename={}))
    return _imported(configuration, nodes, workloads, asks, findings)


def _of_pool(
    reading: _Reading, pool: str, own: Configuration
) -> tuple[list[Object], list[Object], Configuration, list[Pod]]:
    """Nodes, pod groups, configuration and pods that the shard of ``pool`` sees. A scheduler that is configured by its
    file has no pools."""
    found, every = reading.found, reading.pods
    if any(made.kind == KAI_SCHEDULER for made in found.kai):
        return found.nodes, found.groups, own, every
    others = {made.name for made in found.kai if made.kind == "Queue" and not kai_import.in_pool(made, pool)}
    nodes = [made for made in found.nodes if kai_import.in_pool(made, pool)]
    groups = [made for made in found.groups if kai_import.in_pool(made, pool)]
    left = {made.id for made in found.groups} - {made.id for made in groups}
    pods = [
        pod
        for pod in every
        if not kai_pods.belongs(pod)
        or (kai_pods.group(pod) not in left if kai_pods.names_group(pod) else kai_import.in_pool(pod.made, pool))
    ]
    counted = {"nodes": len(found.nodes) - len(nodes), "queues": len(others), "pod groups": len(left)}
    counted["pods without a group"] = sum(
        kai_pods.belongs(pod) and not kai_pods.names_group(pod) and not kai_import.in_pool(pod.made, pool)
        for pod in every
    )
    if told := ", ".join(f"{count} {kind}" for kind, count in counted.items() if count):
        which = f"of {kai_import.POOL_LABEL}={pool}" if pool else f"without the label {kai_import.POOL_LABEL}"
        detail = f"left out, as the shard sees only what is {which}: {told}"
        reading.findings.add("other-pool", "warning", (), detail)
    own = replace(own, queues=[queue for queue in own.queues if queue.name not in others])
    return nodes, groups, own, pods


def _yunikorn(reading: _Reading) -> Imported:
    found, findings = reading.found, reading.findings
    configuration = reading.counting(yunikorn_import.read_configuration(found.yunikorn, findings))
    own, strangers = _parted(reading.pods, yunikorn_pods.belongs)
    spaces = [made for made in found.around if made.kind == "Namespace"]
    placement = Placement(configuration, spaces)
    workloads, asks, dynamic = yunikorn_pods.read_applications(own, placement, reading.classes, findings)
    if dynamic:
        configuration = replace(configuration, queues=[*configuration.queues, *dynamic])
    if found.classes and not reading.pods:
        findings.add(
            "not-carried", "info", (), "priority classes are no part of queues.yaml: an export leaves them out"
        )
    nodes = read_cluster_nodes(found.nodes, strangers, rename=yunikorn_pods.RENAME)
    return _imported(configuration, nodes, workloads, asks, findings)


def _kube_scheduler(reading: _Reading) -> Imported:
    found, findings = reading.found, reading.findings
    spaces = [made for made in found.around if made.kind == "Namespace"]
    own = kube_scheduler_import.read_configuration(found.kube_scheduler, spaces, findings)
    configuration = reading.counting(_with_classes(own, found.classes))
    names = kube_scheduler_import.schedulers(found.kube_scheduler)
    nodes = read_cluster_nodes(found.nodes, (), rename={}, conditions=False)
    places = reading.within.nodes if reading.within else {node.name for node in nodes}
    workloads, asks, held = kube_scheduler_pods.read_workloads(reading.pods, names, places, reading.classes)
    budgets = kube_scheduler_pods.read_budgets(
        made for made in found.kube_scheduler if made.kind == "PodDisruptionBudget"
    )
    known = {queue.name for queue in configuration.queues}
    used = {*(of.queue for of in workloads), *(ask.queue for ask in asks), *(of.queue for of in budgets)}
    more = [Queue(name=name) for name in sorted(used - known)]
    if more:
        configuration = replace(configuration, queues=[*configuration.queues, *more])
    state = State(nodes=nodes, workloads=workloads, reservations=held, disruption_budgets=budgets)
    return Imported(configuration, state, asks, findings.all())


def _parted(pods: list[Pod], belongs: _Belongs) -> tuple[list[Pod], list[Pod]]:
    return [pod for pod in pods if belongs(pod)], [pod for pod in pods if not belongs(pod)]


def _imported(
    configuration: Configuration, nodes: list[Node], workloads: list[Workload], asks: list[Ask], findings: Findings,
    queues: dict[str, QueueState] | None = None,
) -> Imported:  # fmt: skip
    return Imported(configuration, State(nodes=nodes, workloads=workloads, queues=queues or {}), asks, findings.all())


def _taken(found: _Sorted) -> datetime | None:
    """The newest time in a source whose nodes say when they were last heard of; None where none does: what else has a
    time may have had it for long."""
    heard = [
        at
        for node in found.nodes
        for condition in node.status.children("conditions")
        if (at := condition.time("lastHeartbeatTime")) is not None
    ]
    if not heard:
        return None
    every = (*found.workloads, *found.groups, *found.pods, *found.nodes)
    return max([*heard, *(made.created_at for made in every if made.created_at is not None)])
