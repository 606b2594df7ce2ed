from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.task_name import TaskName
    from ..models.task_of import TaskOf


T = TypeVar("T", bound="TaskChanges")


@_attrs_define
class TaskChanges:
    """Tasks of workloads that the same delta does not name.

    Attributes:
        add (list[TaskOf] | Unset):
        change (list[TaskOf] | Unset):
        remove (list[TaskName] | Unset):
    """

    add: list[TaskOf] | Unset = UNSET
    change: list[TaskOf] | Unset = UNSET
    remove: list[TaskName] | Unset = UNSET

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

        remove: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.remove, Unset):
            remove = []
            for remove_item_data in self.remove:
                remove_item = remove_item_data.to_dict()
                remove.append(remove_item)

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
        from ..models.task_name import TaskName  # noqa: PLC0415
        from ..models.task_of import TaskOf  # noqa: PLC0415

        d = dict(src_dict)
        _add = d.pop("add", UNSET)
        add: list[TaskOf] | Unset = UNSET
        if _add is not UNSET:
            add = []
            for add_item_data in _add:
                add_item = TaskOf.from_dict(add_item_data)

                add.append(add_item)

        _change = d.pop("change", UNSET)
        change: list[TaskOf] | Unset = UNSET
        if _change is not UNSET:
            change = []
            for change_item_data in _change:
                change_item = TaskOf.from_dict(change_item_data)

                change.append(change_item)

        _remove = d.pop("remove", UNSET)
        remove: list[TaskName] | Unset = UNSET
        if _remove is not UNSET:
            remove = []
            for remove_item_data in _remove:
                remove_item = TaskName.from_dict(remove_item_data)

                remove.append(remove_item)

        task_changes = cls(
            add=add,
            change=change,
            remove=remove,
        )

        return task_changes
