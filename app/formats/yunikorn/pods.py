"""Pods as YuniKorn's shim hands them over: grouped into applications, each pending pod an ask of its own."""

from collections.abc import Collection, Iterable
from typing import Any

from app.formats.objects import Classes
from app.formats.pods import Pod, SinglePod, Steps, as_task, renamed
from app.formats.reader import Findings
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
_DEEPEST = 64
DYNAMIC = "dynamic-queue"
"""The rule of findings about queues that placement made."""


def belongs(pod: SinglePod) -> bool:
    """Whether YuniKorn schedules this pod."""
    return pod.spec.scheduler == SCHEDULER or _first(pod, _APPLICATION) is not None


def read_applications(
    pods: Iterable[Pod], queues: list[Queue], classes: Classes, findings: Findings
) -> tuple[list[Workload], list[Ask], list[Queue]]:
    """Applications with pods on nodes, asks for pending pods, and the queues that placement rules must have made."""
    applications: dict[str, list[Pod]] = {}
    for pod in pods:
        applications.setdefault(application(pod), []).append(pod)
    known = {queue.name for queue in queues}
    told: set[str] = set()
    used: list[str] = []
    running: list[Workload] = []
    asks: list[Ask] = []
    for name, members in applications.items():
        queue = _queue(members[0], known, told, findings)
        if queue is None:
            continue
        used.append(queue)
        # The first pod of an application is its originator; later ones of it may be replaced, it may not.
        first = min(members, key=age)
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
    return running, asks, dynamic_queues(known, used)


def dynamic_queues(known: Collection[str], used: Iterable[str]) -> list[Queue]:
    """The queues that placement made for those of ``used`` that are not ``known``, by name: parents come first. None
    where nothing is known."""
    made: dict[str, Queue] = {}
    for path in dict.fromkeys(used) if known else ():
        for name in _missing(path, known):
            made.setdefault(name, Queue(name=name, parent=_above(name), yunikorn=YuniKornQueue(dynamic=True)))
    return [made[name] for name in sorted(made)]


def age(pod: SinglePod) -> tuple[bool, float]:
    """Less for an older pod; for one of no known age least of all."""
    created = pod.made.created_at
    return created is not None, created.timestamp() if created else 0.0


def _first(pod: SinglePod, keys: Iterable[str]) -> str | None:
    found = (of.get(key) for key in keys for of in (pod.made.labels, pod.made.annotations))
    return next((value for value in found if value), None)


def application(pod: SinglePod) -> str:
    """Pods that name no application share one of their namespace, as the shim makes it."""
    return _first(pod, _APPLICATION) or f"yunikorn-{pod.made.namespace or 'default'}-autogen"


def queue_path(pod: SinglePod) -> str:
    """The full path of the queue that the pod names; that of its application is the one that the first of them does."""
    name = (_first(pod, _QUEUE) or _DEFAULT_QUEUE).lower()
    return name if name == "root" or name.startswith("root.") else f"root.{name}"


def _queue(pod: Pod, known: Collection[str], told: set[str], findings: Findings) -> str | None:
    """The full path of the queue. One that the configuration does not list is a dynamic queue below its parent;
    where the source has no configuration, any will do. ``told``: those that have been named already."""
    path = queue_path(pod)
    if not known or path in known or path in told:
        return path
    at = (*pod.made.root.at, "metadata", "labels")
    if not _missing(path, known):
        findings.add("no-queue", "error", at, f"no queue {path!r} and nothing above it: its pods are left out")
        return None
    told.add(path)
    findings.add(DYNAMIC, "info", at, said_of_dynamic(path))
    return path


def said_of_dynamic(path: str) -> str:
    """The finding about a queue that placement made: once, whatever number of applications is in it."""
    return f"queue {path!r} is not configured: added as a dynamic one"


def _missing(path: str, known: Collection[str]) -> list[str]:
    """``path`` and what above it is not known; nothing where none of it is."""
    missing: list[str] = []
    while path not in known:
        missing.append(path)
        if "." not in path or len(missing) > _DEEPEST:
            return []
        path = _above(path)
    return missing


def _above(path: str) -> str:
    return path.rpartition(".")[0]


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
    preemptible = _preemptible(pod, classes)

    def make() -> Task:
        fields: dict[str, Any] = {
            "priority": pod.priority,
            "created_at": pod.made.created_at,
            "preemptible": None if preemptible else False,
            "originator": originator,
            "required_node": _required_node(pod),
            "placeholder": pod.made.annotations.get(_PLACEHOLDER) == "true",
        }
        return as_task(pod, pod.made.id, _requests(pod), **fields)

    return pod.once((pod.node, pod.priority, preemptible, originator), make)


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
