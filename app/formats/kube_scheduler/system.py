"""kube-scheduler's documents and pods: KubeSchedulerConfiguration and namespaces, in and out, and whose pods they are.

Of a configuration the arguments of DefaultPreemption decide, and which schedulers' pods are its own. All else is kept
for an export: a plugin that filters and is off, or one that is added, makes decisions wrong; what scores, or looks at
fewer nodes, may make another node of several be taken.
"""

import re
from collections.abc import Iterable
from dataclasses import replace as with_
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from app.base.documents import Path, as_list, as_mapping
from app.formats.exported import Exported, Field, Lost, Table, dump, metadata_of
from app.formats.extender import Around, VictimPod
from app.formats.kube_scheduler.pods import SCHEDULER, ask_of, read_budgets, read_spec, read_workloads
from app.formats.manifests import Reading, Role, System, with_classes
from app.formats.objects import (
    EVENT,
    NODE,
    POD,
    PRIORITY_CLASS,
    Classes,
    Evidence,
    Followed,
    Item,
    Kind,
    Object,
    event_time,
    instead,
    new_message,
    pod_of,
    whole,
)
from app.formats.pods import Pod, read_cluster_nodes
from app.formats.reader import Fields, Findings, Imported, Reader, Undecided, each, effects
from app.formats.work import planner
from app.formats.work.pods import plan_kube_scheduler
from app.solver.engines.kube_scheduler import FACTS
from app.solver.model.base import NativeDocuments
from app.solver.model.configuration import Configuration, Queue, Settings
from app.solver.model.kube_scheduler import Settings as KubeSettings
from app.solver.model.request import Eviction
from app.solver.model.state import Ask, State

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"
_PLUGIN = "DefaultPreemption"
_FILTERS = frozenset({
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "PodTopologySpread", "InterPodAffinity", "SchedulingGates", "PrioritySort", _PLUGIN, "DefaultBinder",
})  # fmt: skip
"""What is decided here as released, whatever it is called in ``disabled``."""
_FILTERING = {
    "NodeAffinity": "addedAffinity", "NodeResourcesFit": "ignoredResources ignoredResourceGroups",
    "PodTopologySpread": "defaultConstraints",
}  # fmt: skip
"""Arguments by which a filter decides otherwise, by plugin."""
_ALL_NODES = "nodes are looked at until enough fit: here all are, so that another of them may be taken"
_RETRIES = "podInitialBackoffSeconds", "podMaxBackoffSeconds", "delayCacheUntilActive"
_UNDECIDED: Undecided = {
    "percentageOfNodesToScore": ("warning", _ALL_NODES),
    "extenders": ("error", "what an extender says is not asked for"),
    "parallelism": ("info", "one node after the other is looked at here"),
    **dict.fromkeys(_RETRIES, ("info", "when a pod is tried again is not decided here")),
}
_OTHER = "clientConnection leaderElection enableProfiling enableContentionProfiling"


def read_configuration(manifests: Iterable[Object], spaces: Iterable[Object], findings: Findings) -> Configuration:
    """The settings that the last of ``manifests`` says, and the namespaces."""
    settings = KubeSettings()
    documents: list[dict[str, Any]] = []
    for manifest in manifests:
        if manifest.kind != KIND:
            continue
        if documents:
            instead(manifest, findings)
        settings = _settings(manifest.root.keep())
        document = whole(manifest)
        documents = [] if document is None else [{key: value for key, value in document.items() if value != {}}]
        if documents == [_document({}, settings)]:
            documents = []
    queues = [Queue(name=manifest.name, created_at=manifest.created_at) for manifest in spaces if manifest.name]
    return Configuration(
        engine="kube-scheduler", settings=Settings(kube_scheduler=settings), queues=queues,
        native=NativeDocuments(objects=documents) if documents else None,
    )  # fmt: skip


def schedulers(manifests: Iterable[Object]) -> set[str]:
    """What the schedulers of these configurations are called: pods say by it whose they are."""
    names: set[str] = set()
    for manifest in manifests:
        if manifest.kind == KIND:
            for profile in Reader(manifest.root.value, (), Findings()).children("profiles"):
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
    root.none_carried(_UNDECIDED)
    root.ignore("metadata", "apiVersion", "kind", *_OTHER.split())
    root.close()
    return first


def _profile(profile: Reader) -> KubeSettings:
    profile.take("schedulerName")
    profile.not_carried("percentageOfNodesToScore", _ALL_NODES)
    _plugins(profile.child("plugins"))
    settings = KubeSettings()
    for plugin in profile.children("pluginConfig"):
        name, arguments = plugin.text("name"), plugin.keep().child("args")
        arguments.ignore("apiVersion", "kind")
        if name == _PLUGIN:
            settings = _ARGUMENTS.whole(arguments)
        else:
            for key in _FILTERING.get(name or "", "").split():
                arguments.not_carried(key, f"{name} filters by it, which is not decided here", "error")
            arguments.close()
        plugin.close()
    profile.close()
    return settings


def _percentage(arguments: Reader, key: str) -> int | None:
    percentage = arguments.count(key)
    if percentage is not None and percentage > 100:
        arguments.warn(key, "at most 100 is expected", "error", "bad-value")
        return None
    return percentage


_ARGUMENTS = Table(KubeSettings(), (
    Field("minCandidateNodesPercentage", _percentage, "min_candidate_nodes_percentage"),
    Field("minCandidateNodesAbsolute", Reader.count, "min_candidate_nodes_absolute"),
))  # fmt: skip


def _plugins(plugins: Reader) -> None:
    """Points at which plugins are on or off. Off by a star is all that are on by default."""
    for point in plugins.value:
        reader = plugins.child(point)
        scores = point in ("score", "preScore")
        off: list[tuple[Reader, str]] = [(plugin, plugin.text("name") or "") for plugin in reader.children("disabled")]
        on: list[tuple[Reader, str]] = [(plugin, plugin.text("name") or "") for plugin in reader.children("enabled")]
        again = {name for _, name in on}
        for plugin, name in off:
            if name in again or (name == "*" and again >= _FILTERS):
                continue
            harmless = scores or (name not in _FILTERS and name != "*")
            detail = f"{name} is off: decided as if it were on"
            plugin.warn("name", detail, "warning" if harmless else "error", "not-decided")
        for plugin, name in on:
            if name not in _FILTERS and not scores:
                plugin.warn("name", f"{name} is not known here: decided without it", rule="not-decided")
            elif scores:
                plugin.warn("name", f"{name}: nodes are scored by the default weights", rule="not-decided")
            plugin.ignore("weight")
        reader.ignore("disabled", "enabled")
        reader.close()
    plugins.close()


def export(configuration: Configuration) -> Exported:
    """Namespaces, and a KubeSchedulerConfiguration where there is something to say, with what was kept of it."""
    lost = Lost()
    lost.other_blocks(configuration, "kube-scheduler")
    lost.flavors(configuration, "kube-scheduler")
    documents: list[dict[str, Any]] = []
    saved = lost.objects(configuration, "kube-scheduler", (GROUP, "scheduling.k8s.io"))
    own = next((document for document in saved if document.get("kind") == KIND), None)
    settings = configuration.settings.kube_scheduler or KubeSettings()
    if settings.workload_aware:
        detail = "a gate of kube-scheduler (--feature-gates=GenericWorkload=true), no part of its configuration"
        lost.add(("settings", "kube_scheduler", "workload_aware"), detail)
    if own is not None or _ARGUMENTS.written(settings, (), lost):
        documents.append(_document(own or {}, settings))
    documents += [document for document in saved if document is not own]
    documents += [_namespace(queue, ("queues", i), lost) for i, queue in enumerate(configuration.queues)]
    return dump(documents, lost)


def _namespace(queue: Queue, path: Path, lost: Lost) -> dict[str, Any]:
    if queue.parent is not None:
        lost.add((*path, "parent"), "a namespace has no parent")
    for key in ("quota", "resource_groups"):
        if getattr(queue, key):
            lost.add((*path, key), "kube-scheduler knows no quotas of namespaces")
    lost.queue(path, queue, "kube-scheduler", weight=False, priority=False, created=True)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata_of(queue)}


def _document(own: dict[str, Any], settings: KubeSettings) -> dict[str, Any]:
    """``own`` with these arguments in each of its profiles, unless they say so already."""
    document = {"apiVersion": f"{GROUP}/v1", "kind": KIND, **own}
    meant, wanted = _settings(Reader(own, (), Findings())), msgspec.structs.replace(settings, workload_aware=False)
    if own and meant == wanted:
        return document
    arguments = _ARGUMENTS.written(settings, (), Lost())
    mine: list[Any] = [{"name": _PLUGIN, "args": arguments}] if arguments else []
    shown: list[Any] = []
    for profile in _mappings(own.get("profiles")) or [{}]:
        others = [of for of in _mappings(profile.get("pluginConfig")) if of.get("name") != _PLUGIN]
        shown.append({**profile, "pluginConfig": [*others, *mine]})
    return {**document, "profiles": shown}


def _mappings(listed: Any) -> list[dict[str, Any]]:
    return [as_mapping(item) for item in as_list(listed) if isinstance(item, dict)]


def _place(manifest: Object) -> Role | None:
    known = manifest.kind == KIND or (manifest.group, manifest.kind) == ("policy", "PodDisruptionBudget")
    return "configuration" if known else None


def _read(reading: Reading) -> Imported:
    objects, findings = reading.objects, reading.findings
    spaces = [manifest for manifest in objects.around if manifest.kind == "Namespace"]
    own = read_configuration(objects.of[FACTS.name], spaces, findings)
    configuration = reading.counting(with_classes(own, objects.classes))
    names = schedulers(objects.of[FACTS.name])
    nodes = read_cluster_nodes(objects.nodes, (), rename={}, conditions=False)
    places = reading.within.nodes if reading.within else {node.name for node in nodes}
    workloads, asks, held = read_workloads(reading.pods, names, places, reading.classes)
    budgets = read_budgets(manifest for manifest in objects.of[FACTS.name] if manifest.kind == "PodDisruptionBudget")
    known = {queue.name for queue in configuration.queues}
    used = {*(of.queue for of in workloads), *(ask.queue for ask in asks), *(of.queue for of in budgets)}
    more = [Queue(name=name) for name in sorted(used - known)]
    if more:
        configuration = replace(configuration, queues=[*configuration.queues, *more])
    state = State(nodes=nodes, workloads=workloads, reservations=held, disruption_budgets=budgets)
    return Imported(configuration, state, asks, findings.all())


class _Recogniser:
    predicts = True

    def __init__(self, around: Around) -> None:
        self._around = around

    def place(self, pod: VictimPod) -> Eviction | None:
        del pod
        return None

    def ask(self, pod: Pod) -> Ask | None:
        waiting = self._around.waiting.get(pod.manifest.id)
        if waiting is not None and waiting.uid in (None, pod.manifest.uid):
            return waiting
        manifest = ask_of(with_(pod, spec=read_spec(pod.manifest.spec)), Classes())
        return manifest if self._around.has_queue(manifest.queue) else None


_KUBE_SCHEDULER = re.compile(r"Preempted by (?:an? )?\S+ (\S+) on node ")


def _evicted(old: Item | None, new: Item) -> Evidence | None:
    """An Event on the pod with reason `Preempted`, whose message has the UID of the pod or the pod group that it was
    for (framework/preemption/executor.go)."""
    message, victim = new_message(old, new), pod_of(new)
    match = None if message is None or new.get("reason") != "Preempted" else _KUBE_SCHEDULER.match(message)
    if match is None or message is None or victim is None:
        return None
    return Evidence(victim, match[1], "PreemptionByScheduler", event_time(new), message)


_FOLLOWED = Followed(
    kinds=(
        POD, NODE, with_(PRIORITY_CLASS, needed=False),
        Kind("PodDisruptionBudget", "policy", "poddisruptionbudgets", ("v1",), needed=False),
        Kind("Namespace", "", "namespaces", ("v1",), needed=False),
    ),
    work=("Pod",), witnesses=(with_(EVENT, selector="involvedObject.kind=Pod,reason=Preempted"),),
    evidence={"Event": _evicted},
)  # fmt: skip

FIELDS: Final[Fields] = {
    "KubeSchedulerConfiguration": {
        **each("decided", "schedulerName pluginConfig", "profiles[]."),
        **each("warning", "percentageOfNodesToScore plugins", "profiles[]."),
        **each("error", "multiPoint preFilter filter postFilter", "profiles[].plugins."),
        **effects(_UNDECIDED), **each("none", _OTHER),
    },
    "DefaultPreemptionArgs": _ARGUMENTS.effects(""),
    "InterPodAffinityArgs": each("warning", "hardPodAffinityWeight ignorePreferredTermsOfExistingPods"),
    "NodeAffinityArgs": each("error", _FILTERING["NodeAffinity"]),
    "NodeResourcesBalancedAllocationArgs": {"resources": "warning"},
    "NodeResourcesFitArgs": {**each("error", _FILTERING["NodeResourcesFit"]), "scoringStrategy": "warning"},
    "PodTopologySpreadArgs": {**each("error", _FILTERING["PodTopologySpread"]), "defaultingType": "warning"},
    "VolumeBindingArgs": each("warning", "bindTimeoutSeconds shape"),
    "PodDisruptionBudget": {
        **each("decided", "spec.selector status.disruptionsAllowed status.disruptedPods"),
        **each("none", "minAvailable maxUnavailable unhealthyPodEvictionPolicy", "spec."),
        **each("none", "conditions currentHealthy desiredHealthy expectedPods observedGeneration", "status."),
    },
}  # fmt: skip
"""What becomes of every field of its documents."""
SYSTEM: Final = System(
    facts=FACTS, fields=FIELDS, followed=_FOLLOWED,
    export=export, precedence=3, everywhere=True, read=_read, place=_place, groups=(GROUP,),
    read_spec=read_spec, recogniser=_Recogniser, plan=planner(plan_kube_scheduler, read_spec),
)  # fmt: skip
