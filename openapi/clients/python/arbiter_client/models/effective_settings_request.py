from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration import Configuration
    from ..models.state_or_reference import StateOrReference


T = TypeVar("T", bound="EffectiveSettingsRequest")


@_attrs_define
class EffectiveSettingsRequest:
    """`POST /v1/effective-settings`.

    Attributes:
        configuration (Configuration | str):
        engine (EngineName | None | Unset):
        state (None | StateOrReference | Unset):
    """

    configuration: Configuration | str
    engine: EngineName | None | Unset = UNSET
    state: None | StateOrReference | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.state_or_reference import StateOrReference  # noqa: PLC0415

        configuration: dict[str, Any] | str
        if isinstance(self.configuration, Configuration):
            configuration = self.configuration.to_dict()
        else:
            configuration = self.configuration

        engine: None | str | Unset
        if isinstance(self.engine, Unset):
            engine = UNSET
        elif isinstance(self.engine, str):
            engine = self.engine
        else:
            engine = self.engine

        state: dict[str, Any] | None | Unset
        if isinstance(self.state, Unset):
            state = UNSET
        elif isinstance(self.state, StateOrReference):
            state = self.state.to_dict()
        else:
            state = self.state

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "configuration": configuration,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine
        if state is not UNSET:
            field_dict["state"] = state

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.state_or_reference import StateOrReference  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_configuration(data: object) -> Configuration | str:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_configuration_or_name_type_1 = Configuration.from_dict(data)

                return componentsschemas_configuration_or_name_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Configuration | str, data)

        configuration = _parse_configuration(d.pop("configuration"))

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

        def _parse_state(data: object) -> None | StateOrReference | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                state_type_0 = StateOrReference.from_dict(data)

                return state_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StateOrReference | Unset, data)

        state = _parse_state(d.pop("state", UNSET))

        effective_settings_request = cls(
            configuration=configuration,
            engine=engine,
            state=state,
        )

        return effective_settings_request
