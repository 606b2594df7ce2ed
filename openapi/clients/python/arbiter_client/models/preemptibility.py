from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.preemptibility_workloads import PreemptibilityWorkloads


T = TypeVar("T", bound="Preemptibility")


@_attrs_define
class Preemptibility:
    """`POST /v1/preemptibility`: by id of workload; `evict_allowed` answers `evict`.

    Attributes:
        engine (str):
        configuration (ConfigurationUsed):
        workloads (PreemptibilityWorkloads):
        evict_allowed (bool | None | Unset):
    """

    engine: str
    configuration: ConfigurationUsed
    workloads: PreemptibilityWorkloads
    evict_allowed: bool | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        engine = self.engine

        configuration = self.configuration.to_dict()

        workloads = self.workloads.to_dict()

        evict_allowed: bool | None | Unset
        if isinstance(self.evict_allowed, Unset):
            evict_allowed = UNSET
        else:
            evict_allowed = self.evict_allowed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "engine": engine,
                "configuration": configuration,
                "workloads": workloads,
            }
        )
        if evict_allowed is not UNSET:
            field_dict["evict_allowed"] = evict_allowed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.preemptibility_workloads import PreemptibilityWorkloads  # noqa: PLC0415

        d = dict(src_dict)
        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        workloads = PreemptibilityWorkloads.from_dict(d.pop("workloads"))

        def _parse_evict_allowed(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        evict_allowed = _parse_evict_allowed(d.pop("evict_allowed", UNSET))

        preemptibility = cls(
            engine=engine,
            configuration=configuration,
            workloads=workloads,
            evict_allowed=evict_allowed,
        )

        preemptibility.additional_properties = d
        return preemptibility

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
