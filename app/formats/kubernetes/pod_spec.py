"""The part of a pod that a scheduler reads: requests, priority, node selection. Used for pods and pod templates."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

from app.formats.documents.reader import Reader
from app.formats.kubernetes.amounts import Steps, largest, plus, steps
from app.solver.model.configuration import Taint
from app.solver.model.state import Expression, Toleration

EFFECTS = {"NoSchedule": "NoSchedule", "PreferNoSchedule": "PreferNoSchedule", "NoExecute": "NoExecute"}
_OPERATORS = {word: word for word in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")}

NOT_SCHEDULING = (
    "activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "ephemeralContainers", "hostAliases", "hostIPC", "hostPID", "hostUsers", "hostname", "imagePullSecrets",
    "readinessGates", "restartPolicy", "runtimeClassName", "schedulerName", "securityContext", "serviceAccount",
    "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "terminationGracePeriodSeconds",
    "volumes", "os", "hostNetwork", "hostnameOverride", "resources",
)  # fmt: skip
"""What a pod is made of, and nothing that decides where or whether it runs."""


@dataclass(frozen=True, slots=True)
class PodSpec:
    """``requests`` of one pod, in steps. ``pinned_node``: the one node that a node affinity on the name allows."""

    requests: Steps
    node_name: str | None
    priority: int | None
    priority_class: str | None
    never_preempts: bool
    scheduler: str | None
    gated: bool
    node_selector: dict[str, str] | None
    tolerations: list[Toleration] | None
    node_affinity: list[list[Expression]] | None
    pinned_node: str | None


class Nodes(TypedDict):
    """Of a ``PodSpec``: which nodes suit."""

    node_selector: dict[str, str] | None
    tolerations: list[Toleration] | None
    node_affinity: list[list[Expression]] | None
    pinned_node: str | None


def read_nodes(spec: Reader) -> Nodes:
    """Which nodes ``spec`` allows: of a pod, or of what pods are made of."""
    affinity, pinned = _affinity(spec.child("affinity"))
    spec.not_carried("topologySpreadConstraints", "spreading over topology domains is not decided here")
    return Nodes(
        node_selector=spec.labels("nodeSelector") or None, tolerations=_tolerations(spec) or None,
        node_affinity=affinity, pinned_node=pinned,
    )  # fmt: skip


def read_pod_spec(spec: Reader) -> PodSpec:
    """Read ``spec`` and close it: what bears on scheduling and has no place in Arbiter is a finding."""
    read = PodSpec(
        **read_nodes(spec),
        requests=_requests(spec),
        node_name=spec.text("nodeName") or None,
        priority=spec.integer("priority"),
        priority_class=spec.text("priorityClassName") or None,
        never_preempts=spec.text("preemptionPolicy") == "Never",
        scheduler=spec.text("schedulerName"),
        gated=bool(spec.children("schedulingGates")),
    )
    spec.not_carried("resourceClaims", "dynamic resource claims are not counted")
    spec.ignore(*NOT_SCHEDULING)
    spec.close()
    return read


def _requests(spec: Reader) -> Steps:
    """Kubernetes' rule: the containers and sidecars together, or the largest moment of starting up; plus overhead."""
    running: Steps = {}
    for container in spec.children("containers"):
        running = plus(running, _container(container))
    starting: Steps = {}
    sidecars: Steps = {}
    for container in spec.children("initContainers"):
        asked = _container(container)
        if container.text("restartPolicy") == "Always":
            sidecars = plus(sidecars, asked)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, plus(sidecars, asked))
    return plus(largest(plus(running, sidecars), starting), steps(spec, "overhead"))


def _container(container: Reader) -> Steps:
    """What one container asks for; where it gives a limit only, that."""
    resources = container.child("resources")
    return {**steps(resources, "limits"), **steps(resources, "requests")}


def _tolerations(spec: Reader) -> list[Toleration]:
    found: list[Toleration] = []
    for reader in spec.children("tolerations"):
        operator = reader.choice("operator", {"Equal": "Equal", "Exists": "Exists"}) or "Equal"
        found.append(
            Toleration(
                key=reader.text("key") or "",
                operator=cast(Literal["Equal", "Exists"], operator),
                value=reader.text("value") or "",
                effect=cast(Any, reader.choice("effect", EFFECTS)),
            )
        )
        reader.ignore("tolerationSeconds")
        reader.close()
    return found


def read_taints(reader: Reader, key: str) -> list[Taint]:
    """The taints under ``key``."""
    found: list[Taint] = []
    for taint in reader.children(key):
        name, effect = taint.text("key"), taint.choice("effect", EFFECTS)
        if name is None or effect is None:
            taint.findings.add("bad-value", "error", taint.at, "a taint has a key and an effect")
            continue
        found.append(Taint(key=name, value=taint.text("value") or "", effect=cast(Any, effect)))
        taint.ignore("timeAdded")
        taint.close()
    return found


def _affinity(affinity: Reader) -> tuple[list[list[Expression]] | None, str | None]:
    affinity.not_carried("podAffinity", "affinity to other pods is not decided here")
    affinity.not_carried("podAntiAffinity", "affinity to other pods is not decided here")
    node = affinity.child("nodeAffinity")
    node.not_carried(
        "preferredDuringSchedulingIgnoredDuringExecution", "preferences among nodes are not weighed", "info"
    )
    required = node.child("requiredDuringSchedulingIgnoredDuringExecution")
    terms: list[list[Expression]] = []
    pinned: set[str] = set()
    for term in required.children("nodeSelectorTerms"):
        expressions = [made for reader in term.children("matchExpressions") if (made := _expression(reader))]
        for reader in term.children("matchFields"):
            made = _expression(reader)
            if made and made.key == "metadata.name" and made.operator == "In":
                pinned.update(made.values)
            elif made:
                reader.findings.add("not-carried", "warning", reader.at, "only metadata.name In is understood")
        if expressions:
            terms.append(expressions)
        term.close()
    for reader in (required, node, affinity):
        reader.close()
    return terms or None, pinned.pop() if len(pinned) == 1 else None


def _expression(reader: Reader) -> Expression | None:
    key, operator, values = reader.text("key"), reader.choice("operator", _OPERATORS), reader.strings("values")
    reader.close()
    return None if key is None or operator is None else Expression(key=key, operator=cast(Any, operator), values=values)
