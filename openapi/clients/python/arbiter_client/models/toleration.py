from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.taint_effect import TaintEffect, check_taint_effect
from ..models.toleration_operator import TolerationOperator, check_toleration_operator
from ..types import UNSET, Unset

T = TypeVar("T", bound="Toleration")


@_attrs_define
class Toleration:
    """
    Attributes:
        key (str | Unset):
        operator (TolerationOperator | Unset):  Default: 'Equal'.
        value (str | Unset):
        effect (None | TaintEffect | Unset):
    """

    key: str | Unset = UNSET
    operator: TolerationOperator | Unset = "Equal"
    value: str | Unset = UNSET
    effect: None | TaintEffect | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        key = self.key

        operator: str | Unset = UNSET
        if not isinstance(self.operator, Unset):
            operator = self.operator

        value = self.value

        effect: None | str | Unset
        if isinstance(self.effect, Unset):
            effect = UNSET
        elif isinstance(self.effect, str):
            effect = self.effect
        else:
            effect = self.effect

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if key is not UNSET:
            field_dict["key"] = key
        if operator is not UNSET:
            field_dict["operator"] = operator
        if value is not UNSET:
            field_dict["value"] = value
        if effect is not UNSET:
            field_dict["effect"] = effect

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        key = d.pop("key", UNSET)

        _operator = d.pop("operator", UNSET)
        operator: TolerationOperator | Unset
        if isinstance(_operator, Unset):
            operator = UNSET
        else:
            operator = check_toleration_operator(_operator)

        value = d.pop("value", UNSET)

        def _parse_effect(data: object) -> None | TaintEffect | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                effect_type_0 = check_taint_effect(data)

                return effect_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TaintEffect | Unset, data)

        effect = _parse_effect(d.pop("effect", UNSET))

        toleration = cls(
            key=key,
            operator=operator,
            value=value,
            effect=effect,
        )

        return toleration
