"""Kueue's Workload objects: what holds quota becomes state, what waits becomes asks; and what becomes of every field
of its documents."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any, Final, cast

from msgspec import structs

from app.formats.kueue.considered import Around, Selectors, counting_of, read_assignment, read_request, usage_based
from app.formats.kueue.importing import CLUSTER_QUEUE, UNDECIDED, read_milestones
from app.formats.objects import Classes, Object, named
from app.formats.pods import PodSpec, Steps, quantities, read_pod_spec, steps
from app.formats.reader import Fields, Reader, each, effects
from app.solver.kubernetes import PODS
from app.solver.model import kueue
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, Task, Workload

_ON_PREEMPTION = {"Terminate": "Terminate", "Requeue": "Requeue"}
# What the scheduler says of the one that goes before all in its queue (scheduler.go): nothing else tells.
_PENDING = re.compile(r"Pending the preemption of \d+ workload|will fit after these preemptions complete")
_REQUEUED_BY_EVICTION = ("PodsReadyTimeout", "AdmissionCheck")


@dataclass(frozen=True, slots=True)
class _Condition:
    holds: bool
    since: datetime | None
    reason: str
    message: str = ""


_Conditions = Mapping[str, _Condition]
_NEVER = _Condition(False, None, "")
_ADMITTED = _Condition(True, None, "")
_MOST_UNHEALTHY = 8
_GATED = "kueue.x-k8s.io/admission-gated-by"


@dataclass(frozen=True, slots=True)
class _PodSet:
    name: str
    count: int
    min_count: int | None
    full_count: int | None
    pod: PodSpec
    requests: Steps
    topology: kueue.TopologyRequest | None


class _Cluster:
    def __init__(self, configuration: Configuration, around: Around, classes: Classes) -> None:
        self.queues = {queue.name: queue for queue in configuration.queues}
        self.around, self.classes = around, classes
        self.selectors = Selectors(configuration, around.namespaces)
        self.counting = counting_of(configuration)
        self.decided = bool(configuration.topologies)
        self.usage_based = usage_based(configuration)
        groups = chain.from_iterable(queue.resource_groups or () for queue in configuration.queues)
        self.counts_pods = any(PODS in group.resources for group in groups)

    def stopped(self, queue: str, local: str) -> str | None:
        """Why nothing new is admitted, and reservations are given up, by a stop policy; None: no queue is stopped."""
        own = self.around.local_queues.get(local)
        if own is not None and own.stopped:
            return f"LocalQueue {local} is stopped: its stop policy is {own.stop_policy}"
        of = self.queues.get(queue)
        if of is not None and of.kueue is not None and of.kueue.stop_policy != "None":
            return f"ClusterQueue {queue} is stopped: its stop policy is {of.kueue.stop_policy}"
        return None

    def drained(self, local: str) -> bool:
        """Whether what the LocalQueue has admitted is evicted."""
        own = self.around.local_queues.get(local)
        return own is not None and own.stop_policy == "HoldAndDrain"


def read_workloads(
    manifests: Iterable[Object], configuration: Configuration, around: Around, classes: Classes
) -> tuple[list[Workload], list[Ask]]:
    """Running workloads and asks, in the order of the source; finished ones hold nothing and are left out.
    Where the source has no ClusterQueue, workloads may name any."""
    cluster = _Cluster(configuration, around, classes)
    running: list[Workload] = []
    asks: list[Ask] = []
    for manifest in manifests:
        if not named(manifest):
            continue
        conditions = _conditions(manifest.status)
        if not conditions.get("Finished", _NEVER).holds:
            _read(replace(manifest, root=_filled_in(manifest, around)), conditions, cluster, running, asks)
    return running, asks


def awaits_victims(message: str) -> bool:
    """Whether Kueue says of a workload, as why it has no quota yet, that its victims must stop first."""
    return _PENDING.search(message) is not None


def _filled_in(manifest: Object, around: Around) -> Reader:
    """With what LimitRanges and RuntimeClasses of the cluster add to its pods (Kueue: AdjustResources)."""
    specs = (pod_set.child("template").child("spec") for pod_set in manifest.spec.children("podSets"))
    if not around.admission and not any("runtimeClassName" in spec for spec in specs):
        return manifest.root
    return around.admission.admitted(manifest.root, manifest.namespace, exists=False)


def _read(
    manifest: Object, conditions: _Conditions, cluster: _Cluster, running: list[Workload], asks: list[Ask]
) -> None:
    admission, spec = manifest.status.child("admission"), manifest.spec
    local = _local_queue(manifest, spec)
    known = cluster.around.local_queues.get(local)
    queue = admission.text("clusterQueue") or (known.cluster_queue if known is not None else None)
    pod_sets = [_pod_set(reader, cluster) for reader in spec.children("podSets")]
    priority = _priority(spec, cluster.classes)
    active = spec.boolean("active") is not False
    if not queue:
        detail = f"no LocalQueue {local!r} in the source: workload {manifest.id!r} is left out"
        manifest.root.warn("spec", detail, "error", "no-queue")
    elif (cluster.queues or cluster.around.complete) and queue not in cluster.queues:
        detail = f"no ClusterQueue {queue!r} in the source: workload {manifest.id!r} is left out"
        manifest.root.warn("spec", detail, "error", "no-queue")
    elif not pod_sets:
        spec.warn(
            "podSets", f"a Workload has at least one pod set: {manifest.id!r} is left out", "error", "missing-field"
        )
    elif admission.value and (conditions.get("Admitted", _ADMITTED).holds or not cluster.stopped(queue, local)):
        if active:
            tasks = _admitted(pod_sets, admission, manifest.status, decided=cluster.decided)
            workload = _running(manifest, spec, queue, priority, conditions, tasks)
            drained = cluster.drained(local) and not workload.evicted
            block = kueue.Workload(
                drained=drained, local_queue=local if queue in cluster.usage_based else None,
                unhealthy_nodes=_unhealthy(manifest.status), owners=list(manifest.owner_uids),
            )  # fmt: skip
            running.append(structs.replace(workload, kueue=None if block == kueue.Workload() else block))
        else:
            spec.warn("active", f"workload {manifest.id!r} is not active any more: its quota is not counted", "info")
    else:
        ask = _ask(manifest, spec, queue, priority, conditions, _waiting(pod_sets, manifest.status))
        why = None if active else f"workload {manifest.id} is not active (spec.active)"
        if queue in cluster.usage_based:
            ask = structs.replace(ask, kueue=structs.replace(ask.kueue or kueue.Ask(), local_queue=local))
        asks.append(
            _considered(ask, manifest, conditions, why or _refusal(manifest, conditions, queue, local, cluster))
        )
    spec.not_carried("maximumExecutionTimeSeconds", "a limit of running time does not bear on a decision", "info")
    spec.not_carried("preemptionGates", "gates of preemption are off by default (MultiKueue, alpha)", "info")
    unhealthy = "a pod on a node that failed is placed elsewhere, which is not decided here"
    manifest.status.not_carried("unhealthyNodes", unhealthy)
    spec.ignore("queueName", "active")
    spec.close()


def _unhealthy(status: Reader) -> list[str]:
    """Nodes that failed under its pods."""
    return [of.text("name") or "" for of in status.children("unhealthyNodes")][:_MOST_UNHEALTHY]


def _considered(ask: Ask, manifest: Object, conditions: _Conditions, why: str | None) -> Ask:
    """The ask with what keeps it from being tried: for good, or until a time."""
    requeue = manifest.status.child("requeueState")
    until = requeue.time("requeueAt")
    requeued = conditions.get("Requeued")
    if why is None and requeued is not None and not requeued.holds and until is None:
        why = f"it is not queued again yet: {requeued.message or requeued.reason}"
    if why is None and until is None:
        return ask
    return structs.replace(ask, kueue=structs.replace(ask.kueue or kueue.Ask(), inadmissible=why, requeue_at=until))


def _refusal(manifest: Object, conditions: _Conditions, queue: str, local: str, cluster: _Cluster) -> str | None:
    """Why Kueue does not try a waiting workload, or None (IsAdmissible; Scheduler.nominate)."""
    reserved = conditions.get("QuotaReserved", _NEVER)
    if manifest.annotations.get(_GATED):
        return f"it is gated by {manifest.annotations[_GATED]} ({_GATED})"
    if not reserved.holds and reserved.reason == "OnHold":
        return reserved.message or "it is on hold"
    if conditions.get("WaitingForReplacementPods", _NEVER).holds:
        return "it waits for replacement pods"
    failed = [
        check.text("name") or ""
        for check in manifest.status.children("admissionChecks")
        if check.take("state") in ("Retry", "Rejected")
    ]
    if failed:
        return f"its admission checks failed: {', '.join(failed)}"
    stopped = cluster.stopped(queue, local)
    return (
        stopped
        or cluster.selectors.refusal(queue, manifest)
        or cluster.around.admission.inadmissible(_templates(manifest), manifest.namespace)
    )


def _templates(manifest: Object) -> list[Mapping[str, Any]]:
    return [pod_set.child("template").child("spec").value for pod_set in manifest.spec.children("podSets")]


def _local_queue(manifest: Object, spec: Reader) -> str:
    """The LocalQueue, by the id that it has as an object."""
    name = spec.text("queueName") or manifest.labels.get("kueue.x-k8s.io/queue-name") or ""
    return f"{manifest.namespace}/{name}" if manifest.namespace else name


def _priority(spec: Reader, classes: Classes) -> int:
    """The workload's own number; without it, that of the class it names."""
    given = spec.integer("priority")
    reference = spec.child("priorityClassRef")
    name = reference.text("name") or spec.text("priorityClassName")
    group = reference.text("group") or (spec.text("priorityClassSource") or "").partition("/")[0]
    reference.ignore("kind")
    reference.close()
    spec.ignore("priorityClassName", "priorityClassSource")
    if given is not None:
        return given
    known = classes.find(name, group or "scheduling.k8s.io")
    if name is not None and known is None:
        spec.warn(
            "priorityClassRef", f"priority class {name!r} is not in the source: priority 0", "warning", "unknown-name"
        )
    return known.value if known else 0


def _conditions(status: Reader) -> _Conditions:
    return {
        condition.text("type") or "": _Condition(
            condition.take("status") == "True",
            condition.time("lastTransitionTime"),
            condition.text("reason") or "",
            condition.text("message") or "",
        )
        for condition in status.children("conditions")
    }


def _pod_set(reader: Reader, cluster: _Cluster) -> _PodSet:
    template = reader.child("template")
    pod = read_pod_spec(template.child("spec"))
    requests = cluster.counting.counted(pod.requests) if cluster.counting else pod.requests
    if cluster.counts_pods:
        requests = {**requests, PODS: 1}
    topology = read_request(reader, decided=cluster.decided)
    if topology is not None and requests != pod.requests and cluster.counting:
        detail = "nodes are filled by what the manager's `resources` make of the requests, not by the requests"
        reader.warn("topologyRequest", detail, "warning", "assumed-requests")
    count = reader.count("count")
    pod_set = _PodSet(
        name=reader.text("name") or "main",
        count=1 if count is None else count,
        min_count=reader.count("minCount"),
        full_count=None,
        pod=pod,
        requests=requests,
        topology=topology,
    )
    reader.close()
    return pod_set


def _reclaimable(status: Reader) -> dict[str, int]:
    """Pods that are done, by pod set."""
    return {reader.text("name") or "": reader.count("count") or 0 for reader in status.children("reclaimablePods")}


def _waiting(pod_sets: list[_PodSet], status: Reader) -> list[_PodSet]:
    """The pod sets of a workload that waits, less pods that are done already. Smaller sizes are counted down from what
    its spec says, for all of its pod sets."""
    done = {name: count for name, count in _reclaimable(status).items() if count > 0}
    shrinks = any(of.min_count is not None and of.min_count < of.count for of in pod_sets)
    return [
        replace(
            of, count=max(0, of.count - done[of.name]), full_count=of.count if shrinks else None,
            min_count=of.min_count if shrinks else None,
        )
        if of.name in done
        else of
        for of in pod_sets
    ]  # fmt: skip


def _admitted(pod_sets: list[_PodSet], admission: Reader, status: Reader, *, decided: bool) -> list[Task]:
    """The tasks of an admitted workload: what its admission says that it uses, scaled down to the pods that are not
    done where fewer are left than were admitted (Kueue: totalRequestsFromAdmission). Pods that are placed use of their
    nodes also what there is no quota for."""
    done = _reclaimable(status)
    by_name = {pod_set.name: pod_set for pod_set in pod_sets}
    tasks: list[Task] = []
    for assignment in admission.children("podSetAssignments"):
        name = assignment.text("name") or "main"
        pod_set = by_name.get(name)
        given = assignment.count("count")
        count = given if given is not None else (pod_set.count if pod_set else 1)
        left = max(0, (pod_set.count if pod_set else count) - done.get(name, 0))
        usage = steps(assignment, "resourceUsage")
        if left < count:
            requests, units = {resource: value // count for resource, value in usage.items()}, left
        else:
            requests, units = _per_pod(usage, count)
        domains = read_assignment(assignment, decided=decided)
        assignment.not_carried("delayedTopologyRequest", "places that are found in a second pass are not decided here")
        if domains is not None and pod_set is not None and units in (count, left):
            requests = {**{r: n for r, n in pod_set.pod.requests.items() if r != PODS}, **requests}
        tasks.append(
            Task(
                name=name,
                count=units,
                requests=quantities(requests),
                flavors=assignment.labels("flavors") or None,
                topology_request=pod_set.topology if pod_set is not None else None,
                topology_assignment=domains,
            )
        )
    return tasks


def _per_pod(usage: Steps, count: int) -> tuple[Steps, int]:
    """Usage per pod and the number of pods; usage as a whole where it doesn't divide evenly."""
    if count > 0 and all(value % count == 0 for value in usage.values()):
        return {name: value // count for name, value in usage.items()}, count
    return usage, 1 if count else 0


def _running(
    manifest: Object, spec: Reader, queue: str, priority: int, conditions: _Conditions,
    tasks: list[Task],
) -> Workload:  # fmt: skip
    preemption = spec.child("preemption")
    milestones = read_milestones(preemption)
    preemption.close()
    return Workload(
        id=manifest.id,
        queue=queue,
        uid=manifest.uid,
        priority=priority,
        created_at=manifest.created_at,
        started_at=reserved.since if (reserved := conditions.get("QuotaReserved", _NEVER)).holds else None,
        evicted=conditions.get("Evicted", _NEVER).holds,
        on_preemption=cast(Any, spec.choice("onPreemption", _ON_PREEMPTION)),
        disruption_cost_milestones=milestones or None,
        tasks=tasks,
    )


def _ask(
    manifest: Object, spec: Reader, queue: str, priority: int, conditions: _Conditions,
    pod_sets: list[_PodSet],
) -> Ask:  # fmt: skip
    spec.ignore("preemption", "onPreemption")  # they say what happens once it runs
    # Kueue orders a workload by its eviction where pods were not ready in time or a check took its admission away.
    evicted = conditions.get("Evicted", _NEVER)
    requeued = evicted.since if evicted.holds and evicted.reason in _REQUEUED_BY_EVICTION else None
    # KEP-83 counts waiting from the first attempt: the moment at which Admitted became False.
    admitted = conditions.get("Admitted", _NEVER)
    block = kueue.Ask(
        preemption_pending=awaits_victims(conditions.get("QuotaReserved", _NEVER).message),
        first_attempt_at=None if admitted.holds else admitted.since,
        owners=list(manifest.owner_uids),
    )
    return Ask(
        id=manifest.id,
        queue=queue,
        uid=manifest.uid,
        priority=priority,
        created_at=requeued or manifest.created_at,
        tasks=[
            Task(
                name=pod_set.name,
                count=pod_set.count,
                min_count=pod_set.min_count,
                full_count=pod_set.full_count,
                requests=quantities(pod_set.requests),
                node_selector=pod_set.pod.node_selector,
                tolerations=pod_set.pod.tolerations,
                node_affinity=pod_set.pod.node_affinity,
                topology_request=pod_set.topology,
            )
            for pod_set in pod_sets
        ],
        kueue=None if block == kueue.Ask() else block,
    )


_QUOTAS = each("decided", "spec.resourceGroups spec.fairSharing.weight")
FIELDS: Final[Fields] = {
    "ClusterQueue": {
        **_QUOTAS, **CLUSTER_QUEUE.effects("spec."),
        **each("decided", "cohortName namespaceSelector admissionChecksStrategy", "spec."),
        "spec.admissionChecksStrategy.admissionChecks[].onFlavors": "none",
        "spec.concurrentAdmissionPolicy": "warning",
    },
    "Cohort": {**_QUOTAS, "spec.parentName": "decided"},
    "LocalQueue": each("decided", "clusterQueue stopPolicy fairSharing.weight", "spec."),
    "ResourceFlavor": {
        **each("decided", "nodeLabels nodeTaints tolerations topologyName", "spec."),
        **each("none", "nodeTaints[].timeAdded tolerations[].tolerationSeconds", "spec."),
    },
    "Topology": {"spec.levels": "decided"},
    "Workload": {
        **each("decided", "active podSets priority priorityClassRef queueName", "spec."),
        **each("info", "maximumExecutionTimeSeconds preemptionGates", "spec."),
        "spec.priorityClassRef.kind": "none",
        **each("none", "podIndexLabel subGroupIndexLabel subGroupCount", "spec.podSets[].topologyRequest."),
        **each("decided", "admission conditions reclaimablePods requeueState.requeueAt", "status."),
        **each("decided", "admissionChecks[].name admissionChecks[].state", "status."),
        **each("warning", "admission.podSetAssignments[].delayedTopologyRequest unhealthyNodes", "status."),
        **each("none", """
            conditions[].observedGeneration requeueState.count admissionChecks accumulatedPastExecutionTimeSeconds
            clusterName nominatedClusterNames preemptionGates resourceRequests schedulingStats""", "status."),
    },
    "Configuration": {
        **each("decided", "fairSharing.preemptionStrategies resources admissionFairSharing"),
        "resources.deviceClassMappings": "warning", **effects(UNDECIDED),
        **each("none", "namespace clientConnection internalCertManagement visibilityServer"),
    },
}  # fmt: skip
"""What becomes of every field of its documents."""
