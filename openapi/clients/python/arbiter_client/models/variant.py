from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration import Configuration
    from ..models.settings import Settings


T = TypeVar("T", bound="Variant")


@_attrs_define
class Variant:
    """One variant of a comparison: what differs from the base request.

    Attributes:
        name (str):
        engine (EngineName | None | Unset):
        settings (None | Settings | Unset):
        configuration (Configuration | None | str | Unset):
    """

    name: str
    engine: EngineName | None | Unset = UNSET
    settings: None | Settings | Unset = UNSET
    configuration: Configuration | None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.settings import Settings  # noqa: PLC0415

        name = self.name

        engine: None | str | Unset
        if isinstance(self.engine, Unset):
            engine = UNSET
        elif isinstance(self.engine, str):
            engine = self.engine
        else:
            engine = self.engine

        settings: dict[str, Any] | None | Unset
        if isinstance(self.settings, Unset):
            settings = UNSET
        elif isinstance(self.settings, Settings):
            settings = self.settings.to_dict()
        else:
            settings = self.settings

        configuration: dict[str, Any] | None | str | Unset
        if isinstance(self.configuration, Unset):
            configuration = UNSET
        elif isinstance(self.configuration, Configuration):
            configuration = self.configuration.to_dict()
        else:
            configuration = self.configuration

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine
        if settings is not UNSET:
            field_dict["settings"] = settings
        if configuration is not UNSET:
            field_dict["configuration"] = configuration

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.settings import Settings  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        def _parse_engine(data: object) -> EngineName | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                engine_type_0 = check_engine_name(data)

                return engine_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(EngineName | None | Unset, data)

        engine = _parse_engine(d.pop("engine", UNSET))

        def _parse_settings(data: object) -> None | Settings | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                settings_type_0 = Settings.from_dict(data)

                return settings_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Settings | Unset, data)

        settings = _parse_settings(d.pop("settings", UNSET))

        def _parse_configuration(data: object) -> Configuration | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                configuration_type_1 = Configuration.from_dict(data)

                return configuration_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Configuration | None | str | Unset, data)

        configuration = _parse_configuration(d.pop("configuration", UNSET))

        variant = cls(
            name=name,
            engine=engine,
            settings=settings,
            configuration=configuration,
        )

        return variant
