from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.ask import Ask


T = TypeVar("T", bound="Reservation")


@_attrs_define
class Reservation:
    """A node kept for an ask by an earlier decision.

    Attributes:
        node (str):
        ask (Ask): Pending work; `workload` names the running one that it belongs to, if any.
    """

    node: str
    ask: Ask

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        ask = self.ask.to_dict()

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
        from ..models.ask import Ask  # noqa: PLC0415

        d = dict(src_dict)
        node = d.pop("node")

        ask = Ask.from_dict(d.pop("ask"))

        reservation = cls(
            node=node,
            ask=ask,
        )

        return reservation
