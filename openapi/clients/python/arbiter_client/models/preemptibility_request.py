from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..models.preemptibility_request_action_type_0 import (
    PreemptibilityRequestActionType0,
    check_preemptibility_request_action_type_0,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.ask import Ask
    from ..models.configuration import Configuration
    from ..models.eviction import Eviction
    from ..models.state_or_reference import StateOrReference


T = TypeVar("T", bound="PreemptibilityRequest")


@_attrs_define
class PreemptibilityRequest:
    """`POST /v1/preemptibility`.

    Attributes:
        configuration (Configuration | str):
        state (StateOrReference): A State, or `{snapshot: name}`: one struct, so that decoding stays one pass.
        engine (EngineName | None | Unset):
        now (datetime.datetime | None | Unset):
        asks (list[Ask] | Unset):
        ask (Ask | None | Unset):
        action (None | PreemptibilityRequestActionType0 | Unset):
        evict (list[Eviction] | Unset):
    """

    configuration: Configuration | str
    state: StateOrReference
    engine: EngineName | None | Unset = UNSET
    now: datetime.datetime | None | Unset = UNSET
    asks: list[Ask] | Unset = UNSET
    ask: Ask | None | Unset = UNSET
    action: None | PreemptibilityRequestActionType0 | Unset = UNSET
    evict: list[Eviction] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.ask import Ask  # noqa: PLC0415
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

        ask: dict[str, Any] | None | Unset
        if isinstance(self.ask, Unset):
            ask = UNSET
        elif isinstance(self.ask, Ask):
            ask = self.ask.to_dict()
        else:
            ask = self.ask

        action: None | str | Unset
        if isinstance(self.action, Unset):
            action = UNSET
        elif isinstance(self.action, str):
            action = self.action
        else:
            action = self.action

        evict: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.evict, Unset):
            evict = []
            for evict_item_data in self.evict:
                evict_item = evict_item_data.to_dict()
                evict.append(evict_item)

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
        if ask is not UNSET:
            field_dict["ask"] = ask
        if action is not UNSET:
            field_dict["action"] = action
        if evict is not UNSET:
            field_dict["evict"] = evict

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ask import Ask  # noqa: PLC0415
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.eviction import Eviction  # noqa: PLC0415
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

        def _parse_ask(data: object) -> Ask | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                ask_type_0 = Ask.from_dict(data)

                return ask_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Ask | None | Unset, data)

        ask = _parse_ask(d.pop("ask", UNSET))

        def _parse_action(data: object) -> None | PreemptibilityRequestActionType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                action_type_0 = check_preemptibility_request_action_type_0(data)

                return action_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PreemptibilityRequestActionType0 | Unset, data)

        action = _parse_action(d.pop("action", UNSET))

        _evict = d.pop("evict", UNSET)
        evict: list[Eviction] | Unset = UNSET
        if _evict is not UNSET:
            evict = []
            for evict_item_data in _evict:
                evict_item = Eviction.from_dict(evict_item_data)

                evict.append(evict_item)

        preemptibility_request = cls(
            configuration=configuration,
            state=state,
            engine=engine,
            now=now,
            asks=asks,
            ask=ask,
            action=action,
            evict=evict,
        )

        return preemptibility_request
