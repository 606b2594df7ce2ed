"""Kueue's documents and pods: a configuration as its objects (version v1beta2), what reads objects together, whose pods
they are."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha1
from typing import Any, Final

import msgspec

from app.base.documents import Path, as_list, as_mapping
from app.formats.exported import Exported, Lost, dump, metadata_of, renamed, weight_text
from app.formats.extender import Around as Snapshot
from app.formats.extender import OwnerReference, VictimPod, asking
from app.formats.kueue import importing
from app.formats.kueue.considered import Around, placed_by_kueue, usage_based
from app.formats.kueue.importing import CONFIGURATION_GROUP, GROUP, PRESENT_VERSION
from app.formats.kueue.workloads import FIELDS, read_workloads
from app.formats.manifests import Reading, Role, System, duplicates, imported, with_classes, with_objects
from app.formats.objects import (
    NODE,
    POD,
    PRIORITY_CLASS,
    Evidence,
    Followed,
    Item,
    Kind,
    Object,
    condition,
    instant,
    key_of,
    text_of,
    whole,
)
from app.formats.pods import Pod, read_cluster_nodes
from app.formats.reader import Findings, Imported
from app.formats.work import planner
from app.formats.work.kueue import plan_work
from app.solver.engines.kueue import FACTS
from app.solver.model import kueue
from app.solver.model.base import NativeDocuments
from app.solver.model.configuration import Configuration, EngineName, Flavor, Queue, Quota, ResourceGroup, Settings
from app.solver.model.request import Eviction
from app.solver.model.state import Ask, QueueState, Workload

VERSION = "kueue.x-k8s.io/v1beta2"
CONFIGURATION_VERSION = f"{CONFIGURATION_GROUP}/{PRESENT_VERSION}"
SWITCHED_VERSION = f"{CONFIGURATION_GROUP}/v1beta1"
GROUPS = (GROUP, "scheduling.k8s.io")
"""API groups of the objects that belong to Kueue's configuration."""
DEFAULT_FLAVOR = "default"


def export(configuration: Configuration) -> Exported:
    """Multi-document YAML for ``kubectl apply``; the manager's Configuration, which is a file, comes first. What was
    kept of the objects that the configuration came from is in them again."""
    lost = Lost()
    lost.other_blocks(configuration, "kueue")
    documents: list[dict[str, Any]] = []
    if (manager := _manager(configuration, lost)) is not None:
        documents.append(manager)
    for i, flavor in enumerate(configuration.flavors):
        documents.append(lost.native(("flavors", i), _flavor(flavor), flavor.native, "kueue"))
    parents = {queue.parent for queue in configuration.queues}
    names = _native_names(configuration)
    for i, queue in enumerate(configuration.queues):
        role = queue.kueue.role if queue.kueue else None
        is_cohort = role == "cohort" or (role is None and queue.name in parents)
        document = _queue(queue, ("queues", i), lost, names, configuration.engine, is_cohort=is_cohort)
        documents.append(lost.native(("queues", i), document, queue.native, "kueue"))
    _note_selectors(documents, configuration, lost)
    objects = lost.objects(configuration, "kueue", GROUPS)
    there = {of["metadata"]["name"] for of in objects if of.get("kind") == "Topology"}
    documents += [_topology(of) for of in configuration.topologies if of.name not in there]
    return dump([*documents, *objects], lost)


def _topology(of: kueue.Topology) -> dict[str, Any]:
    spec = {"levels": [{"nodeLabel": level} for level in of.levels]}
    return {"apiVersion": VERSION, "kind": "Topology", "metadata": {"name": of.name}, "spec": spec}


def _note_selectors(documents: list[dict[str, Any]], configuration: Configuration, lost: Lost) -> None:
    """Say which ClusterQueues admit from no namespace: Arbiter opens none on its own."""
    queues = documents[len(documents) - len(configuration.queues) :]
    closed = [
        i
        for i, document in enumerate(queues)
        if document["kind"] == "ClusterQueue" and document["spec"].get("namespaceSelector") is None
    ]
    if closed:
        name, more = configuration.queues[closed[0]].name, len(closed) - 1
        which = f"ClusterQueue {name!r}" + (f" and {more} more have" if more else " has")
        detail = f"{which} no namespaceSelector, so Kueue admits from no namespace; {{}} means all of them"
        lost.note("no-namespaces", ("queues", closed[0]), detail)


def _native_names(configuration: Configuration) -> dict[str, str]:
    """What cohorts are called in their cluster, where an import had to rename them."""
    names: dict[str, str] = {}
    for queue in configuration.queues:
        name = as_mapping(queue.native.kueue.get("metadata")).get("name") if queue.native is not None else None
        if isinstance(name, str) and re.fullmatch(rf"{re.escape(name)}(\.cohort)+", queue.name):
            names[queue.name] = name
    return names


def _manager(configuration: Configuration, lost: Lost) -> dict[str, Any] | None:
    """The manager's Configuration, in its ConfigMap if it came in one; None where there is nothing to say."""
    settings = configuration.settings.kueue or kueue.Settings()
    fields = dict(configuration.native.kueue) if configuration.native is not None else {}
    holder = fields.pop("configMap", None)
    if settings == kueue.Settings() and not fields and holder is None:
        return None
    version = fields.pop("apiVersion", CONFIGURATION_VERSION)
    document = _settings(settings, lost, switched=version == SWITCHED_VERSION)
    document["apiVersion"] = version
    document = lost.native((), document, NativeDocuments(kueue=fields), "kueue")
    return document if holder is None else lost.inside(holder, document, ("native", "kueue", "configMap"))


def _settings(settings: kueue.Settings, lost: Lost, *, switched: bool) -> dict[str, Any]:
    """``switched``: fair sharing has a switch of its own, as before v1beta2."""
    document: dict[str, Any] = {"apiVersion": CONFIGURATION_VERSION, "kind": "Configuration"}
    strategies = settings.preemption_strategies
    if settings.quota_check_strategy != "BlockUndeclared":
        document["resources"] = {"quotaCheckStrategy": settings.quota_check_strategy}
    if (sharing := settings.admission_fair_sharing) is not None:
        document["admissionFairSharing"] = importing.SHARING.written(sharing, (), lost)
    if settings.fair_sharing:
        switch = {"enable": True} if switched else {}
        document["fairSharing"] = {**switch, "preemptionStrategies": strategies or list(importing.STRATEGIES)}
    elif strategies is not None and switched:
        document["fairSharing"] = {"enable": False, "preemptionStrategies": strategies}
    elif strategies is not None:
        lost.add(("settings", "kueue", "preemption_strategies"), "Kueue reads strategies with fair sharing only")
    return document


def _flavor(flavor: Flavor) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if flavor.topology is not None:
        spec["topologyName"] = flavor.topology
    if flavor.tolerations:
        spec["tolerations"] = [
            {"operator": toleration.operator, **{k: v for k, v in msgspec.to_builtins(toleration).items() if v}}
            for toleration in flavor.tolerations
        ]
    if flavor.node_labels:
        spec["nodeLabels"] = flavor.node_labels
    if flavor.node_taints:
        spec["nodeTaints"] = [
            {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
            for taint in flavor.node_taints
        ]
    return {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": flavor.name}, "spec": spec}


def _queue(
    queue: Queue, path: Path, lost: Lost, names: dict[str, str], engine: EngineName | None, *, is_cohort: bool
) -> dict[str, Any]:
    """``names``: those of cohorts in their cluster, where they differ; ``engine``: whose resources they are."""
    lost.queue(path, queue, "Kueue", weight=True, priority=False, created=True)
    spec: dict[str, Any] = {}
    if queue.parent is not None:
        spec["parentName" if is_cohort else "cohortName"] = names.get(queue.parent, queue.parent)
    if groups := _groups(queue, path, lost, engine):
        spec["resourceGroups"] = groups
    if queue.has_weight:
        spec["fairSharing"] = {"weight": weight_text(queue.weight)}
        if float(spec["fairSharing"]["weight"]) != queue.weight:
            lost.add((*path, "weight"), "a weight of Kueue has nine decimal places: rounded")
    block = queue.kueue or kueue.Queue()
    if is_cohort:
        if msgspec.structs.replace(block, role=None) != kueue.Queue():
            lost.add((*path, "kueue"), "a Cohort of Kueue has no policies of its own")
    else:
        if block.inactive is not None:
            lost.note("status", (*path, "kueue", "inactive"), "whether it is active Kueue works out itself")
        spec |= importing.CLUSTER_QUEUE.written(block, (*path, "kueue"), lost)
    return {
        "apiVersion": VERSION,
        "kind": "Cohort" if is_cohort else "ClusterQueue",
        "metadata": metadata_of(queue) | {"name": names.get(queue.name, queue.name)},
        "spec": spec,
    }


def _groups(queue: Queue, path: Path, lost: Lost, engine: EngineName | None) -> list[dict[str, Any]]:
    """Resource groups; the shorthand of one flavor is written out as the flavor called default."""
    out: list[dict[str, Any]] = []
    if queue.quota:
        resources = _quotas(queue.quota, (*path, "quota"), lost, engine)
        out.append(
            {
                "coveredResources": [resource["name"] for resource in resources],
                "flavors": [{"name": DEFAULT_FLAVOR, "resources": resources}],
            }
        )
    for g, group in enumerate(queue.resource_groups or ()):
        out.append(_group(group, (*path, "resource_groups", g), lost, engine))
    return out


def _group(group: ResourceGroup, path: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    flavors = [
        {"name": flavor.name, "resources": _quotas(flavor.quota, (*path, "flavors", f, "quota"), lost, engine)}
        for f, flavor in enumerate(group.flavors)
    ]
    covered = {name: ((*path, "resources", i), None) for i, name in enumerate(group.resources)}
    return {"coveredResources": list(renamed(covered, engine, "kueue", lost)), "flavors": flavors}


def _quotas(quotas: dict[str, Quota], path: Path, lost: Lost, engine: EngineName | None) -> list[dict[str, Any]]:
    placed = renamed({name: ((*path, name), quota) for name, quota in quotas.items()}, engine, "kueue", lost)
    return [_quota(name, quota, where, lost) for name, (where, quota) in placed.items()]


def _quota(name: str, quota: Quota, path: Path, lost: Lost) -> dict[str, Any]:
    lost.quota(path, quota, "Kueue", ("limit", "weight"))
    return {"name": name, **importing.QUOTA.written(quota, path, lost)}


_ROLES: dict[str, Role] = {"WorkloadPriorityClass": "classes", "Workload": "work"}
_KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor")
_JOB_SET = "jobset.sigs.k8s.io/jobset-"
_HASH = 5
_LONGEST_NAMES = (253, 63)


def _place(manifest: Object) -> Role | None:
    if manifest.group == importing.GROUP:
        return _ROLES.get(manifest.kind, "configuration")
    return (
        "configuration" if (manifest.group, manifest.kind) == (importing.CONFIGURATION_GROUP, "Configuration") else None
    )


def _read(reading: Reading) -> Imported:
    objects, findings = reading.objects, reading.findings
    _, saved = importing.read_configuration(reading.carried.of[FACTS.name], Findings())
    duplicates(objects.of[FACTS.name], {kind: kind for kind in _KINDS}, findings)
    own, local = importing.read_configuration(objects.of[FACTS.name], findings, reading.complete)
    if "Namespace" in reading.complete:
        own = with_objects(own, _beside(objects.around, {of.namespace for of in objects.of[FACTS.name]}))
    configuration = reading.counting(with_classes(own, objects.classes))
    around = Around({**(reading.within.local_queues if reading.within else {}), **saved, **local})
    around.take(objects.around)
    around.complete = "ClusterQueue" in reading.complete
    workloads, asks = read_workloads(objects.work[FACTS.name], configuration, around, reading.classes)
    if not (reading.within.nodes if reading.within else objects.nodes):
        _report_no_nodes(configuration, asks, findings)
    strangers: list[Pod] = []
    if configuration.topologies:
        strangers = [pod for pod in reading.pods if not placed_by_kueue(pod.manifest)]
    elif reading.pods:
        findings.add("not-carried", "info", (), f"Kueue decides on Workloads: {len(reading.pods)} pods are left out")
    based, every = usage_based(configuration), sorted(around.local_queues.items())
    queues = {name: QueueState(kueue=of.shared) for name, of in every if of.cluster_queue in based}
    nodes = read_cluster_nodes(objects.nodes, strangers, rename={})
    return imported(configuration, nodes, workloads, asks, findings, queues)


def _beside(around: list[Object], spaces: set[str]) -> list[dict[str, Any]]:
    """What bears on work to come: RuntimeClasses, labels and LimitRanges of namespaces that have LocalQueues."""
    documents: list[dict[str, Any]] = []
    for manifest in around:
        space = manifest.name if manifest.kind == "Namespace" else manifest.namespace
        if (space in spaces or manifest.kind == "RuntimeClass") and (document := whole(manifest)) is not None:
            names = {key: value for key, value in document["metadata"].items() if key in ("name", "namespace")}
            metadata = names | ({"labels": manifest.labels} if manifest.kind == "Namespace" else {})
            documents.append({**document, "metadata": metadata})
    return documents


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


class _Recogniser:
    """A pod is of the Workload that its owner, or itself, owns."""

    predicts = False

    def __init__(self, around: Snapshot) -> None:
        self._around = around
        self._owned: dict[str, list[Workload | Ask]] | None = None

    def place(self, pod: VictimPod) -> Eviction | None:
        of = pod.metadata
        works = self._workloads_of(of.namespace, of.name, of.uid, of.labels or {}, of.owner_references or [])
        return next((Eviction(workload=work.id) for work in works if isinstance(work, Workload)), None)

    def ask(self, pod: Pod) -> Ask | None:
        manifest = pod.manifest
        owners = msgspec.convert(_owners(manifest.root.value), list[OwnerReference], strict=False)
        for work in self._workloads_of(manifest.namespace, manifest.name, manifest.uid or "", manifest.labels, owners):
            if isinstance(work, Ask):
                return work
            return asking(work, work.id, work.tasks[0]) if work.tasks else None
        return None

    def _workloads_of(
        self, space: str, name: str, uid: str, labels: Mapping[str, str], owners: list[OwnerReference]
    ) -> Iterator[Workload | Ask]:
        """The Workloads that may be the pod's, what runs first: called after what owns it, or owned by the same."""
        around = self._around
        ids = [f"{space}/{workload}" for workload in workload_names(name, uid, labels, owners)]
        yield from (around.running[id] for id in ids if id in around.running)  # noqa: A001
        yield from (around.waiting[id] for id in ids if id in around.waiting)  # noqa: A001
        for owner in (uid, *(reference.uid for reference in _managing_first(owners))):
            for work in self._owned_by(owner) if owner else ():
                if work.id.startswith(f"{space}/"):
                    yield work

    def _owned_by(self, uid: str) -> list[Workload | Ask]:
        if self._owned is None:
            self._owned = {}
            for work in (*self._around.running.values(), *self._around.waiting.values()):
                for owner in work.kueue.owners if work.kueue is not None else ():
                    self._owned.setdefault(owner, []).append(work)
        return self._owned.get(uid, [])


def _owners(document: Mapping[str, Any]) -> list[Any]:
    references = as_list(as_mapping(document.get("metadata")).get("ownerReferences"))
    return [owner for owner in references if isinstance(owner, dict)]


def _managing_first(owners: list[OwnerReference]) -> list[OwnerReference]:
    return sorted(owners, key=lambda reference: reference.controller is not True)


def workload_names(name: str, uid: str, labels: Mapping[str, str], owners: list[OwnerReference]) -> list[str]:
    """The names that the Kueue Workload of a pod may have, the likeliest first: of the JobSet that made the Job that
    made the pod, of the controller that did, of the pod itself. A JobSet is one where the Job is called after it.

    Source: Kueue's ``pkg/controller/jobframework/workload_names.go``: kind and name of the object, cut to what a name
    may be long, and five digits of a SHA-1 over kind, group, name and UID."""
    names: list[str] = []
    job_set = labels.get(f"{_JOB_SET}name"), labels.get(f"{_JOB_SET}uid")
    for owner in _managing_first(owners):
        if job_set[0] and job_set[1] and owner.kind == "Job" and owner.name.startswith(f"{job_set[0]}-"):
            names += _named_after("JobSet", "jobset.x-k8s.io", job_set[0], job_set[1])
        names += _named_after(owner.kind, owner.api_version.rpartition("/")[0], owner.name, owner.uid)
    return [*names, *_named_after("Pod", "", name, uid)]


def _named_after(kind: str, group: str, name: str, uid: str) -> list[str]:
    digits = sha1("\n".join((kind, group, name, uid)).encode(), usedforsecurity=False).hexdigest()[:_HASH]
    whole = f"{kind.lower()}-{name}"
    return list(dict.fromkeys(f"{whole[: most - 1 - _HASH]}-{digits}" for most in _LONGEST_NAMES))


_KUEUE = re.compile(r"\(UID: ([^,)\s]+)")
_UNKNOWN = "UNKNOWN"
"""What Kueue writes where it does not know."""


def _evicted(old: Item | None, new: Item) -> Evidence | None:
    """The conditions `Evicted` (reason `Preempted`) and `Preempted` of a Workload; their message names the UID of the
    Workload that it was for (pkg/scheduler/preemption). Evictions for other reasons name nobody."""
    evicted = condition(new, "Evicted")
    if old is None or evicted is None or (was := condition(old, "Evicted")) == evicted:
        return None
    if was is not None and was.get("lastTransitionTime") == evicted.get("lastTransitionTime"):
        return None
    path, said, why = (
        instant(evicted.get("lastTransitionTime")),
        text_of(evicted.get("message")),
        text_of(evicted.get("reason")),
    )
    if why != "Preempted":
        return Evidence(key_of(new), "", why, path, said, preempted=False) if why else None
    preempted = condition(new, "Preempted") or {}
    message = text_of(preempted.get("message")) or said
    match = _KUEUE.search(message)
    by = match[1] if match is not None and match[1] != _UNKNOWN else ""
    return Evidence(key_of(new), by, text_of(preempted.get("reason")) or None, path, message)


def _kind(name: str, plural: str, *, needed: bool = True) -> Kind:
    return Kind(name, importing.GROUP, plural, ("v1beta2", "v1beta1"), needed)


_FOLLOWED = Followed(
    kinds=(
        _kind("ClusterQueue", "clusterqueues"),
        _kind("Cohort", "cohorts", needed=False),
        _kind("LocalQueue", "localqueues"),
        _kind("ResourceFlavor", "resourceflavors"),
        _kind("Workload", "workloads"),
        _kind("WorkloadPriorityClass", "workloadpriorityclasses", needed=False),
        _kind("AdmissionCheck", "admissionchecks", needed=False),
        replace(PRIORITY_CLASS, needed=False),
        Kind("Namespace", "", "namespaces", ("v1",), needed=False),
        Kind("LimitRange", "", "limitranges", ("v1",), needed=False),
        Kind("RuntimeClass", "node.k8s.io", "runtimeclasses", ("v1",), needed=False),
        replace(_kind("Topology", "topologies", needed=False), placed=True),
        replace(NODE, needed=False, placed=True),
        replace(POD, needed=False, placed=True),
        Kind("ConfigMap", "", "configmaps", ("v1",), needed=False, within="kueue-system",
             selector="metadata.name=kueue-manager-config"),
    ),
    work=("Workload",), evidence={"Workload": _evicted}, other_mode=Settings(kueue=kueue.Settings(fair_sharing=True)),
)  # fmt: skip
"""Workloads say themselves that they are evicted."""

SYSTEM: Final = System(
    facts=FACTS, fields=FIELDS, followed=_FOLLOWED, export=export, precedence=0, read=_read, place=_place,
    groups=(importing.GROUP, importing.CONFIGURATION_GROUP),
    recogniser=_Recogniser, plan=planner(plan_work, by_kueue=True),
)  # fmt: skip
