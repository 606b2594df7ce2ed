from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ValueChange")


@_attrs_define
class ValueChange:
    """A value that differs. `pointer` leads to it in the newer document, in the older one where it is only there.

    Without `old` it was not said before, without `new` it is not said any more: then the default holds.

    Attributes:
        pointer (str):
        old (Any | Unset):
        new (Any | Unset):
    """

    pointer: str
    old: Any | Unset = UNSET
    new: Any | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pointer = self.pointer

        old = self.old

        new = self.new

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pointer": pointer,
            }
        )
        if old is not UNSET:
            field_dict["old"] = old
        if new is not UNSET:
            field_dict["new"] = new

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        pointer = d.pop("pointer")

        old = d.pop("old", UNSET)

        new = d.pop("new", UNSET)

        value_change = cls(
            pointer=pointer,
            old=old,
            new=new,
        )

        value_change.additional_properties = d
        return value_change

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
