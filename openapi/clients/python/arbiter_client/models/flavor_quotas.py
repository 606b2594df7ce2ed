from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.flavor_quotas_quota import FlavorQuotasQuota


T = TypeVar("T", bound="FlavorQuotas")


@_attrs_define
class FlavorQuotas:
    """
    Attributes:
        name (str):
        quota (FlavorQuotasQuota | Unset):
    """

    name: str
    quota: FlavorQuotasQuota | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        quota: dict[str, Any] | Unset = UNSET
        if not isinstance(self.quota, Unset):
            quota = self.quota.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if quota is not UNSET:
            field_dict["quota"] = quota

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.flavor_quotas_quota import FlavorQuotasQuota  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        _quota = d.pop("quota", UNSET)
        quota: FlavorQuotasQuota | Unset
        if isinstance(_quota, Unset):
            quota = UNSET
        else:
            quota = FlavorQuotasQuota.from_dict(_quota)

        flavor_quotas = cls(
            name=name,
            quota=quota,
        )

        return flavor_quotas
