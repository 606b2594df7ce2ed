from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="LongRunnerPenalty")


@_attrs_define
class LongRunnerPenalty:
    """KEP-83 (deferred): after `grace`, effective priority falls `rate_per_hour` down to `floor`.

    Attributes:
        grace (float | str): Seconds, or a Go duration: `30s`, `1h30m`
        rate_per_hour (float):
        floor (int):
    """

    grace: float | str
    rate_per_hour: float
    floor: int

    def to_dict(self) -> dict[str, Any]:
        grace: float | str
        grace = self.grace

        rate_per_hour = self.rate_per_hour

        floor = self.floor

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "grace": grace,
                "rate_per_hour": rate_per_hour,
                "floor": floor,
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

        floor = d.pop("floor")

        long_runner_penalty = cls(
            grace=grace,
            rate_per_hour=rate_per_hour,
            floor=floor,
        )

        return long_runner_penalty
