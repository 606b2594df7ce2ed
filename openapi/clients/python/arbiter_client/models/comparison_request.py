from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..models.explain import Explain, check_explain
from ..models.mode import Mode, check_mode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.ask import Ask
    from ..models.configuration import Configuration
    from ..models.options import Options
    from ..models.state_or_reference import StateOrReference
    from ..models.variant import Variant


T = TypeVar("T", bound="ComparisonRequest")


@_attrs_define
class ComparisonRequest:
    """A decision request and the variants of it to answer.

    Attributes:
        configuration (Configuration | str):
        state (StateOrReference): A State, or `{snapshot: name}`: one struct, so that decoding stays one pass.
        variants (list[Variant]):
        engine (EngineName | None | Unset):
        now (datetime.datetime | None | Unset):
        mode (Mode | Unset):
        asks (list[Ask] | Unset):
        options (Options | Unset):
        explain (Explain | Unset):
    """

    configuration: Configuration | str
    state: StateOrReference
    variants: list[Variant]
    engine: EngineName | None | Unset = UNSET
    now: datetime.datetime | None | Unset = UNSET
    mode: Mode | Unset = UNSET
    asks: list[Ask] | Unset = UNSET
    options: Options | Unset = UNSET
    explain: Explain | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.configuration import Configuration  # noqa: PLC0415

        configuration: dict[str, Any] | str
        if isinstance(self.configuration, Configuration):
            configuration = self.configuration.to_dict()
        else:
            configuration = self.configuration

        state = self.state.to_dict()

        variants = []
        for variants_item_data in self.variants:
            variants_item = variants_item_data.to_dict()
            variants.append(variants_item)

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

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode

        asks: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.asks, Unset):
            asks = []
            for asks_item_data in self.asks:
                asks_item = asks_item_data.to_dict()
                asks.append(asks_item)

        options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.options, Unset):
            options = self.options.to_dict()

        explain: str | Unset = UNSET
        if not isinstance(self.explain, Unset):
            explain = self.explain

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "configuration": configuration,
                "state": state,
                "variants": variants,
            }
        )
        if engine is not UNSET:
            field_dict["engine"] = engine
        if now is not UNSET:
            field_dict["now"] = now
        if mode is not UNSET:
            field_dict["mode"] = mode
        if asks is not UNSET:
            field_dict["asks"] = asks
        if options is not UNSET:
            field_dict["options"] = options
        if explain is not UNSET:
            field_dict["explain"] = explain

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ask import Ask  # noqa: PLC0415
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.options import Options  # noqa: PLC0415
        from ..models.state_or_reference import StateOrReference  # noqa: PLC0415
        from ..models.variant import Variant  # noqa: PLC0415

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

        variants = []
        _variants = d.pop("variants")
        for variants_item_data in _variants:
            variants_item = Variant.from_dict(variants_item_data)

            variants.append(variants_item)

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

        _mode = d.pop("mode", UNSET)
        mode: Mode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = check_mode(_mode)

        _asks = d.pop("asks", UNSET)
        asks: list[Ask] | Unset = UNSET
        if _asks is not UNSET:
            asks = []
            for asks_item_data in _asks:
                asks_item = Ask.from_dict(asks_item_data)

                asks.append(asks_item)

        _options = d.pop("options", UNSET)
        options: Options | Unset
        if isinstance(_options, Unset):
            options = UNSET
        else:
            options = Options.from_dict(_options)

        _explain = d.pop("explain", UNSET)
        explain: Explain | Unset
        if isinstance(_explain, Unset):
            explain = UNSET
        else:
            explain = check_explain(_explain)

        comparison_request = cls(
            configuration=configuration,
            state=state,
            variants=variants,
            engine=engine,
            now=now,
            mode=mode,
            asks=asks,
            options=options,
            explain=explain,
        )

        return comparison_request
