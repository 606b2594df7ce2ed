from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="YuniKornAsk")


@_attrs_define
class YuniKornAsk:
    """`ask.yunikorn`: what earlier cycles did for this ask.

    Attributes:
        last_preemption_check_at (datetime.datetime | None | Unset):
        triggered_preemption (bool | Unset):  Default: False.
    """

    last_preemption_check_at: datetime.datetime | None | Unset = UNSET
    triggered_preemption: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        last_preemption_check_at: None | str | Unset
        if isinstance(self.last_preemption_check_at, Unset):
            last_preemption_check_at = UNSET
        elif isinstance(self.last_preemption_check_at, datetime.datetime):
            last_preemption_check_at = self.last_preemption_check_at.isoformat()
        else:
            last_preemption_check_at = self.last_preemption_check_at

        triggered_preemption = self.triggered_preemption

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if last_preemption_check_at is not UNSET:
            field_dict["last_preemption_check_at"] = last_preemption_check_at
        if triggered_preemption is not UNSET:
            field_dict["triggered_preemption"] = triggered_preemption

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_last_preemption_check_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_preemption_check_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_preemption_check_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_preemption_check_at = _parse_last_preemption_check_at(d.pop("last_preemption_check_at", UNSET))

        triggered_preemption = d.pop("triggered_preemption", UNSET)

        yuni_korn_ask = cls(
            last_preemption_check_at=last_preemption_check_at,
            triggered_preemption=triggered_preemption,
        )

        return yuni_korn_ask
