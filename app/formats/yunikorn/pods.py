"""Pods as YuniKorn's shim hands them over: grouped into applications, each pending pod an ask of its own."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from app.formats.objects import Classes
from app.formats.pods import Pod, SinglePod, Steps, as_task, renamed
from app.formats.reader import Findings
from app.formats.yunikorn.placement import DEFAULT_QUEUE, Placement, Rejected, Submitted, made_below, submitter
from app.solver.model.configuration import Queue
from app.solver.model.state import Ask, PendingReason, Task, Workload
from app.solver.model.yunikorn import Application
from app.solver.model.yunikorn import Ask as YuniKornAsk

SCHEDULER = "yunikorn"
RENAME = {"cpu": "vcore"}
"""YuniKorn calls Kubernetes' cpu vcore."""

_APPLICATION = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
QUEUE = "yunikorn.apache.org/queue"
_QUEUE = (QUEUE, "queue")
_ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"
_PLACEHOLDER = "yunikorn.apache.org/placeholder"
_SAID = {
    "SchedulingSkipped": "The quota of its queue is used up",
    "Unschedulable": "No node has room for it",
}
"""What a reason means, where the shim says it without a message."""
_DEEPEST = 64
DYNAMIC = "dynamic-queue"
"""The rule of findings about queues that placement made."""


def belongs(pod: SinglePod) -> bool:
    """Whether YuniKorn schedules this pod."""
    return pod.spec.scheduler == SCHEDULER or _first(pod, _APPLICATION) is not None


def read_applications(
    pods: Iterable[Pod], placement: Placement, classes: Classes, findings: Findings
) -> tuple[list[Workload], list[Ask], list[Queue]]:
    """Applications with pods on nodes, asks for pending pods, and the queues that placement rules must have made."""
    applications: dict[str, list[Pod]] = {}
    for pod in pods:
        applications.setdefault(application(pod), []).append(pod)
    told: set[str] = set()
    used: list[str] = []
    running: list[Workload] = []
    asks: list[Ask] = []
    for name, members in applications.items():
        queue = _queue(members, placement, told, findings)
        if queue is None:
            continue
        used.append(queue)
        # The first pod of an application is its originator; later ones of it may be replaced, it may not.
        first = min(members, key=age)
        user, groups = submitter(members[0].made.annotations)
        owner = Application(user=user, groups=list(groups))
        held = [pod for pod in members if pod.phase in ("running", "releasing")]
        if held:
            created = [pod.made.created_at for pod in members if pod.made.created_at is not None]
            running.append(
                Workload(
                    id=name,
                    queue=queue,
                    created_at=min(created) if created else None,
                    yunikorn=None if owner == Application() else owner,
                    tasks=[_task(pod, classes, originator=pod is first) for pod in held],
                )
            )
        for pod in members:
            if pod.phase == "pending":
                ask = _ask(pod, name if held else None, queue, classes, originator=pod is first)
                asks.append(ask if held else replace(ask, yunikorn=_owned(owner, name, ask.id)))
            elif pod.phase == "gated":
                pod.made.root.warn("spec", "a gated pod is not ready to be scheduled: left out", "info", "gated")
    return running, asks, dynamic_queues(placement.queues, used)


def _owned(owner: Application, application: str, ask: str) -> YuniKornAsk | None:
    """Whose an ask is of which nothing runs yet; None where there is nothing to say."""
    found = YuniKornAsk(application=None if application == ask else application, user=owner.user, groups=owner.groups)
    return None if found == YuniKornAsk() else found


def dynamic_queues(known: Mapping[str, Queue], used: Iterable[str]) -> list[Queue]:
    """The queues that placement made for those of ``used`` that are not ``known``, by name: parents come first. None
    where nothing is known."""
    made: dict[str, Queue] = {}
    for path in dict.fromkeys(used) if known else ():
        for name in _missing(path, known):
            made.setdefault(name, made_below(name, known))
    return [made[name] for name in sorted(made)]


def age(pod: SinglePod) -> tuple[bool, float]:
    """Less for an older pod; for one of no known age least of all."""
    created = pod.made.created_at
    return created is not None, created.timestamp() if created else 0.0


def _first(pod: SinglePod, keys: Iterable[str]) -> str | None:
    return _said(keys, pod.made.labels, pod.made.annotations)


def _said(keys: Iterable[str], *where: Mapping[str, str]) -> str | None:
    return next((value for key in keys for of in where if (value := of.get(key))), None)


def application(pod: SinglePod) -> str:
    """Pods that name no application share one of their namespace, as the shim makes it."""
    return application_of(pod.made.labels, pod.made.annotations, pod.made.namespace)


def application_of(labels: Mapping[str, str], annotations: Mapping[str, str], namespace: str | None) -> str:
    """That of a pod with these."""
    return _said(_APPLICATION, labels, annotations) or f"yunikorn-{namespace or 'default'}-autogen"


def queue_path(pod: SinglePod, placement: Placement, runs: Callable[[], bool]) -> str:
    """The full path of the queue of the pod's application, if this is its first pod. ``runs``: whether some of it does:
    then it was let in once, whatever rules say by now. Raises Rejected."""
    name = (_first(pod, _QUEUE) or "").lower()
    path = _whole(name or DEFAULT_QUEUE)
    if not placement.queues:  # where the source has no configuration, any will do
        return path
    user, groups = submitter(pod.made.annotations)
    try:
        return placement.place(Submitted(name, user, groups, placement.tags(pod.made.namespace)))
    except Rejected:
        if not _missing(path, placement.queues) or not runs():
            raise
        return path


def _whole(name: str) -> str:
    return name if name == "root" or name.startswith("root.") else f"root.{name}"


def _queue(members: list[Pod], placement: Placement, told: set[str], findings: Findings) -> str | None:
    """The full path of the queue. One that the configuration does not list is a dynamic queue below its parent.
    ``told``: those that have been named already."""
    pod, known = members[0], placement.queues
    at = (*pod.made.root.at, "metadata", "labels")
    try:
        path = queue_path(pod, placement, lambda: any(one.phase in ("running", "releasing") for one in members))
    except Rejected as rejected:
        detail = f"application {application(pod)!r} is rejected: {rejected}; its pods are left out"
        findings.add("no-queue", "error", at, detail)
        return None
    if not known or path in known or path in told:
        return path
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


def _pending_reason(pod: Pod) -> PendingReason | None:
    """Why the shim says that the pod waits: its queue's quota is used (`SchedulingSkipped`), or no node takes it. The
    core tries it again in every cycle. Source: ``HandleContainerStateUpdate`` (yunikorn-k8shim, pkg/cache)."""
    for one in pod.made.status.children("conditions"):
        if one.text("type") == "PodScheduled" and one.text("status") == "False" and (reason := one.text("reason")):
            message = one.text("message") or _SAID.get(reason, "YuniKorn says no more")
            return PendingReason(reason=reason, message=message, since=one.time("lastTransitionTime"))
    return None


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
        pending_reason=_pending_reason(pod),
        preemptible=None if _preemptible(pod, classes) else False,
        originator=originator,
        required_node=_required_node(pod),
    )
