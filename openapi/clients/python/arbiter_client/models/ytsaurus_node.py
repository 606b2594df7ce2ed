from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="YtsaurusNode")


@_attrs_define
class YtsaurusNode:
    """`node.ytsaurus`: what the previous heartbeat left behind.

    Attributes:
        last_preemptive_scheduling_at (datetime.datetime | None | Unset):
        overcommit_since (datetime.datetime | None | Unset):
    """

    last_preemptive_scheduling_at: datetime.datetime | None | Unset = UNSET
    overcommit_since: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        last_preemptive_scheduling_at: None | str | Unset
        if isinstance(self.last_preemptive_scheduling_at, Unset):
            last_preemptive_scheduling_at = UNSET
        elif isinstance(self.last_preemptive_scheduling_at, datetime.datetime):
            last_preemptive_scheduling_at = self.last_preemptive_scheduling_at.isoformat()
        else:
            last_preemptive_scheduling_at = self.last_preemptive_scheduling_at

        overcommit_since: None | str | Unset
        if isinstance(self.overcommit_since, Unset):
            overcommit_since = UNSET
        elif isinstance(self.overcommit_since, datetime.datetime):
            overcommit_since = self.overcommit_since.isoformat()
        else:
            overcommit_since = self.overcommit_since

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if last_preemptive_scheduling_at is not UNSET:
            field_dict["last_preemptive_scheduling_at"] = last_preemptive_scheduling_at
        if overcommit_since is not UNSET:
            field_dict["overcommit_since"] = overcommit_since

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_last_preemptive_scheduling_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_preemptive_scheduling_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_preemptive_scheduling_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_preemptive_scheduling_at = _parse_last_preemptive_scheduling_at(
            d.pop("last_preemptive_scheduling_at", UNSET)
        )

        def _parse_overcommit_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                overcommit_since_type_0 = datetime.datetime.fromisoformat(data)

                return overcommit_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        overcommit_since = _parse_overcommit_since(d.pop("overcommit_since", UNSET))

        ytsaurus_node = cls(
            last_preemptive_scheduling_at=last_preemptive_scheduling_at,
            overcommit_since=overcommit_since,
        )

        return ytsaurus_node
