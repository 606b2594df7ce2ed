"""kube-scheduler's blocks, and what a pod says that only it reads. Names are Kubernetes' own, in snake_case."""

from typing import Annotated, Literal

import msgspec

from app.solver.model.base import Total, Wire

Release = Literal["1.37"]
Percentage = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.kube_scheduler``: arguments of the plugin DefaultPreemption, and the gate."""

    min_candidate_nodes_percentage: Percentage = 10
    """How many of the nodes that preemption might help are looked at at least, in percent."""
    min_candidate_nodes_absolute: Total = 100
    """How many of them are looked at at least."""
    workload_aware: bool = False
    """Whether the gate GenericWorkload is on: gangs ask as one, and groups can be one victim."""
    release: Release = "1.37"
    """Which release decides."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.kube_scheduler``: what the released scheduler leaves to chance."""

    offset: Total | Literal["all"] = 0
    """From which of the nodes that preemption might help on they are looked at (the released code draws it); `all`:
    every node is looked at, however many there are."""
    parallelism: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    """How many nodes are looked at at once. Only 1 is decided on: more make the released answer depend on timing."""


class HostPort(Wire, frozen=True, kw_only=True):
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)]
    """The port of the node; 0 is none."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """The protocol."""
    ip: str = ""
    """The address of the node; empty or `0.0.0.0`: all of them."""


class LabelExpression(Wire, frozen=True, kw_only=True):
    """A label selector requirement."""

    key: str
    """The label that is looked at."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How it is compared."""
    values: list[str] = []
    """What it is compared with: some for `In` and `NotIn`, none for the others."""


class LabelSelector(Wire, frozen=True, kw_only=True):
    match_labels: dict[str, str] = {}
    """Labels that must be there, by key."""
    match_expressions: list[LabelExpression] = []
    """Requirements that must hold too."""


class PodAffinityTerm(Wire, frozen=True, kw_only=True):
    """A required term of pod affinity or anti-affinity."""

    topology_key: str
    """The label of nodes whose equal values are one place."""
    label_selector: LabelSelector | None = None
    """Which pods are meant. Absent: none."""
    namespaces: list[str] = []
    """Their namespaces. None here and no `namespace_selector`: the pod's own."""
    namespace_selector: LabelSelector | None = None
    """Namespaces by their labels, which are their names (`kubernetes.io/metadata.name`). An empty one: all."""


class TopologySpreadConstraint(Wire, frozen=True, kw_only=True):
    """A constraint with `whenUnsatisfiable: DoNotSchedule`."""

    max_skew: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    """By how much a place may have more matching pods than the place with the fewest."""
    topology_key: str
    """The label of nodes whose equal values are one place."""
    label_selector: LabelSelector | None = None
    """Which pods are counted. Absent: none."""
    min_domains: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    """With fewer places than this the fewest counts as 0. Absent: 1."""
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    """`Honor`: only nodes that the pod's selector and affinity allow are counted."""
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    """`Honor`: only nodes whose taints the pod tolerates are counted."""
    match_label_keys: list[str] = []
    """Labels of the pod whose values the counted pods share."""
