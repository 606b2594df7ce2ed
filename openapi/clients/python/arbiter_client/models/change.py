from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Change")


@_attrs_define
class Change:
    """The smallest change of one quota that would let the ask in, in whole units.

    Attributes:
        queue (str):
        resource (str):
        field (str):
        needed (float):
        flavor (None | str | Unset):
        current (float | None | Unset):
        detail (str | Unset):
    """

    queue: str
    resource: str
    field: str
    needed: float
    flavor: None | str | Unset = UNSET
    current: float | None | Unset = UNSET
    detail: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        queue = self.queue

        resource = self.resource

        field = self.field

        needed = self.needed

        flavor: None | str | Unset
        if isinstance(self.flavor, Unset):
            flavor = UNSET
        else:
            flavor = self.flavor

        current: float | None | Unset
        if isinstance(self.current, Unset):
            current = UNSET
        else:
            current = self.current

        detail = self.detail

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "queue": queue,
                "resource": resource,
                "field": field,
                "needed": needed,
            }
        )
        if flavor is not UNSET:
            field_dict["flavor"] = flavor
        if current is not UNSET:
            field_dict["current"] = current
        if detail is not UNSET:
            field_dict["detail"] = detail

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        queue = d.pop("queue")

        resource = d.pop("resource")

        field = d.pop("field")

        needed = d.pop("needed")

        def _parse_flavor(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        flavor = _parse_flavor(d.pop("flavor", UNSET))

        def _parse_current(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        current = _parse_current(d.pop("current", UNSET))

        detail = d.pop("detail", UNSET)

        change = cls(
            queue=queue,
            resource=resource,
            field=field,
            needed=needed,
            flavor=flavor,
            current=current,
            detail=detail,
        )

        return change
