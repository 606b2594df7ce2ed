from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.rules import Rules, check_rules
from ..types import UNSET, Unset

T = TypeVar("T", bound="YuniKornSettings")


@_attrs_define
class YuniKornSettings:
    """`settings.yunikorn`: which rule set decides (docs/engines/yunikorn.md).

    Attributes:
        rules (Rules | Unset):
    """

    rules: Rules | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        rules: str | Unset = UNSET
        if not isinstance(self.rules, Unset):
            rules = self.rules

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if rules is not UNSET:
            field_dict["rules"] = rules

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _rules = d.pop("rules", UNSET)
        rules: Rules | Unset
        if isinstance(_rules, Unset):
            rules = UNSET
        else:
            rules = check_rules(_rules)

        yuni_korn_settings = cls(
            rules=rules,
        )

        return yuni_korn_settings
