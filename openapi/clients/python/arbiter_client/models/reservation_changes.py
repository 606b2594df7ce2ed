from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reservation import Reservation
    from ..models.reservation_name import ReservationName


T = TypeVar("T", bound="ReservationChanges")


@_attrs_define
class ReservationChanges:
    """
    Attributes:
        add (list[Reservation] | Unset):
        remove (list[ReservationName] | Unset):
    """

    add: list[Reservation] | Unset = UNSET
    remove: list[ReservationName] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        add: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.add, Unset):
            add = []
            for add_item_data in self.add:
                add_item = add_item_data.to_dict()
                add.append(add_item)

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
        if remove is not UNSET:
            field_dict["remove"] = remove

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reservation import Reservation  # noqa: PLC0415
        from ..models.reservation_name import ReservationName  # noqa: PLC0415

        d = dict(src_dict)
        _add = d.pop("add", UNSET)
        add: list[Reservation] | Unset = UNSET
        if _add is not UNSET:
            add = []
            for add_item_data in _add:
                add_item = Reservation.from_dict(add_item_data)

                add.append(add_item)

        _remove = d.pop("remove", UNSET)
        remove: list[ReservationName] | Unset = UNSET
        if _remove is not UNSET:
            remove = []
            for remove_item_data in _remove:
                remove_item = ReservationName.from_dict(remove_item_data)

                remove.append(remove_item)

        reservation_changes = cls(
            add=add,
            remove=remove,
        )

        return reservation_changes
