from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.engine_name import EngineName, check_engine_name
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.flavor import Flavor
    from ..models.queue import Queue
    from ..models.settings import Settings


T = TypeVar("T", bound="Configuration")


@_attrs_define
class Configuration:
    """`engine` is the default of requests that use this configuration.

    Attributes:
        engine (EngineName | None | Unset):
        settings (Settings | Unset):
        flavors (list[Flavor] | Unset):
        queues (list[Queue] | Unset):
    """

    engine: EngineName | None | Unset = UNSET
    settings: Settings | Unset = UNSET
    flavors: list[Flavor] | Unset = UNSET
    queues: list[Queue] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        engine: None | str | Unset
        if isinstance(self.engine, Unset):
            engine = UNSET
        elif isinstance(self.engine, str):
            engine = self.engine
        else:
            engine = self.engine

        settings: dict[str, Any] | Unset = UNSET
        if not isinstance(self.settings, Unset):
            settings = self.settings.to_dict()

        flavors: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.flavors, Unset):
            flavors = []
            for flavors_item_data in self.flavors:
                flavors_item = flavors_item_data.to_dict()
                flavors.append(flavors_item)

        queues: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = []
            for queues_item_data in self.queues:
                queues_item = queues_item_data.to_dict()
                queues.append(queues_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if engine is not UNSET:
            field_dict["engine"] = engine
        if settings is not UNSET:
            field_dict["settings"] = settings
        if flavors is not UNSET:
            field_dict["flavors"] = flavors
        if queues is not UNSET:
            field_dict["queues"] = queues

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.flavor import Flavor  # noqa: PLC0415
        from ..models.queue import Queue  # noqa: PLC0415
        from ..models.settings import Settings  # noqa: PLC0415

        d = dict(src_dict)

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

        _settings = d.pop("settings", UNSET)
        settings: Settings | Unset
        if isinstance(_settings, Unset):
            settings = UNSET
        else:
            settings = Settings.from_dict(_settings)

        _flavors = d.pop("flavors", UNSET)
        flavors: list[Flavor] | Unset = UNSET
        if _flavors is not UNSET:
            flavors = []
            for flavors_item_data in _flavors:
                flavors_item = Flavor.from_dict(flavors_item_data)

                flavors.append(flavors_item)

        _queues = d.pop("queues", UNSET)
        queues: list[Queue] | Unset = UNSET
        if _queues is not UNSET:
            queues = []
            for queues_item_data in _queues:
                queues_item = Queue.from_dict(queues_item_data)

                queues.append(queues_item)

        configuration = cls(
            engine=engine,
            settings=settings,
            flavors=flavors,
            queues=queues,
        )

        return configuration
