"""State: nodes and running workloads, and the asks that wait."""

from typing import Literal

from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Count, Name, Priority, Resources, Time, Wire
from app.solver.model.configuration import Taint, TaintEffect

TaskState = Literal["running", "releasing", "preempted", "released"]


class Toleration(Wire, frozen=True, kw_only=True):
    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: TaintEffect | None = None


class Expression(Wire, frozen=True, kw_only=True):
    """A node selector requirement, with Kubernetes' operators."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class Task(Wire, frozen=True, kw_only=True):
    """A pod set, allocation, pod or job; ``requests`` are per unit of ``count``."""

    name: Name
    count: Count = 1
    min_count: Count | None = None
    requests: Resources = {}
    usage: Resources | None = None
    node: str | None = None
    flavors: dict[str, str] | None = None
    priority: Priority | None = None
    created_at: Time | None = None
    started_at: Time | None = None
    preemptible: bool | None = None
    originator: bool = False
    required_node: str | None = None
    state: TaskState = "running"
    placeholder: bool = False
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    node_affinity: list[list[Expression]] | None = None


class Workload(Wire, frozen=True, kw_only=True):
    """A Kueue Workload, YuniKorn application, KAI PodGroup or YTsaurus operation that runs."""

    id: Name
    queue: Name
    uid: str | None = None
    priority: Priority = 0
    created_at: Time | None = None
    started_at: Time | None = None
    preemptible: bool = True
    evicted: bool = False
    min_available: Count | None = None
    weight: float | None = None
    limit: Resources | None = None
    on_preemption: Literal["Requeue", "Terminate"] | None = None
    disruption_cost_milestones: list[kueue_model.Milestone] | None = None
    ytsaurus: ytsaurus_model.Workload | None = None
    tasks: list[Task] = []


class Ask(Wire, frozen=True, kw_only=True):
    """Pending work; ``workload`` names the running one that it belongs to, if any."""

    id: Name
    queue: Name
    workload: str | None = None
    uid: str | None = None
    priority: Priority | None = None
    created_at: Time | None = None
    tasks: list[Task]
    min_available: Count | None = None
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    preemptible: bool | None = None
    originator: bool = False
    required_node: str | None = None
    feasible_nodes: list[str] | None = None
    weight: float | None = None
    limit: Resources | None = None
    ytsaurus: ytsaurus_model.Workload | None = None
    yunikorn: yunikorn_model.Ask | None = None
    kueue: kueue_model.Ask | None = None


class Node(Wire, frozen=True, kw_only=True):
    name: Name
    capacity: Resources
    occupied: Resources = {}
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    schedulable: bool = True
    ytsaurus: ytsaurus_model.Node | None = None


class Reservation(Wire, frozen=True, kw_only=True):
    """A node kept for an ask by an earlier decision."""

    node: str
    ask: Ask


class QueueState(Wire, frozen=True, kw_only=True):
    ytsaurus: ytsaurus_model.PoolState | None = None


class State(Wire, frozen=True, kw_only=True):
    nodes: list[Node] = []
    workloads: list[Workload] = []
    reservations: list[Reservation] = []
    queues: dict[str, QueueState] = {}
