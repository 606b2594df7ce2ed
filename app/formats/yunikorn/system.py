"""What YuniKorn's REST interface tells: the full state dump, and its answers about queues, applications and nodes;
and what reads objects together, and whose pods they are.

``/debug/fullstatedump`` (before 1.7 ``/ws/v1/fullstatedump``), ``/ws/v1/partition/<name>/queues``, ``…/applications``
and ``…/nodes``. Amounts of vcore are thousandths, times are nanoseconds since 1970.
"""

import re
from collections.abc import Iterator
from dataclasses import replace as with_
from datetime import datetime
from typing import Any, Final, cast

from msgspec.structs import replace

from app.base.decoding import whole
from app.base.documents import Path
from app.formats.extender import ByTask, VictimPod, light_pod
from app.formats.manifests import Reading, Role, System, imported, parted
from app.formats.objects import (
    EVENT,
    NODE,
    POD,
    PRIORITY_CLASS,
    YUNIKORN_QUEUES,
    Classes,
    Evidence,
    Followed,
    Item,
    Kind,
    Object,
    event_time,
    new_message,
    objects,
    part,
    pod_of,
)
from app.formats.pods import Pod, read_cluster_nodes
from app.formats.reader import Findings, Imported, Reader
from app.formats.work import planner
from app.formats.work.pods import plan_yunikorn
from app.formats.yunikorn.configuration import AS_RELEASED, FIELDS, export, read_configuration
from app.formats.yunikorn.pods import (
    DEFAULT_USER,
    RENAME,
    SCHEDULER,
    Placement,
    application,
    application_of,
    belongs,
    read_applications,
)
from app.solver.engines.yunikorn import FACTS
from app.solver.model.base import Quantity
from app.solver.model.base import to_datetime as instant
from app.solver.model.configuration import Configuration, Queue, Quota, Settings
from app.solver.model.problems import pointer
from app.solver.model.request import Eviction
from app.solver.model.state import Ask, Node, Reservation, State, Task, Workload
from app.solver.model.yunikorn import Application, ChildTemplate
from app.solver.model.yunikorn import Ask as YuniKornAsk
from app.solver.model.yunikorn import Queue as YuniKornQueue

_PARTITION = "default"
_DONE = ("Completed", "Failed", "Rejected", "Expired", "Failing")
_POD_NAME, _NAMESPACE = "kubernetes.io/meta/podName", "kubernetes.io/meta/namespace"
_THOUSANDTHS = ("vcore",)
_AS_WRITTEN = ("properties", "guaranteed", "max", "maxresources", "resourceweights")
"""Mappings of a configuration whose keys are names."""


def is_dump(documents: list[tuple[Path, Any]]) -> bool:
    """Whether these are answers of YuniKorn's REST interface, not manifests."""
    return bool(documents) and all(_kind(document) is not None for _, document in documents)


def _kind(document: Any) -> str | None:
    if isinstance(document, list):
        listed = cast(list[Any], document)
        first = cast(dict[str, Any], listed[0]) if listed and isinstance(listed[0], dict) else {}
        return next((kind for key, kind in _MARKS.items() if key in first), None)
    if not isinstance(document, dict) or "kind" in document:
        return None
    of = cast(dict[str, Any], document)
    if "queuename" in of:
        return "queues"
    return "dump" if "queues" in of and ("applications" in of or "nodes" in of or "clusterInfo" in of) else None


_MARKS = {"applicationID": "applications", "nodeID": "nodes", "queuename": "queues"}


def read_dump(documents: list[tuple[Path, Any]], findings: Findings, known: Configuration | None = None) -> Imported:
    """Queues, nodes, running applications and what they still ask for, of the partition ``default``. The configuration
    is ``known``, else the ``config`` that a dump has, else the tree of queues as it is; queues that only the tree has
    are added."""
    readers: dict[str, list[Reader]] = {"queues": [], "applications": [], "nodes": [], "partitions": []}
    configured: list[Object] = []
    taken_at: list[datetime] = []
    given = known
    for path, document in documents:
        kind = _kind(document)
        if kind == "dump":
            dump = Reader(document, path, findings)
            _of_dump(dump, readers)
            taken_at += [] if (at_that_time := _time(dump, "timestamp")) is None else [at_that_time]
            configured += [] if known is not None else _config(dump)
        elif kind is not None:
            readers[kind] += _listed(document, path, findings)
    if known is None and configured:
        known = read_configuration(configured, findings)
    queues = [queue for tree in readers["queues"] for queue in _queues(tree)]
    nodes = {reader.text("nodeID") or "": reader for reader in readers["nodes"]}
    applications = _Applications(set(nodes), findings)
    for reader in readers["applications"]:
        applications.read(reader)
    state = State(
        nodes=[_node(name, reader) for name, reader in nodes.items()], workloads=applications.running,
        reservations=[held for name, reader in nodes.items() for held in applications.held(name, reader)],
    )  # fmt: skip
    configuration = (
        Configuration(engine="yunikorn", settings=Settings(yunikorn=AS_RELEASED), queues=queues)
        if known is None
        else _with(known, queues, findings)
    )
    if readers["partitions"] and given is None:
        configuration = _switched(configuration, readers["partitions"])
    taken = max(taken_at, default=None)
    parts = frozenset(pointer(*reader.path) for kind in ("applications", "nodes") for reader in readers[kind])
    return Imported(configuration, state, applications.asks, findings.all(), taken, of_state=parts)


def _switched(configuration: Configuration, partitions: list[Reader]) -> Configuration:
    """With preemption as the partition has it at this moment."""
    on = all(partition.boolean("preemptionEnabled") is not False for partition in partitions)
    settings = replace(configuration.settings.yunikorn or AS_RELEASED, preemption=on)
    return replace(configuration, settings=replace(configuration.settings, yunikorn=settings))


def _with(known: Configuration, tree: list[Queue], findings: Findings) -> Configuration:
    """``known`` with the queues that only the tree has: made by placement, or no longer configured but not empty."""
    names = {queue.name for queue in known.queues}
    more = [queue for queue in tree if queue.name not in names]
    for queue in more:
        if queue.yunikorn is None or not queue.yunikorn.dynamic:
            detail = f"queue {queue.name!r} is in the tree and not configured: added as it is there"
            findings.add("dynamic-queue", "info", ("queues",), detail)
    return replace(known, engine="yunikorn", queues=[*known.queues, *more])


def _config(dump: Reader) -> list[Object]:
    """The configuration that a dump of 1.2 or newer has under ``config``, as the object that queues.yaml is. Go prints
    names of fields with capitals; YuniKorn reads them without."""
    config = dump.take("config")
    if not isinstance(config, dict):
        return []
    document = _lowered(cast(dict[str, Any], config))
    if not isinstance(document.get("partitions"), list):
        return []
    return list(objects([((*dump.path, "config"), {"partitions": document["partitions"]})], dump.findings))


def _lowered(document: dict[str, Any]) -> dict[str, Any]:
    """With the names of fields in lower case, those of resources and properties as they are, and nothing that Go prints
    of what is not set. Without recursion."""
    top: dict[str, Any] = {}
    pending: list[tuple[dict[str, Any], dict[str, Any]]] = [(document, top)]
    while pending:
        old, new = pending.pop()
        for key, value in old.items():
            name = key.lower()
            if not value and value is not False:
                continue
            if isinstance(value, dict) and name not in _AS_WRITTEN:
                new[name] = inner = dict[str, Any]()
                pending.append((cast(dict[str, Any], value), inner))
            elif isinstance(value, list) and all(isinstance(item, dict) for item in cast(list[Any], value)):
                listed = [(cast(dict[str, Any], item), dict[str, Any]()) for item in cast(list[Any], value)]
                new[name] = [lowered for _, lowered in listed]
                pending += listed
            else:
                new[name] = value
    return top


def _listed(document: Any, path: Path, findings: Findings) -> list[Reader]:
    if isinstance(document, list):
        return [Reader(item, (*path, i), findings) for i, item in enumerate(cast(list[Any], document))]
    return [Reader(document, path, findings)]


def _of_dump(dump: Reader, parts: dict[str, list[Reader]]) -> None:
    """The parts of a dump; versions differ in whether they list partitions."""
    trees = dump.children("queues") if isinstance(dump.value.get("queues"), list) else [dump.child("queues")]
    parts["queues"] += [tree for tree in trees if _ours(tree)]
    parts["applications"] += [app for app in dump.children("applications") if _ours(app)]
    if isinstance(dump.value.get("partitions"), list):
        parts["partitions"] += [partition for partition in dump.children("partitions") if _ours(partition, "name")]
    for node in dump.children("nodes"):
        if "nodesInfo" in node:
            parts["nodes"] += node.children("nodesInfo") if _ours(node, "partitionName") else []
        else:
            parts["nodes"].append(node)


def _ours(reader: Reader, key: str = "partition") -> bool:
    """Names of partitions may have the cluster's before them: ``[cluster]default``."""
    name = (reader.text(key) or _PARTITION).rpartition("]")[2]
    if name != _PARTITION:
        reader.warn(key, f"partition {name!r} is a cluster of its own: left out")
    return name == _PARTITION


def _queues(tree: Reader) -> Iterator[Queue]:
    """Parents before children, without recursion."""
    pending: list[tuple[Reader, str | None]] = [(tree, None)]
    while pending:
        reader, parent = pending.pop()
        name = (reader.text("queuename") or "").lower()
        if not name:
            continue
        if parent is not None and not name.startswith(f"{parent}."):
            name = f"{parent}.{name}"
        children = reader.children("children")
        block = YuniKornQueue(
            properties=_properties(reader.child("properties")),
            parent=reader.boolean("isLeaf") is False and not children,
            dynamic=reader.boolean("isManaged") is False,
            max_applications=reader.count("maxRunningApps") or 0,
            child_template=_template(reader.child("template")),
        )
        yield Queue(
            name=name, parent=parent, quota=_quota(reader, root=parent is None) or None,
            yunikorn=None if block == YuniKornQueue() else block,
        )  # fmt: skip
        pending += [(child, name) for child in reversed(children)]


def _template(reader: Reader) -> ChildTemplate | None:
    template = ChildTemplate(
        properties=_properties(reader.child("properties")), guaranteed=_amounts(reader, "guaranteedResource"),
        max=_amounts(reader, "maxResource"), max_applications=reader.count("maxApplications") or 0,
    )  # fmt: skip
    return None if template == ChildTemplate() else template


def _properties(reader: Reader) -> dict[str, str]:
    return {key: str(value) for key in reader.value if (value := reader.take(key)) is not None}


def _quota(reader: Reader, *, root: bool) -> dict[str, Quota]:
    """The root's limit is the sum of the nodes, which the engine makes itself."""
    guaranteed = _amounts(reader, "guaranteedResource")
    limit = {} if root else _amounts(reader, "maxResource")
    if root:
        guaranteed = {}
    return {name: Quota(guaranteed=guaranteed.get(name), limit=limit.get(name)) for name in {**guaranteed, **limit}}


def _amounts(reader: Reader, key: str) -> dict[str, Quantity]:
    inner = reader.child(key)
    amounts: dict[str, Quantity] = {}
    for name in inner.value:
        value = inner.number(name)
        if value is None:
            continue
        if value < 0 or value != int(value):
            inner.warn(name, "a whole number from 0 is expected", "error", "bad-value")
        else:
            amounts[name] = f"{int(value)}m" if name in _THOUSANDTHS else int(value)
    return amounts


def _node(name: str, reader: Reader) -> Node:
    return Node(
        name=name or "unnamed", capacity=_amounts(reader, "capacity"), occupied=_amounts(reader, "occupied"),
        labels={k: str(v) for k, v in reader.child("attributes").value.items()},
        schedulable=reader.boolean("schedulable") is not False,
    )  # fmt: skip


class _Applications:
    """What runs, what waits, and which allocation key is which ask."""

    def __init__(self, nodes: set[str], findings: Findings) -> None:
        self.running: list[Workload] = []
        self.asks: list[Ask] = []
        self._nodes, self._findings = nodes, findings
        self._by_key: dict[str, Ask] = {}
        self._warned = False

    def read(self, reader: Reader) -> None:
        """Take in one application."""
        name, queue = reader.text("applicationID"), (reader.text("queueName") or "").lower()
        if reader.text("applicationState") in _DONE:
            return
        if not name or not queue:
            reader.findings.add(
                "bad-value", "error", reader.path, "an application has an applicationID and a queueName"
            )
            return
        groups = reader.strings("groups") if "groups" in reader else []
        owner = Application(user=reader.text("user") or DEFAULT_USER, groups=groups)
        tasks = [_task(allocation, self._nodes) for allocation in reader.children("allocations")]
        requests = reader.children("requests")
        if requests:
            backoff = "YuniKorn tries nothing of the application before that time: decided as if it did"
            reader.not_carried("backoffDeadline", backoff)
        created = _time(reader, "submissionTime")
        if tasks:
            whose = None if owner == Application() else owner
            self.running.append(Workload(id=name, queue=queue, created_at=created, yunikorn=whose, tasks=tasks))
        for request in requests:
            if request.count("pendingCount") != 0:
                self._waits(request, name, queue, owner, runs=bool(tasks))

    def _waits(self, request: Reader, application: str, queue: str, owner: Application, *, runs: bool) -> None:
        task = _task(request, self._nodes)
        others, itself = request.boolean("allowPreemptionOther"), request.boolean("allowPreemptionSelf")
        if others is None and itself is None and not self._warned:
            self._warned = True
            detail = "it does not say whether pods may preempt and be preempted: all are taken to allow both"
            self._findings.add("assumed-policy", "warning", request.path, detail)
        block = YuniKornAsk(triggered_preemption=request.boolean("triggeredPreemption") is True)
        if not runs:
            whose = None if application == task.name else application
            block = replace(block, application=whose, user=owner.user, groups=owner.groups)
        ask = Ask(
            id=task.name, queue=queue, workload=application if runs else None, priority=task.priority or 0,
            created_at=task.created_at, originator=task.originator, preemptible=task.preemptible,
            required_node=request.text("requiredNodeId") or None, tasks=[task],
            preemption_policy="Never" if others is False else "PreemptLowerPriority",
            yunikorn=None if block == YuniKornAsk() else block,
        )  # fmt: skip
        self.asks.append(ask)
        self._by_key[request.text("allocationKey") or ""] = ask

    def held(self, node: str, reader: Reader) -> list[Reservation]:
        """What is reserved on a node. A key may have the application before it: ``application|key``."""
        keys = [key.rpartition("|")[2] for key in reader.strings("reservations")] if "reservations" in reader else []
        unknown = [key for key in keys if key not in self._by_key]
        if unknown:
            reader.warn("reservations", f"nothing that waits has the key {unknown[0]!r}: left out", rule="no-ask")
        return [Reservation(node=node, ask=self._by_key[key]) for key in keys if key in self._by_key]


def _task(reader: Reader, nodes: set[str]) -> Task:
    key = reader.text("allocationKey") or "unnamed"
    tags = reader.child("allocationTags")
    pod, namespace = tags.value.get(_POD_NAME), tags.value.get(_NAMESPACE)
    node = reader.text("nodeId") or reader.text("nodeID")
    if node and node not in nodes:
        reader.warn("nodeId", f"node {node!r} is not in the source: the allocation is on no node", rule="no-node")
        node = None
    amounts = _amounts(reader, "resource") or _amounts(reader, "resourcePerAlloc")
    return Task(
        name=f"{namespace}/{pod}" if pod and namespace else key, requests=amounts, node=node or None,
        priority=_priority(reader), created_at=_time(reader, "requestTime"),
        originator=reader.boolean("originator") is True, placeholder=reader.boolean("placeholder") is True,
        state="preempted" if reader.boolean("preempted") else "running",
        preemptible=False if reader.boolean("allowPreemptionSelf") is False else None,
    )  # fmt: skip


def _priority(reader: Reader) -> int | None:
    """A number in text."""
    value = reader.take("priority")
    text = str(value) if value is not None else ""
    if not text:
        return None
    if (priority := whole(text)) is None or abs(priority) > 2**31:
        reader.warn("priority", "a whole number of 32 bits is expected", "error", "bad-value")
        return None
    return priority


def _time(reader: Reader, key: str) -> datetime | None:
    nanos = reader.number(key)
    if not nanos or not 0 < nanos < 2**63:
        return None
    return instant(int(nanos) // 1000)


def _place(manifest: Object) -> Role | None:
    return "configuration" if manifest.kind == YUNIKORN_QUEUES else None


def _read(reading: Reading) -> Imported:
    source, findings = reading.objects, reading.findings
    configuration = reading.counting(read_configuration(source.of[FACTS.name], findings))
    own, strangers = parted(reading.pods, belongs)
    spaces = [manifest for manifest in source.around if manifest.kind == "Namespace"]
    placement = Placement(configuration, spaces)
    workloads, asks, dynamic = read_applications(own, placement, reading.classes, findings)
    if dynamic:
        configuration = replace(configuration, queues=[*configuration.queues, *dynamic])
    if source.classes and not reading.pods:
        findings.add(
            "not-carried", "info", (), "priority classes are no part of queues.yaml: an export leaves them out"
        )
    nodes = read_cluster_nodes(source.nodes, strangers, rename=RENAME)
    return imported(configuration, nodes, workloads, asks, findings)


class _Recogniser(ByTask):
    def place(self, pod: VictimPod) -> Eviction | None:
        light = light_pod(pod)
        return self._place(light, application(light), light.manifest.id) if belongs(light) else None

    def ask(self, pod: Pod) -> Ask | None:
        if not belongs(pod):
            return None
        waiting = self._around.waiting.get(pod.manifest.id)
        if waiting is not None and waiting.uid in (None, pod.manifest.uid):
            return waiting
        placement = Placement(self._around.configuration)
        _, asks, _ = read_applications([pod], placement, Classes(), Findings())
        if not asks:
            return None
        running = self._around.running.get(application(pod))
        if running is not None and self._tasks.has(running, pod.manifest.id, pod.manifest.uid):
            return replace(asks[0], queue=running.queue, workload=running.id)
        return asks[0] if self._around.has_queue(asks[0].queue) else None


_YUNIKORN = re.compile(r"Preempted by (\S+) from application (\S+) in (\S+)")
_YUNIKORN_QUOTA = re.compile(r"Preempted by [Qq]uota change")


def _evicted(old: Item | None, new: Item) -> Evidence | None:
    """An Event on the pod, whose message names the allocation that it was for, which is the UID of a pod
    (pkg/scheduler/objects/events)."""
    message, victim = new_message(old, new), pod_of(new)
    if message is None or victim is None:
        return None
    if (match := _YUNIKORN.match(message)) is not None:
        return Evidence(victim, match[1], None, event_time(new), message)
    if _YUNIKORN_QUOTA.match(message):
        return Evidence(victim, "", None, event_time(new), message)
    return None


def _application(item: Item) -> str:
    metadata = part(item, "metadata")
    return application_of(part(metadata, "labels"), part(metadata, "annotations"), metadata.get("namespace"))


_FOLLOWED = Followed(
    kinds=(
        Kind("ConfigMap", "", "configmaps", ("v1",), within="yunikorn",
             layers=("yunikorn-defaults", "yunikorn-configs")),
        POD, NODE, PRIORITY_CLASS,
    ),
    work=("Pod",), witnesses=(with_(EVENT, selector="involvedObject.kind=Pod,reason=Informational"),),
    evidence={"Event": _evicted}, scheduler=SCHEDULER, together=_application,
)  # fmt: skip

SYSTEM: Final = System(
    facts=FACTS, fields=FIELDS, followed=_FOLLOWED, export=export, precedence=2, read=_read, place=_place,
    files=("partitions",), belongs=belongs, group=application,

    keys=("queuename", "applications", "applicationID", "nodeID", "clusterInfo"),
    owns=is_dump, is_own=lambda document: is_dump([((), document)]), read_own=read_dump,
    recogniser=_Recogniser, plan=planner(plan_yunikorn),
)  # fmt: skip
