"""Kueue's Workload objects: what holds quota becomes state, what waits becomes asks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from app.formats.kueue.importing import read_milestones
from app.formats.kueue.topologies import read_assignment, read_request
from app.formats.objects import Classes, Object, named
from app.formats.pods import PodSpec, Steps, quantities, read_pod_spec, steps
from app.formats.reader import Reader
from app.solver.model import kueue
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, Task, Workload

_ON_PREEMPTION = {"Terminate": "Terminate", "Requeue": "Requeue"}
_PODS = "pods"
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


@dataclass(frozen=True, slots=True)
class _PodSet:
    name: str
    count: int
    min_count: int | None
    pod: PodSpec
    topology: kueue.TopologyRequest | None


def read_workloads(
    found: Iterable[Object], configuration: Configuration, local_queues: Mapping[str, str], classes: Classes
) -> tuple[list[Workload], list[Ask]]:
    """Running workloads and asks, in the order of the source; finished ones hold nothing and are left out.
    Where the source has no ClusterQueue, workloads may name any."""
    queues, decided = {queue.name for queue in configuration.queues}, bool(configuration.topologies)
    counts_pods = any(
        _PODS in group.resources for queue in configuration.queues for group in queue.resource_groups or ()
    )
    running: list[Workload] = []
    asks: list[Ask] = []
    for made in found:
        if not named(made):
            continue
        status = made.status
        conditions = _conditions(status)
        if conditions.get("Finished", _NEVER).holds:
            continue
        admission = status.child("admission")
        spec = made.spec
        local = _local_queue(made, spec)
        queue = admission.text("clusterQueue") or local_queues.get(local)
        pod_sets = [_pod_set(reader, counts_pods=counts_pods, decided=decided) for reader in spec.children("podSets")]
        priority = _priority(spec, classes)
        if queue is None:
            detail = f"no LocalQueue {local!r} in the source: workload {made.id!r} is left out"
            made.root.warn("spec", detail, "error", "no-queue")
        elif queues and queue not in queues:
            detail = f"no ClusterQueue {queue!r} in the source: workload {made.id!r} is left out"
            made.root.warn("spec", detail, "error", "no-queue")
        elif admission.value:
            tasks = _admitted(pod_sets, admission, status, decided=decided)
            running.append(_running(made, spec, queue, priority, conditions, tasks))
        elif spec.boolean("active") is False:
            spec.warn("active", f"workload {made.id!r} is not active: left out", "info")
        else:
            asks.append(_ask(made, spec, queue, priority, conditions, pod_sets))
        spec.not_carried("maximumExecutionTimeSeconds", "a limit of running time does not bear on a decision", "info")
        spec.ignore("queueName", "active")
        spec.close()
    return running, asks


def _local_queue(made: Object, spec: Reader) -> str:
    """The LocalQueue, by the id that it has as an object."""
    name = spec.text("queueName") or made.labels.get("kueue.x-k8s.io/queue-name") or ""
    return f"{made.namespace}/{name}" if made.namespace else name


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
    found = classes.find(name, group or "scheduling.k8s.io")
    if name is not None and found is None:
        spec.warn(
            "priorityClassRef", f"priority class {name!r} is not in the source: priority 0", "warning", "unknown-name"
        )
    return found.value if found else 0


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


def _pod_set(reader: Reader, *, counts_pods: bool, decided: bool) -> _PodSet:
    template = reader.child("template")
    pod = read_pod_spec(template.child("spec"))
    if counts_pods:
        pod.requests[_PODS] = 1
    count = reader.count("count")
    made = _PodSet(
        name=reader.text("name") or "main",
        count=1 if count is None else count,
        min_count=reader.count("minCount"),
        pod=pod,
        topology=read_request(reader, decided=decided),
    )
    reader.close()
    return made


def _admitted(pod_sets: list[_PodSet], admission: Reader, status: Reader, *, decided: bool) -> list[Task]:
    """The tasks of an admitted workload: what its admission says that it uses, less pods that are done. Pods that are
    placed use of their nodes also what there is no quota for."""
    done = {reader.text("name") or "": reader.count("count") or 0 for reader in status.children("reclaimablePods")}
    by_name = {pod_set.name: pod_set for pod_set in pod_sets}
    tasks: list[Task] = []
    for assignment in admission.children("podSetAssignments"):
        name = assignment.text("name") or "main"
        pod_set = by_name.get(name)
        given = assignment.count("count")
        count = given if given is not None else (pod_set.count if pod_set else 1)
        requests, units = _per_pod(steps(assignment, "resourceUsage"), count)
        domains = read_assignment(assignment, decided=decided)
        if domains is not None and pod_set is not None and units == count:
            requests = {**{r: n for r, n in pod_set.pod.requests.items() if r != _PODS}, **requests}
        tasks.append(
            Task(
                name=name,
                count=max(0, units - done.get(name, 0)) if units == count else units,
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
    made: Object, spec: Reader, queue: str, priority: int, conditions: _Conditions,
    tasks: list[Task],
) -> Workload:  # fmt: skip
    preemption = spec.child("preemption")
    milestones = read_milestones(preemption)
    preemption.close()
    return Workload(
        id=made.id,
        queue=queue,
        uid=made.uid,
        priority=priority,
        created_at=made.created_at,
        started_at=reserved.since if (reserved := conditions.get("QuotaReserved", _NEVER)).holds else None,
        evicted=conditions.get("Evicted", _NEVER).holds,
        on_preemption=cast(Any, spec.choice("onPreemption", _ON_PREEMPTION)),
        disruption_cost_milestones=milestones or None,
        tasks=tasks,
    )


def _ask(
    made: Object, spec: Reader, queue: str, priority: int, conditions: _Conditions,
    pod_sets: list[_PodSet],
) -> Ask:  # fmt: skip
    spec.ignore("preemption", "onPreemption")  # they say what happens once it runs
    # Kueue orders a workload by its eviction where pods were not ready in time or a check took its admission away.
    evicted = conditions.get("Evicted", _NEVER)
    requeued = evicted.since if evicted.holds and evicted.reason in _REQUEUED_BY_EVICTION else None
    # KEP-83 counts waiting from the first attempt: the moment at which Admitted became False.
    admitted = conditions.get("Admitted", _NEVER)
    block = kueue.Ask(
        preemption_pending=_PENDING.search(conditions.get("QuotaReserved", _NEVER).message) is not None,
        first_attempt_at=None if admitted.holds else admitted.since,
    )
    return Ask(
        id=made.id,
        queue=queue,
        uid=made.uid,
        priority=priority,
        created_at=requeued or made.created_at,
        tasks=[
            Task(
                name=pod_set.name,
                count=pod_set.count,
                min_count=pod_set.min_count,
                requests=quantities(pod_set.pod.requests),
                node_selector=pod_set.pod.node_selector,
                tolerations=pod_set.pod.tolerations,
                node_affinity=pod_set.pod.node_affinity,
                topology_request=pod_set.topology,
            )
            for pod_set in pod_sets
        ],
        kueue=None if block == kueue.Ask() else block,
    )
