"""What changed in a cluster since a snapshot's generation: nodes, workloads, tasks and reservations by id."""

from app.solver.model.base import Total, Wire
from app.solver.model.state import Ask, Node, QueueState, Reservation, Task, Workload


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
    asks: AskChanges = AskChanges()
    """What became of the asks that are kept beside the state."""
    resource_versions: dict[str, str] | None = None
    """As in a put. Absent: they stay as they are."""
