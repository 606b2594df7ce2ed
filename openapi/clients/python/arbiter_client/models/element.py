from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.element_value import ElementValue


T = TypeVar("T", bound="Element")


@_attrs_define
class Element:
    """A queue or flavor that only one of the revisions has.

    Attributes:
        name (str):
        pointer (str):
        value (ElementValue):
    """

    name: str
    pointer: str
    value: ElementValue
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        pointer = self.pointer

        value = self.value.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "pointer": pointer,
                "value": value,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.element_value import ElementValue  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        pointer = d.pop("pointer")

        value = ElementValue.from_dict(d.pop("value"))

        element = cls(
            name=name,
            pointer=pointer,
            value=value,
        )

        element.additional_properties = d
        return element

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
