from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.node_labels import NodeLabels
    from ..models.resources import Resources
    from ..models.taint import Taint
    from ..models.ytsaurus_node import YtsaurusNode


T = TypeVar("T", bound="Node")


@_attrs_define
class Node:
    """
    Attributes:
        name (str):
        capacity (Resources):
        occupied (Resources | Unset):
        labels (NodeLabels | Unset):
        taints (list[Taint] | Unset):
        schedulable (bool | Unset):  Default: True.
        ytsaurus (None | Unset | YtsaurusNode):
    """

    name: str
    capacity: Resources
    occupied: Resources | Unset = UNSET
    labels: NodeLabels | Unset = UNSET
    taints: list[Taint] | Unset = UNSET
    schedulable: bool | Unset = True
    ytsaurus: None | Unset | YtsaurusNode = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.ytsaurus_node import YtsaurusNode  # noqa: PLC0415

        name = self.name

        capacity = self.capacity.to_dict()

        occupied: dict[str, Any] | Unset = UNSET
        if not isinstance(self.occupied, Unset):
            occupied = self.occupied.to_dict()

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        taints: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.taints, Unset):
            taints = []
            for taints_item_data in self.taints:
                taints_item = taints_item_data.to_dict()
                taints.append(taints_item)

        schedulable = self.schedulable

        ytsaurus: dict[str, Any] | None | Unset
        if isinstance(self.ytsaurus, Unset):
            ytsaurus = UNSET
        elif isinstance(self.ytsaurus, YtsaurusNode):
            ytsaurus = self.ytsaurus.to_dict()
        else:
            ytsaurus = self.ytsaurus

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "capacity": capacity,
            }
        )
        if occupied is not UNSET:
            field_dict["occupied"] = occupied
        if labels is not UNSET:
            field_dict["labels"] = labels
        if taints is not UNSET:
            field_dict["taints"] = taints
        if schedulable is not UNSET:
            field_dict["schedulable"] = schedulable
        if ytsaurus is not UNSET:
            field_dict["ytsaurus"] = ytsaurus

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.node_labels import NodeLabels  # noqa: PLC0415
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.taint import Taint  # noqa: PLC0415
        from ..models.ytsaurus_node import YtsaurusNode  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        capacity = Resources.from_dict(d.pop("capacity"))

        _occupied = d.pop("occupied", UNSET)
        occupied: Resources | Unset
        if isinstance(_occupied, Unset):
            occupied = UNSET
        else:
            occupied = Resources.from_dict(_occupied)

        _labels = d.pop("labels", UNSET)
        labels: NodeLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = NodeLabels.from_dict(_labels)

        _taints = d.pop("taints", UNSET)
        taints: list[Taint] | Unset = UNSET
        if _taints is not UNSET:
            taints = []
            for taints_item_data in _taints:
                taints_item = Taint.from_dict(taints_item_data)

                taints.append(taints_item)

        schedulable = d.pop("schedulable", UNSET)

        def _parse_ytsaurus(data: object) -> None | Unset | YtsaurusNode:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                ytsaurus_type_0 = YtsaurusNode.from_dict(data)

                return ytsaurus_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusNode, data)

        ytsaurus = _parse_ytsaurus(d.pop("ytsaurus", UNSET))

        node = cls(
            name=name,
            capacity=capacity,
            occupied=occupied,
            labels=labels,
            taints=taints,
            schedulable=schedulable,
            ytsaurus=ytsaurus,
        )

        return node
