"""What is followed for each engine: the one table behind what is asked for and behind the rights that this needs.

With what is read of an object: it is kept without what is never read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec

from app.formats.kube_scheduler.pods import LOOKED_AT
from app.formats.pods import NOT_SCHEDULING
from app.formats.yunikorn.pods import SCHEDULER as YUNIKORN
from app.solver.model.configuration import EngineName

KUEUE = "kueue.x-k8s.io"
VERBS = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object. ``versions``: those that are read, the best first; ``needed``: whether there is nothing to
    follow without it; ``within``: the namespace in which alone its objects are read; ``selector``: which of them;
    ``state``: whether they say how the cluster is, and not only what happened; ``placed``: whether they are read only
    while a flavor of Kueue has a topology; ``layers``: names of objects that are read as one, a key of a later one
    replacing an earlier one's; no others are."""

    name: str
    group: str
    plural: str
    versions: tuple[str, ...]
    needed: bool = True
    within: str | None = None
    selector: str | None = None
    state: bool = True
    placed: bool = False
    layers: tuple[str, ...] = ()

    def path(self, version: str) -> str:
        """Where all objects of the kind are that are read."""
        space = f"namespaces/{self.within}/" if self.within else ""
        return f"{self.base(version)}/{space}{self.plural}"

    def base(self, version: str) -> str:
        """Where the server says which kinds it has."""
        return f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"

    def api_version(self, version: str) -> str:
        """As objects of the kind say it."""
        return f"{self.group}/{version}" if self.group else version


def _kueue(name: str, plural: str, *, needed: bool = True) -> Kind:
    return Kind(name, KUEUE, plural, ("v1beta2", "v1beta1"), needed)


_POD = Kind("Pod", "", "pods", ("v1",))
_NODE = Kind("Node", "", "nodes", ("v1",))
_CLASS = Kind("PriorityClass", "scheduling.k8s.io", "priorityclasses", ("v1",))


FOLLOWED: dict[EngineName, tuple[Kind, ...]] = {
    "kueue": (
        _kueue("ClusterQueue", "clusterqueues"),
        _kueue("Cohort", "cohorts", needed=False),
        _kueue("LocalQueue", "localqueues"),
        _kueue("ResourceFlavor", "resourceflavors"),
        _kueue("Workload", "workloads"),
        _kueue("WorkloadPriorityClass", "workloadpriorityclasses", needed=False),
        _kueue("AdmissionCheck", "admissionchecks", needed=False),
        replace(_CLASS, needed=False),
        Kind("Namespace", "", "namespaces", ("v1",), needed=False),
        Kind("LimitRange", "", "limitranges", ("v1",), needed=False),
        Kind("RuntimeClass", "node.k8s.io", "runtimeclasses", ("v1",), needed=False),
        replace(_kueue("Topology", "topologies", needed=False), placed=True),
        replace(_NODE, needed=False, placed=True),
        replace(_POD, needed=False, placed=True),
        Kind("ConfigMap", "", "configmaps", ("v1",), needed=False, within="kueue-system",
             selector="metadata.name=kueue-manager-config"),
    ),
    "kai": (
        Kind("Queue", "scheduling.run.ai", "queues", ("v2",)),
        Kind("PodGroup", "scheduling.run.ai", "podgroups", ("v2alpha2",)),
        _POD, _NODE, _CLASS,
    ),
    "yunikorn": (
        Kind("ConfigMap", "", "configmaps", ("v1",), within="yunikorn",
             layers=("yunikorn-defaults", "yunikorn-configs")),
        _POD, _NODE, _CLASS,
    ),
    "kube-scheduler": (
        _POD, _NODE, replace(_CLASS, needed=False),
        Kind("PodDisruptionBudget", "policy", "poddisruptionbudgets", ("v1",), needed=False),
        Kind("Namespace", "", "namespaces", ("v1",), needed=False),
    ),
}  # fmt: skip
"""Of Kueue's namespace it reads the manager's configuration. What is not needed, and may not be read, is reported and
done without."""

WORK: dict[EngineName, tuple[str, ...]] = {
    "kueue": ("Workload",), "kai": ("PodGroup", "Pod"), "yunikorn": ("Pod",), "kube-scheduler": ("Pod",),
}  # fmt: skip
"""Kinds that work is made of; the first is what an eviction is for."""

_EVENT = Kind("Event", "", "events", ("v1",), needed=False, state=False)
WITNESSES: dict[EngineName, tuple[Kind, ...]] = {
    "kueue": (),
    "kai": (replace(_EVENT, selector="reason=Evict"),),
    "yunikorn": (replace(_EVENT, selector="involvedObject.kind=Pod,reason=Informational"),),
    "kube-scheduler": (replace(_EVENT, selector="involvedObject.kind=Pod,reason=Preempted"),),
}
"""What is read beside that to see preemptions: Kueue's Workloads say it themselves."""


def followed(engine: EngineName, *, shadow: bool = False, namespace: str | None = None) -> tuple[Kind, ...]:
    """All kinds that are read; ``shadow``: also to see preemptions; ``namespace``: where the system is installed, None:
    where it usually is."""
    kinds = (*FOLLOWED[engine], *(WITNESSES[engine] if shadow else ()))
    return tuple(replace(kind, within=namespace) if namespace and kind.within else kind for kind in kinds)


_RBAC = "rbac.authorization.k8s.io"


def manifests(
    engine: EngineName, namespace: str, account: str, *, shadow: bool = False, within: str | None = None
) -> list[dict[str, Any]]:
    """An account, and roles that let it read what is followed of ``engine``, each bound to it. ``shadow``:
    and what says of preemptions; ``within``: the namespace of the system."""
    kinds = followed(engine, shadow=shadow, namespace=within)
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}},
        *_role(
            "ClusterRole",
            f"{account}-{engine}",
            None,
            _rules(k for k in kinds if k.within is None),
            _of(account, namespace),
        ),
    ]
    for space in sorted({kind.within for kind in kinds if kind.within is not None}):
        rules = _rules(kind for kind in kinds if kind.within == space)
        made += _role("Role", f"{account}-{engine}", space, rules, _of(account, namespace))
    return made


def _of(account: str, namespace: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": account, "namespace": namespace}


def _rules(kinds: Iterable[Kind]) -> list[dict[str, Any]]:
    plurals: dict[str, list[str]] = {}
    for kind in kinds:
        plurals.setdefault(kind.group, []).append(kind.plural)
    return [{"apiGroups": [group], "resources": of, "verbs": list(VERBS)} for group, of in plurals.items()]


def _role(
    kind: str, name: str, space: str | None, rules: list[dict[str, Any]], subject: dict[str, str]
) -> list[dict[str, Any]]:
    metadata = {"name": name, **({"namespace": space} if space is not None else {})}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": name}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules},
        {"apiVersion": f"{_RBAC}/v1", "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference,
         "subjects": [subject]},
    ]  # fmt: skip


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
    "PodGroup": ("schedulingConditions",),
    "Node": ("allocatable", "capacity", "conditions"),
}
"""What is read of the status of a kind; of others nothing."""
_CONTAINERS = ("containers", "initContainers")
_OF_A_CONTAINER = ("name", "resources", "restartPolicy")
_OF_NO_CONCERN = tuple(field for field in NOT_SCHEDULING if field != "schedulerName")
_OF_A_CONDITION = ("type", "status")
_DISRUPTED, _SCHEDULED = "DisruptionTarget", "PodScheduled"
_TOLD_OF = {
    _DISRUPTED: (*_OF_A_CONDITION, "reason"),
    _SCHEDULED: (*_OF_A_CONDITION, "reason", "message", "lastTransitionTime"),
}


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
    """``item`` without what is never read; changed in place. What is never read takes memory, and a change of it is no
    change of the cluster.

    Controllers write the status of queues with every admission, and nodes report every few minutes: who is told of each
    such change as if it were one would never be done.
    """
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
        # Of a pod it says who told it to end, and of YuniKorn's why it waits; all else changes often.
        told = (_DISRUPTED, _SCHEDULED) if _waits_for_yunikorn(item) else (_DISRUPTED,)
        kept = [_only(one, _TOLD_OF.get(_type(one), ())) for one in cast(list[Any], found) if _type(one) in told]
        if kept:
            status["conditions"] = kept


def _type(condition: Any) -> Any:
    return cast(dict[str, Any], condition).get("type") if isinstance(condition, dict) else None


def _waits_for_yunikorn(item: Item) -> bool:
    spec = part(item, "spec")
    return spec.get("schedulerName") == YUNIKORN and "nodeName" not in spec


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


class Broken(Exception):
    """The API server can't be asked now, or refuses; the text says why."""


class Gone(Exception):
    """The history that was asked for is no more: everything must be listed again."""


class Absent(Broken):
    """The API server knows no such kind."""


class Denied(Broken):
    """The account may not do it: a matter of rights."""
