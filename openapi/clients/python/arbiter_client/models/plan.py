from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.placement import Placement
    from ..models.planned_eviction import PlannedEviction


T = TypeVar("T", bound="Plan")


@_attrs_define
class Plan:
    """What to carry out, in order; each eviction once.

    Attributes:
        evictions (list[PlannedEviction]):
        placements (list[Placement]):
    """

    evictions: list[PlannedEviction]
    placements: list[Placement]

    def to_dict(self) -> dict[str, Any]:
        evictions = []
        for evictions_item_data in self.evictions:
            evictions_item = evictions_item_data.to_dict()
            evictions.append(evictions_item)

        placements = []
        for placements_item_data in self.placements:
            placements_item = placements_item_data.to_dict()
            placements.append(placements_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "evictions": evictions,
                "placements": placements,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.placement import Placement  # noqa: PLC0415
        from ..models.planned_eviction import PlannedEviction  # noqa: PLC0415

        d = dict(src_dict)
        evictions = []
        _evictions = d.pop("evictions")
        for evictions_item_data in _evictions:
            evictions_item = PlannedEviction.from_dict(evictions_item_data)

            evictions.append(evictions_item)

        placements = []
        _placements = d.pop("placements")
        for placements_item_data in _placements:
            placements_item = Placement.from_dict(placements_item_data)

            placements.append(placements_item)

        plan = cls(
            evictions=evictions,
            placements=placements,
        )

        return plan
