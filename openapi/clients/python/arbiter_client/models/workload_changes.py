from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.workload import Workload


T = TypeVar("T", bound="WorkloadChanges")


@_attrs_define
class WorkloadChanges:
    """`change` replaces a workload whole, its tasks included.

    Attributes:
        add (list[Workload] | Unset):
        change (list[Workload] | Unset):
        remove (list[str] | Unset):
    """

    add: list[Workload] | Unset = UNSET
    change: list[Workload] | Unset = UNSET
    remove: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        add: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.add, Unset):
            add = []
            for add_item_data in self.add:
                add_item = add_item_data.to_dict()
                add.append(add_item)

        change: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.change, Unset):
            change = []
            for change_item_data in self.change:
                change_item = change_item_data.to_dict()
                change.append(change_item)

        remove: list[str] | Unset = UNSET
        if not isinstance(self.remove, Unset):
            remove = self.remove

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if add is not UNSET:
            field_dict["add"] = add
        if change is not UNSET:
            field_dict["change"] = change
        if remove is not UNSET:
            field_dict["remove"] = remove

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.workload import Workload  # noqa: PLC0415

        d = dict(src_dict)
        _add = d.pop("add", UNSET)
        add: list[Workload] | Unset = UNSET
        if _add is not UNSET:
            add = []
            for add_item_data in _add:
                add_item = Workload.from_dict(add_item_data)

                add.append(add_item)

        _change = d.pop("change", UNSET)
        change: list[Workload] | Unset = UNSET
        if _change is not UNSET:
            change = []
            for change_item_data in _change:
                change_item = Workload.from_dict(change_item_data)

                change.append(change_item)

        remove = cast(list[str], d.pop("remove", UNSET))

        workload_changes = cls(
            add=add,
            change=change,
            remove=remove,
        )

        return workload_changes
