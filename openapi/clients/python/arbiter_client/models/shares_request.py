from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.ask import Ask
    from ..models.configuration import Configuration
    from ..models.state_or_reference import StateOrReference


T = TypeVar("T", bound="SharesRequest")


@_attrs_define
class SharesRequest:
    """`POST /v1/shares`.

    Attributes:
        configuration (Configuration | str):
        state (StateOrReference): A State, or `{snapshot: name}`: one struct, so that decoding stays one pass.
        engine (EngineName | None | Unset):
        now (datetime.datetime | None | Unset):
        asks (list[Ask] | Unset):
    """

    configuration: Configuration | str
    state: StateOrReference
    engine: EngineName | None | Unset = UNSET
    now: datetime.datetime | None | Unset = UNSET
    asks: list[Ask] | Unset = UNSET

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

        now: None | str | Unset
        if isinstance(self.now, Unset):
            now = UNSET
        elif isinstance(self.now, datetime.datetime):
            now = self.now.isoformat()
        else:
            now = self.now

        asks: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.asks, Unset):
            asks = []
            for asks_item_data in self.asks:
                asks_item = asks_item_data.to_dict()
                asks.append(asks_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "configuration": configuration,
                "state": state,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine
        if now is not UNSET:
            field_dict["now"] = now
        if asks is not UNSET:
            field_dict["asks"] = asks

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ask import Ask  # noqa: PLC0415
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

        state = StateOrReference.from_dict(d.pop("state"))

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

        def _parse_now(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                now_type_0 = datetime.datetime.fromisoformat(data)

                return now_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        now = _parse_now(d.pop("now", UNSET))

        _asks = d.pop("asks", UNSET)
        asks: list[Ask] | Unset = UNSET
        if _asks is not UNSET:
            asks = []
            for asks_item_data in _asks:
                asks_item = Ask.from_dict(asks_item_data)

                asks.append(asks_item)

        shares_request = cls(
            configuration=configuration,
            state=state,
            engine=engine,
            now=now,
            asks=asks,
        )

        return shares_request
