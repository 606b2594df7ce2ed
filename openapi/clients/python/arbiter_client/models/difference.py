from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.difference_values import DifferenceValues


T = TypeVar("T", bound="Difference")


@_attrs_define
class Difference:
    """One thing on which the variants disagree, and what each says.

    `field` of an ask: outcome, node or victims; without `ask`: evictions, those of the plan that are no ask's
    victims. Victims and evictions are labels, `workload` or `workload/task`.

    Attributes:
        field (str):
        values (DifferenceValues):
        ask (None | str | Unset):
    """

    field: str
    values: DifferenceValues
    ask: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        field = self.field

        values = self.values.to_dict()

        ask: None | str | Unset
        if isinstance(self.ask, Unset):
            ask = UNSET
        else:
            ask = self.ask

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "field": field,
                "values": values,
            }
        )
        if ask is not UNSET:
            field_dict["ask"] = ask

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.difference_values import DifferenceValues  # noqa: PLC0415

        d = dict(src_dict)
        field = d.pop("field")

        values = DifferenceValues.from_dict(d.pop("values"))

        def _parse_ask(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ask = _parse_ask(d.pop("ask", UNSET))

        difference = cls(
            field=field,
            values=values,
            ask=ask,
        )

        difference.additional_properties = d
        return difference

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
