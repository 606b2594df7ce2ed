from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="KueueAsk")


@_attrs_define
class KueueAsk:
    """`ask.kueue`: when the ask was first tried, for waiting times.

    Attributes:
        first_attempt_at (datetime.datetime | None | Unset):
    """

    first_attempt_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        first_attempt_at: None | str | Unset
        if isinstance(self.first_attempt_at, Unset):
            first_attempt_at = UNSET
        elif isinstance(self.first_attempt_at, datetime.datetime):
            first_attempt_at = self.first_attempt_at.isoformat()
        else:
            first_attempt_at = self.first_attempt_at

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if first_attempt_at is not UNSET:
            field_dict["first_attempt_at"] = first_attempt_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_first_attempt_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                first_attempt_at_type_0 = datetime.datetime.fromisoformat(data)

                return first_attempt_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        first_attempt_at = _parse_first_attempt_at(d.pop("first_attempt_at", UNSET))

        kueue_ask = cls(
            first_attempt_at=first_attempt_at,
        )

        return kueue_ask
