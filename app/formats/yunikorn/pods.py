"""Pods as YuniKorn's shim hands them over: grouped into applications, each pending pod an ask of its own."""

from collections.abc import Iterable
from typing import Any

from app.formats.documents.reader import Findings
from app.formats.kubernetes.amounts import Steps
from app.formats.kubernetes.cluster import Pod, as_task, renamed
from app.formats.kubernetes.priority_classes import Classes
from app.solver.model.configuration import Queue
from app.solver.model.state import Ask, Task, Workload
from app.solver.model.yunikorn import Queue as YuniKornQueue

SCHEDULER = "yunikorn"
RENAME = {"cpu": "vcore"}
"""YuniKorn calls Kubernetes' cpu vcore."""

_APPLICATION = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
QUEUE = "yunikorn.apache.org/queue"
_QUEUE = (QUEUE, "queue")
_ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"
_PLACEHOLDER = "yunikorn.apache.org/placeholder"
_DEFAULT_QUEUE = "root.default"


def belongs(pod: Pod) -> bool:
    """Whether YuniKorn schedules this pod."""
    return pod.spec.scheduler == SCHEDULER or _first(pod, _APPLICATION) is not None


def read_applications(
    pods: Iterable[Pod], queues: list[Queue], classes: Classes, findings: Findings
) -> tuple[list[Workload], list[Ask], list[Queue]]:
    """Applications with pods on nodes, asks for pending pods, and the queues that placement rules must have made."""
    applications: dict[str, list[Pod]] = {}
    for pod in pods:
        applications.setdefault(application(pod), []).append(pod)
    known = {queue.name: queue for queue in queues}
    dynamic: dict[str, Queue] = {}
    running: list[Workload] = []
    asks: list[Ask] = []
    for name, members in applications.items():
        queue = _queue(members[0], known, dynamic, findings)
        if queue is None:
            continue
        # The first pod of an application is its originator; later ones of it may be replaced, it may not.
        first = min(members, key=_age)
        held = [pod for pod in members if pod.phase in ("running", "releasing")]
        if held:
            created = [pod.made.created_at for pod in members if pod.made.created_at is not None]
            running.append(
                Workload(
                    id=name,
                    queue=queue,
                    created_at=min(created) if created else None,
                    tasks=[_task(pod, classes, originator=pod is first) for pod in held],
                )
            )
        for pod in members:
            if pod.phase == "pending":
                asks.append(_ask(pod, name if held else None, queue, classes, originator=pod is first))
            elif pod.phase == "gated":
                pod.made.root.warn("spec", "a gated pod is not ready to be scheduled: left out", "info", "gated")
    return running, asks, list(dynamic.values())


def _age(pod: Pod) -> tuple[bool, float, int]:
    created = pod.made.created_at
    return created is not None, created.timestamp() if created else 0.0, pod.made.order


def _first(pod: Pod, keys: Iterable[str]) -> str | None:
    found = (of.get(key) for key in keys for of in (pod.made.labels, pod.made.annotations))
    return next((value for value in found if value), None)


def application(pod: Pod) -> str:
    """Pods that name no application share one of their namespace, as the shim makes it."""
    return _first(pod, _APPLICATION) or f"yunikorn-{pod.made.namespace or 'default'}-autogen"


def _queue(pod: Pod, known: dict[str, Queue], dynamic: dict[str, Queue], findings: Findings) -> str | None:
    """The full path of the queue. One that the configuration does not list is a dynamic queue below its parent;
    where the source has no configuration, any will do."""
    name = (_first(pod, _QUEUE) or _DEFAULT_QUEUE).lower()
    path = name if name == "root" or name.startswith("root.") else f"root.{name}"
    if not known or path in known or path in dynamic:
        return path
    at = (*pod.made.root.at, "metadata", "labels")
    above = path
    missing: list[str] = []
    while above not in known and above not in dynamic:
        missing.append(above)
        if "." not in above or len(missing) > 64:
            findings.add("no-queue", "error", at, f"no queue {path!r} and nothing above it: its pods are left out")
            return None
        above = above.rpartition(".")[0]
    for made in reversed(missing):
        parent = made.rpartition(".")[0]
        dynamic[made] = Queue(name=made, parent=parent, yunikorn=YuniKornQueue(dynamic=True))
    findings.add("dynamic-queue", "info", at, f"queue {path!r} is not configured: added as a dynamic one")
    return path


def _requests(pod: Pod) -> Steps:
    return {**renamed(pod.spec.requests, RENAME), "pods": 1}


def _preemptible(pod: Pod, classes: Classes) -> bool:
    """The pod's own annotation wins over that of its priority class; only a plain "false" opts out."""
    own = pod.made.annotations.get(_ALLOW_PREEMPTION)
    if own in ("true", "false"):
        return own == "true"
    found = classes.find(pod.spec.priority_class)
    return found is None or found.victim is not False


def _required_node(pod: Pod) -> str | None:
    """Pods of a DaemonSet are pinned to one node by an affinity on its name."""
    return pod.spec.pinned_node if "DaemonSet" in pod.made.owners else None


def _task(pod: Pod, classes: Classes, *, originator: bool) -> Task:
    fields: dict[str, Any] = {
        "priority": pod.priority,
        "created_at": pod.made.created_at,
        "preemptible": None if _preemptible(pod, classes) else False,
        "originator": originator,
        "required_node": _required_node(pod),
        "placeholder": pod.made.annotations.get(_PLACEHOLDER) == "true",
    }
    return as_task(pod, pod.made.id, _requests(pod), **fields)


def _ask(pod: Pod, workload: str | None, queue: str, classes: Classes, *, originator: bool) -> Ask:
    found = classes.find(pod.spec.priority_class)
    never = pod.spec.never_preempts or (found is not None and found.never_preempts)
    return Ask(
        id=pod.made.id,
        queue=queue,
        workload=workload,
        uid=pod.made.uid,
        priority=pod.priority,
        created_at=pod.made.created_at,
        tasks=[_task(pod, classes, originator=originator)],
        preemption_policy="Never" if never else "PreemptLowerPriority",
        preemptible=None if _preemptible(pod, classes) else False,
        originator=originator,
        required_node=_required_node(pod),
    )
