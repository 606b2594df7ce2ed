from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration import Configuration
    from ..models.state import State


T = TypeVar("T", bound="SnapshotRequest")


@_attrs_define
class SnapshotRequest:
    """`PUT /v1/snapshots/{name}`: the whole state, and the configuration that it is compiled for.

    Attributes:
        configuration (Configuration | str):
        state (State):
        engine (EngineName | None | Unset):
    """

    configuration: Configuration | str
    state: State
    engine: EngineName | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration import Configuration  # noqa: PLC0415

        configuration: dict[str, Any] | str
        if isinstance(self.configuration, Configuration):
            configuration = self.configuration.to_dict()
        else:
            configuration = self.configuration

        state = self.state.to_dict()

        engine: None | str | Unset
        if isinstance(self.engine, Unset):
            engine = UNSET
        elif isinstance(self.engine, str):
            engine = self.engine
        else:
            engine = self.engine

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "configuration": configuration,
                "state": state,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.state import State  # noqa: PLC0415

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

        state = State.from_dict(d.pop("state"))

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

        snapshot_request = cls(
            configuration=configuration,
            state=state,
            engine=engine,
        )

        return snapshot_request
