from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.counts import Counts


T = TypeVar("T", bound="SnapshotStatus")


@_attrs_define
class SnapshotStatus:
    """What is kept. `age_seconds`: since the state was put whole; `bytes`: estimated memory.

    Attributes:
        name (str):
        generation (int):
        engine (str):
        configuration (ConfigurationUsed):
        counts (Counts):
        age_seconds (float):
        idle_seconds (float):
        bytes_ (int):
        digest (None | str | Unset):
    """

    name: str
    generation: int
    engine: str
    configuration: ConfigurationUsed
    counts: Counts
    age_seconds: float
    idle_seconds: float
    bytes_: int
    digest: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        generation = self.generation

        engine = self.engine

        configuration = self.configuration.to_dict()

        counts = self.counts.to_dict()

        age_seconds = self.age_seconds

        idle_seconds = self.idle_seconds

        bytes_ = self.bytes_

        digest: None | str | Unset
        if isinstance(self.digest, Unset):
            digest = UNSET
        else:
            digest = self.digest

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "generation": generation,
                "engine": engine,
                "configuration": configuration,
                "counts": counts,
                "age_seconds": age_seconds,
                "idle_seconds": idle_seconds,
                "bytes": bytes_,
            }
        )
        if digest is not UNSET:
            field_dict["digest"] = digest

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.counts import Counts  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        generation = d.pop("generation")

        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        counts = Counts.from_dict(d.pop("counts"))

        age_seconds = d.pop("age_seconds")

        idle_seconds = d.pop("idle_seconds")

        bytes_ = d.pop("bytes")

        def _parse_digest(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        digest = _parse_digest(d.pop("digest", UNSET))

        snapshot_status = cls(
            name=name,
            generation=generation,
            engine=engine,
            configuration=configuration,
            counts=counts,
            age_seconds=age_seconds,
            idle_seconds=idle_seconds,
            bytes_=bytes_,
            digest=digest,
        )

        snapshot_status.additional_properties = d
        return snapshot_status

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
