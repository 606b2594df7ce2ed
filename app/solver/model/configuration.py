"""Configuration: the slow-changing, stored, revisioned document (settings, flavors, queue tree); quotas in both
forms.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

from app.solver.engines import ENGINES
from app.solver.model import kai as kai_model
from app.solver.model import kube_scheduler as kube_scheduler_model
from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Name, Native, NativeDocuments, Priority, Quantity, Time, Wire
from app.solver.model.problems import Carried

if TYPE_CHECKING:
    EngineName: TypeAlias = str
else:
    EngineName = Literal[tuple(ENGINES)]
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from app.solver.model.base import UNLIMITED, parse_quantity, scale_of, units
from app.solver.model.problems import Finding, pointer

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Wire, frozen=True, kw_only=True):
    key: str
    """Its key."""
    value: str = ""
    """Its value; may be empty."""
    effect: TaintEffect
    """What it does to pods that do not tolerate it; `PreferNoSchedule` is not looked at."""


class Toleration(Wire, frozen=True, kw_only=True):
    key: str = ""
    """The taint key that is tolerated; empty with `Exists`: every key."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """`Equal`: key and value must match; `Exists`: the key alone."""
    value: str = ""
    """The taint value that is tolerated; read with `Equal` only."""
    effect: TaintEffect | None = None
    """The taint effect that is tolerated; absent: every effect."""


class Flavor(Wire, frozen=True, kw_only=True):
    """A kind of resource (Kueue: ResourceFlavor)."""

    name: Name
    """Unique among the flavors; quotas name it."""
    node_labels: dict[str, str] = {}
    """Labels of the flavor's nodes: a task that selects others can't use it."""
    node_taints: list[Taint] = []
    """Taints of the flavor's nodes: a task must tolerate them."""
    topology: Name | None = None
    """The topology of its nodes, one of `topologies`. Absent: pods are not placed. Read by Kueue."""
    tolerations: list[Toleration] | None = None
    """Taints of nodes that every task bears that gets the flavor. Read by Kueue."""
    native: Native | None = None
    """What its own document says beyond this. Absent: nothing. Read by no engine."""


class Quota(Wire, frozen=True, kw_only=True):
    """What a queue is entitled to of one resource (contract.md: guaranteed, limit and their native names)."""

    guaranteed: Quantity | None = None
    """What it is entitled to: nominal quota (Kueue), guaranteed (YuniKorn), deserved (KAI), strong guarantee
    (YTsaurus). Absent: nothing; `unlimited`: no bound (KAI's -1)."""
    limit: Quantity | None = None
    """The most that it may use: max (YuniKorn), limit (KAI), resource_limits (YTsaurus). Absent: no limit. Kueue has
    borrowing limits instead."""
    borrowing_limit: Quantity | None = None
    """The most that it may use beyond its nominal quota. Absent: no limit. Read by Kueue."""
    lending_limit: Quantity | None = None
    """The most of its unused nominal quota that others may borrow. Absent: all. Read by Kueue."""
    weight: float | None = None
    """Its over-quota weight for this resource. Absent: the queue's. Read by KAI."""


class FlavorQuotas(Wire, frozen=True, kw_only=True):
    name: Name
    """The flavor, one of `flavors`."""
    quota: dict[str, Quota] = {}
    """What the queue is entitled to of this flavor, by resource."""


class ResourceGroup(Wire, frozen=True, kw_only=True):
    """Resources that always share one flavor, and the flavors in the order they are tried."""

    resources: list[str]
    """The resources that get one flavor together."""
    flavors: list[FlavorQuotas]
    """The flavors, in the order in which they are tried."""


UNWEIGHTED: float = 1.0
"""The weight of a queue that gives none, told apart from a given 1 by identity, as msgspec tells defaults."""


class Queue(Wire, frozen=True, kw_only=True):
    """A node of the queue tree: ClusterQueue, cohort, leaf, pool."""

    name: Name
    """Unique in the configuration; a full path in YuniKorn (`root.a.b`)."""
    parent: str | None = None
    """The name of the queue above it. Absent: a root of a tree. Read by all engines."""
    quota: dict[str, Quota] | None = None
    """What it is entitled to, by resource: short for one resource group with the one flavor `default`. Read by all
    engines."""
    resource_groups: list[ResourceGroup] | None = None
    """What it is entitled to, by flavor. Not together with `quota`. Read by all engines; those without flavors add them
    up."""
    weight: float = UNWEIGHTED
    """Its share of what nobody is entitled to, relative to its siblings: fair-sharing weight (Kueue), over-quota weight
    (KAI), pool weight (YTsaurus, above 0)."""
    priority: Priority = 0
    """Higher goes first among its siblings. Read by KAI."""
    created_at: Time | None = None
    """When it was created; the older goes first where all else is equal. Read by KAI."""
    kueue: kueue_model.Queue | None = None
    """What only Kueue reads of it."""
    yunikorn: yunikorn_model.Queue | None = None
    """What only YuniKorn reads of it."""
    kai: kai_model.Queue | None = None
    """What only KAI reads of it."""
    ytsaurus: ytsaurus_model.Queue | None = None
    """What only YTsaurus reads of it."""
    native: Native | None = None
    """What its own document says beyond this. Absent: nothing. Read by no engine."""

    @property
    def has_weight(self) -> bool:
        """Whether a weight was given (YTsaurus may infer one that was not)."""
        return self.weight is not UNWEIGHTED


class Settings(Wire, frozen=True, kw_only=True):
    kueue: kueue_model.Settings | None = None
    """Kueue's settings."""
    yunikorn: yunikorn_model.Settings | None = None
    """YuniKorn's settings."""
    kai: kai_model.Settings | None = None
    """KAI Scheduler's settings."""
    ytsaurus: ytsaurus_model.Settings | None = None
    """YTsaurus' settings: those of the pool tree and of the scheduler."""
    kube_scheduler: kube_scheduler_model.Settings | None = None
    """kube-scheduler's settings."""


class Configuration(Wire, frozen=True, kw_only=True):
    """``engine`` is the default of requests that use this configuration."""

    engine: EngineName | None = None
    """Whose rules decide, where a request does not say."""
    settings: Settings = Settings()
    """Settings of the engines; only those of the engine that decides are read."""
    flavors: list[Flavor] = []
    """Kinds of resources. Read by Kueue; the flavor `default` need not be listed."""
    queues: list[Queue] = []
    """The queues, in any order, as one tree or several."""
    topologies: list[kueue_model.Topology] = []
    """Topologies of nodes, which flavors name. Read by Kueue."""
    native: NativeDocuments | None = None
    """What the system's own documents say beyond this, for an export. Absent: nothing. Read by no engine."""
    findings: Carried = []
    """What of the documents that it was read from is not in it as it is there (at most 100, the worst first): every
    answer by this configuration says it too. A document that leaves them out has none. Read by no engine."""


DEFAULT_FLAVOR = "default"
"""The flavor of quotas that are written in the short form (contract.md: quota)."""
Place = tuple[str | int, ...]
"""Parts of a JSON pointer."""


class PlacedQuota(NamedTuple):
    """One quota; ``where`` leads to it."""

    flavor: str
    resource: str
    quota: Quota
    where: Place


def quotas(queue: Queue, where: Place = ()) -> Iterator[PlacedQuota]:
    """``quota`` first, then ``resource_groups``, in document order. ``where`` leads to the queue.

    A document that uses both forms is refused elsewhere; here each quota is found at its own place.
    """
    for resource, quota in (queue.quota or {}).items():
        yield PlacedQuota(DEFAULT_FLAVOR, resource, quota, (*where, "quota", resource))
    for g, group in enumerate(queue.resource_groups or ()):
        for f, flavor in enumerate(group.flavors):
            here = (*where, "resource_groups", g, "flavors", f, "quota")
            for resource, quota in flavor.quota.items():
                yield PlacedQuota(flavor.name, resource, quota, (*here, resource))


RULE = "queues.oversubscribed-children"


def oversubscribed(configuration: Configuration) -> Iterator[Finding]:
    """Warnings in document order, one for each figure of a parent that its children's guarantees exceed together. That
    is legal in every engine, and worth knowing.

    Compared by flavor and resource with the parent's own guarantee and its limit. Quantities must have been checked.
    """
    promised: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for queue in configuration.queues:
        if queue.parent is not None:
            for own in quotas(queue):
                promised[queue.parent][own.flavor, own.resource] += _steps(own.quota.guaranteed, own.resource) or 0
    for i, queue in enumerate(configuration.queues):
        children = promised.get(queue.name, {})
        for flavor, resource, quota, where in quotas(queue, ("queues", i)):
            below = children.get((flavor, resource), 0)
            for field, value in (("guaranteed", quota.guaranteed), ("limit", quota.limit)):
                own = _steps(value, resource)
                if own is not None and below > own:
                    yield _warning(resource, pointer(*where, field), below, own, field)


def _warning(resource: str, where: str, promised: int, own: int, field: str) -> Finding:
    detail = (
        f"the queues below are guaranteed {units(promised, resource)} {resource} together, "
        f"more than the {units(own, resource)} that this queue has as {field}"
    )
    return Finding(rule=RULE, severity="warning", pointer=where, detail=detail)


def _steps(value: Quantity | None, resource: str) -> int | None:
    """``None``: no figure to compare with. A parent without a guarantee of its own says nothing about its children."""
    steps = None if value is None or value == UNLIMITED else parse_quantity(value, scale_of(resource))
    return steps or None
