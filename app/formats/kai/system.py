"""KAI Scheduler's documents and pods: a configuration as a SchedulingShard and Queues, what reads objects together,
whose pods they are."""

import re
import zipfile
from dataclasses import replace as with_
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from io import BytesIO
from operator import itemgetter
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from app.base.documents import MAX_BYTES, Path, Unreadable, as_list, as_mapping
from app.formats.exported import Exported, Lost, dump, flat_quota, go_duration, metadata_of, number, placed, renamed
from app.formats.extender import ByTask, VictimPod, asking, light_pod
from app.formats.kai.configuration import (
    ACTIONS,
    AS_INSTALLED,
    BY_DEFAULT,
    DEFAULT_SHARD,
    FLAGS,
    MIN_RUNTIME,
    NEWEST,
    POOL_LABEL,
    QUEUE_GROUP,
    RELEASE_ANNOTATION,
    RULES_ANNOTATION,
    RUNTIMES,
    SHARD_GROUP,
    UNDECIDED,
    UNITS,
    objects_of,
    pool_of,
    read_configuration,
    shard_actions,
    written_actions,
)
from app.formats.kai.pods import (
    SCHEDULER,
    asked_of,
    belongs,
    group,
    names_group,
    read_groups,
    stuck_from,
    with_gpu_memory,
)
from app.formats.manifests import Reading, Role, System, duplicates, imported, parted, with_classes
from app.formats.objects import (
    EVENT,
    KAI_SCHEDULER,
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
    new_message,
    part,
    pod_of,
    text_of,
)
from app.formats.pods import Pod, quantities, read_cluster_nodes
from app.formats.reader import Fields, Findings, Imported, Reader, each, effects
from app.formats.work import planner
from app.formats.work.pods import plan_kai
from app.solver.engines.kai import FACTS
from app.solver.model import kai
from app.solver.model.base import UNLIMITED, Duration, NativeDocuments, Quantity, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, EngineName, Queue, Quota
from app.solver.model.request import Eviction
from app.solver.model.state import Ask, Task

QUEUE_VERSION = f"{QUEUE_GROUP}/v2"
SHARD_VERSION = f"{SHARD_GROUP}/v1"
GROUPS = (QUEUE_GROUP, SHARD_GROUP, "scheduling.k8s.io")
"""API groups of the objects that belong to KAI Scheduler's configuration."""


def export(configuration: Configuration) -> Exported:
    """Multi-document YAML for ``kubectl apply``. What was kept of the objects that the configuration came from is in
    them again."""
    lost = Lost()
    lost.other_blocks(configuration, "kai")
    lost.flavors(configuration, "KAI Scheduler")
    documents: list[dict[str, Any]] = []
    native = configuration.native or NativeDocuments()
    settings = configuration.settings.kai or (kai.Settings() if configuration.engine == FACTS.name else AS_INSTALLED)
    if settings != AS_INSTALLED or native.kai:
        documents.append(_shard(settings, native, lost))
    for path, queue in placed(configuration.queues):
        documents.append(lost.native(path, _queue(queue, path, lost, configuration.engine), queue.native, "kai"))
    return dump([*documents, *lost.objects(configuration, "kai", GROUPS)], lost)


def _shard(settings: kai.Settings, native: NativeDocuments, lost: Lost) -> dict[str, Any]:
    own = as_mapping(native.kai.get("metadata")).get("name")
    metadata: dict[str, Any] = {"name": own if isinstance(own, str) and own else DEFAULT_SHARD}
    annotations: dict[str, str] = {}
    if settings.rules != AS_INSTALLED.rules:
        annotations[RULES_ANNOTATION] = settings.rules
    if settings.release != NEWEST:
        annotations[RELEASE_ANNOTATION] = settings.release
    if annotations:
        metadata["annotations"] = annotations
    spec: dict[str, Any] = {}
    if flags := FLAGS.written(settings, (), lost):
        spec["args"] = flags
    if arguments := MIN_RUNTIME.written(settings, (), lost):
        spec["plugins"] = {"minruntime": {"arguments": arguments}}
    if settings.k_value != kai.Settings().k_value:
        spec["kValue"] = number(settings.k_value)
    if settings.search_budgets is not None:
        budgets: dict[str, Duration | dict[str, Duration]] = msgspec.to_builtins(settings.search_budgets)
        spec["scenarioSearchBudgets"] = {
            re.sub("_(.)", lambda match: match[1].upper(), name): {key: go_duration(of[key]) for key in of}
            if isinstance(of, dict)
            else go_duration(of)
            for name, of in budgets.items()
        }
    saved = _with_actions(spec, settings, native.kai, lost)
    shard = {"apiVersion": SHARD_VERSION, "kind": "SchedulingShard", "metadata": metadata, "spec": spec}
    return lost.native((), shard, NativeDocuments(kai=saved), "kai")


def _with_actions(spec: dict[str, Any], settings: kai.Settings, saved: dict[str, Any], lost: Lost) -> dict[str, Any]:
    """Write the actions into ``spec``: as they were, where those that were kept mean the same. Returns what else was
    kept."""
    inner: Any = saved.get("spec")
    wanted = list(BY_DEFAULT) if settings.actions is None else settings.actions
    if not isinstance(inner, dict) or "actions" not in inner:
        if wanted != list(ACTIONS):
            spec["actions"] = _actions(wanted, lost)
        return saved
    rest = dict(as_mapping(inner))
    findings = Findings()
    meant = shard_actions(Reader(rest["actions"], (), findings))
    if findings.all() or (list(ACTIONS) if meant is None else meant) != wanted:
        del rest["actions"]
        spec["actions"] = _actions(wanted, lost)
    return {**saved, "spec": rest}


def _actions(actions: list[kai.Action], lost: Lost) -> dict[str, Any]:
    for rank, action in enumerate(actions):
        if action in actions[:rank]:
            lost.add(("settings", "kai", "actions", rank), "a SchedulingShard runs an action once")
    return written_actions(list(dict.fromkeys(actions)))


def _queue(queue: Queue, path: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    quotas = renamed(flat_quota(queue, path, "KAI Scheduler", lost), engine, "kai", lost)
    named: dict[str, tuple[Path, Quota]] = {}
    for resource, (where, quota) in quotas.items():
        key = "gpu" if resource.endswith("/gpu") else resource
        if key not in UNITS:
            lost.add(where, "KAI divides cpu, memory and GPUs only")
            continue
        lost.quota(where, quota, "KAI Scheduler", ("borrowing_limit", "lending_limit"))
        named[key] = (where, quota)
    spec: dict[str, Any] = {} if queue.parent is None else {"parentQueue": queue.parent}
    spec["priority"] = queue.priority
    spec["resources"] = {name: _resource(name, named.get(name, (path, Quota()))[1], queue.weight) for name in UNITS}
    spec |= RUNTIMES.written(queue.kai or kai.Queue(), (*path, "kai"), lost)
    return {"apiVersion": QUEUE_VERSION, "kind": "Queue", "metadata": metadata_of(queue), "spec": spec}


def _resource(name: str, quota: Quota, weight: float) -> dict[str, Any]:
    return {
        "quota": _amount(0 if quota.guaranteed is None else quota.guaranteed, name),
        "limit": -1 if quota.limit is None else _amount(quota.limit, name),
        "overQuotaWeight": number(weight if quota.weight is None else quota.weight),
    }


def _amount(value: Quantity, name: str) -> int | float:
    if value == UNLIMITED:
        return -1
    steps = Decimal(parse_quantity(value, scale_of(name))) / UNITS[name]
    return number(float(steps))


_ROLES: dict[str, Role] = {"PodGroup": "work", "Queue": "configuration"}
_KINDS = ("SchedulingShard", "Config", "Topology")


def _place(manifest: Object) -> Role | None:
    if manifest.group == QUEUE_GROUP:
        return _ROLES.get(manifest.kind)
    known = manifest.kind == KAI_SCHEDULER or (manifest.group == SHARD_GROUP and manifest.kind in _KINDS)
    return "configuration" if known or _is_evidence(manifest) else None


def _read(reading: Reading) -> Imported:
    objects, findings = reading.objects, reading.findings
    every = objects.of[FACTS.name]
    duplicates(every, {"Queue": "Queue"}, findings)
    own = read_configuration((manifest for manifest in every if not _is_evidence(manifest)), findings)
    release, own = _installed(reading, own)
    pool = _pool(own if any(manifest.kind == "SchedulingShard" for manifest in every) else reading.known)
    kept_nodes, groups, own, pods = _of_pool(reading, pool, own)
    configuration = reading.counting(with_classes(own, objects.classes))
    queues = {queue.name for queue in configuration.queues}
    members, strangers = parted(pods, belongs)
    workloads, asks = read_groups(groups, members, queues, reading.classes, reading.now)
    nodes = with_gpu_memory(read_cluster_nodes(kept_nodes, strangers, rename={}))
    return with_(imported(configuration, nodes, workloads, asks, findings), release=release)


_TAG = re.compile(r"v?(\d+)\.(\d+)(?!\d)")
_RELEASES: dict[tuple[int, ...], kai.Release] = {
    tuple(map(int, name.split("."))): name for name in get_args(kai.Release)
}
_GROUPS_DEFINED = f"podgroups.{QUEUE_GROUP}"
_NEW_FIELDS = ("minSubGroup", "preemptionDelay", "stalenessGracePeriod")
_WITNESSES = ("Deployment", "Config", "CustomResourceDefinition")
"""What tells of the release that is installed, that which is nearest to it first."""


def _is_evidence(manifest: Object) -> bool:
    """Whether it is read for the release that it tells of, and for nothing else: a Deployment of KAI's, the definition
    of PodGroups."""
    if manifest.kind == "Deployment" and manifest.group == "apps":
        text = " ".join((manifest.namespace, manifest.name, *_images(manifest))).lower()
        return SCHEDULER in text or ("kai" in text and _image_of(manifest) is not None)
    return manifest.kind == "CustomResourceDefinition" and manifest.name == _GROUPS_DEFINED


def _images(manifest: Object) -> list[str]:
    containers = reduce(part, ("spec", "template", "spec"), dict(manifest.root.value)).get("containers")
    return [text_of(as_mapping(container).get("image")) for container in as_list(containers)]


def _image_of(manifest: Object) -> str | None:
    """The image that is called `scheduler`, wherever it is from."""
    return next((image for image in _images(manifest) if re.search(r"(^|/)scheduler(:|@|$)", image)), None)


def _tag_of(manifest: Object) -> str:
    """The tag of the scheduler's image; empty where it names none."""
    if manifest.kind == "Config":
        path = ("spec", "scheduler", "service", "image")
        return text_of(reduce(part, path, dict(manifest.root.value)).get("tag"))
    return (_image_of(manifest) or "").partition("@")[0].rpartition("/")[2].partition(":")[2]


def _version_of(manifest: Object) -> tuple[int, ...] | None:
    if manifest.kind == "CustomResourceDefinition":
        versions = as_list(manifest.spec.value.get("versions"))
        path = ("schema", "openAPIV3Schema", "properties", "spec", "properties")
        fields = {field for version in versions for field in reduce(part, path, as_mapping(version))}
        return max(_RELEASES) if fields.issuperset(_NEW_FIELDS) else min(_RELEASES)
    match = _TAG.match(_tag_of(manifest))
    version = (0, 0) if match is None else tuple(map(int, match.groups()))
    return None if version == (0, 0) else version  # builds of no release are tagged 0.0.0 and their commit


def _installed(reading: Reading, own: Configuration) -> tuple[kai.Release | None, Configuration]:
    """The release that the source says is installed, None where nothing of it does, and ``own`` under that one: what
    an annotation of the shard says goes first, then the scheduler's Deployment, the operator's Config, and the fields
    that PodGroups have. Between two that are known the older decides, and without a word the newest."""
    settings, manifests = own.settings.kai, reading.objects.of[FACTS.name]
    if settings is None or reading.known is not None:
        return None, own
    if any(RELEASE_ANNOTATION in shard.annotations for shard in manifests if shard.kind == "SchedulingShard"):
        return settings.release, own
    witnesses = [
        (_WITNESSES.index(manifest.kind), version, manifest.id, manifest)
        for manifest in manifests
        if manifest.kind in _WITNESSES and (version := _version_of(manifest)) is not None
    ]
    if not witnesses:
        detail = f"nothing here says which release of KAI is installed: {NEWEST} is taken, or the one that is stored"
        reading.findings.add("release", "warning" if reading.complete else "info", (), detail)
        return None, own
    _, version, _, witness = min(witnesses, key=itemgetter(0, 1, 2))
    release = _RELEASES[max((known for known in _RELEASES if known <= version), default=min(_RELEASES))]
    tag = _tag_of(witness)
    by = f"the image of the scheduler is tagged {tag!r}" if tag else "by the fields that PodGroups have"
    witness.root.findings.add("release", "info", witness.root.path, f"{release} decides: {by}")
    if version not in _RELEASES:
        detail = f"the rules of {tag} are not known here: those of {release} decide"
        witness.root.findings.add("not-decided", "warning", (*witness.root.path, "spec"), detail)
    settings = replace(settings, release=release)
    return release, replace(own, settings=replace(own.settings, kai=settings))


def _pool(configuration: Configuration | None) -> str:
    if configuration is None or configuration.native is None:
        return ""
    return pool_of(as_mapping(configuration.native.kai.get("spec")))


def _in_pool(manifest: Object, pool: str) -> bool:
    """Whether the shard of ``pool`` sees a node, a queue or a pod group (KAI: ``GetLabelSelector``)."""
    return manifest.labels.get(POOL_LABEL) == (pool or None)


def _of_pool(
    reading: Reading, pool: str, own: Configuration
) -> tuple[list[Object], list[Object], Configuration, list[Pod]]:
    """Nodes, pod groups, configuration and pods that the shard of ``pool`` sees. A scheduler that is configured by its
    file has no pools."""
    objects, every = reading.objects, reading.pods
    if any(manifest.kind == KAI_SCHEDULER for manifest in objects.of[FACTS.name]):
        return objects.nodes, objects.work[FACTS.name], own, every
    others = {
        manifest.name
        for manifest in objects.of[FACTS.name]
        if manifest.kind == "Queue" and not _in_pool(manifest, pool)
    }
    nodes = [manifest for manifest in objects.nodes if _in_pool(manifest, pool)]
    groups = [manifest for manifest in objects.work[FACTS.name] if _in_pool(manifest, pool)]
    left = {manifest.id for manifest in objects.work[FACTS.name]} - {manifest.id for manifest in groups}
    pods = [
        pod
        for pod in every
        if not belongs(pod) or (group(pod) not in left if names_group(pod) else _in_pool(pod.manifest, pool))
    ]
    counted = {"nodes": len(objects.nodes) - len(nodes), "queues": len(others), "pod groups": len(left)}
    counted["pods without a group"] = sum(
        belongs(pod) and not names_group(pod) and not _in_pool(pod.manifest, pool) for pod in every
    )
    if left_out := ", ".join(f"{count} {kind}" for kind, count in counted.items() if count):
        which = f"of {POOL_LABEL}={pool}" if pool else f"without the label {POOL_LABEL}"
        detail = f"left out, as the shard sees only what is {which}: {left_out}"
        reading.findings.add("other-pool", "warning", (), detail)
    own = replace(own, queues=[queue for queue in own.queues if queue.name not in others])
    return nodes, groups, own, pods


FILE = "snapshot.json"
_ZIP = b"PK\x03\x04"


def unpacked(body: bytes) -> bytes:
    """The file in a zip; anything else as it is. Raises Unreadable."""
    if not body.startswith(_ZIP):
        return body
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive, archive.open(FILE) as file:
            content = file.read(MAX_BYTES + 1)
    except KeyError:
        raise Unreadable(f"a zip without {FILE}: KAI's snapshot has it") from None
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise Unreadable(f"a zip that can't be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise Unreadable(f"{FILE} has more than the {MAX_BYTES} bytes that a manifest may have")
    return content


class _Recogniser(ByTask):
    def place(self, pod: VictimPod) -> Eviction | None:
        light = light_pod(pod)
        return self._place(light, group(light), light.manifest.name) if belongs(light) else None

    def ask(self, pod: Pod) -> Ask | None:
        if not belongs(pod):
            return None
        own, name, uid = group(pod), pod.manifest.name, pod.manifest.uid
        requests, shares = asked_of(pod)
        task = Task(name=name, uid=uid, requests=quantities(requests), **shares)
        waiting, running = self._around.waiting.get(own), self._around.running.get(own)
        if running is not None and any(self._tasks.has(of, name, uid) for of in (running, waiting)):
            return asking(running, own, task)
        if waiting is not None and self._tasks.has(waiting, name, uid):
            return replace(waiting, tasks=[task])
        alone = with_(pod, manifest=with_(pod.manifest, annotations={}))
        _, asks = read_groups([], [alone], set(), Classes(), datetime.now(UTC))
        if not asks or not self._around.has_queue(asks[0].queue):
            return None
        return replace(asks[0], id=pod.manifest.id, tasks=[task])


_KAI = re.compile(r"Pod ([^/\s]+)/(\S+) was preempted by (higher priority )?workload ([^/\s]+)/(\S+)")
_KAI_MOVED = re.compile(r"Pod ([^/\s]+)/(\S+) was preempted and rescheduled")


def _evicted(old: Item | None, new: Item) -> Evidence | None:
    """An Event with reason `Evict`, whose message names the pod and the PodGroup that it was for (pkg/scheduler/api). A
    gang that is not whole names nobody."""
    message = new_message(old, new)
    if new.get("reason") != "Evict" or message is None:
        return None
    if (match := _KAI.match(message)) is not None:
        space, pod, higher, by_space, by = match.groups()
        reason = "preempt" if higher else "reclaim"
        return Evidence((space, pod), f"{by_space}/{by.removesuffix('.')}", reason, event_time(new), message)
    if (moved := _KAI_MOVED.match(message)) is not None:
        return Evidence((moved[1], moved[2]), "", None, event_time(new), message)
    victim = pod_of(new)
    return None if victim is None else Evidence(victim, "", None, event_time(new), message, preempted=False)


_FOLLOWED = Followed(
    kinds=(
        Kind("Queue", QUEUE_GROUP, "queues", ("v2",)),
        Kind("PodGroup", QUEUE_GROUP, "podgroups", ("v2alpha2",)),
        POD, NODE, PRIORITY_CLASS,
        Kind("Config", SHARD_GROUP, "configs", ("v1",), needed=False),
        Kind("Deployment", "apps", "deployments", ("v1",), needed=False, within="kai-scheduler"),
    ),
    work=("PodGroup", "Pod"), witnesses=(with_(EVENT, selector="reason=Evict"),), evidence={"Event": _evicted},
    scheduler=SCHEDULER,
)  # fmt: skip

FIELDS: Final[Fields] = {
    "Queue": {
        **each("decided", "parentQueue priority preemptMinRuntime reclaimMinRuntime resources", "spec."),
        "spec.displayName": "none",
    },
    "PodGroup": {
        **each("decided", "queue minMember priorityClassName preemptibility subGroups minSubGroup", "spec."),
        **each("decided", "preemptionDelay stalenessGracePeriod", "spec."),
        **each("warning", "topologyConstraint subGroups[].topologyConstraint completions parallelism", "spec."),
        **each("error", "topologyConstraint.requiredTopologyLevel", "spec."),
        **each("error", "topologyConstraint.requiredTopologyLevel", "spec.subGroups[]."),
        **each("none", "backoffLimit markUnschedulable schedulingBackoff", "spec."),
    },
    "Pod": {
        **each("decided", "gpu-fraction gpu-memory gpu-fraction-num-devices", "metadata.annotations."),
        **each("decided", "labels.runai-gpu-group deletionTimestamp", "metadata."),
    },
    "SchedulingShard": {
        **each("decided", "actions args minRuntime kValue partitionLabelValue", "spec."),
        **each("warning", "plugins placementStrategy", "spec."), **effects(UNDECIDED, "spec."),
    },
}  # fmt: skip
"""What becomes of every field of its documents."""
SYSTEM: Final = System(
    facts=FACTS, fields=FIELDS, followed=_FOLLOWED,
    export=export, precedence=1, read=_read, place=_place, groups=(QUEUE_GROUP, SHARD_GROUP),
    files=("tiers", "actions", "rawObjects"), belongs=belongs, group=group, names_group=names_group, turns=stuck_from,
    unpacked=unpacked, taken_apart=objects_of,
    recogniser=_Recogniser, plan=planner(plan_kai),
)  # fmt: skip
