"""KAI Scheduler's configuration: Queue objects, SchedulingShards, and the scheduler's own configuration file.

KAI counts a queue's cpu in thousandths, memory in megabytes (10^6 bytes) and GPUs in devices; -1 is unlimited, and what
a queue leaves out is 0, a limit of 0 included.

Snapshots are what KAI's own plugin writes: ``/get-snapshot``, a zip with ``snapshot.json`` in it, or that file itself.
Source: ``pkg/scheduler/plugins/snapshot/snapshot.go``, ``pkg/scheduler/conf`` (SchedulerParams). Their objects come
from the scheduler's listers, which leave out what kind they are; parameters that are 0 or false are left out too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, cast, get_args

import msgspec
from msgspec import structs

from app.base.documents import Path, as_list, as_mapping
from app.formats.exported import Field, Table, go_duration
from app.formats.objects import KAI_SCHEDULER, Object, instead, named, unread, whole
from app.formats.pods import quantity
from app.formats.reader import Findings, Reader, Undecided, unkeepable
from app.solver.model import base, kai
from app.solver.model.base import MAX_UNITS, UNLIMITED, Duration, Native, NativeDocuments, Quantity
from app.solver.model.configuration import Configuration, Queue, Quota, Settings
from app.solver.model.kai import Action

ACTIONS: tuple[Action, ...] = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")

BY_DEFAULT: tuple[Action, ...] = ACTIONS[:-1]
"""What a configuration that lists none decides by."""


def shard_actions(actions: Reader) -> list[Action] | None:
    """Enabled actions of a cycle by falling priority, of a SchedulingShard, which says each on or off; KAI's default
    order is that of ACTIONS, a hundred apart from 500 down."""
    if not actions.value:
        return None
    ranked: list[tuple[float, int, Action]] = []
    for rank, action in enumerate(ACTIONS):
        switch = actions.child(action)
        priority = switch.integer("priority")
        if switch.boolean("enabled") is not False:
            ranked.append((-(500 - 100 * rank if priority is None else priority), rank, action))
        switch.close()
    actions.close()
    return [action for _, _, action in sorted(ranked)]


def written_actions(actions: list[Action]) -> dict[str, Any]:
    """An order, each action once, as falling priorities; what is not listed is off."""
    shown: dict[str, Any] = {action: {"enabled": True, "priority": 1000 - i} for i, action in enumerate(actions)}
    return shown | {action: {"enabled": False} for action in ACTIONS if action not in shown}


QUEUE_GROUP = "scheduling.run.ai"
SHARD_GROUP = "kai.scheduler"
RULES_ANNOTATION = "arbiter/rules"
RELEASE_ANNOTATION = "arbiter/release"
NEWEST: kai.Release = "0.17"
"""What is taken to run where nothing says so."""
POOL_LABEL = "kai.scheduler/node-pool"
GPU_GROUP = "runai-gpu-group"
"""The label that names the shared GPU of a pod; of several each has one below it."""
STALENESS = "default-staleness-grace-period"
_STUCK, _STUCK_SECONDS = "stuck-in-releasing-threshold", 120
UNDECIDED: Undecided = {
    "queueDepthPerAction": ("warning", "Arbiter tries every job of a queue"),
    "usageDBConfig": ("warning", "use over time is not known: nobody has used anything, but where the state says it "
                                 "(queues.NAME.kai.usage)"),
}  # fmt: skip
DEFAULT_SHARD = "default"

_RULES: dict[str, kai.Rules] = {name: name for name in get_args(kai.Rules)}
_RELEASES: dict[str, kai.Release] = {name: name for name in get_args(kai.Release)}
DEFAULT_PRIORITY = 100
DEFAULT_CAP, _NO_CAP = 16, -1  # KAI's own default of max-consolidation-preemptees, and what it writes for none
AS_INSTALLED = kai.Settings(
    rules="shipped", release=NEWEST, actions=list(ACTIONS), max_consolidation_preemptees=DEFAULT_CAP
)
"""What a KAI Scheduler that nobody configured decides by: what comes from a real system is decided as released."""
# Steps of Arbiter in one unit of a KAI queue.
UNITS = {"cpu": 1, "memory": 10**6, "gpu": 1000}

_FLAGS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


def pool_of(spec: Mapping[str, Any]) -> str:
    """The node pool of a shard; empty for that of the shard which takes what has no label."""
    value = spec.get("partitionLabelValue")
    return value if isinstance(value, str) else ""


def _chosen(manifests: Iterable[Object], findings: Findings) -> list[Object]:
    """``manifests`` without the shards of other node pools than the first, or the one that takes what has no label."""
    shards = [
        (shard, pool_of(shard.root.child("spec").value)) for shard in manifests if shard.kind == "SchedulingShard"
    ]
    pools = [pool for _, pool in shards]
    pool = "" if "" in pools or not pools else pools[0]
    others = {id(shard) for shard, of in shards if of != pool}
    for shard, of in shards:
        if of != pool:
            detail = f"a shard of node pool {of!r}, which is decided by itself: left out; import it without the others"
            findings.add("other-pool", "warning", (*shard.root.path, "spec", "partitionLabelValue"), detail)
    return [shard for shard in manifests if id(shard) not in others]


def read_configuration(every: Iterable[Object], findings: Findings) -> Configuration:
    """The configuration that ``every`` object describes, of one shard."""
    manifests = _chosen(list(every), findings)
    queues: list[Queue] = []
    settings: kai.Settings | None = None
    native: dict[str, Any] = {}
    objects: list[dict[str, Any]] = []
    for entry in manifests:
        if entry.kind in (KAI_SCHEDULER, "SchedulingShard"):
            if settings is not None:
                instead(entry, findings)
            settings, native = (_scheduler_file(entry.root), {}) if entry.kind == KAI_SCHEDULER else _shard(entry)
            if settings == AS_INSTALLED and not native:
                entry.root.warn("kind", "it says what KAI does by itself: an export leaves it out", "info", "default")
        elif not named(entry):
            continue
        elif entry.kind == "Queue":
            queues.append(_queue(entry))
        elif (document := whole(entry)) is not None:
            entry.root.warn("kind", f"{entry.kind}: not decided here; kept for an export", "info", "not-decided")
            objects.append(document)
    if queues and settings is None:
        findings.add("defaults", "info", (), "no scheduler configuration in the source: KAI's own defaults hold")
    return Configuration(
        engine="kai", settings=Settings(kai=settings or AS_INSTALLED), queues=queues,
        native=NativeDocuments(kai=native, objects=objects) if native or objects else None,
    )  # fmt: skip


def _queue(manifest: Object) -> Queue:
    spec = manifest.root.keep().child("spec")
    resources = spec.child("resources")
    priority = spec.integer("priority")
    runtimes = RUNTIMES.read(spec)
    parent = spec.text("parentQueue") or None
    quota = {name: _quota(resources, name) for name in UNITS}
    resources.close()
    spec.keep_as_is("displayName")
    spec.close()
    fields = unread(manifest)
    return Queue(
        name=manifest.name, parent=parent, quota=quota, priority=DEFAULT_PRIORITY if priority is None else priority,
        created_at=manifest.created_at, kai=None if runtimes == kai.Queue() else runtimes,
        native=Native(kai=fields) if fields else None,
    )  # fmt: skip


def _quota(resources: Reader, name: str) -> Quota:
    of = resources.child(name)
    if "limit" not in of:
        of.warn("limit", f"no limit of {name} given, which KAI takes for 0: the queue can run nothing that needs it")
    quota = Quota(
        guaranteed=_amount(of, "quota", name, UNLIMITED),
        limit=_amount(of, "limit", name, None),
        weight=of.number("overQuotaWeight") or 0,
    )
    of.not_carried("lendingLimit", "a queue of Arbiter lends all of its unused quota, as KAI did before this field")
    of.close()
    return quota


def _amount(of: Reader, key: str, name: str, unlimited: Quantity | None) -> Quantity | None:
    value = of.number(key)
    if value is None:
        return 0
    if value == -1:
        return unlimited
    steps = Decimal(repr(value)) * UNITS[name]
    if value < 0 or steps > MAX_UNITS:
        of.warn(key, "an amount is -1 or 0 and more, up to 2^53", "error", "bad-value")
        return 0
    if steps != steps.to_integral_value():
        of.warn(key, f"{value} is finer than Arbiter counts {name}: rounded", rule="rounded")
    return quantity(round(steps), name)


def _scheduler_file(root: Reader) -> kai.Settings:
    """The file of ``--scheduler-conf``: actions in order, plugins in tiers."""
    actions = root.text("actions")
    arguments: dict[str, Mapping[str, Any]] = {}
    for tier in root.children("tiers"):
        for plugin in tier.children("plugins"):
            name = plugin.text("name") or ""
            arguments[name] = _plugin(plugin, name)
            plugin.close()
        tier.close()
    detail = "an export writes this file as a SchedulingShard, which lists no plugins: those left out here run there"
    root.warn("tiers", detail, "info", "rewritten")
    root.none_carried(UNDECIDED)
    budgets = _budgets(root)
    root.ignore("kind", "apiVersion", "metadata")
    parameters = root.take(PARAMETERS)
    root.close()
    words = [] if actions is None else [word.strip() for word in actions.split(",") if word.strip()]
    given = flags_of(as_mapping(parameters)) if isinstance(parameters, dict) else {}
    flags = Reader(given, root.path, root.findings)
    chosen = None if not words else _actions(words, root)
    k_value = _factor(Reader(arguments.get("proportion"), root.path, Findings()))
    return _settings(arguments.get("minruntime", {}), chosen, flags, k_value=k_value, budgets=budgets)


def _plugin(plugin: Reader, name: str) -> Mapping[str, Any]:
    arguments = plugin.child("arguments")
    if name == "minruntime":
        MIN_RUNTIME.read(arguments)
    elif name == "nodeplacement":
        _placement(arguments)
    elif name == "proportion":
        _factor(arguments)
        arguments.keep_as_is("kValue")
    arguments.close()
    return arguments.value


def _factor(reader: Reader) -> float | None:
    """``kValue``, which plugins have as text."""
    text = reader.value.get("kValue")
    if isinstance(text, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        reader.take("kValue")
        return float(text)
    value = reader.number("kValue")
    if value is not None and not 0 <= value <= 10**9:
        reader.warn("kValue", f"{value} is not from 0 to 10^9", "error", "bad-value")
        return None
    return value


def _placement(reader: Reader) -> None:
    for key in ("gpu", "cpu"):
        if reader.value.get(key) not in (None, "binpack"):
            reader.undecided(key, "Arbiter packs nodes (binpack); spreading is not decided here")
        reader.keep_as_is(key)


def _actions(words: list[str], root: Reader) -> list[Action]:
    for word in words:
        if word not in ACTIONS:
            root.warn("actions", f"{word!r} is no action of KAI", "error", "bad-value")
    return [word for word in words if word in ACTIONS]


def _shard(manifest: Object) -> tuple[kai.Settings, dict[str, Any]]:
    """A SchedulingShard: the operator's way to write the same, with flags of the scheduler on top; and what is kept."""
    spec = manifest.root.keep().child("spec")
    minimum = spec.child("minRuntime")
    keys = [field.key for field in RUNTIMES.fields]
    arguments: dict[str, Any] = {f"default{key[0].upper()}{key[1:]}": minimum.take(key) for key in keys}
    minimum.close()
    plugins = spec.child("plugins")
    by_plugin: dict[str, Mapping[str, Any]] = {}
    for name in plugins.value:
        plugin = plugins.child(name)
        by_plugin[name] = given = _plugin(plugin, name)
        if plugin.value.get("enabled") is False:
            plugin.undecided("enabled", f"Arbiter decides as if plugin {name!r} were enabled")
        plugin.keep_as_is("enabled", "priority")
        plugin.close()
        if name == "minruntime" and "arguments" in plugin:
            arguments = dict(given)
    k_value = _factor(spec)
    of_plugin = _factor(Reader(by_plugin.get("proportion"), spec.path, Findings()))
    if k_value is None and of_plugin is not None:
        k_value = of_plugin
        spec.warn("kValue", "as plugin 'proportion' says it; an export writes it here too", "info", "rewritten")
    elif of_plugin not in (None, k_value):
        spec.warn("kValue", "plugin 'proportion' has another, which is not looked at", rule="not-decided")
    flags = spec.child("args")
    actions = spec.take("actions")
    settings = _settings(
        arguments, shard_actions(Reader(actions, (*spec.path, "actions"), spec.findings)), flags,
        manifest.annotations, k_value, _budgets(spec),
    )  # fmt: skip
    flags.close("info")
    placement = spec.child("placementStrategy")
    _placement(placement)
    placement.close()
    spec.text("partitionLabelValue")
    spec.keep_as_is("partitionLabelValue")
    spec.none_carried(UNDECIDED)
    spec.close()
    written = None if settings.actions is None else written_actions(settings.actions)
    return settings, _kept_of_shard(manifest, actions, written)


def _kept_of_shard(manifest: Object, actions: Any, written: Any) -> dict[str, Any]:
    """``actions`` as they were, unless an export would write them so anyway; a name of its own."""
    fields = unread(manifest)
    metadata = dict(fields.get("metadata", {}))
    annotations = {
        key: value
        for key, value in metadata.get("annotations", {}).items()
        if key not in (RULES_ANNOTATION, RELEASE_ANNOTATION)
    }
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    if manifest.name and manifest.name != DEFAULT_SHARD:
        metadata["name"] = manifest.name
    fields = {key: value for key, value in fields.items() if key != "metadata"}
    if isinstance(actions, dict) and actions not in ({}, written) and unkeepable(actions) is None:
        fields["spec"] = {**fields.get("spec", {}), "actions": actions}
    return {"metadata": metadata, **fields} if metadata else fields


def _settings(
    minruntime: Mapping[str, Any], actions: list[Action] | None, flags: Reader,
    annotations: Mapping[str, str] | None = None, k_value: float | None = None,
    budgets: kai.SearchBudgets | None = None,
) -> kai.Settings:  # fmt: skip
    noted = annotations or {}
    if _duration(flags, _STUCK) not in (None, _STUCK_SECONDS, "2m"):
        flags.warn(_STUCK, "a pod that should be gone is stuck after two minutes here", rule="not-decided")
    settings = FLAGS.read(flags, MIN_RUNTIME.read(Reader(minruntime, (), Findings())))
    cap = settings.max_consolidation_preemptees
    return structs.replace(
        settings,
        rules=_RULES.get(noted.get(RULES_ANNOTATION, ""), AS_INSTALLED.rules),
        release=_RELEASES.get(noted.get(RELEASE_ANNOTATION, NEWEST), NEWEST),
        actions=list(ACTIONS) if actions is None else actions,
        k_value=AS_INSTALLED.k_value if k_value in (None, AS_INSTALLED.k_value) else k_value,  # not written if it is
        max_consolidation_preemptees=None if cap == _NO_CAP else cap,
        search_budgets=budgets,
    )


def _budgets(file: Reader) -> kai.SearchBudgets | None:
    """``scenarioSearchBudgets``, the fields of which have the same names, written otherwise."""
    given = file.take("scenarioSearchBudgets")
    try:
        fields = {re.sub("[A-Z]", r"_\g<0>", key).lower(): value for key, value in given.items()} if given else None
        return msgspec.convert(fields, kai.SearchBudgets | None)
    except (AttributeError, msgspec.ValidationError) as error:
        file.warn("scenarioSearchBudgets", str(error), "error", "bad-value")
        return None


def _switch(flag: str) -> Field:
    def read(flags: Reader, key: str) -> bool | None:
        value = flags.take(key)
        if value is not None and str(value) not in _FLAGS:
            flags.warn(key, "true or false is expected", "error", "bad-value")
        return _FLAGS.get(str(value))

    return Field(flag, read, flag.replace("-", "_"), lambda on, _path, _lost: str(on).lower())


def _preemptees(flags: Reader, key: str) -> int:
    """KAI's default where absent; whatever is below 0 is no cap."""
    value = flags.take(key)
    if value is None:
        return DEFAULT_CAP
    if not re.fullmatch(r"-?[0-9]{1,9}", str(value)):
        flags.warn(key, "a whole number is expected", "error", "bad-value")
        return DEFAULT_CAP
    return max(int(value), _NO_CAP)


def _duration(flags: Reader, key: str) -> Duration | None:
    value = flags.take(key)
    if value is None:
        return None
    value = value if type(value) in (int, float) else str(value)
    try:
        base.parse_duration(value)
    except base.DurationError as error:
        flags.warn(key, str(error), "error", "bad-value")
        return None
    return value


def _text(arguments: Reader, key: str) -> str | None:
    value = arguments.take(key)
    return None if value is None else str(value)


RUNTIMES = Table(kai.Queue(), (
    Field("reclaimMinRuntime", Reader.duration, "reclaim_min_runtime", go_duration),
    Field("preemptMinRuntime", Reader.duration, "preempt_min_runtime", go_duration),
))  # fmt: skip
MIN_RUNTIME = Table(AS_INSTALLED, (
    Field("defaultReclaimMinRuntime", _text, "default_reclaim_min_runtime", go_duration),
    Field("defaultPreemptMinRuntime", _text, "default_preempt_min_runtime", go_duration),
    Field("reclaimResolveMethod", lambda arguments, key: _text(arguments, key) or None, "reclaim_resolve_method"),
))  # fmt: skip
"""Arguments of the plugin."""
FLAGS = Table(AS_INSTALLED, (
    _switch("use-scheduling-signatures"),
    Field("max-consolidation-preemptees", _preemptees, "max_consolidation_preemptees",
          lambda cap, _path, _lost: str(_NO_CAP if cap is None else cap)),
    _switch("allow-consolidating-reclaim"), Field(STALENESS, _duration, "staleness_grace_period", go_duration),
), first=("max-consolidation-preemptees",))  # fmt: skip
PARAMETERS = "schedulerParams"
_KINDS = {
    "pods": ("Pod", "v1"), "nodes": ("Node", "v1"), "queues": ("Queue", "scheduling.run.ai/v2"),
    "podGroups": ("PodGroup", "scheduling.run.ai/v2alpha2"),
    "priorityClasses": ("PriorityClass", "scheduling.k8s.io/v1"), "topologies": ("Topology", "kai.scheduler/v1alpha1"),
}  # fmt: skip


def is_snapshot(document: Any) -> bool:
    """Whether this is what the plugin writes."""
    return isinstance(as_mapping(document).get("rawObjects"), dict)


def objects_of(documents: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """``documents`` with snapshots taken apart: their objects, each with its kind, and the scheduler's file with the
    parameters beside it."""
    parts: list[tuple[Path, Any]] = []
    for path, document in documents:
        parts += _parts(path, cast(dict[str, Any], document)) if is_snapshot(document) else [(path, document)]
    return parts


def _parts(path: Path, snapshot: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    config, parameters = snapshot.get("config"), snapshot.get(PARAMETERS)
    if isinstance(config, dict):
        flags: dict[str, Any] = {PARAMETERS: parameters} if isinstance(parameters, dict) else {}
        yield (*path, "config"), {"actions": "", **cast(dict[str, Any], config), **flags}
    raw = cast(dict[str, Any], snapshot["rawObjects"])
    bound = _bound(raw.get("bindRequests"))
    for key, listed in raw.items():
        if (known := _KINDS.get(key)) is None:
            continue
        kind, version = known
        for i, item in enumerate(as_list(listed)):
            if isinstance(item, dict):
                typed = {"kind": kind, "apiVersion": version, **cast(dict[str, Any], item)}
                yield (*path, "rawObjects", key, i), _on_its_node(typed, bound) if kind == "Pod" else typed


def _bound(requests: Any) -> dict[tuple[Any, Any], tuple[str, dict[str, str]]]:
    """The node that each pod is being bound to, where the scheduler counts it already, and the labels that name its
    shared GPUs. One that has failed for good counts no more.

    Source: ``GetBindRequestForPod``, ``IsFailed`` (pkg/scheduler/api/bindrequest_info).
    """
    bound: dict[tuple[Any, Any], tuple[str, dict[str, str]]] = {}
    for request in map(as_mapping, as_list(requests)):
        spec, metadata, status = (as_mapping(request.get(key)) for key in ("spec", "metadata", "status"))
        node, pod, groups = (spec.get(key) for key in ("selectedNode", "podName", "selectedGPUGroups"))
        tried, most = status.get("failedAttempts", 0), spec.get("backoffLimit")
        again = isinstance(most, int) and isinstance(tried, int) and tried < most
        if isinstance(node, str) and isinstance(pod, str) and node and (again or status.get("phase") != "Failed"):
            named = [str(group) for group in as_list(groups)]
            labels = {f"{GPU_GROUP}/{group}" if len(named) > 1 else GPU_GROUP: group for group in named}
            bound[metadata.get("namespace"), pod] = node, labels
    return bound


def _on_its_node(pod: dict[str, Any], bound: dict[tuple[Any, Any], tuple[str, dict[str, str]]]) -> dict[str, Any]:
    metadata, spec = as_mapping(pod.get("metadata")), as_mapping(pod.get("spec"))
    name = metadata.get("name")
    binding = bound.get((metadata.get("namespace"), name)) if isinstance(name, str) else None
    if binding is None:
        return pod
    node, groups = binding
    labels = as_mapping(metadata.get("labels"))
    if groups:
        labels = {key: value for key, value in labels.items() if key.partition("/")[0] != GPU_GROUP} | groups
    placed = {**pod, "spec": {**spec, "nodeName": spec.get("nodeName") or node}}
    return {**placed, "metadata": {**metadata, "labels": labels}} if groups else placed


def flags_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters as the scheduler's flags call them."""
    return {
        "use-scheduling-signatures": parameters.get("useSchedulingSignatures") is True,
        "allow-consolidating-reclaim": parameters.get("allowConsolidatingReclaim") is True,
        "max-consolidation-preemptees": parameters.get("maxNumberConsolidationPreemptees") or 0,
        STALENESS: _seconds(parameters.get("globalDefaultStalenessGracePeriod")),
        _STUCK: _seconds(parameters.get("stuckInReleasingThreshold")) or None,
    }


def _seconds(value: Any) -> Any:
    """Of a Go duration as JSON has it, in nanoseconds; one of 0 is left out."""
    if value is not None and type(value) is not int:
        return value
    whole, rest = divmod(value or 0, 10**9)
    return whole + rest / 10**9 if rest else whole
