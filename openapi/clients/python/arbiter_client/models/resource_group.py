from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.flavor_quotas import FlavorQuotas


T = TypeVar("T", bound="ResourceGroup")


@_attrs_define
class ResourceGroup:
    """Resources that always share one flavor, and the flavors in the order they are tried.

    Attributes:
        resources (list[str]):
        flavors (list[FlavorQuotas]):
    """

    resources: list[str]
    flavors: list[FlavorQuotas]

    def to_dict(self) -> dict[str, Any]:
        resources = self.resources

        flavors = []
        for flavors_item_data in self.flavors:
            flavors_item = flavors_item_data.to_dict()
            flavors.append(flavors_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "resources": resources,
                "flavors": flavors,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.flavor_quotas import FlavorQuotas  # noqa: PLC0415

        d = dict(src_dict)
        resources = cast(list[str], d.pop("resources"))

        flavors = []
        _flavors = d.pop("flavors")
        for flavors_item_data in _flavors:
            flavors_item = FlavorQuotas.from_dict(flavors_item_data)

            flavors.append(flavors_item)

        resource_group = cls(
            resources=resources,
            flavors=flavors,
        )

        return resource_group
