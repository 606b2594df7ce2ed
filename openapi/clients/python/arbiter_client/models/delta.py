from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.delta_queues import DeltaQueues
    from ..models.node_changes import NodeChanges
    from ..models.reservation_changes import ReservationChanges
    from ..models.task_changes import TaskChanges
    from ..models.workload_changes import WorkloadChanges


T = TypeVar("T", bound="Delta")


@_attrs_define
class Delta:
    """`generation`: the one that the sender knows; a snapshot that has moved on refuses the delta whole.

    Attributes:
        generation (int):
        nodes (NodeChanges | Unset): `change` replaces a node whole.
        workloads (WorkloadChanges | Unset): `change` replaces a workload whole, its tasks included.
        tasks (TaskChanges | Unset): Tasks of workloads that the same delta does not name.
        reservations (ReservationChanges | Unset):
        queues (DeltaQueues | Unset):
    """

    generation: int
    nodes: NodeChanges | Unset = UNSET
    workloads: WorkloadChanges | Unset = UNSET
    tasks: TaskChanges | Unset = UNSET
    reservations: ReservationChanges | Unset = UNSET
    queues: DeltaQueues | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        generation = self.generation

        nodes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.nodes, Unset):
            nodes = self.nodes.to_dict()

        workloads: dict[str, Any] | Unset = UNSET
        if not isinstance(self.workloads, Unset):
            workloads = self.workloads.to_dict()

        tasks: dict[str, Any] | Unset = UNSET
        if not isinstance(self.tasks, Unset):
            tasks = self.tasks.to_dict()

        reservations: dict[str, Any] | Unset = UNSET
        if not isinstance(self.reservations, Unset):
            reservations = self.reservations.to_dict()

        queues: dict[str, Any] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = self.queues.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "generation": generation,
            }
        )
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if workloads is not UNSET:
            field_dict["workloads"] = workloads
        if tasks is not UNSET:
            field_dict["tasks"] = tasks
        if reservations is not UNSET:
            field_dict["reservations"] = reservations
        if queues is not UNSET:
            field_dict["queues"] = queues

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.delta_queues import DeltaQueues  # noqa: PLC0415
        from ..models.node_changes import NodeChanges  # noqa: PLC0415
        from ..models.reservation_changes import ReservationChanges  # noqa: PLC0415
        from ..models.task_changes import TaskChanges  # noqa: PLC0415
        from ..models.workload_changes import WorkloadChanges  # noqa: PLC0415

        d = dict(src_dict)
        generation = d.pop("generation")

        _nodes = d.pop("nodes", UNSET)
        nodes: NodeChanges | Unset
        if isinstance(_nodes, Unset):
            nodes = UNSET
        else:
            nodes = NodeChanges.from_dict(_nodes)

        _workloads = d.pop("workloads", UNSET)
        workloads: WorkloadChanges | Unset
        if isinstance(_workloads, Unset):
            workloads = UNSET
        else:
            workloads = WorkloadChanges.from_dict(_workloads)

        _tasks = d.pop("tasks", UNSET)
        tasks: TaskChanges | Unset
        if isinstance(_tasks, Unset):
            tasks = UNSET
        else:
            tasks = TaskChanges.from_dict(_tasks)

        _reservations = d.pop("reservations", UNSET)
        reservations: ReservationChanges | Unset
        if isinstance(_reservations, Unset):
            reservations = UNSET
        else:
            reservations = ReservationChanges.from_dict(_reservations)

        _queues = d.pop("queues", UNSET)
        queues: DeltaQueues | Unset
        if isinstance(_queues, Unset):
            queues = UNSET
        else:
            queues = DeltaQueues.from_dict(_queues)

        delta = cls(
            generation=generation,
            nodes=nodes,
            workloads=workloads,
            tasks=tasks,
            reservations=reservations,
            queues=queues,
        )

        return delta
