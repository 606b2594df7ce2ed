"""What changed in a cluster since a snapshot's generation: nodes, workloads, tasks and reservations by id."""

from app.solver.model.base import Wire
from app.solver.model.state import Node, QueueState, Reservation, Task, Workload


class NodeChanges(Wire, frozen=True, kw_only=True):
    """``change`` replaces a node whole."""

    add: list[Node] = []
    change: list[Node] = []
    remove: list[str] = []


class WorkloadChanges(Wire, frozen=True, kw_only=True):
    """``change`` replaces a workload whole, its tasks included."""

    add: list[Workload] = []
    change: list[Workload] = []
    remove: list[str] = []


class TaskOf(Wire, frozen=True, kw_only=True):
    workload: str
    task: Task


class TaskName(Wire, frozen=True, kw_only=True):
    workload: str
    task: str


class TaskChanges(Wire, frozen=True, kw_only=True):
    """Tasks of workloads that the same delta does not name."""

    add: list[TaskOf] = []
    change: list[TaskOf] = []
    remove: list[TaskName] = []


class ReservationName(Wire, frozen=True, kw_only=True):
    node: str
    ask: str


class ReservationChanges(Wire, frozen=True, kw_only=True):
    add: list[Reservation] = []
    remove: list[ReservationName] = []


class Delta(Wire, frozen=True, kw_only=True):
    """``generation``: the one that the sender knows; a snapshot that has moved on refuses the delta whole."""

    generation: int
    nodes: NodeChanges = NodeChanges()
    workloads: WorkloadChanges = WorkloadChanges()
    tasks: TaskChanges = TaskChanges()
    reservations: ReservationChanges = ReservationChanges()
    queues: dict[str, QueueState] = {}
