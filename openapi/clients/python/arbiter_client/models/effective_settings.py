from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.effective_settings_queues import EffectiveSettingsQueues
    from ..models.effective_settings_settings_type_0 import EffectiveSettingsSettingsType0
    from ..models.effective_settings_workloads_type_0 import EffectiveSettingsWorkloadsType0


T = TypeVar("T", bound="EffectiveSettings")


@_attrs_define
class EffectiveSettings:
    """`POST /v1/effective-settings`: by name of queue and id of workload; `settings` of the scheduler (KAI).

    Attributes:
        engine (str):
        configuration (ConfigurationUsed):
        queues (EffectiveSettingsQueues):
        settings (EffectiveSettingsSettingsType0 | None | Unset):
        workloads (EffectiveSettingsWorkloadsType0 | None | Unset):
    """

    engine: str
    configuration: ConfigurationUsed
    queues: EffectiveSettingsQueues
    settings: EffectiveSettingsSettingsType0 | None | Unset = UNSET
    workloads: EffectiveSettingsWorkloadsType0 | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.effective_settings_settings_type_0 import EffectiveSettingsSettingsType0  # noqa: PLC0415
        from ..models.effective_settings_workloads_type_0 import EffectiveSettingsWorkloadsType0  # noqa: PLC0415

        engine = self.engine

        configuration = self.configuration.to_dict()

        queues = self.queues.to_dict()

        settings: dict[str, Any] | None | Unset
        if isinstance(self.settings, Unset):
            settings = UNSET
        elif isinstance(self.settings, EffectiveSettingsSettingsType0):
            settings = self.settings.to_dict()
        else:
            settings = self.settings

        workloads: dict[str, Any] | None | Unset
        if isinstance(self.workloads, Unset):
            workloads = UNSET
        elif isinstance(self.workloads, EffectiveSettingsWorkloadsType0):
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
        if settings is not UNSET:
            field_dict["settings"] = settings
        if workloads is not UNSET:
            field_dict["workloads"] = workloads

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.effective_settings_queues import EffectiveSettingsQueues  # noqa: PLC0415
        from ..models.effective_settings_settings_type_0 import EffectiveSettingsSettingsType0  # noqa: PLC0415
        from ..models.effective_settings_workloads_type_0 import EffectiveSettingsWorkloadsType0  # noqa: PLC0415

        d = dict(src_dict)
        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        queues = EffectiveSettingsQueues.from_dict(d.pop("queues"))

        def _parse_settings(data: object) -> EffectiveSettingsSettingsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                settings_type_0 = EffectiveSettingsSettingsType0.from_dict(data)

                return settings_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EffectiveSettingsSettingsType0 | None | Unset, data)

        settings = _parse_settings(d.pop("settings", UNSET))

        def _parse_workloads(data: object) -> EffectiveSettingsWorkloadsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                workloads_type_0 = EffectiveSettingsWorkloadsType0.from_dict(data)

                return workloads_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EffectiveSettingsWorkloadsType0 | None | Unset, data)

        workloads = _parse_workloads(d.pop("workloads", UNSET))

        effective_settings = cls(
            engine=engine,
            configuration=configuration,
            queues=queues,
            settings=settings,
            workloads=workloads,
        )

        effective_settings.additional_properties = d
        return effective_settings

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
