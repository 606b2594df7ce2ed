"""YuniKorn's queues.yaml: partitions, queues, their resources, properties and child templates."""

from collections.abc import Iterable
from typing import Any

from app.formats.exported import unkeepable
from app.formats.objects import Object, config_map
from app.formats.reader import Findings, Reader
from app.solver.model.base import Native, NativeDocuments
from app.solver.model.configuration import Configuration, Queue, Quota, Settings
from app.solver.model.yunikorn import ChildTemplate
from app.solver.model.yunikorn import Queue as YuniKornQueue
from app.solver.model.yunikorn import Settings as YuniKornSettings

DEFAULT_PARTITION = "default"
ROOT = "root"
AS_RELEASED = Settings(yunikorn=YuniKornSettings(rules="shipped"))
"""What comes from a real system is decided as its releases do, known defects included."""
OTHER_PARTITIONS = "partitions"
"""Where a configuration keeps the partitions that were not read."""


def read_configuration(found: Iterable[Object], findings: Findings) -> Configuration:
    """The queues of the partition called default, else of the first one; other partitions are findings, and kept."""
    queues: list[Queue] = []
    native: dict[str, Any] = {}
    for made in found:
        partitions = made.root.children("partitions")
        names = [partition.text("name") or "" for partition in partitions]
        chosen = names.index(DEFAULT_PARTITION) if DEFAULT_PARTITION in names else 0
        others: list[Reader] = []
        for i, partition in enumerate(partitions):
            if i != chosen or queues:
                others.append(partition)
            else:
                queues = _partition(partition.keep())
                native = partition.kept() | ({"name": names[i]} if names[i] not in ("", DEFAULT_PARTITION) else {})
        made.root.ignore("kind", "apiVersion", "metadata", "checksum")
        made.root.keep().close()
        native |= _others(others, findings) | made.root.kept() | config_map(made)
    return Configuration(
        engine="yunikorn", settings=AS_RELEASED, queues=queues,
        native=NativeDocuments(yunikorn=native) if native else None
    )  # fmt: skip


def _others(partitions: list[Reader], findings: Findings) -> dict[str, Any]:
    """Partitions that are not read, to be kept."""
    kept: list[Any] = []
    for partition in partitions:
        name = partition.value.get("name")
        if why := unkeepable(partition.value):
            findings.add("not-carried", "error", partition.at, f"partition {name!r} can't be kept: {why}")
            continue
        detail = f"partition {name!r} is a cluster of its own: import it by itself; kept for an export"
        findings.add("not-decided", "warning", partition.at, detail)
        kept.append(partition.value)
    return {OTHER_PARTITIONS: kept} if kept else {}


def _partition(partition: Reader) -> list[Queue]:
    top = partition.children("queues")
    preemption = partition.child("preemption")
    if preemption.boolean("enabled") is False:
        preemption.undecided("enabled", "preemption is off in this partition; Arbiter decides as if it were on")
    elif "enabled" in preemption:
        preemption.keep_as_is("enabled")
    preemption.keep_as_is("quotapreemptionenabled")  # Arbiter enforces a quota only when a request asks for it
    preemption.close()
    partition.not_carried("placementrules", "pods name their queue; rules that find one are not applied", "info")
    partition.not_carried("nodesortpolicy", "nodes are chosen by what preemption needs, not by how full they are")
    _not_decided(partition, "limits", "statedumpfilepath", "usergroupresolver")
    partition.close()
    out: list[Queue] = []
    if len(top) == 1 and (top[0].value.get("name") or "") in (ROOT, ROOT.upper(), ROOT.title()):
        _walk([(top[0], None)], out)
    else:
        out.append(Queue(name=ROOT))
        _walk([(reader, ROOT) for reader in top], out)
    return out


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
        reader.findings.add("bad-value", "error", reader.at, "a queue without a name: left out with all below it")
        return None, []
    if "." in name:
        reader.warn("name", f"{name!r}: a dot separates queues in a path", "error", "bad-value")
    path = name if above is None else f"{above}.{name}"
    children = reader.children("queues")
    template = _template(reader.child("childtemplate"))
    block = YuniKornQueue(
        properties=_properties(reader),
        parent=reader.boolean("parent") is True and not children,
        child_template=template,
    )
    quota = _quota(reader.child("resources"))
    if quota and above is None:
        detail = "YuniKorn refuses resources on the root: its limit is the sum of the nodes. Left out"
        reader.warn("resources", detail, "error", "bad-value")
        quota = {}
    _not_decided(reader, "maxapplications", "limits", "adminacl", "submitacl")
    reader.close()
    fields = reader.kept()
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


def _properties(reader: Reader) -> dict[str, str]:
    """Properties are strings; YAML's numbers and bools are read back as what was written, as YuniKorn does."""
    inner = reader.child("properties")
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


def _template(reader: Reader) -> ChildTemplate | None:
    properties = _properties(reader)
    reader.not_carried("resources", "resources of a child template apply to queues made later, not to those here")
    _not_decided(reader, "maxapplications")
    reader.close()
    return ChildTemplate(properties=properties) if properties else None


def _not_decided(reader: Reader, *keys: str) -> None:
    why = {
        "limits": "limits of users and groups are not decided here",
        "maxapplications": "the number of applications is not limited here",
        "adminacl": "who may administer is not decided here",
        "submitacl": "who may submit is not decided here",
        "statedumpfilepath": "where to write a state dump",
        "usergroupresolver": "how users and groups are found",
    }
    for key in keys:
        reader.not_carried(key, why[key], "warning" if key in ("limits", "maxapplications") else "info")
