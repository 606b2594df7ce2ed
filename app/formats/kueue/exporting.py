"""A configuration as Kueue's objects, version v1beta2: Configuration, ResourceFlavors, Cohorts and ClusterQueues."""

from typing import Any

from app.formats.documents.exported import Exported, Lost, dump, weight_text
from app.formats.documents.source import Path
from app.solver.model import kueue
from app.solver.model.configuration import Configuration, Flavor, Queue, Quota, ResourceGroup
from app.solver.model.instant import at as instant_at
from app.solver.model.instant import micros

VERSION = "kueue.x-k8s.io/v1beta2"
CONFIGURATION_VERSION = "config.kueue.x-k8s.io/v1beta2"
DEFAULT_FLAVOR = "default"
_DEFAULT_STRATEGIES = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]

# KEP-83 deferred these, and Kueue never got them.
_DEFERRED = {
    "trigger_after_workload_waiting_seconds": "triggerAfterWorkloadWaitingSeconds",
    "workload_sorting": "workloadSorting",
    "disruption_cost_milestones": "disruptionCostMilestones",
    "long_runner_penalty": "longRunnerPenalty",
    "waiting_boost": "waitingBoost",
}


def export(configuration: Configuration) -> Exported:
    """Multi-document YAML for ``kubectl apply``; the manager's Configuration, which is a file, comes first."""
    lost = Lost()
    lost.other_blocks(configuration, "kueue")
    documents: list[dict[str, Any]] = []
    if configuration.settings.kueue is not None and configuration.settings.kueue != kueue.Settings():
        documents.append(_settings(configuration.settings.kueue, lost))
    documents += [_flavor(flavor) for flavor in configuration.flavors]
    parents = {queue.parent for queue in configuration.queues}
    for i, queue in enumerate(configuration.queues):
        role = queue.kueue.role if queue.kueue else None
        is_cohort = role == "cohort" or (role is None and queue.name in parents)
        documents.append(_queue(queue, ("queues", i), lost, is_cohort=is_cohort))
    return dump(documents, lost)


def _settings(settings: kueue.Settings, lost: Lost) -> dict[str, Any]:
    document: dict[str, Any] = {"apiVersion": CONFIGURATION_VERSION, "kind": "Configuration"}
    if settings.fair_sharing:
        document["fairSharing"] = {"preemptionStrategies": settings.preemption_strategies or _DEFAULT_STRATEGIES}
    elif settings.preemption_strategies is not None:
        lost.add(("settings", "kueue", "preemption_strategies"), "Kueue reads strategies with fair sharing only")
    return document


def _flavor(flavor: Flavor) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if flavor.node_labels:
        spec["nodeLabels"] = flavor.node_labels
    if flavor.node_taints:
        spec["nodeTaints"] = [
            {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
            for taint in flavor.node_taints
        ]
    return {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": flavor.name}, "spec": spec}


def _queue(queue: Queue, at: Path, lost: Lost, *, is_cohort: bool) -> dict[str, Any]:
    lost.queue(at, queue, "Kueue", weight=True, priority=False, created=True)
    metadata: dict[str, Any] = {"name": queue.name}
    if queue.created_at is not None:
        metadata["creationTimestamp"] = instant_at(micros(queue.created_at)).isoformat().replace("+00:00", "Z")
    spec: dict[str, Any] = {}
    if queue.parent is not None:
        spec["parentName" if is_cohort else "cohortName"] = queue.parent
    if groups := _groups(queue, at, lost):
        spec["resourceGroups"] = groups
    if queue.has_weight:
        spec["fairSharing"] = {"weight": weight_text(queue.weight)}
        if float(spec["fairSharing"]["weight"]) != queue.weight:
            lost.add((*at, "weight"), "a weight of Kueue has nine decimal places: rounded")
    block = queue.kueue or kueue.Queue()
    if is_cohort:
        if _without_role(block) != kueue.Queue():
            lost.add((*at, "kueue"), "a Cohort of Kueue has no policies of its own")
    else:
        spec.update(_policies(block, at, lost))
    return {
        "apiVersion": VERSION,
        "kind": "Cohort" if is_cohort else "ClusterQueue",
        "metadata": metadata,
        "spec": spec,
    }


def _without_role(block: kueue.Queue) -> kueue.Queue:
    return kueue.Queue(
        preemption=block.preemption, flavor_fungibility=block.flavor_fungibility,
        queueing_strategy=block.queueing_strategy,
    )  # fmt: skip


def _groups(queue: Queue, at: Path, lost: Lost) -> list[dict[str, Any]]:
    """Resource groups; the shorthand of one flavor is written out as the flavor called default."""
    out: list[dict[str, Any]] = []
    if queue.quota:
        resources = [_quota(name, quota, (*at, "quota", name), lost) for name, quota in queue.quota.items()]
        out.append(
            {"coveredResources": list(queue.quota), "flavors": [{"name": DEFAULT_FLAVOR, "resources": resources}]}
        )
    for g, group in enumerate(queue.resource_groups or ()):
        out.append(_group(group, (*at, "resource_groups", g), lost))
    return out


def _group(group: ResourceGroup, at: Path, lost: Lost) -> dict[str, Any]:
    flavors: list[dict[str, Any]] = []
    for f, flavor in enumerate(group.flavors):
        here = (*at, "flavors", f, "quota")
        flavors.append(
            {"name": flavor.name, "resources": [_quota(n, q, (*here, n), lost) for n, q in flavor.quota.items()]}
        )
    return {"coveredResources": group.resources, "flavors": flavors}


def _quota(name: str, quota: Quota, at: Path, lost: Lost) -> dict[str, Any]:
    lost.quota(at, quota, "Kueue", ("limit", "weight"))
    shown: dict[str, Any] = {"name": name, "nominalQuota": 0 if quota.guaranteed is None else quota.guaranteed}
    if quota.guaranteed == "unlimited":
        lost.add((*at, "guaranteed"), "Kueue has no unlimited quota: written as 0")
        shown["nominalQuota"] = 0
    if quota.borrowing_limit is not None:
        shown["borrowingLimit"] = quota.borrowing_limit
    if quota.lending_limit is not None:
        shown["lendingLimit"] = quota.lending_limit
    return shown


def _policies(block: kueue.Queue, at: Path, lost: Lost) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if block.queueing_strategy != "BestEffortFIFO":
        spec["queueingStrategy"] = block.queueing_strategy
    if block.flavor_fungibility is not None:
        fungibility = block.flavor_fungibility
        spec["flavorFungibility"] = {
            "whenCanBorrow": fungibility.when_can_borrow,
            "whenCanPreempt": fungibility.when_can_preempt,
            **({"preference": fungibility.preference} if fungibility.preference else {}),
        }
    if block.preemption is not None:
        spec["preemption"] = _preemption(block.preemption, (*at, "kueue", "preemption"), lost)
    return spec


def _preemption(preemption: kueue.Preemption, at: Path, lost: Lost) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "withinClusterQueue": preemption.within_cluster_queue,
        "reclaimWithinCohort": preemption.reclaim_within_cohort,
    }
    borrow = preemption.borrow_within_cohort
    if borrow is not None:
        threshold = borrow.max_priority_threshold
        shown["borrowWithinCohort"] = {
            "policy": borrow.policy, **({} if threshold is None else {"maxPriorityThreshold": threshold})
        }  # fmt: skip
    for field, native in _DEFERRED.items():
        if getattr(preemption, field) is not None:
            lost.add((*at, field), f"Kueue never got {native} (KEP-83 deferred it)")
    return shown
