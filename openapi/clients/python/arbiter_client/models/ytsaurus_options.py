from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="YtsaurusOptions")


@_attrs_define
class YtsaurusOptions:
    """`options.ytsaurus`: the node whose heartbeat is processed; without it all nodes, in order.

    Attributes:
        heartbeat_node (None | str | Unset):
    """

    heartbeat_node: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        heartbeat_node: None | str | Unset
        if isinstance(self.heartbeat_node, Unset):
            heartbeat_node = UNSET
        else:
            heartbeat_node = self.heartbeat_node

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if heartbeat_node is not UNSET:
            field_dict["heartbeat_node"] = heartbeat_node

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_heartbeat_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        heartbeat_node = _parse_heartbeat_node(d.pop("heartbeat_node", UNSET))

        ytsaurus_options = cls(
            heartbeat_node=heartbeat_node,
        )

        return ytsaurus_options
