"""Configuration: the slow-changing, stored, revisioned document (settings, flavors, queue tree)."""

from typing import Literal

from app.solver.model import kai as kai_model
from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Name, Priority, Quantity, Time, Wire

EngineName = Literal["kueue", "yunikorn", "kai", "ytsaurus"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Wire, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: TaintEffect


class Flavor(Wire, frozen=True, kw_only=True):
    """A kind of resource (Kueue: ResourceFlavor)."""

    name: Name
    node_labels: dict[str, str] = {}
    node_taints: list[Taint] = []


class Quota(Wire, frozen=True, kw_only=True):
    """What a queue is entitled to of one resource (contract.md: guaranteed, limit and their native names)."""

    guaranteed: Quantity | None = None
    limit: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None
    weight: float | None = None


class FlavorQuotas(Wire, frozen=True, kw_only=True):
    name: Name
    quota: dict[str, Quota] = {}


class ResourceGroup(Wire, frozen=True, kw_only=True):
    """Resources that always share one flavor, and the flavors in the order they are tried."""

    resources: list[str]
    flavors: list[FlavorQuotas]


UNWEIGHTED: float = 1.0
"""The weight of a queue that gives none, told apart from a given 1 by identity, as msgspec tells defaults."""


class Queue(Wire, frozen=True, kw_only=True):
    """A node of the queue tree: ClusterQueue, cohort, leaf, pool."""

    name: Name
    parent: str | None = None
    quota: dict[str, Quota] | None = None
    resource_groups: list[ResourceGroup] | None = None
    weight: float = UNWEIGHTED
    priority: Priority = 0
    created_at: Time | None = None
    kueue: kueue_model.Queue | None = None
    yunikorn: yunikorn_model.Queue | None = None
    kai: kai_model.Queue | None = None
    ytsaurus: ytsaurus_model.Queue | None = None

    @property
    def has_weight(self) -> bool:
        """Whether a weight was given (YTsaurus may infer one that was not)."""
        return self.weight is not UNWEIGHTED


class Settings(Wire, frozen=True, kw_only=True):
    kueue: kueue_model.Settings | None = None
    yunikorn: yunikorn_model.Settings | None = None
    kai: kai_model.Settings | None = None
    ytsaurus: ytsaurus_model.Settings | None = None


class Configuration(Wire, frozen=True, kw_only=True):
    """``engine`` is the default of requests that use this configuration."""

    engine: EngineName | None = None
    settings: Settings = Settings()
    flavors: list[Flavor] = []
    queues: list[Queue] = []
