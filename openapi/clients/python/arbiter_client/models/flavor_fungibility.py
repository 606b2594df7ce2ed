from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.flavor_fungibility_preference_type_0 import (
    FlavorFungibilityPreferenceType0,
    check_flavor_fungibility_preference_type_0,
)
from ..models.kueue_fungibility import KueueFungibility, check_kueue_fungibility
from ..types import UNSET, Unset

T = TypeVar("T", bound="FlavorFungibility")


@_attrs_define
class FlavorFungibility:
    """When a flavor search stops, and what it prefers when it does not.

    Attributes:
        when_can_borrow (KueueFungibility | Unset):
        when_can_preempt (KueueFungibility | Unset):
        preference (FlavorFungibilityPreferenceType0 | None | Unset):
    """

    when_can_borrow: KueueFungibility | Unset = UNSET
    when_can_preempt: KueueFungibility | Unset = UNSET
    preference: FlavorFungibilityPreferenceType0 | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        when_can_borrow: str | Unset = UNSET
        if not isinstance(self.when_can_borrow, Unset):
            when_can_borrow = self.when_can_borrow

        when_can_preempt: str | Unset = UNSET
        if not isinstance(self.when_can_preempt, Unset):
            when_can_preempt = self.when_can_preempt

        preference: None | str | Unset
        if isinstance(self.preference, Unset):
            preference = UNSET
        elif isinstance(self.preference, str):
            preference = self.preference
        else:
            preference = self.preference

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if when_can_borrow is not UNSET:
            field_dict["when_can_borrow"] = when_can_borrow
        if when_can_preempt is not UNSET:
            field_dict["when_can_preempt"] = when_can_preempt
        if preference is not UNSET:
            field_dict["preference"] = preference

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _when_can_borrow = d.pop("when_can_borrow", UNSET)
        when_can_borrow: KueueFungibility | Unset
        if isinstance(_when_can_borrow, Unset):
            when_can_borrow = UNSET
        else:
            when_can_borrow = check_kueue_fungibility(_when_can_borrow)

        _when_can_preempt = d.pop("when_can_preempt", UNSET)
        when_can_preempt: KueueFungibility | Unset
        if isinstance(_when_can_preempt, Unset):
            when_can_preempt = UNSET
        else:
            when_can_preempt = check_kueue_fungibility(_when_can_preempt)

        def _parse_preference(data: object) -> FlavorFungibilityPreferenceType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                preference_type_0 = check_flavor_fungibility_preference_type_0(data)

                return preference_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FlavorFungibilityPreferenceType0 | None | Unset, data)

        preference = _parse_preference(d.pop("preference", UNSET))

        flavor_fungibility = cls(
            when_can_borrow=when_can_borrow,
            when_can_preempt=when_can_preempt,
            preference=preference,
        )

        return flavor_fungibility
