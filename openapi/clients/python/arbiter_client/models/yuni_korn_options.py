from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.yuni_korn_options_node_choice import YuniKornOptionsNodeChoice, check_yuni_korn_options_node_choice
from ..types import UNSET, Unset

T = TypeVar("T", bound="YuniKornOptions")


@_attrs_define
class YuniKornOptions:
    """`options.yunikorn`.

    Attributes:
        node_choice (YuniKornOptionsNodeChoice | Unset):  Default: 'scored'.
        enforce_quota (None | str | Unset):
    """

    node_choice: YuniKornOptionsNodeChoice | Unset = "scored"
    enforce_quota: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        node_choice: str | Unset = UNSET
        if not isinstance(self.node_choice, Unset):
            node_choice = self.node_choice

        enforce_quota: None | str | Unset
        if isinstance(self.enforce_quota, Unset):
            enforce_quota = UNSET
        else:
            enforce_quota = self.enforce_quota

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if node_choice is not UNSET:
            field_dict["node_choice"] = node_choice
        if enforce_quota is not UNSET:
            field_dict["enforce_quota"] = enforce_quota

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _node_choice = d.pop("node_choice", UNSET)
        node_choice: YuniKornOptionsNodeChoice | Unset
        if isinstance(_node_choice, Unset):
            node_choice = UNSET
        else:
            node_choice = check_yuni_korn_options_node_choice(_node_choice)

        def _parse_enforce_quota(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        enforce_quota = _parse_enforce_quota(d.pop("enforce_quota", UNSET))

        yuni_korn_options = cls(
            node_choice=node_choice,
            enforce_quota=enforce_quota,
        )

        return yuni_korn_options
