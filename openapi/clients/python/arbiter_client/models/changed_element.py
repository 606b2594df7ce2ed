from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.value_change import ValueChange


T = TypeVar("T", bound="ChangedElement")


@_attrs_define
class ChangedElement:
    """A queue or flavor that both have, not alike.

    Attributes:
        name (str):
        changes (list[ValueChange]):
    """

    name: str
    changes: list[ValueChange]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "changes": changes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.value_change import ValueChange  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = ValueChange.from_dict(changes_item_data)

            changes.append(changes_item)

        changed_element = cls(
            name=name,
            changes=changes,
        )

        changed_element.additional_properties = d
        return changed_element

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
