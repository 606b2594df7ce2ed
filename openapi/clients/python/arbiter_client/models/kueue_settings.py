from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kueue_strategy import KueueStrategy, check_kueue_strategy
from ..types import UNSET, Unset

T = TypeVar("T", bound="KueueSettings")


@_attrs_define
class KueueSettings:
    """`settings.kueue`. Strategies default to Kueue's own: final share first, then initial share.

    Attributes:
        fair_sharing (bool | Unset):  Default: False.
        preemption_strategies (list[KueueStrategy] | None | Unset):
    """

    fair_sharing: bool | Unset = False
    preemption_strategies: list[KueueStrategy] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        fair_sharing = self.fair_sharing

        preemption_strategies: list[str] | None | Unset
        if isinstance(self.preemption_strategies, Unset):
            preemption_strategies = UNSET
        elif isinstance(self.preemption_strategies, list):
            preemption_strategies = []
            for preemption_strategies_type_0_item_data in self.preemption_strategies:
                preemption_strategies_type_0_item: str = preemption_strategies_type_0_item_data
                preemption_strategies.append(preemption_strategies_type_0_item)

        else:
            preemption_strategies = self.preemption_strategies

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if fair_sharing is not UNSET:
            field_dict["fair_sharing"] = fair_sharing
        if preemption_strategies is not UNSET:
            field_dict["preemption_strategies"] = preemption_strategies

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        fair_sharing = d.pop("fair_sharing", UNSET)

        def _parse_preemption_strategies(data: object) -> list[KueueStrategy] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                preemption_strategies_type_0 = []
                _preemption_strategies_type_0 = data
                for preemption_strategies_type_0_item_data in _preemption_strategies_type_0:
                    preemption_strategies_type_0_item = check_kueue_strategy(preemption_strategies_type_0_item_data)

                    preemption_strategies_type_0.append(preemption_strategies_type_0_item)

                return preemption_strategies_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[KueueStrategy] | None | Unset, data)

        preemption_strategies = _parse_preemption_strategies(d.pop("preemption_strategies", UNSET))

        kueue_settings = cls(
            fair_sharing=fair_sharing,
            preemption_strategies=preemption_strategies,
        )

        return kueue_settings
