from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="WaitingBoost")


@_attrs_define
class WaitingBoost:
    """KEP-83 (deferred): after `grace` of waiting, priority rises `rate_per_hour` up to `ceiling`.

    Attributes:
        grace (float | str): Seconds, or a Go duration: `30s`, `1h30m`
        rate_per_hour (float):
        ceiling (int):
    """

    grace: float | str
    rate_per_hour: float
    ceiling: int

    def to_dict(self) -> dict[str, Any]:
        grace: float | str
        grace = self.grace

        rate_per_hour = self.rate_per_hour

        ceiling = self.ceiling

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "grace": grace,
                "rate_per_hour": rate_per_hour,
                "ceiling": ceiling,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_grace(data: object) -> float | str:
            return cast(float | str, data)

        grace = _parse_grace(d.pop("grace"))

        rate_per_hour = d.pop("rate_per_hour")

        ceiling = d.pop("ceiling")

        waiting_boost = cls(
            grace=grace,
            rate_per_hour=rate_per_hour,
            ceiling=ceiling,
        )

        return waiting_boost
