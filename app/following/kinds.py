"""What is followed for each engine: the one table behind what is asked for and behind the rights that this needs.

The rights that a follower needs in a cluster, out of the table that it reads by.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from app.solver.model.configuration import EngineName

KUEUE = "kueue.x-k8s.io"
VERBS = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object. ``versions``: those that are read, the best first; ``needed``: whether there is nothing to
    follow without it; ``within``: the namespace in which alone its objects are read; ``selector``: which of them;
    ``state``: whether they say how the cluster is, and not only what happened; ``placed``: whether they are read only
    while a flavor of Kueue has a topology."""

    name: str
    group: str
    plural: str
    versions: tuple[str, ...]
    needed: bool = True
    within: str | None = None
    selector: str | None = None
    state: bool = True
    placed: bool = False

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
    "yunikorn": (Kind("ConfigMap", "", "configmaps", ("v1",), within="yunikorn"), _POD, _NODE, _CLASS),
    "kube-scheduler": (
        _POD, _NODE, replace(_CLASS, needed=False),
        Kind("PodDisruptionBudget", "policy", "poddisruptionbudgets", ("v1",), needed=False),
        Kind("Namespace", "", "namespaces", ("v1",), needed=False),
    ),
}  # fmt: skip
"""Of YuniKorn's namespace it reads ``yunikorn-defaults``, and over it ``yunikorn-configs``; of Kueue's the manager's
configuration. What is not needed, and may not be read, is reported and done without."""

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
