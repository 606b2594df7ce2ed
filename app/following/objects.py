"""Objects without what is never read of them: it takes memory, and a change of it is no change of the cluster.

Controllers write the status of queues with every admission, and nodes report every few minutes: who is told of each
such change as if it were one would never be done.
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec

from app.formats.kube_scheduler.pods import LOOKED_AT
from app.formats.pods import NOT_SCHEDULING

Item = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""


def owner_of(item: Item) -> tuple[str, str] | None:
    """Kind and name of the controller that made it, else of its first owner; None: nobody owns it."""
    listed = part(item, "metadata").get("ownerReferences")
    owners = (
        [cast(dict[str, Any], one) for one in cast(list[Any], listed) if isinstance(one, dict)]
        if isinstance(listed, list)
        else []
    )
    owner = next((one for one in owners if one.get("controller")), owners[0] if owners else None)
    return None if owner is None else (str(owner.get("kind", "")), str(owner.get("name", "")))


class Event(NamedTuple):
    """What a watch says. ``item`` None: nothing changed up to ``version``."""

    gone: bool
    item: Item | None
    version: str


class Listed(NamedTuple):
    """All objects of a kind, and the version to watch from."""

    items: list[Item]
    version: str


_NOISE = "kubectl.kubernetes.io/last-applied-configuration"
_BOOKKEEPING = ("managedFields", "resourceVersion", "generation", "selfLink")
_STATUS: dict[str, tuple[str, ...]] = {
    "Workload": ("conditions", "admission", "reclaimablePods", "requeueState", "admissionChecks", "unhealthyNodes"),
    "ClusterQueue": ("conditions",),
    "LocalQueue": ("fairSharing",),
    "AdmissionCheck": ("conditions",),
    "Pod": ("phase", "startTime", "nominatedNodeName", "conditions"),
    "PodDisruptionBudget": ("disruptionsAllowed", "disruptedPods"),
    "Node": ("allocatable", "capacity", "conditions"),
}
"""What is read of the status of a kind; of others nothing."""
_CONTAINERS = ("containers", "initContainers")
_OF_A_CONTAINER = ("name", "resources", "restartPolicy")
_OF_NO_CONCERN = tuple(field for field in NOT_SCHEDULING if field != "schedulerName")
_OF_A_CONDITION = ("type", "status")
_DISRUPTED = "DisruptionTarget"


def part(of: dict[str, Any], key: str) -> dict[str, Any]:
    """The mapping under ``key``; an empty one where there is none."""
    found = of.get(key)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def id_of(key: Key) -> str:
    """As workloads and asks are called."""
    space, name = key
    return f"{space}/{name}" if space else name


def key_of(item: Item) -> Key:
    """Where an object is."""
    metadata = part(item, "metadata")
    return metadata.get("namespace") or "", metadata.get("name") or ""


def condition(item: Item, kind: str, status: str | None = "True") -> dict[str, Any] | None:
    """The condition of that type, where it has that status; None: whatever it has."""
    found = part(item, "status").get("conditions")
    for one in cast(list[Any], found) if isinstance(found, list) else ():
        if not isinstance(one, dict):
            continue
        said = cast(dict[str, Any], one)
        if said.get("type") == kind and status in (None, said.get("status")):
            return said
    return None


def instant(value: object) -> datetime | None:
    """A time as objects tell it, in UTC where it says no offset; None: it is none."""
    try:
        found = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def trimmed(kind: str, item: Item) -> Item:
    """``item`` without what is never read; changed in place."""
    metadata = part(item, "metadata")
    for field in _BOOKKEEPING:
        metadata.pop(field, None)
    if _NOISE in (annotations := part(metadata, "annotations")):
        del annotations[_NOISE]
    _trim_status(kind, item)
    if kind == "Pod":
        _trim_pod(part(item, "spec"))
    return item


def _trim_status(kind: str, item: Item) -> None:
    status, read = part(item, "status"), _STATUS.get(kind, ())
    if not read:
        item.pop("status", None)
        return
    for field in [field for field in status if field not in read]:
        del status[field]
    if kind == "Node" and isinstance(status.get("conditions"), list):
        status["conditions"] = [_only(one, _OF_A_CONDITION) for one in status["conditions"]]
    if kind == "Pod" and isinstance(found := status.pop("conditions", None), list):
        # Of a pod it says who told it to end; all else changes often.
        kept = [_only(one, (*_OF_A_CONDITION, "reason")) for one in cast(list[Any], found) if _disrupts(one)]
        if kept:
            status["conditions"] = kept


def _disrupts(condition: Any) -> bool:
    return isinstance(condition, dict) and cast(dict[str, Any], condition).get("type") == _DISRUPTED


def _trim_pod(spec: dict[str, Any]) -> None:
    """A list of something else than containers stays as it is: reading it is a finding. Volumes count for where a pod
    goes that is nowhere yet, ports where they are the node's."""
    volumes = spec.get("volumes")
    for field in _OF_NO_CONCERN:
        spec.pop(field, None)
    waits = cast(list[Any], volumes) if isinstance(volumes, list) and "nodeName" not in spec else []
    if kept := [dict.fromkeys(of) for one in waits if (of := part({"": _only(one, LOOKED_AT)}, ""))]:
        spec["volumes"] = kept
    for field in _CONTAINERS:
        if isinstance(found := spec.get(field), list):
            spec[field] = [_container(one) for one in cast(list[Any], found)]


def _container(container: Any) -> Any:
    kept = _only(container, _OF_A_CONTAINER)
    ports = cast(dict[str, Any], container).get("ports") if isinstance(container, dict) else None
    listed = cast(list[Any], ports) if isinstance(ports, list) else []
    of_node = [one for one in listed if part({"": one}, "").get("hostPort")]
    return {**kept, "ports": of_node} if of_node else kept


def _only(value: Any, fields: tuple[str, ...]) -> Any:
    if not isinstance(value, dict):
        return value
    of = cast(dict[str, Any], value)
    return {field: of[field] for field in fields if field in of}
