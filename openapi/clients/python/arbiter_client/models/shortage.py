from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Shortage")


@_attrs_define
class Shortage:
    """What an ask lacks of one resource: `short` = `requested` - `available`, in whole units.

    Attributes:
        resource (str):
        requested (float):
        available (float):
        short (float):
        flavor (None | str | Unset):
        queue (None | str | Unset):
        node (None | str | Unset):
    """

    resource: str
    requested: float
    available: float
    short: float
    flavor: None | str | Unset = UNSET
    queue: None | str | Unset = UNSET
    node: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        resource = self.resource

        requested = self.requested

        available = self.available

        short = self.short

        flavor: None | str | Unset
        if isinstance(self.flavor, Unset):
            flavor = UNSET
        else:
            flavor = self.flavor

        queue: None | str | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        else:
            queue = self.queue

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "resource": resource,
                "requested": requested,
                "available": available,
                "short": short,
            }
        )
        if flavor is not UNSET:
            field_dict["flavor"] = flavor
        if queue is not UNSET:
            field_dict["queue"] = queue
        if node is not UNSET:
            field_dict["node"] = node

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        resource = d.pop("resource")

        requested = d.pop("requested")

        available = d.pop("available")

        short = d.pop("short")

        def _parse_flavor(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        flavor = _parse_flavor(d.pop("flavor", UNSET))

        def _parse_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        shortage = cls(
            resource=resource,
            requested=requested,
            available=available,
            short=short,
            flavor=flavor,
            queue=queue,
            node=node,
        )

        return shortage
