"""State: nodes and running workloads, the asks that wait, and a delta: what changed since a snapshot's generation."""

from typing import Annotated, Literal

import msgspec

from app.solver.model import kai as kai_model
from app.solver.model import kube_scheduler as kube_scheduler_model
from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Count, Duration, Name, Priority, Resources, Time, Total, Wire
from app.solver.model.configuration import Taint, Toleration
from app.solver.model.problems import Carried

TaskState = Literal[
    "running", "releasing", "preempted", "released", "bound", "stuck_in_releasing", "gated", "succeeded", "failed"
]
OVER: frozenset[TaskState] = frozenset(("released", "succeeded", "failed"))
"""States of tasks that hold nothing any more."""


class Expression(Wire, frozen=True, kw_only=True):
    """A node selector requirement, with Kubernetes' operators."""

    key: str
    """The label that is looked at."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the label is compared. `Gt` and `Lt` compare whole numbers, written as Kubernetes writes them."""
    values: list[str] = []
    """What the label is compared with: some for `In` and `NotIn`, one for `Gt` and `Lt`, none for the others."""


class Task(Wire, frozen=True, kw_only=True):
    """A pod set, allocation, pod or job; ``requests`` are per unit of ``count``."""

    name: Name
    """Unique within its workload or ask. Read by all engines."""
    uid: str | None = None
    """The UID of its pod, by which kube-scheduler calls it. Read by no engine."""
    count: Count = 1
    """How many alike: pods of a pod set, allocations of a kind. Read by all engines."""
    min_count: Count | None = None
    """Of an ask that may start smaller: the least count that is of use. Absent: all or nothing. Read by Kueue (partial
    admission)."""
    full_count: Count | None = None
    """Of an ask some of whose units are done already: `count` with these, from which smaller sizes are counted down.
    Absent: `count`. Read by Kueue (partial admission)."""
    requests: Resources = {}
    """What one unit of `count` asks for, by resource. Read by all engines."""
    usage: Resources | None = None
    """What one unit really uses, by resource, where that is less than `requests`. Absent: as requested. Read by
    YTsaurus."""
    node: str | None = None
    """The node it runs on, one of `state.nodes`. Read by YuniKorn, KAI, YTsaurus and kube-scheduler."""
    flavors: dict[str, str] | None = None
    """The flavor assigned to each resource, by resource; for an ask: the one it is pinned to. Read by Kueue."""
    priority: Priority | None = None
    """Higher goes first. Absent: the workload's or ask's. Read by YuniKorn and kube-scheduler."""
    created_at: Time | None = None
    """When it was created. Absent: the workload's or ask's. Read by YuniKorn."""
    started_at: Time | None = None
    """When it last started. Absent: the workload's. Read by KAI, YTsaurus and kube-scheduler."""
    preemptible: bool | None = None
    """Whether it lets itself be preempted (YuniKorn: opted in). Absent: the workload's. Read by YuniKorn."""
    originator: bool = False
    """Whether it is the first pod of its application, the driver, which goes last. Read by YuniKorn."""
    required_node: str | None = None
    """The only node it may run on, as a DaemonSet pod has one. Read by YuniKorn, KAI, YTsaurus and
    kube-scheduler."""
    state: TaskState = "running"
    """`running`; `releasing`: told to stop, still holds its resources; `preempted`: marked for preemption by an earlier
    cycle; `released`: gone; `bound`: about to run; `stuck_in_releasing`: told to stop long ago, and not gone; `gated`:
    not to be placed yet; `succeeded`, `failed`: ended. Read by YuniKorn, KAI and kube-scheduler."""
    sub_group: Name | None = None
    """The sub group of its workload or ask that it belongs to. Read by KAI."""
    gpu_memory: Count | None = None
    """The memory of a GPU that it asks for, in MiB, instead of GPUs. Read by KAI."""
    gpu_devices: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    """On how many GPUs it wants a share or that memory. Absent: one. Read by KAI."""
    gpu_group: str | None = None
    """The shared GPU of its node that it runs on, by any name; of several with commas between. Absent: the first with
    room. Read by KAI."""
    placeholder: bool = False
    """Whether it only keeps room for a gang member. Kept, and decided like any other task."""
    node_selector: dict[str, str] | None = None
    """Labels that its node (Kueue: its flavor) must have, by key. Read by all engines."""
    tolerations: list[Toleration] | None = None
    """Taints that it bears. Read by Kueue, YuniKorn, KAI and kube-scheduler."""
    node_affinity: list[list[Expression]] | None = None
    """Required node affinity: any of these terms, each all of its expressions. Read by Kueue, YuniKorn, KAI and
    kube-scheduler."""
    labels: dict[str, str] | None = None
    """Its labels, by key. Read by kube-scheduler."""
    host_ports: list[kube_scheduler_model.HostPort] | None = None
    """Ports of its node that it takes. Read by kube-scheduler."""
    pod_affinity: list[kube_scheduler_model.PodAffinityTerm] | None = None
    """Required affinity to other pods: all of these terms. Read by kube-scheduler."""
    pod_anti_affinity: list[kube_scheduler_model.PodAffinityTerm] | None = None
    """Required anti-affinity to other pods: all of these terms. Read by kube-scheduler."""
    topology_spread: list[kube_scheduler_model.TopologySpreadConstraint] | None = None
    """How evenly it and its like are spread: all of these constraints. Read by kube-scheduler."""
    scheduling_gates: list[str] | None = None
    """What must be lifted before it is scheduled at all. Read by kube-scheduler."""
    nominated_node: str | None = None
    """Of an ask: the node that an earlier cycle nominated it to. Absent: the ask's. Read by kube-scheduler."""
    topology_request: kueue_model.TopologyRequest | None = None
    """How close together its pods must run. Absent: nothing is asked of the topology. Read by Kueue."""
    topology_assignment: kueue_model.TopologyAssignment | None = None
    """Where its pods run, of running work. Absent: nowhere that a topology knows of. Read by Kueue."""


class Workload(Wire, frozen=True, kw_only=True):
    """A Kueue Workload, YuniKorn application, KAI PodGroup or YTsaurus operation that runs."""

    id: Name
    """Unique within the state. Read by all engines."""
    queue: Name
    """The name of the queue it is charged to. Read by all engines."""
    uid: str | None = None
    """The last tie break: lower goes first. Absent: the id. Read by Kueue and KAI."""
    priority: Priority = 0
    """Higher stays longer. Read by Kueue, YuniKorn, KAI and kube-scheduler."""
    created_at: Time | None = None
    """When it was created. Absent: older than everything. Read by Kueue, YuniKorn and KAI."""
    started_at: Time | None = None
    """When its quota was reserved (Kueue) or when it last started. Absent: unknown, which each engine takes its own
    way. Read by Kueue, KAI, YTsaurus and kube-scheduler."""
    preemptible: bool = True
    """Whether it may be evicted at all (YuniKorn: opted in). Read by YuniKorn, KAI and YTsaurus."""
    evicted: bool = False
    """Whether its eviction has begun; it goes first and counts as gone. Read by Kueue."""
    min_available: Count | None = None
    """How many tasks it needs to be of use; those beyond can be taken one by one. Absent: all. Read by KAI and
    kube-scheduler."""
    sub_groups: list[kai_model.SubGroup] | None = None
    """The parts of its gang. Absent: it has none, and `min_available` holds. Read by KAI."""
    min_sub_group: Count | None = None
    """How many of the sub groups that are below no other it needs. Absent: all. Read by KAI."""
    preemption_delay: Duration | None = None
    """How long after its creation and its last eviction it makes nobody go. Absent: it may at once. Read by KAI."""
    last_evicted_at: Time | None = None
    """When one of its pods was last evicted. Absent: never. Read by KAI."""
    stale_since: Time | None = None
    """Since when it has run with too few pods. Absent: since now, if it has. Read by KAI."""
    staleness_grace_period: Duration | None = None
    """How long it may go on so. Negative: for ever. Absent: the settings' value. Read by KAI."""
    weight: float | None = None
    """Its weight among its siblings; above 0. Absent: 1, or inferred where the settings say so. Read by YTsaurus."""
    limit: Resources | None = None
    """The most that it may use, by resource. Absent: no limit. Read by YTsaurus."""
    on_preemption: Literal["Requeue", "Terminate"] | None = None
    """What becomes of it: queued again or ended (KEP-83, not in Kueue yet). Shown with its victim. Read by Kueue."""
    disruption_cost_milestones: list[kueue_model.Milestone] | None = None
    """What stopping it costs, by how long it has run (KEP-83, not in Kueue yet). Absent: its queue's. Read by Kueue."""
    disruption_mode: Literal["pod", "all"] | None = None
    """Whether the pods of a group are evicted one by one or all together. Absent: one by one. Read by
    kube-scheduler."""
    ytsaurus: ytsaurus_model.Workload | None = None
    """What only YTsaurus knows of an operation."""
    kueue: kueue_model.Workload | None = None
    """What only Kueue knows of it."""
    yunikorn: yunikorn_model.Application | None = None
    """What only YuniKorn knows of an application."""
    tasks: list[Task] = []
    """What runs of it; may be empty. Read by all engines."""


class PendingReason(Wire, frozen=True, kw_only=True):
    """What an ask's own scheduler wrote of why it waits, where it is read from a cluster."""

    reason: str
    """In one word, as that scheduler writes it."""
    message: str
    """In one sentence."""
    since: Time | None = None
    """Since when. Absent: it does not say."""
    tried_again: bool = True
    """Whether the scheduler tries it again by itself: then the rules decide, and where it waits this is said beside
    why. If not it waits, whatever the rules say, until the scheduler takes it back."""


class Ask(Wire, frozen=True, kw_only=True):
    """Pending work; ``workload`` names the running one that it belongs to, if any."""

    id: Name
    """Unique among the asks; may be the id of the workload that it belongs to. Read by all engines."""
    queue: Name
    """The name of the queue it is charged to. Read by all engines."""
    workload: str | None = None
    """The id of the running workload that it belongs to. Absent: none runs yet. Read by YuniKorn, KAI and YTsaurus."""
    uid: str | None = None
    """The last tie break: lower goes first. Absent: the id. Read by Kueue and KAI."""
    priority: Priority | None = None
    """Higher goes first and may preempt lower. Absent: the workload's, else 0. Read by Kueue, YuniKorn, KAI and
    kube-scheduler."""
    created_at: Time | None = None
    """When it was created. Absent: older than everything. Read by Kueue, YuniKorn, KAI and
    kube-scheduler."""
    tasks: list[Task]
    """What it wants. Read by all engines."""
    min_available: Count | None = None
    """How many tasks must start together. Absent: all. Read by KAI and kube-scheduler."""
    sub_groups: list[kai_model.SubGroup] | None = None
    """The parts of its gang. Absent: it has none, and `min_available` holds. Read by KAI."""
    min_sub_group: Count | None = None
    """How many of the sub groups that are below no other it needs. Absent: all. Read by KAI."""
    preemption_delay: Duration | None = None
    """How long after its creation and its last eviction it makes nobody go. Absent: it may at once. Read by KAI."""
    last_evicted_at: Time | None = None
    """When one of its pods was last evicted. Absent: never. Read by KAI."""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    """Whether it may preempt others. Read by YuniKorn and kube-scheduler."""
    preemptible: bool | None = None
    """Whether it may be evicted once it runs; KAI's quota rules depend on it. Absent: the workload's, else true. Read
    by KAI and YuniKorn."""
    originator: bool = False
    """Whether it is the first pod of its application. Read by YuniKorn."""
    required_node: str | None = None
    """The only node it may run on, as a DaemonSet pod has one. Read by YuniKorn, KAI, YTsaurus and
    kube-scheduler."""
    feasible_nodes: list[str] | None = None
    """The nodes that can take it at all, by rules that the state does not show. Absent: every node. Read by YuniKorn,
    KAI and YTsaurus."""
    weight: float | None = None
    """As of a workload, for an operation that runs nothing yet. Read by YTsaurus."""
    limit: Resources | None = None
    """As of a workload, for an operation that runs nothing yet. Read by YTsaurus."""
    nominated_node: str | None = None
    """The node that an earlier cycle nominated it to. Absent: none. Read by kube-scheduler."""
    pending_reason: PendingReason | None = None
    """Why its own scheduler says that it waits. Absent: it says nothing. Read by all engines."""
    ytsaurus: ytsaurus_model.Workload | None = None
    """As of a workload, for an operation that runs nothing yet."""
    yunikorn: yunikorn_model.Ask | None = None
    """What earlier cycles of YuniKorn did for it."""
    kueue: kueue_model.Ask | None = None
    """What only Kueue knows of it."""


class Node(Wire, frozen=True, kw_only=True):
    name: Name
    """Unique among the nodes."""
    capacity: Resources
    """What workloads may use of it in total, by resource. Read by YuniKorn, KAI, YTsaurus and kube-scheduler."""
    gpu_memory: Count | None = None
    """The memory of each of its GPUs, in MiB. Absent: unknown, counted as 100. Read by KAI."""
    occupied: Resources = {}
    """What others, who are not in the state, use of it. Read by YuniKorn, KAI, YTsaurus and kube-scheduler."""
    labels: dict[str, str] = {}
    """Its labels, by key. Read by YuniKorn, KAI, YTsaurus and kube-scheduler."""
    taints: list[Taint] = []
    """Its taints. Read by YuniKorn, KAI and kube-scheduler."""
    schedulable: bool = True
    """Whether new work may start there. Read by YuniKorn, KAI, YTsaurus and kube-scheduler."""
    ytsaurus: ytsaurus_model.Node | None = None
    """What earlier heartbeats left behind."""


class Reservation(Wire, frozen=True, kw_only=True):
    """A node kept for an ask by an earlier decision."""

    node: str
    """The name of the node that is kept."""
    ask: Ask
    """The ask it is kept for."""


class QueueState(Wire, frozen=True, kw_only=True):
    ytsaurus: ytsaurus_model.PoolState | None = None
    """What a fair-share update carries over to the next."""
    kueue: kueue_model.QueueState | None = None
    """What a LocalQueue has consumed; its name need not be that of a queue of the configuration."""
    kai: kai_model.QueueState | None = None
    """What a queue has used over time."""


class DisruptionBudget(Wire, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    name: Name
    """Its name."""
    queue: Name
    """Its namespace."""
    selector: kube_scheduler_model.LabelSelector | None = None
    """Which pods it is of. Absent or empty: none."""
    disruptions_allowed: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    """How many of them may be disrupted now (`status.disruptionsAllowed`)."""
    disrupted: list[str] = []
    """Pods whose disruption it knows of (`status.disruptedPods`): they take none."""


class State(Wire, frozen=True, kw_only=True):
    nodes: list[Node] = []
    """The nodes. Read by YuniKorn, KAI, YTsaurus and kube-scheduler, and by Kueue where flavors have topologies."""
    workloads: list[Workload] = []
    """What runs."""
    reservations: list[Reservation] = []
    """Nodes that earlier decisions keep for asks. Read by YuniKorn and kube-scheduler."""
    queues: dict[str, QueueState] = {}
    """What queues carry over from update to update, by name; for Kueue, what LocalQueues have consumed."""
    disruption_budgets: list[DisruptionBudget] = []
    """PodDisruptionBudgets, in the order in which they are asked. Read by kube-scheduler."""
    findings: Carried = []
    """What of the documents that it was read from, asks included, is not in it as it is there (at most 100, the worst
    first): every answer about it says it too, a kept snapshot until it is put whole again. Read by no engine."""


class NodeChanges(Wire, frozen=True, kw_only=True):
    """``change`` replaces a node whole."""

    add: list[Node] = []
    """Nodes that are new."""
    change: list[Node] = []
    """Nodes as they are now, each replaced whole."""
    remove: list[str] = []
    """Names of nodes that are gone."""


class WorkloadChanges(Wire, frozen=True, kw_only=True):
    """``change`` replaces a workload whole, its tasks included."""

    add: list[Workload] = []
    """Workloads that are new."""
    change: list[Workload] = []
    """Workloads as they are now, each replaced whole, its tasks included."""
    remove: list[str] = []
    """Ids of workloads that are gone."""


class TaskOf(Wire, frozen=True, kw_only=True):
    workload: str
    """The id of the workload that it belongs to."""
    task: Task
    """The task as it is now."""


class TaskName(Wire, frozen=True, kw_only=True):
    workload: str
    """The id of the workload that it belongs to."""
    task: str
    """The name of the task."""


class TaskChanges(Wire, frozen=True, kw_only=True):
    """Tasks of workloads that the same delta does not name."""

    add: list[TaskOf] = []
    """Tasks that are new."""
    change: list[TaskOf] = []
    """Tasks as they are now, each replaced whole."""
    remove: list[TaskName] = []
    """Tasks that are gone."""


class ReservationName(Wire, frozen=True, kw_only=True):
    node: str
    """The name of the node."""
    ask: str
    """The id of the ask it was kept for."""


class ReservationChanges(Wire, frozen=True, kw_only=True):
    add: list[Reservation] = []
    """Reservations that are new."""
    remove: list[ReservationName] = []
    """Reservations that are gone."""


class AskChanges(Wire, frozen=True, kw_only=True):
    """``change`` replaces an ask whole."""

    add: list[Ask] = []
    """Asks that are new."""
    change: list[Ask] = []
    """Asks as they are now, each replaced whole."""
    remove: list[str] = []
    """Ids of asks that wait no longer."""


class Delta(Wire, frozen=True, kw_only=True):
    """``generation``: the one that the sender knows; a snapshot that has moved on refuses the delta whole."""

    generation: Total
    """The generation that the sender knows; a snapshot that has moved on refuses the delta whole (409)."""
    nodes: NodeChanges = NodeChanges()
    """What became of nodes."""
    workloads: WorkloadChanges = WorkloadChanges()
    """What became of workloads."""
    tasks: TaskChanges = TaskChanges()
    """What became of tasks of workloads that `workloads` does not name."""
    reservations: ReservationChanges = ReservationChanges()
    """What became of reservations."""
    queues: dict[str, QueueState] = {}
    """What queues carry over, by name; each replaces what was kept of that queue."""
    disruption_budgets: list[DisruptionBudget] | None = None
    """All PodDisruptionBudgets as they are now. Absent: they stay as they are."""
    findings: Carried | None = None
    """All findings of the state as they are now. Absent: they stay as they are."""
    asks: AskChanges = AskChanges()
    """What became of the asks that are kept beside the state."""
    resource_versions: dict[str, str] | None = None
    """As in a put. Absent: they stay as they are."""
