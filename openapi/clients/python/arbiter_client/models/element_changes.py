from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.changed_element import ChangedElement
    from ..models.element import Element


T = TypeVar("T", bound="ElementChanges")


@_attrs_define
class ElementChanges:
    """Queues or flavors that differ, by name.

    Attributes:
        added (list[Element] | Unset):
        removed (list[Element] | Unset):
        changed (list[ChangedElement] | Unset):
    """

    added: list[Element] | Unset = UNSET
    removed: list[Element] | Unset = UNSET
    changed: list[ChangedElement] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        added: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.added, Unset):
            added = []
            for added_item_data in self.added:
                added_item = added_item_data.to_dict()
                added.append(added_item)

        removed: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.removed, Unset):
            removed = []
            for removed_item_data in self.removed:
                removed_item = removed_item_data.to_dict()
                removed.append(removed_item)

        changed: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.changed, Unset):
            changed = []
            for changed_item_data in self.changed:
                changed_item = changed_item_data.to_dict()
                changed.append(changed_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if added is not UNSET:
            field_dict["added"] = added
        if removed is not UNSET:
            field_dict["removed"] = removed
        if changed is not UNSET:
            field_dict["changed"] = changed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.changed_element import ChangedElement  # noqa: PLC0415
        from ..models.element import Element  # noqa: PLC0415

        d = dict(src_dict)
        _added = d.pop("added", UNSET)
        added: list[Element] | Unset = UNSET
        if _added is not UNSET:
            added = []
            for added_item_data in _added:
                added_item = Element.from_dict(added_item_data)

                added.append(added_item)

        _removed = d.pop("removed", UNSET)
        removed: list[Element] | Unset = UNSET
        if _removed is not UNSET:
            removed = []
            for removed_item_data in _removed:
                removed_item = Element.from_dict(removed_item_data)

                removed.append(removed_item)

        _changed = d.pop("changed", UNSET)
        changed: list[ChangedElement] | Unset = UNSET
        if _changed is not UNSET:
            changed = []
            for changed_item_data in _changed:
                changed_item = ChangedElement.from_dict(changed_item_data)

                changed.append(changed_item)

        element_changes = cls(
            added=added,
            removed=removed,
            changed=changed,
        )

        element_changes.additional_properties = d
        return element_changes

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
