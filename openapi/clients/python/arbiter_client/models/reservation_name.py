from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ReservationName")


@_attrs_define
class ReservationName:
    """
    Attributes:
        node (str):
        ask (str):
    """

    node: str
    ask: str

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        ask = self.ask

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "node": node,
                "ask": ask,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        ask = d.pop("ask")

        reservation_name = cls(
            node=node,
            ask=ask,
        )

        return reservation_name
