from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.readiness_configurations import ReadinessConfigurations, check_readiness_configurations
from ..models.readiness_database import ReadinessDatabase, check_readiness_database
from ..models.readiness_status import ReadinessStatus, check_readiness_status
from ..types import UNSET, Unset

T = TypeVar("T", bound="Readiness")


@_attrs_define
class Readiness:
    """`migration` is where the database is, `needed` where this version of the code wants it.

    `configurations`: whether names mean what the database says; `stale` are those last known, as of
    `configurations_as_of`, `unknown` before the first look.

    Attributes:
        status (ReadinessStatus):
        database (ReadinessDatabase):
        migration (None | str):
        needed (None | str):
        configurations (ReadinessConfigurations):
        configurations_as_of (None | str):
        detail (str | Unset):
    """

    status: ReadinessStatus
    database: ReadinessDatabase
    migration: None | str
    needed: None | str
    configurations: ReadinessConfigurations
    configurations_as_of: None | str
    detail: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        status: str = self.status

        database: str = self.database

        migration: None | str
        migration = self.migration

        needed: None | str
        needed = self.needed

        configurations: str = self.configurations

        configurations_as_of: None | str
        configurations_as_of = self.configurations_as_of

        detail = self.detail

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "status": status,
                "database": database,
                "migration": migration,
                "needed": needed,
                "configurations": configurations,
                "configurations_as_of": configurations_as_of,
            }
        )
        if detail is not UNSET:
            field_dict["detail"] = detail

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        status = check_readiness_status(d.pop("status"))

        database = check_readiness_database(d.pop("database"))

        def _parse_migration(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        migration = _parse_migration(d.pop("migration"))

        def _parse_needed(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        needed = _parse_needed(d.pop("needed"))

        configurations = check_readiness_configurations(d.pop("configurations"))

        def _parse_configurations_as_of(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        configurations_as_of = _parse_configurations_as_of(d.pop("configurations_as_of"))

        detail = d.pop("detail", UNSET)

        readiness = cls(
            status=status,
            database=database,
            migration=migration,
            needed=needed,
            configurations=configurations,
            configurations_as_of=configurations_as_of,
            detail=detail,
        )

        readiness.additional_properties = d
        return readiness

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
