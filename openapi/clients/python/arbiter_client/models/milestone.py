from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="Milestone")


@_attrs_define
class Milestone:
    """KEP-83 (deferred): the cost of stopping a workload that has run for `seconds`; linear in between.

    Attributes:
        seconds (float):
        cost (float):
    """

    seconds: float
    cost: float

    def to_dict(self) -> dict[str, Any]:
        seconds = self.seconds

        cost = self.cost

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "seconds": seconds,
                "cost": cost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        seconds = d.pop("seconds")

        cost = d.pop("cost")

        milestone = cls(
            seconds=seconds,
            cost=cost,
        )

        return milestone
