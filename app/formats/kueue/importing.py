"""Kueue's configuration objects: ClusterQueue, Cohort, ResourceFlavor, the manager's Configuration; and tables of
fields by which an export writes them too.

v1beta1 and v1beta2 are read alike; where they spell a field differently, both spellings are understood, and so are
those of KEP-83's first API.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import msgspec
from msgspec import structs

from app.base.documents import Path, as_list, as_mapping
from app.formats.exported import Field, Lost, Table, go_duration, word
from app.formats.kueue.considered import (
    STOP_POLICY,
    LocalQueue,
    read_consumed,
    read_counting,
    read_flavor_tolerations,
    read_local_queue,
    read_topology,
    selector_of,
)
from app.formats.objects import Object, config_map, instead, named, unknown_kind, unread, whole
from app.formats.pods import read_taints
from app.formats.reader import Findings, Reader, Undecided
from app.solver.model import kueue
from app.solver.model.base import UNLIMITED, Duration, Native, NativeDocuments, Quantity, Wire
from app.solver.model.configuration import (
    UNWEIGHTED,
    Configuration,
    Flavor,
    FlavorQuotas,
    Queue,
    Quota,
    ResourceGroup,
    Settings,
    Taint,
)
from app.solver.model.kueue import Milestone

T = TypeVar("T", bound=Wire)

GROUP = "kueue.x-k8s.io"
CONFIGURATION_GROUP = "config.kueue.x-k8s.io"

_WITHIN_CLUSTER_QUEUE = {
    "Never": "Never", "LowerPriority": "LowerPriority", "LowerOrNewerEqualPriority": "LowerOrNewerEqualPriority",
    "LowerPriorityOnly": "LowerPriority",
}  # fmt: skip
_RECLAIM = {"Never": "Never", "LowerPriority": "LowerPriority", "Any": "Any"}
_WITHIN_COHORT = {
    "Never": "Never", "ReclaimFromLowerPriority": "LowerPriority", "ReclaimFromAny": "Any", "ReclaimAny": "Any",
    "Always": "Any",
}  # fmt: skip
_BORROW = {"Never": "Never", "LowerPriority": "LowerPriority"}
_WHEN_CAN_BORROW = {"MayStopSearch": "MayStopSearch", "Borrow": "MayStopSearch", "TryNextFlavor": "TryNextFlavor"}
_WHEN_CAN_PREEMPT = {"MayStopSearch": "MayStopSearch", "Preempt": "MayStopSearch", "TryNextFlavor": "TryNextFlavor"}
_PREFERENCE = {word: word for word in ("BorrowingOverPreemption", "PreemptionOverBorrowing")}
_STRATEGY = {word: word for word in ("BestEffortFIFO", "StrictFIFO")}
_ADMISSION_MODES = {word: word for word in ("NoAdmissionFairSharing", "UsageBasedAdmissionFairSharing")}
_SORTING = ("ByLowestPriority", "ByLowestRuntime", "ByLongestRuntime")
STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
_QUOTA_CHECK = {word: word for word in ("BlockUndeclared", "IgnoreUndeclared")}
PRESENT_VERSION = "v1beta2"
_KEPT_KINDS = ("ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster", "Topology")

_HOW_JOBS_COME = "how jobs reach Kueue, not how it decides"
UNDECIDED: Undecided = {
    "waitForPodsReady": ("warning", "waiting for pods to be ready is not decided here"),
    "featureGates": ("warning", "Arbiter decides with the gates at their defaults"),
    **dict.fromkeys(("integrations", "manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "multiKueue",
                     "objectRetentionPolicies"), ("info", _HOW_JOBS_COME)),
}  # fmt: skip
"""Of the manager's Configuration, which is about more than what is decided here."""

# How the manager runs, not how it decides.
_OPERATIONAL = (
    "namespace", "health", "metrics", "webhook", "leaderElection", "controller", "clientConnection", "tls",
    "internalCertManagement", "pprofBindAddress", "gracefulShutDown", "cacheNamespace", "syncPeriod",
)  # fmt: skip


def read_configuration(
    manifests: Iterable[Object], findings: Findings, complete: Collection[str] = ()
) -> tuple[Configuration, dict[str, LocalQueue]]:
    """The configuration that ``manifests`` describe together, and each LocalQueue (by its id). ``complete``: kinds of
    which there is nothing beside these."""
    manifests = list(manifests)
    given = [read_topology(manifest) for manifest in manifests if manifest.kind == "Topology" and manifest.name]
    topologies = {topology.name: topology for topology in given if topology.levels}
    flavors: list[Flavor] = []
    settings: kueue.Settings | None = None
    native: dict[str, Any] | None = None
    objects: list[dict[str, Any]] = []
    queues: list[tuple[Object, Queue]] = []
    local: dict[str, LocalQueue] = {}
    checks = _Checks(manifests, complete="AdmissionCheck" in complete)
    for manifest in manifests:
        if manifest.kind == "Configuration":
            if native is not None:
                instead(manifest, findings)
            settings, native = _settings(manifest)
        elif not named(manifest):
            continue
        elif manifest.kind == "ResourceFlavor":
            flavors.append(_flavor(manifest, topologies))
        elif manifest.kind == "ClusterQueue":
            queues.append((manifest, _cluster_queue(manifest, checks)))
        elif manifest.kind == "Cohort":
            queues.append((manifest, _cohort(manifest)))
        else:
            if manifest.kind == "LocalQueue":
                local[manifest.id] = _local_queue(manifest)
            elif manifest.kind == "AdmissionCheck" or (manifest.kind == "Topology" and manifest.name in topologies):
                pass  # decided on, and kept for what else it says
            elif manifest.kind in _KEPT_KINDS:
                manifest.root.warn(
                    "kind", f"{manifest.kind}: not decided here; kept for an export", "info", "not-decided"
                )
            else:
                unknown_kind(manifest)
            if (document := whole(manifest)) is not None:
                objects.append(document)
    configuration = Configuration(
        engine="kueue", settings=Settings(kueue=settings), flavors=flavors, queues=_told_apart(queues, findings),
        native=NativeDocuments(kueue=native or {}, objects=objects) if native or objects else None,
        topologies=[topologies[name] for name in sorted({f.topology for f in flavors if f.topology is not None})],
    )  # fmt: skip
    return configuration, local


def _told_apart(queues: list[tuple[Object, Queue]], findings: Findings) -> list[Queue]:
    """Kueue lets a Cohort and a ClusterQueue have one name; Arbiter has one kind of queue, so the Cohort is renamed.
    What it is called in its cluster is kept."""
    cluster_queues = {queue.name for manifest, queue in queues if manifest.kind == "ClusterQueue"}
    parents = {queue.parent for _, queue in queues if queue.parent is not None}
    taken = cluster_queues | parents | {queue.name for _, queue in queues}
    renamed: dict[str, str] = {}
    for name in sorted(cluster_queues & (parents | {q.name for manifest, q in queues if manifest.kind == "Cohort"})):
        new = f"{name}.cohort"
        while new in taken:
            new += ".cohort"
        taken.add(new)
        renamed[name] = new
    above = {renamed.get(parent, parent) for parent in parents}
    out: list[Queue] = []
    for manifest, queue in queues:
        is_cohort = manifest.kind == "Cohort"
        name = renamed.get(queue.name, queue.name) if is_cohort else queue.name
        parent = renamed.get(queue.parent, queue.parent) if queue.parent is not None else None
        for old, new in ((queue.name, name), (queue.parent, parent)):
            if old != new:
                findings.add(
                    "renamed",
                    "info",
                    manifest.root.path,
                    f"Cohort {old!r} is called {new!r}: a ClusterQueue has its name",
                )
        childless = is_cohort and name not in above
        out.append(
            structs.replace(
                queue, name=name, parent=parent, kueue=kueue.Queue(role="cohort") if childless else queue.kueue,
                native=queue.native if name == queue.name else _called(queue.name, queue.native),
            )
        )  # fmt: skip
    return out


def _called(name: str, native: Native | None) -> Native:
    fields = {} if native is None else native.kueue
    return Native(kueue={**fields, "metadata": {**fields.get("metadata", {}), "name": name}})


def _flavor(manifest: Object, topologies: Mapping[str, kueue.Topology]) -> Flavor:
    spec = manifest.root.keep().child("spec")
    labels, taints = spec.labels("nodeLabels"), read_taints(spec, "nodeTaints")
    tolerated = [taint for taint in taints if _tolerates(spec, taint)]
    taints = [taint for taint in taints if taint not in tolerated]
    topology = spec.text("topologyName")
    if topology and topology not in topologies:
        detail = f"there is no Topology {topology!r} in the source: decided without it"
        spec.undecided("topologyName", detail, "error")
        topology = None
    if topology:
        spec.ignore("tolerations")
    elif spec.value.get("tolerations"):
        counted = "the taints that the flavor itself tolerates do not count"
        unmatched = "a toleration that matches no taint of the flavor changes no decision"
        spec.undecided("tolerations", counted if tolerated else unmatched, "info")
    native = _closed(manifest, spec)
    if tolerated:
        fields: dict[str, Any] = {} if native is None else native.kueue
        own = {**fields.get("spec", {}), "nodeTaints": [msgspec.to_builtins(taint) for taint in tolerated]}
        native = Native(kueue={**fields, "spec": own})
    return Flavor(
        name=manifest.name, node_labels=labels, node_taints=taints, native=native, topology=topology or None,
        tolerations=read_flavor_tolerations(spec) if topology else None,
    )  # fmt: skip


def _tolerates(spec: Reader, taint: Taint) -> bool:
    """Whether one of the flavor's own tolerations, which every pod placed there gets, covers ``taint``."""
    given = as_list(spec.value.get("tolerations"))
    for of in (as_mapping(toleration) for toleration in given if isinstance(toleration, dict)):
        key, exists = of.get("key") or "", of.get("operator") == "Exists"
        if of.get("effect") in (None, "", taint.effect) and (
            (key == taint.key and (exists or (of.get("value") or "") == taint.value)) or (key == "" and exists)
        ):
            return True
    return False


class _Checks:
    """The AdmissionChecks of a source: which there are, and which say of themselves that they are not active."""

    def __init__(self, manifests: Iterable[Object], *, complete: bool) -> None:
        given = [manifest for manifest in manifests if manifest.kind == "AdmissionCheck"]
        self._complete = complete or bool(given)
        self._known = {manifest.name for manifest in given}
        self._inactive = {
            manifest.name for manifest in given if (said := _active(manifest)) is not None and not said[0]
        }

    def inactive(self, names: list[str], spec: Reader) -> str | None:
        """Why a ClusterQueue with these is not active, in Kueue's words (inactiveReason), or None."""
        missing = [name for name in names if name not in self._known]
        if missing and not self._complete:
            detail = f"admission checks {', '.join(missing)} are not in the source: taken as active"
            spec.findings.add("not-decided", "warning", (*spec.path, "admissionChecksStrategy"), detail)
            missing = []
        stopped = [name for name in names if name in self._inactive]
        why = [f"references missing AdmissionCheck(s): {','.join(missing)}"] if missing else []
        why += [f"references inactive AdmissionCheck(s): {','.join(stopped)}"] if stopped else []
        return ", ".join(why) or None


def _active(manifest: Object) -> tuple[bool, str, str] | None:
    """What the condition Active says: whether it holds, its reason and message; None without one."""
    for condition in manifest.status.children("conditions"):
        if condition.take("type") == "Active":
            reason, message = condition.text("reason") or "", condition.text("message") or ""
            return condition.take("status") == "True", reason, message
    return None


def _cluster_queue(manifest: Object, of_source: _Checks) -> Queue:
    spec = manifest.root.keep().child("spec")
    block = structs.replace(CLUSTER_QUEUE.read(spec), inactive=_inactive(manifest, spec, of_source))
    queue = Queue(
        name=manifest.name,
        parent=spec.text("cohortName") or spec.text("cohort") or None,
        resource_groups=_resource_groups(spec) or None,
        weight=_weight(spec),
        created_at=manifest.created_at,
        kueue=_unless_default(block),
    )
    if "namespaceSelector" in spec:
        selector_of(spec.child("namespaceSelector"))
    spec.keep_as_is("namespaceSelector", "admissionChecksStrategy")
    native = _closed(manifest, spec, admissionChecksStrategy=_strategy(spec.strings("admissionChecks")))
    if "namespaceSelector" not in spec:
        fields = {} if native is None else native.kueue
        native = Native(kueue={**fields, "spec": {**fields.get("spec", {}), "namespaceSelector": None}})
    return structs.replace(queue, native=native)


def _admission_mode(spec: Reader, key: str) -> str | None:
    scope = spec.child(key)
    mode = scope.choice("admissionMode", _ADMISSION_MODES)
    scope.close()
    return mode


def _strategy(checks: list[str]) -> dict[str, Any]:
    """As present versions have it: the list became a part of the strategy in v1beta2."""
    return {"admissionChecks": [{"name": name} for name in checks]} if checks else {}


def _inactive(manifest: Object, spec: Reader, of_source: _Checks) -> str | None:
    """Why it is not active for other reasons than being stopped: as it says itself, else as its checks are."""
    names = spec.strings("admissionChecks")
    strategy = spec.child("admissionChecksStrategy")
    for check in strategy.children("admissionChecks"):
        names.append(check.text("name") or "")
        check.strings("onFlavors")
        check.close()
    strategy.close()
    if manifest.deleted:
        return "it is terminating"
    said = _active(manifest)
    if said is not None:
        holds, reason, message = said
        return None if holds or reason == "Stopped" else message or reason
    return of_source.inactive(names, spec)


def _cohort(manifest: Object) -> Queue:
    spec = manifest.root.keep().child("spec")
    queue = Queue(
        name=manifest.name,
        parent=spec.text("parentName") or spec.text("parent") or None,
        resource_groups=_resource_groups(spec) or None,
        weight=_weight(spec),
        created_at=manifest.created_at,
    )
    return structs.replace(queue, native=_closed(manifest, spec))


def _local_queue(manifest: Object) -> LocalQueue:
    spec = manifest.root.keep().child("spec")
    queue = replace(read_local_queue(spec), shared=read_consumed(spec, manifest.status))
    _closed(manifest, spec)
    return queue


def _closed(manifest: Object, spec: Reader, **more: Any) -> Native | None:
    """What nobody has read of the object. ``more``: fields of its spec in their present spelling."""
    spec.close()
    fields = unread(manifest)
    if added := {key: value for key, value in more.items() if value and key not in fields.get("spec", {})}:
        fields = {**fields, "spec": {**fields.get("spec", {}), **added}}
    return Native(kueue=fields) if fields else None


def _weight(spec: Reader) -> float:
    fair = spec.child("fairSharing")
    weight = fair.decimal("weight")
    fair.close()
    return UNWEIGHTED if weight is None else weight


def _resource_groups(spec: Reader) -> list[ResourceGroup]:
    groups: list[ResourceGroup] = []
    for group in spec.children("resourceGroups"):
        flavors = [_flavor_quotas(flavor) for flavor in group.children("flavors")]
        groups.append(ResourceGroup(resources=group.strings("coveredResources"), flavors=flavors))
        group.close()
    return groups


def _flavor_quotas(flavor: Reader) -> FlavorQuotas:
    quota: dict[str, Quota] = {}
    for resource in flavor.children("resources"):
        name = resource.text("name") or ""
        if not name or name in quota:
            resource.warn("name", f"resource {name!r} has no name, or a quota already", "error", "bad-value")
        quota[name] = QUOTA.whole(resource)
    name = flavor.text("name")
    if not name:
        flavor.warn("name", "quotas of a flavor without a name", "error", "bad-value")
    flavor.close()
    return FlavorQuotas(name=name or "unnamed", quota=quota)


def _amount(resource: Reader, key: str) -> Quantity | None:
    name = resource.value.get("name")
    return resource.quantity(key, name if isinstance(name, str) else "")


def _nominal(value: Quantity | None, path: Path, lost: Lost) -> Quantity:
    if value == UNLIMITED:
        lost.add(path, "Kueue has no unlimited quota: written as 0")
    return 0 if value in (None, UNLIMITED) else value


def _reclaim(preemption: Reader, key: str) -> str | None:
    return preemption.choice(key, _RECLAIM) or preemption.choice("withinCohort", _WITHIN_COHORT)


def _deferred(key: str, name: str, read: Callable[[Reader, str], Any] = lambda _reader, _key: None) -> Field:
    """KEP-83 deferred it, and Kueue never got it."""
    return Field(key, read, name, lambda _, path, lost: lost.add(path, f"Kueue never got {key} (KEP-83 deferred it)"))


def read_milestones(reader: Reader, key: str = "disruptionCostMilestones") -> list[Milestone]:
    """KEP-83's."""
    milestones: list[Milestone] = []
    for milestone in reader.children(key):
        seconds, cost = milestone.number("seconds"), milestone.number("cost")
        if seconds is None or cost is None:
            milestone.findings.add("bad-value", "error", milestone.path, "a milestone has seconds and a cost")
        else:
            milestones.append(Milestone(seconds=seconds, cost=cost))
        milestone.close()
    return milestones


def _unless_default(block: T) -> T | None:
    """None for a block that says nothing but defaults, which a server fills in everywhere."""
    return None if block == type(block)() else block


def _weights(sharing: Reader, key: str) -> dict[str, float]:
    weights = sharing.child(key)
    read = {name: weights.number(name) for name in weights.value}
    weights.close()
    return {name: weight for name, weight in read.items() if weight is not None}


def _interval(sharing: Reader, key: str) -> Duration:
    return sharing.duration(key) or 300


QUOTA = Table(Quota(), (
    Field("nominalQuota", _amount, "guaranteed", _nominal, always=True),
    Field("borrowingLimit", _amount, "borrowing_limit"), Field("lendingLimit", _amount, "lending_limit"),
))  # fmt: skip
SHARING = Table(kueue.AdmissionFairSharing(), (
    Field("resourceWeights", _weights, "resource_weights"),
    Field("usageHalfLifeTime", Reader.duration, "usage_half_life_time", go_duration, always=True),
    Field("usageSamplingInterval", _interval, "usage_sampling_interval", go_duration),
), first=("usageHalfLifeTime", "usageSamplingInterval"))  # fmt: skip
_BORROWING = Table(kueue.BorrowWithinCohort(), (
    word("policy", _BORROW, always=True), Field("maxPriorityThreshold", Reader.integer, "max_priority_threshold"),
))  # fmt: skip
_WAITING = "triggerAfterWorkloadWaitingSeconds"
_PREEMPTION = Table(kueue.Preemption(), (
    _BORROWING.block("borrowWithinCohort", "borrow_within_cohort"),
    Field("reclaimWithinCohort", _reclaim, "reclaim_within_cohort", always=True),
    _deferred("workloadSorting", "workload_sorting", lambda reader, key: reader.words(key, _SORTING)),
    word("withinClusterQueue", _WITHIN_CLUSTER_QUEUE, "within_cluster_queue", always=True),
    _deferred(_WAITING, "trigger_after_workload_waiting_seconds", Reader.number),
    _deferred("disruptionCostMilestones", "disruption_cost_milestones", read_milestones),
    _deferred("longRunnerPenalty", "long_runner_penalty"), _deferred("waitingBoost", "waiting_boost"),
), first=("withinClusterQueue", "reclaimWithinCohort", "borrowWithinCohort", _WAITING))  # fmt: skip
_FUNGIBILITY = Table(kueue.FlavorFungibility(), (
    word("whenCanBorrow", _WHEN_CAN_BORROW, "when_can_borrow", always=True),
    word("whenCanPreempt", _WHEN_CAN_PREEMPT, "when_can_preempt", always=True), word("preference", _PREFERENCE),
))  # fmt: skip
CLUSTER_QUEUE = Table(kueue.Queue(), (
    word("queueingStrategy", _STRATEGY, "queueing_strategy"), _PREEMPTION.block("preemption"),
    _FUNGIBILITY.block("flavorFungibility", "flavor_fungibility"),
    Field("admissionScope", _admission_mode, "admission_mode", lambda mode, _path, _lost: {"admissionMode": mode}),
    word("stopPolicy", STOP_POLICY, "stop_policy"),
), first=("admissionScope", "stopPolicy", "queueingStrategy", "flavorFungibility"))  # fmt: skip


def _settings(manifest: Object) -> tuple[kueue.Settings | None, dict[str, Any]]:
    """The settings, and what is kept of the document: its version too where that is not the present one."""
    root = manifest.root.keep()
    present = "fairSharing" in root
    fair = root.child("fairSharing")
    enabled = fair.boolean("enable")
    strategies = fair.words("preemptionStrategies", STRATEGIES)
    fair.close()
    sharing = SHARING.whole(root.child("admissionFairSharing")) if "admissionFairSharing" in root else None
    resources = root.child("resources")
    strategy = resources.choice("quotaCheckStrategy", _QUOTA_CHECK) or "BlockUndeclared"
    read_counting(resources)
    resources.keep_as_is("excludeResourcePrefixes", "transformations")
    resources.not_carried("deviceClassMappings", "dynamic resource claims are not counted")
    resources.close()
    root.none_carried(UNDECIDED)
    root.not_carried("queueVisibility", _HOW_JOBS_COME, "info")
    root.keep_as_is(*_OPERATIONAL)
    fields = unread(manifest)
    if manifest.version != PRESENT_VERSION and manifest.version:
        fields = {"apiVersion": f"{manifest.group}/{manifest.version}", **fields}
    # v1beta1 has a switch; in v1beta2 the block's presence is the switch.
    on = enabled if enabled is not None else manifest.version != "v1beta1" and present
    made_settings = kueue.Settings(
        fair_sharing=on,
        quota_check_strategy=cast(Any, strategy),
        admission_fair_sharing=sharing,
        preemption_strategies=None if strategies in ([], list(STRATEGIES)) else cast(Any, strategies),
    )
    return _unless_default(made_settings), {**fields, **config_map(manifest)}
