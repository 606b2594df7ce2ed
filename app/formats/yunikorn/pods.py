"""Pods as YuniKorn's shim hands them over: grouped into applications, each pending pod an ask of its own; the placement
rules that choose their queue.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from app.base.documents import Unreadable, as_list, as_mapping, read_one
from app.formats.objects import Classes, Object
from app.formats.pods import Pod, SinglePod, Steps, as_task, renamed
from app.formats.reader import Findings, Reader
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.state import Ask, PendingReason, Task, Workload
from app.solver.model.yunikorn import Application, ChildTemplate
from app.solver.model.yunikorn import Ask as YuniKornAsk
from app.solver.model.yunikorn import Queue as YuniKornQueue

ROOT, DEFAULT_QUEUE = "root", "root.default"
DEFAULT_USER = "nobody"
NAMES = ("provided", "user", "tag", "fixed")
_USER_INFO = "yunikorn.apache.org/user.info"
_PARENT_QUEUE = "yunikorn.apache.org/parentqueue"
_QUEUE_NAME = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
_SPECIAL = re.compile(r"[\^$*+?()\[{}|]")
_DEEPEST_RULE = 64


@dataclass(frozen=True, slots=True)
class Submitted:
    """An application as rules see it. ``queue``: as it names it, empty where it names none."""

    queue: str = ""
    user: str = DEFAULT_USER
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


class Rejected(Exception):
    """No queue takes the application: YuniKorn rejects it."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """Empty lists let everybody through, or nobody. One word with a character that no name has is an expression."""

    allow: bool = True
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def lets(self, of: Submitted) -> bool:
        if not self.users and not self.groups:
            return self.allow
        match = _matches(self.users, of.user) or any(_matches(self.groups, group) for group in of.groups)
        return self.allow if match else not self.allow


def _matches(words: tuple[str, ...], name: str) -> bool:
    if len(words) == 1 and _SPECIAL.search(words[0]):
        return re.search(words[0], name) is not None
    return name in words


@dataclass(frozen=True, slots=True)
class Rule:
    """``value``: the tag's name, or the fixed queue."""

    name: str
    create: bool = False
    value: str = ""
    filter: _Filter = _Filter()
    parent: "Rule | None" = None


def read_rules(readers: Iterable[Reader]) -> list[Rule]:
    """Placement rules; one that YuniKorn would refuse is a finding of severity error, and left out."""
    return [rule for reader in readers if (rule := _rule(reader)) is not None]


def _rule(reader: Reader, depth: int = 0) -> Rule | None:
    name = (reader.text("name") or "").lower()
    create = reader.boolean("create") is True
    value = (reader.text("value") or "").lower()
    chosen = _filter(reader.child("filter"))
    parent = None
    if "parent" in reader:
        parent = _rule(reader.child("parent"), depth + 1) if depth < _DEEPEST_RULE else None
        if parent is None:
            return None
    reader.close()
    if name not in NAMES:
        reader.warn("name", f"no placement rule {name[:40]!r}: there are {', '.join(NAMES)}", "error", "bad-value")
    elif name in ("tag", "fixed") and not value:
        reader.warn("value", f"a rule {name!r} has a value", "error", "bad-value")
    elif name == "fixed" and value.startswith(ROOT) and parent is not None:
        reader.warn("parent", "a fixed queue from the root on has no parent rule", "error", "bad-value")
    else:
        return Rule(name, create, value, chosen, parent)
    return None


def _filter(reader: Reader) -> _Filter:
    kind = reader.choice("type", {"allow": "allow", "deny": "deny"})
    words = [tuple(reader.strings(key)) for key in ("users", "groups")]
    for key, of in zip(("users", "groups"), words, strict=True):
        if len(of) == 1 and _SPECIAL.search(of[0]):
            try:
                re.compile(of[0])
            except re.error as error:
                reader.warn(key, f"no regular expression: {error}", "error", "bad-value")
                return _Filter()
    reader.close()
    return _Filter(kind != "deny", *words)


class Placement:
    """The rules of a configuration over its queues; queues that were made are to be given again."""

    def __init__(self, configuration: Configuration, namespaces: Iterable[Object] = ()) -> None:
        self.queues = {queue.name: queue for queue in configuration.queues}
        self._parents = {queue.parent for queue in configuration.queues}
        self._above = {manifest.name: manifest.annotations.get(_PARENT_QUEUE, "") for manifest in namespaces}
        native = configuration.native
        given = as_list(native.yunikorn.get("placementrules")) if native is not None else []
        read = read_rules(Reader(space, (), Findings()) for space in given)
        self.rules = read or [Rule("provided")]

    def tags(self, namespace: str) -> dict[str, str]:
        """Of an application in ``namespace``."""
        tags = {"namespace": namespace or "default"}
        if above := self._above.get(namespace):
            tags["namespace.parentqueue"] = above
        return tags

    def place(self, of: Submitted) -> str:
        """The full path of the queue; it may have to be made. Raises Rejected, with the reason."""
        for rule in self.rules:
            name = self._by(rule, of)
            if name and self._takes(name):
                return name
        if self._is_leaf(DEFAULT_QUEUE):
            return DEFAULT_QUEUE
        name = of.queue if not of.queue or of.queue.startswith(ROOT) else f"{ROOT}.{of.queue}"
        parent = name in self.queues and not self._is_leaf(name)
        named = f"{name!r}, which is a parent queue" if parent else f"queue {of.queue!r}" if of.queue else "no queue"
        raise Rejected(f"it names {named}, no placement rule finds one, and there is no leaf queue {DEFAULT_QUEUE!r}")

    def _takes(self, name: str) -> bool:
        """Whether an application may go there: a leaf, or what is to be made below a parent."""
        if name in self.queues:
            return self._is_leaf(name)
        above = name
        while above not in self.queues:
            if "." not in above:
                raise Rejected(f"queue {name!r} is in no tree of this configuration")
            above = above.rpartition(".")[0]
        if self._is_leaf(above) and above != ROOT:
            raise Rejected(f"queue {name!r} can't be made: {above!r} is a leaf queue")
        return True

    def _is_leaf(self, name: str) -> bool:
        queue = self.queues.get(name)
        return queue is not None and name not in self._parents and not (queue.yunikorn and queue.yunikorn.parent)

    def _by(self, rule: Rule, of: Submitted) -> str | None:
        """What one rule says; None: it does not match."""
        words = {"provided": of.queue, "user": of.user, "tag": of.tags.get(rule.value, ""), "fixed": rule.value}
        word = words[rule.name]
        if not word or not rule.filter.lets(of):
            return None
        whole = word.startswith(ROOT) if rule.name == "fixed" else word.startswith(f"{ROOT}.") and rule.name != "user"
        if whole:
            _check(word.split("."))
            name = word
        else:
            child = word if rule.name == "fixed" else word.replace(".", "_dot_")
            _check(child.split("."))
            above = ROOT
            if rule.parent is not None:
                chosen = self._by(rule.parent, of)
                if not chosen:
                    return None
                above = chosen if chosen.startswith(f"{ROOT}.") else f"{ROOT}.{chosen}"
                if self._is_leaf(above):
                    raise Rejected(f"the parent rule of {rule.name!r} gives a leaf queue: {above}")
            name = f"{above}.{child}"
        name = name.lower()
        return name if rule.create or name in self.queues else None


def _check(parts: Collection[str]) -> None:
    for part in parts:
        if not _QUEUE_NAME.fullmatch(part):
            raise Rejected(f"{part[:80]!r} is no name of a queue")


def submitter(annotations: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """User and groups, as the admission controller writes them on every pod."""
    try:
        given: Any = read_one((annotations.get(_USER_INFO) or "{}").encode(), _USER_INFO)
    except Unreadable:
        given = {}
    of = as_mapping(given)
    user, groups = of.get("user"), as_list(of.get("groups"))
    return (
        user if isinstance(user, str) and user else DEFAULT_USER,
        tuple(group for group in groups if isinstance(group, str)),
    )


def made_below(name: str, queues: Mapping[str, Queue]) -> Queue:
    """A dynamic queue as its nearest parent's child template has it; the template passes through dynamic parents."""
    above, template = name.rpartition(".")[0], None
    while above and template is None:
        queue = queues.get(above)
        own = queue.yunikorn.child_template if queue is not None and queue.yunikorn is not None else None
        template = None if own is None or own.empty else own
        above = above.rpartition(".")[0]
    template = template or ChildTemplate()
    names = {**template.guaranteed, **template.max}
    quota = {r: Quota(guaranteed=template.guaranteed.get(r), limit=template.max.get(r)) for r in names}
    block = YuniKornQueue(dynamic=True, max_applications=template.max_applications)
    return Queue(name=name, parent=name.rpartition(".")[0], quota=quota or None, yunikorn=block)


SCHEDULER = "yunikorn"
RENAME = {"cpu": "vcore"}
"""YuniKorn calls Kubernetes' cpu vcore."""

_APPLICATION = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
QUEUE = "yunikorn.apache.org/queue"
_QUEUE = (QUEUE, "queue")
_ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"
_PLACEHOLDER = "yunikorn.apache.org/placeholder"
_SAID = {"SchedulingSkipped": "The quota of its queue is used up", "Unschedulable": "No node has room for it"}
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
    reported: set[str] = set()
    used: list[str] = []
    running: list[Workload] = []
    asks: list[Ask] = []
    for name, members in applications.items():
        queue = _queue(members, placement, reported, findings)
        if queue is None:
            continue
        used.append(queue)
        # The first pod of an application is its originator; later ones of it may be replaced, it may not.
        first = min(members, key=age)
        user, groups = submitter(members[0].manifest.annotations)
        owner = Application(user=user, groups=list(groups))
        held = [pod for pod in members if pod.phase in ("running", "releasing")]
        if held:
            created = [pod.manifest.created_at for pod in members if pod.manifest.created_at is not None]
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
                pod.manifest.root.warn("spec", "a gated pod is not ready to be scheduled: left out", "info", "gated")
    return running, asks, dynamic_queues(placement.queues, used)


def _owned(owner: Application, application: str, ask: str) -> YuniKornAsk | None:
    """Whose an ask is of which nothing runs yet; None where there is nothing to say."""
    known = YuniKornAsk(application=None if application == ask else application, user=owner.user, groups=owner.groups)
    return None if known == YuniKornAsk() else known


def dynamic_queues(known: Mapping[str, Queue], used: Iterable[str]) -> list[Queue]:
    """The queues that placement made for those of ``used`` that are not ``known``, by name: parents come first. None
    where nothing is known."""
    queues: dict[str, Queue] = {}
    for path in dict.fromkeys(used) if known else ():
        for name in _missing(path, known):
            queues.setdefault(name, made_below(name, known))
    return [queues[name] for name in sorted(queues)]


def age(pod: SinglePod) -> tuple[bool, float]:
    """Less for an older pod; for one of no known age least of all."""
    created = pod.manifest.created_at
    return created is not None, created.timestamp() if created else 0.0


def _first(pod: SinglePod, keys: Iterable[str]) -> str | None:
    return _said(keys, pod.manifest.labels, pod.manifest.annotations)


def _said(keys: Iterable[str], *where: Mapping[str, str]) -> str | None:
    return next((value for key in keys for of in where if (value := of.get(key))), None)


def application(pod: SinglePod) -> str:
    """Pods that name no application share one of their namespace, as the shim makes it."""
    return application_of(pod.manifest.labels, pod.manifest.annotations, pod.manifest.namespace)


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
    user, groups = submitter(pod.manifest.annotations)
    try:
        return placement.place(Submitted(name, user, groups, placement.tags(pod.manifest.namespace)))
    except Rejected:
        if not _missing(path, placement.queues) or not runs():
            raise
        return path


def _whole(name: str) -> str:
    return name if name == "root" or name.startswith("root.") else f"root.{name}"


def _queue(members: list[Pod], placement: Placement, reported: set[str], findings: Findings) -> str | None:
    """The full path of the queue. One that the configuration does not list is a dynamic queue below its parent.
    ``reported``: those that have been named already."""
    pod, known = members[0], placement.queues
    place = (*pod.manifest.root.path, "metadata", "labels")
    try:
        path = queue_path(pod, placement, lambda: any(member.phase in ("running", "releasing") for member in members))
    except Rejected as rejected:
        detail = f"application {application(pod)!r} is rejected: {rejected}; its pods are left out"
        findings.add("no-queue", "error", place, detail)
        return None
    if not known or path in known or path in reported:
        return path
    reported.add(path)
    findings.add(DYNAMIC, "info", place, said_of_dynamic(path))
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
    own = pod.manifest.annotations.get(_ALLOW_PREEMPTION)
    if own in ("true", "false"):
        return own == "true"
    known = classes.find(pod.spec.priority_class)
    return known is None or known.victim is not False


def _required_node(pod: Pod) -> str | None:
    """Pods of a DaemonSet are pinned to one node by an affinity on its name."""
    return pod.spec.pinned_node if "DaemonSet" in pod.manifest.owners else None


def _task(pod: Pod, classes: Classes, *, originator: bool) -> Task:
    preemptible = _preemptible(pod, classes)

    def make() -> Task:
        fields: dict[str, Any] = {
            "priority": pod.priority,
            "created_at": pod.manifest.created_at,
            "preemptible": None if preemptible else False,
            "originator": originator,
            "required_node": _required_node(pod),
            "placeholder": pod.manifest.annotations.get(_PLACEHOLDER) == "true",
        }
        return as_task(pod, pod.manifest.id, _requests(pod), **fields)

    return pod.once((pod.node, pod.priority, preemptible, originator), make)


def _pending_reason(pod: Pod) -> PendingReason | None:
    """Why the shim says that the pod waits: its queue's quota is used (`SchedulingSkipped`), or no node takes it. The
    core tries it again in every cycle. Source: ``HandleContainerStateUpdate`` (yunikorn-k8shim, pkg/cache)."""
    for condition in pod.manifest.status.children("conditions"):
        if (
            condition.text("type") == "PodScheduled"
            and condition.text("status") == "False"
            and (reason := condition.text("reason"))
        ):
            message = condition.text("message") or _SAID.get(reason, "YuniKorn says no more")
            return PendingReason(reason=reason, message=message, since=condition.time("lastTransitionTime"))
    return None


def _ask(pod: Pod, workload: str | None, queue: str, classes: Classes, *, originator: bool) -> Ask:
    known = classes.find(pod.spec.priority_class)
    never = pod.spec.never_preempts or (known is not None and known.never_preempts)
    return Ask(
        id=pod.manifest.id,
        queue=queue,
        workload=workload,
        uid=pod.manifest.uid,
        priority=pod.priority,
        created_at=pod.manifest.created_at,
        tasks=[_task(pod, classes, originator=originator)],
        preemption_policy="Never" if never else "PreemptLowerPriority",
        pending_reason=_pending_reason(pod),
        preemptible=None if _preemptible(pod, classes) else False,
        originator=originator,
        required_node=_required_node(pod),
    )
