from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.shares_queues import SharesQueues
    from ..models.shares_workloads_type_0 import SharesWorkloadsType0


T = TypeVar("T", bound="Shares")


@_attrs_define
class Shares:
    """`POST /v1/shares`: by name of queue and id of workload, as the engine counts.

    Attributes:
        engine (str):
        configuration (ConfigurationUsed):
        queues (SharesQueues):
        workloads (None | SharesWorkloadsType0 | Unset):
    """

    engine: str
    configuration: ConfigurationUsed
    queues: SharesQueues
    workloads: None | SharesWorkloadsType0 | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shares_workloads_type_0 import SharesWorkloadsType0  # noqa: PLC0415

        engine = self.engine

        configuration = self.configuration.to_dict()

        queues = self.queues.to_dict()

        workloads: dict[str, Any] | None | Unset
        if isinstance(self.workloads, Unset):
            workloads = UNSET
        elif isinstance(self.workloads, SharesWorkloadsType0):
            workloads = self.workloads.to_dict()
        else:
            workloads = self.workloads

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "engine": engine,
                "configuration": configuration,
                "queues": queues,
            }
        )
        if workloads is not UNSET:
            field_dict["workloads"] = workloads

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.shares_queues import SharesQueues  # noqa: PLC0415
        from ..models.shares_workloads_type_0 import SharesWorkloadsType0  # noqa: PLC0415

        d = dict(src_dict)
        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        queues = SharesQueues.from_dict(d.pop("queues"))

        def _parse_workloads(data: object) -> None | SharesWorkloadsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                workloads_type_0 = SharesWorkloadsType0.from_dict(data)

                return workloads_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharesWorkloadsType0 | Unset, data)

        workloads = _parse_workloads(d.pop("workloads", UNSET))

        shares = cls(
            engine=engine,
            configuration=configuration,
            queues=queues,
            workloads=workloads,
        )

        shares.additional_properties = d
        return shares

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
