from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.ytsaurus_starvation import YtsaurusStarvation, check_ytsaurus_starvation
from ..models.ytsaurus_status import YtsaurusStatus, check_ytsaurus_status
from ..types import UNSET, Unset

T = TypeVar("T", bound="PoolState")


@_attrs_define
class PoolState:
    """`state.queues.*.ytsaurus`: a pool's starvation state, as the previous answer gave it.

    Attributes:
        starvation (None | Unset | YtsaurusStarvation):
        status (None | Unset | YtsaurusStatus):
        below_fair_share_since (datetime.datetime | None | Unset):
    """

    starvation: None | Unset | YtsaurusStarvation = UNSET
    status: None | Unset | YtsaurusStatus = UNSET
    below_fair_share_since: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        starvation: None | str | Unset
        if isinstance(self.starvation, Unset):
            starvation = UNSET
        elif isinstance(self.starvation, str):
            starvation = self.starvation
        else:
            starvation = self.starvation

        status: None | str | Unset
        if isinstance(self.status, Unset):
            status = UNSET
        elif isinstance(self.status, str):
            status = self.status
        else:
            status = self.status

        below_fair_share_since: None | str | Unset
        if isinstance(self.below_fair_share_since, Unset):
            below_fair_share_since = UNSET
        elif isinstance(self.below_fair_share_since, datetime.datetime):
            below_fair_share_since = self.below_fair_share_since.isoformat()
        else:
            below_fair_share_since = self.below_fair_share_since

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if starvation is not UNSET:
            field_dict["starvation"] = starvation
        if status is not UNSET:
            field_dict["status"] = status
        if below_fair_share_since is not UNSET:
            field_dict["below_fair_share_since"] = below_fair_share_since

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_starvation(data: object) -> None | Unset | YtsaurusStarvation:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                starvation_type_0 = check_ytsaurus_starvation(data)

                return starvation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusStarvation, data)

        starvation = _parse_starvation(d.pop("starvation", UNSET))

        def _parse_status(data: object) -> None | Unset | YtsaurusStatus:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                status_type_0 = check_ytsaurus_status(data)

                return status_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusStatus, data)

        status = _parse_status(d.pop("status", UNSET))

        def _parse_below_fair_share_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                below_fair_share_since_type_0 = datetime.datetime.fromisoformat(data)

                return below_fair_share_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        below_fair_share_since = _parse_below_fair_share_since(d.pop("below_fair_share_since", UNSET))

        pool_state = cls(
            starvation=starvation,
            status=status,
            below_fair_share_since=below_fair_share_since,
        )

        return pool_state
