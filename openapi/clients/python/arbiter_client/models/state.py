from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.node import Node
    from ..models.reservation import Reservation
    from ..models.state_queues import StateQueues
    from ..models.workload import Workload


T = TypeVar("T", bound="State")


@_attrs_define
class State:
    """
    Attributes:
        nodes (list[Node] | Unset):
        workloads (list[Workload] | Unset):
        reservations (list[Reservation] | Unset):
        queues (StateQueues | Unset):
    """

    nodes: list[Node] | Unset = UNSET
    workloads: list[Workload] | Unset = UNSET
    reservations: list[Reservation] | Unset = UNSET
    queues: StateQueues | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        nodes: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.nodes, Unset):
            nodes = []
            for nodes_item_data in self.nodes:
                nodes_item = nodes_item_data.to_dict()
                nodes.append(nodes_item)

        workloads: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.workloads, Unset):
            workloads = []
            for workloads_item_data in self.workloads:
                workloads_item = workloads_item_data.to_dict()
                workloads.append(workloads_item)

        reservations: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.reservations, Unset):
            reservations = []
            for reservations_item_data in self.reservations:
                reservations_item = reservations_item_data.to_dict()
                reservations.append(reservations_item)

        queues: dict[str, Any] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = self.queues.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if workloads is not UNSET:
            field_dict["workloads"] = workloads
        if reservations is not UNSET:
            field_dict["reservations"] = reservations
        if queues is not UNSET:
            field_dict["queues"] = queues

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node import Node  # noqa: PLC0415
        from ..models.reservation import Reservation  # noqa: PLC0415
        from ..models.state_queues import StateQueues  # noqa: PLC0415
        from ..models.workload import Workload  # noqa: PLC0415

        d = dict(src_dict)
        _nodes = d.pop("nodes", UNSET)
        nodes: list[Node] | Unset = UNSET
        if _nodes is not UNSET:
            nodes = []
            for nodes_item_data in _nodes:
                nodes_item = Node.from_dict(nodes_item_data)

                nodes.append(nodes_item)

        _workloads = d.pop("workloads", UNSET)
        workloads: list[Workload] | Unset = UNSET
        if _workloads is not UNSET:
            workloads = []
            for workloads_item_data in _workloads:
                workloads_item = Workload.from_dict(workloads_item_data)

                workloads.append(workloads_item)

        _reservations = d.pop("reservations", UNSET)
        reservations: list[Reservation] | Unset = UNSET
        if _reservations is not UNSET:
            reservations = []
            for reservations_item_data in _reservations:
                reservations_item = Reservation.from_dict(reservations_item_data)

                reservations.append(reservations_item)

        _queues = d.pop("queues", UNSET)
        queues: StateQueues | Unset
        if isinstance(_queues, Unset):
            queues = UNSET
        else:
            queues = StateQueues.from_dict(_queues)

        state = cls(
            nodes=nodes,
            workloads=workloads,
            reservations=reservations,
            queues=queues,
        )

        return state
