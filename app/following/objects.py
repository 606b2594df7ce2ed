"""What is followed for each engine, as their systems have it: what is asked for, and the rights that this needs.

With what is read of an object, which is kept without what is never read, and what it says of evictions. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, cast

from app.base.documents import as_list, as_mapping
from app.formats.kube_scheduler.pods import LOOKED_AT
from app.formats.kueue.workloads import awaits_victims
from app.formats.manifests import on_kubernetes
from app.formats.objects import Evidence, Followed, Item, Kind, condition, part, text_of
from app.formats.pods import NOT_SCHEDULING
from app.formats.yunikorn.pods import SCHEDULER as YUNIKORN
from app.solver.model.configuration import EngineName

NOT_NAMED = "the cluster does not say for whom"
VERBS = ("list", "watch")


_FOLLOWED = {system.facts.name: system.followed for system in on_kubernetes() if system.followed is not None}
FOLLOWED = {name: of.kinds for name, of in _FOLLOWED.items()}
WORK = {name: of.work for name, of in _FOLLOWED.items()}
WITNESSES = {name: of.witnesses for name, of in _FOLLOWED.items()}


def followed_of(engine: EngineName) -> Followed:
    """How that system is followed. Raises KeyError for one that is not."""
    return _FOLLOWED[engine]


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
    documents: list[dict[str, Any]] = [
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
        documents += _role("Role", f"{account}-{engine}", space, rules, _of(account, namespace))
    return documents


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


def owner_of(item: Item) -> tuple[str, str] | None:
    """Kind and name of the controller that made it, else of its first owner; None: nobody owns it."""
    listed = as_list(part(item, "metadata").get("ownerReferences"))
    owners = [as_mapping(reference) for reference in listed if isinstance(reference, dict)]
    owner = next((reference for reference in owners if reference.get("controller")), owners[0] if owners else None)
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
    elif kind == "Deployment":
        template = part(part(part(item, "spec"), "template"), "spec")
        item["metadata"] = _only(metadata, ("name", "namespace"))
        item["spec"] = {"template": {"spec": _only(template, ("containers",))}}
    return item


def _trim_status(kind: str, item: Item) -> None:
    status, read = part(item, "status"), _STATUS.get(kind, ())
    if not read:
        item.pop("status", None)
        return
    for field in [field for field in status if field not in read]:
        del status[field]
    if kind == "Node" and isinstance(status.get("conditions"), list):
        status["conditions"] = [_only(entry, _OF_A_CONDITION) for entry in status["conditions"]]
    if kind == "Pod" and isinstance(conditions := status.pop("conditions", None), list):
        # Of a pod it says who told it to end, and of YuniKorn's why it waits; all else changes often.
        types = (_DISRUPTED, _SCHEDULED) if _waits_for_yunikorn(item) else (_DISRUPTED,)
        left = [
            _only(entry, _TOLD_OF.get(_type(entry), ()))
            for entry in cast(list[Any], conditions)
            if _type(entry) in types
        ]
        if left:
            status["conditions"] = left


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
    waits = as_list(volumes) if "nodeName" not in spec else []
    if claims := [dict.fromkeys(of) for volume in waits if (of := as_mapping(_only(volume, LOOKED_AT)))]:
        spec["volumes"] = claims
    for field in _CONTAINERS:
        if isinstance(containers := spec.get(field), list):
            spec[field] = [_container(container) for container in cast(list[Any], containers)]


def _container(container: Any) -> Any:
    fields = _only(container, _OF_A_CONTAINER)
    ports = as_list(as_mapping(container).get("ports"))
    of_node = [port for port in ports if as_mapping(port).get("hostPort")]
    return {**fields, "ports": of_node} if of_node else fields


def _only(value: Any, fields: tuple[str, ...]) -> Any:
    if not isinstance(value, dict):
        return value
    of = cast(dict[str, Any], value)
    return {field: of[field] for field in fields if field in of}


class Broken(Exception):
    """The API server can't be asked now, or refuses; the text says why. ``retry_after``: seconds that it asks for."""

    def __init__(self, detail: str, retry_after: float = 0.0) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Gone(Exception):
    """The history that was asked for is no more: everything must be listed again."""


class Absent(Broken):
    """The API server knows no such kind."""


class Denied(Broken):
    """The account may not do it: a matter of rights."""


def evidence(engine: EngineName, kind: str, old: Item | None, new: Item) -> Evidence | None:
    """What ``new`` says of an eviction that ``old`` did not; None for nearly every object."""
    reader = followed_of(engine).evidence.get(kind)
    return None if reader is None else reader(old, new)


def ends(kind: str, old: Item | None, new: Item | None) -> bool:
    """Whether a pod is told to end by this change, or is gone without."""
    if kind != "Pod" or old is None or "deletionTimestamp" in part(old, "metadata"):
        return False
    return new is None or "deletionTimestamp" in part(new, "metadata")


def reserves(item: Item | None) -> bool:
    """Whether a Workload holds quota."""
    return item is not None and condition(item, "QuotaReserved") is not None


def admissions(changes: Iterable[tuple[Item | None, Item | None]]) -> list[Item]:
    """The Workloads that got quota with these changes, as they are with it. Kueue may evict what it only assumes to be
    admitted, and then writes both with one change: it was admitted before it was evicted."""
    return [_standing(new) for old, new in changes if new is not None and reserves(new) and not reserves(old)]


def _standing(item: Item) -> Item:
    """An admission takes back that a Workload is evicted: where it says so, that came after."""
    if condition(item, "Evicted") is None:
        return item
    status = part(item, "status")
    standing = [
        entry
        for entry in status["conditions"]
        if entry not in (condition(item, "Evicted"), condition(item, "Preempted"))
    ]
    return {**item, "status": {**status, "conditions": standing}}


def preempts(item: Item) -> bool:
    """Whether a Workload waits for victims to stop, as Kueue's scheduler says of it."""
    waits = condition(item, "QuotaReserved", "False")
    return waits is not None and awaits_victims(text_of(waits.get("message")))


def nominated(item: Item) -> bool:
    """Whether Kueue's scheduler has had a look at a Workload that waits: it writes down why it waits."""
    return condition(item, "QuotaReserved", None) is not None
