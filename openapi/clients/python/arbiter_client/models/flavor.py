from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.flavor_node_labels import FlavorNodeLabels
    from ..models.taint import Taint


T = TypeVar("T", bound="Flavor")


@_attrs_define
class Flavor:
    """A kind of resource (Kueue: ResourceFlavor).

    Attributes:
        name (str):
        node_labels (FlavorNodeLabels | Unset):
        node_taints (list[Taint] | Unset):
    """

    name: str
    node_labels: FlavorNodeLabels | Unset = UNSET
    node_taints: list[Taint] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        node_labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.node_labels, Unset):
            node_labels = self.node_labels.to_dict()

        node_taints: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.node_taints, Unset):
            node_taints = []
            for node_taints_item_data in self.node_taints:
                node_taints_item = node_taints_item_data.to_dict()
                node_taints.append(node_taints_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if node_labels is not UNSET:
            field_dict["node_labels"] = node_labels
        if node_taints is not UNSET:
            field_dict["node_taints"] = node_taints

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.flavor_node_labels import FlavorNodeLabels  # noqa: PLC0415
        from ..models.taint import Taint  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        _node_labels = d.pop("node_labels", UNSET)
        node_labels: FlavorNodeLabels | Unset
        if isinstance(_node_labels, Unset):
            node_labels = UNSET
        else:
            node_labels = FlavorNodeLabels.from_dict(_node_labels)

        _node_taints = d.pop("node_taints", UNSET)
        node_taints: list[Taint] | Unset = UNSET
        if _node_taints is not UNSET:
            node_taints = []
            for node_taints_item_data in _node_taints:
                node_taints_item = Taint.from_dict(node_taints_item_data)

                node_taints.append(node_taints_item)

        flavor = cls(
            name=name,
            node_labels=node_labels,
            node_taints=node_taints,
        )

        return flavor
