"""YuniKorn's queues.yaml: partitions, queues, their resources, properties and child templates, in and out.

What is written is one partition, the tree nested.
"""

import re
from collections.abc import Iterable
from dataclasses import replace as with_
from typing import Any, Final, cast

from msgspec.structs import replace

from app.base.documents import Path
from app.formats.exported import Exported, Field, Inside, Lost, Table, dump, flat_quota, parents_first, renamed
from app.formats.objects import Object, config_map
from app.formats.reader import Fields, Findings, Reader, each, unkeepable
from app.formats.yunikorn.pods import ROOT, read_rules
from app.solver.model import yunikorn
from app.solver.model.base import Native, NativeDocuments, Quantity, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, EngineName, Queue, Quota, Settings
from app.solver.model.yunikorn import ChildTemplate, Limit
from app.solver.model.yunikorn import Queue as YuniKornQueue
from app.solver.model.yunikorn import Settings as YuniKornSettings

DEFAULT_PARTITION = "default"
AS_RELEASED = YuniKornSettings(rules="shipped")
"""What comes from a real system is decided as its releases do, known defects included."""
OTHER_PARTITIONS = "partitions"
"""Where a configuration keeps the partitions that were not read."""


def read_configuration(manifests: Iterable[Object], findings: Findings) -> Configuration:
    """The queues of the partition called default, else of the first one; other partitions are findings, and kept."""
    queues: list[Queue] = []
    native: dict[str, Any] = {}
    settings = AS_RELEASED
    for manifest in manifests:
        partitions = manifest.root.children("partitions")
        names = [partition.text("name") or "" for partition in partitions]
        chosen = names.index(DEFAULT_PARTITION) if DEFAULT_PARTITION in names else 0
        others: list[Reader] = []
        for i, partition in enumerate(partitions):
            if i != chosen or queues:
                others.append(partition)
            else:
                if names[i] not in ("", DEFAULT_PARTITION):
                    detail = "read as the whole cluster; on Kubernetes YuniKorn has nodes in 'default' alone"
                    partition.warn("name", detail, rule="other-partition")
                queues, settings = _partition(partition.keep())
                native = partition.unread() | ({"name": names[i]} if names[i] not in ("", DEFAULT_PARTITION) else {})
        manifest.root.ignore("kind", "apiVersion", "metadata", "checksum")
        manifest.root.keep().close()
        native |= _others(others, findings) | manifest.root.unread() | config_map(manifest)
    return Configuration(
        engine="yunikorn", settings=Settings(yunikorn=settings), queues=queues,
        native=NativeDocuments(yunikorn=native) if native else None
    )  # fmt: skip


def _others(partitions: list[Reader], findings: Findings) -> dict[str, Any]:
    """Partitions that are not read, to be kept."""
    documents: list[Any] = []
    for partition in partitions:
        name = partition.value.get("name")
        if why := unkeepable(partition.value):
            findings.add("not-carried", "error", partition.path, f"partition {name!r} can't be kept: {why}")
            continue
        detail = f"partition {name!r} is a cluster of its own: import it by itself; kept for an export"
        findings.add("not-decided", "warning", partition.path, detail)
        documents.append(partition.value)
    return {OTHER_PARTITIONS: documents} if documents else {}


def _partition(partition: Reader) -> tuple[list[Queue], YuniKornSettings]:
    top = partition.children("queues")
    preemption = partition.child("preemption")
    settings = replace(AS_RELEASED, preemption=preemption.boolean("enabled") is not False)
    if settings.preemption:
        preemption.keep_as_is("enabled")
    preemption.keep_as_is("quotapreemptionenabled")  # Arbiter enforces a quota only when a request asks for it
    preemption.close()
    if "placementrules" in partition:
        read_rules(partition.children("placementrules"))
        partition.keep_as_is("placementrules")
    limits = _limits(partition, "limits")
    partition.keep_as_is("limits")
    partition.not_carried("nodesortpolicy", "nodes are chosen by what preemption needs, not by how full they are")
    partition.not_carried("statedumpfilepath", "where to write a state dump", "info")
    partition.not_carried("usergroupresolver", "how users and groups are found", "info")
    partition.close()
    out: list[Queue] = []
    if len(top) == 1 and (top[0].value.get("name") or "") in (ROOT, ROOT.upper(), ROOT.title()):
        _walk([(top[0], None)], out)
    else:
        out.append(Queue(name=ROOT))
        _walk([(reader, ROOT) for reader in top], out)
    if limits and out:  # YuniKorn hands a partition's limits to its root
        block = out[0].yunikorn or YuniKornQueue()
        if block.limits and block.limits != limits:
            partition.warn("limits", "the root has other limits: YuniKorn refuses that", "error", "bad-value")
        else:
            out[0] = replace(out[0], yunikorn=replace(block, limits=limits))
    return out, settings


def _limits(reader: Reader, key: str) -> list[Limit]:
    limits = _LIMITS.read(reader, key)
    if not limits:
        reader.keep_as_is(key)
    return limits


def _most(reader: Reader, key: str) -> int:
    """How many applications may run; 0: any number."""
    number = reader.count(key) or 0
    if not number:
        reader.keep_as_is(key)
    return number


def _walk(pending: list[tuple[Reader, str | None]], out: list[Queue]) -> None:
    """Parents before children, siblings in the order of the document; without recursion."""
    pending.reverse()
    while pending:
        reader, above = pending.pop()
        reader.keep()
        queue, children = _queue(reader, above)
        if queue is not None:
            out.append(queue)
            pending += [(child, queue.name) for child in reversed(children)]


def _queue(reader: Reader, above: str | None) -> tuple[Queue | None, list[Reader]]:
    name = (reader.text("name") or "").lower()  # YuniKorn compares queue names in lower case
    if not name:
        reader.findings.add("bad-value", "error", reader.path, "a queue without a name: left out with all below it")
        return None, []
    if "." in name:
        reader.warn("name", f"{name!r}: a dot separates queues in a path", "error", "bad-value")
    path = name if above is None else f"{above}.{name}"
    children = reader.children("queues")
    block = _QUEUE.read(reader)
    if children:
        block = replace(block, parent=False)
    quota = _quota(reader.child("resources"))
    if quota and above is None:
        detail = "YuniKorn refuses resources on the root: its limit is the sum of the nodes. Left out"
        reader.warn("resources", detail, "error", "bad-value")
        quota = {}
    reader.not_carried("adminacl", "who may administer is not decided here", "info")
    if reader.value.get("submitacl") == "*":
        reader.keep_as_is("submitacl")
    reader.not_carried("submitacl", "who may submit is not decided here: everybody may")
    reader.close()
    fields = reader.unread()
    queue = Queue(
        name=path, parent=above, quota=quota or None,
        yunikorn=None if block == YuniKornQueue() else block,
        native=Native(yunikorn=fields) if fields else None,
    )  # fmt: skip
    return queue, children


def _quota(resources: Reader) -> dict[str, Quota]:
    guaranteed, limit = resources.quantities("guaranteed"), resources.quantities("max")
    resources.close()
    return {name: Quota(guaranteed=guaranteed.get(name), limit=limit.get(name)) for name in {**guaranteed, **limit}}


def _properties(reader: Reader, key: str) -> dict[str, str]:
    """Properties are strings; YAML's numbers and bools are read back as what was written, as YuniKorn does."""
    inner = reader.child(key)
    read: dict[str, str] = {}
    for key in inner.value:
        value = inner.take(key)
        if isinstance(value, bool):
            read[key] = "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            read[key] = str(value)
        elif value is not None:
            inner.warn(key, "a property is a string", "error", "wrong-type")
    return read


_READ = re.compile(r"[0-9]+([kMGTPE]|[KMGTPE]i)?")
_MILLI = re.compile(r"[0-9]+m")


def export(configuration: Configuration) -> Exported:
    """YAML for the key queues.yaml of the ConfigMap yunikorn-configs."""
    lost = Lost()
    lost.other_blocks(configuration, "yunikorn")
    lost.flavors(configuration, "YuniKorn")
    if configuration.settings.yunikorn is not None and configuration.settings.yunikorn.rules != AS_RELEASED.rules:
        lost.add(("settings", "yunikorn", "rules"), "which rules decide is a choice of Arbiter, not of YuniKorn")
    partition: dict[str, dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    left_out: set[str] = set()
    for path, queue in parents_first(configuration.queues):
        if (queue.yunikorn is not None and queue.yunikorn.dynamic) or queue.parent in left_out:
            lost.add(path, "a dynamic queue is made by placement rules, not by configuration")
            left_out.add(queue.name)
            continue
        partition[queue.name] = lost.native(
            path, _written_queue(queue, path, lost, configuration.engine), _own(queue, path, lost), "yunikorn"
        )
        above = partition[queue.parent].setdefault("queues", []) if queue.parent is not None else top
        above.append(partition[queue.name])
    lost.objects(configuration, "yunikorn", ())
    settings = configuration.settings.yunikorn or yunikorn.Settings()
    return dump([_document(configuration.native or NativeDocuments(), settings, top, lost)], lost)


def _document(
    native: NativeDocuments, settings: yunikorn.Settings, top: list[dict[str, Any]], lost: Lost
) -> dict[str, Any]:
    """queues.yaml, in its ConfigMap if it came in one, with what was kept of the partition and of others."""
    fields = dict(native.yunikorn)
    holder, others, name = fields.pop("configMap", None), fields.pop(OTHER_PARTITIONS, []), fields.pop("name", None)
    path = ("native", "yunikorn")
    if fields.pop("limits", None) is not None and len(top) == 1 and "limits" in top[0]:
        fields["limits"] = top[0].pop("limits")  # a partition's are its root's
    if fields.pop("queues", None) is not None:
        lost.add((*path, "queues"), "the configuration has the queues: these are left out")
    if not isinstance(others, list):
        lost.add((*path, OTHER_PARTITIONS), "no list of partitions: left out")
        others = []
    called = name if isinstance(name, str) and name else DEFAULT_PARTITION
    own = {"name": called} if settings.preemption else {"name": called, "preemption": {"enabled": False}}
    partition = lost.native((), own, NativeDocuments(yunikorn=fields), "yunikorn")
    document = {"partitions": [{**partition, "queues": top}, *cast(list[Any], others)]}
    return document if holder is None else lost.inside(holder, document, (*path, "configMap"))


def _own(queue: Queue, path: Path, lost: Lost) -> Native | None:
    """What was kept of the queue. Queues below it are the configuration's."""
    if queue.native is None or "queues" not in queue.native.yunikorn:
        return queue.native
    lost.add((*path, "native", "yunikorn", "queues"), "the configuration has the queues: these are left out")
    return Native(yunikorn={key: value for key, value in queue.native.yunikorn.items() if key != "queues"})


def _written_queue(queue: Queue, path: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    lost.queue(path, queue, "YuniKorn", weight=False, priority=False, created=False)
    name, resources = _name(queue, path, lost), _resources(queue, path, lost, engine) or None
    shown: dict[str, Any] = {"name": name, "parent": None, "resources": resources}
    shown |= _QUEUE.written(queue.yunikorn or YuniKornQueue(), (*path, "yunikorn"), lost)
    return {key: value for key, value in shown.items() if value is not None}


def _amounts(given: dict[str, Quantity], path: Path, lost: Lost) -> dict[str, Quantity]:
    return {resource: _amount(value, resource, (*path, resource), lost) for resource, value in given.items()}


def _name(queue: Queue, path: Path, lost: Lost) -> str:
    """The last part of its path, as YuniKorn writes it."""
    name = queue.name
    if queue.parent is not None:
        prefix = f"{queue.parent}."
        if not name.startswith(prefix) or "." in name[len(prefix) :]:
            lost.add((*path, "name"), f"YuniKorn would call this queue {prefix}{name.rpartition('.')[2]}")
        name = name.removeprefix(prefix).rpartition(".")[2]
    elif name != ROOT:
        lost.add((*path, "name"), "YuniKorn has one root, called root: this queue ends up below it")
    if name != name.lower():
        lost.add((*path, "name"), "YuniKorn reads queue names in lower case")
    return name


def _resources(queue: Queue, path: Path, lost: Lost, engine: EngineName | None) -> dict[str, Any]:
    """``guaranteed`` and ``max`` by resource, those that say something."""
    guaranteed: dict[str, Any] = {}
    limit: dict[str, Any] = {}
    is_root = queue.parent is None and queue.name.lower() == ROOT
    quotas = renamed(flat_quota(queue, path, "YuniKorn", lost), engine, "yunikorn", lost)
    for resource, (where, quota) in quotas.items():
        if is_root:
            lost.add(where, "YuniKorn refuses resources on the root: its limit is the sum of the nodes")
            continue
        lost.quota(where, quota, "YuniKorn", ("borrowing_limit", "lending_limit", "weight"))
        if quota.guaranteed == "unlimited":
            lost.add((*where, "guaranteed"), "YuniKorn has no unlimited guarantee: left out")
        elif quota.guaranteed is not None:
            guaranteed[resource] = _amount(quota.guaranteed, resource, (*where, "guaranteed"), lost)
        if quota.limit is not None and quota.limit != "unlimited":
            limit[resource] = _amount(quota.limit, resource, (*where, "limit"), lost)
    return {name: amounts for name, amounts in (("guaranteed", guaranteed), ("max", limit)) if amounts}


def _amount(value: Quantity, resource: str, path: Path, lost: Lost) -> Quantity:
    """As YuniKorn reads it: whole numbers, with a suffix if there is one; thousandths of vcore only."""
    if _READ.fullmatch(str(value)) or (resource == "vcore" and _MILLI.fullmatch(str(value))):
        return value
    scale = scale_of(resource)
    steps = parse_quantity(value, scale)
    if steps % scale == 0:
        return steps // scale
    if resource == "vcore":
        return f"{steps}m"
    lost.add(path, f"YuniKorn counts whole units of {resource}: rounded up")
    return -(-steps // scale)


_LIMITS = Table(Limit(), (
    Field("limit", Reader.text), Field("users", Reader.strings), Field("groups", Reader.strings),
    Field("maxresources", Reader.quantities, "max_resources", _amounts),
    Field("maxapplications", Reader.count, "max_applications"),
)).listed("limits")  # fmt: skip
_TEMPLATE = Table(ChildTemplate(), (
    Field("properties", _properties),
    Inside("resources", tuple(Field(key, Reader.quantities, write=_amounts) for key in ("guaranteed", "max"))),
    Field("maxapplications", _most, "max_applications"),
))  # fmt: skip
_QUEUE = Table(YuniKornQueue(), (
    _TEMPLATE.block("childtemplate", "child_template"), Field("properties", _properties),
    Field("parent", Reader.boolean), Field("maxapplications", _most, "max_applications"),
    with_(_LIMITS, read=_limits),
), first=("parent", "properties"))  # fmt: skip
_OF_TASKS = "allocationKey allocationTags requestTime resource priority originator placeholder"
FIELDS: Final[Fields] = {
    "queues.yaml": {
        **each("decided", "name queues placementrules limits preemption.enabled", "partitions[]."),
        **each("none", "limits[].limit preemption.quotapreemptionenabled", "partitions[]."),
        **each("warning", "nodesortpolicy queues[].submitacl", "partitions[]."),
        **each("info", "usergroupresolver queues[].adminacl", "partitions[]."),
    },
    "state-dump": {
        **each("none", """
            appHistory clusterInfo containerHistory eventStreams logLevel placementRules rmDiagnostics partitions
            queues applications nodes"""),
        **each("decided", "timestamp config partitions[].name partitions[].preemptionEnabled"),
        **each("decided", """
            queuename partition children guaranteedResource maxResource maxRunningApps isLeaf isManaged properties
            template""", "queues[]."),
        **each("decided", """
            applicationID applicationState partition queueName submissionTime user groups""", "applications[]."),
        "applications[].backoffDeadline": "warning",
        **each("decided", f"{_OF_TASKS} nodeId preempted", "applications[].allocations[]."),
        **each("decided", f"{_OF_TASKS} requiredNodeId triggeredPreemption", "applications[].requests[]."),
        **each("decided", """
            partitionName nodesInfo[].nodeID nodesInfo[].attributes nodesInfo[].capacity nodesInfo[].occupied
            nodesInfo[].schedulable nodesInfo[].reservations""", "nodes[]."),
    },
}  # fmt: skip
"""What becomes of every field of its documents."""
