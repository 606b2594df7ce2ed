from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ConfigurationSummary")


@_attrs_define
class ConfigurationSummary:
    """One revision without its document. `digest` is the SHA-256 of the document as decoded.

    `author`: who wrote it, `comment`: why, `restored_from`: the earlier revision that it repeats.

    Attributes:
        name (str):
        revision (int):
        digest (str):
        created_at (str):
        author (str):
        comment (None | str | Unset):
        restored_from (int | None | Unset):
    """

    name: str
    revision: int
    digest: str
    created_at: str
    author: str
    comment: None | str | Unset = UNSET
    restored_from: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        revision = self.revision

        digest = self.digest

        created_at = self.created_at

        author = self.author

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        restored_from: int | None | Unset
        if isinstance(self.restored_from, Unset):
            restored_from = UNSET
        else:
            restored_from = self.restored_from

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "revision": revision,
                "digest": digest,
                "created_at": created_at,
                "author": author,
            }
        )
        if comment is not UNSET:
            field_dict["comment"] = comment
        if restored_from is not UNSET:
            field_dict["restored_from"] = restored_from

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        revision = d.pop("revision")

        digest = d.pop("digest")

        created_at = d.pop("created_at")

        author = d.pop("author")

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

        def _parse_restored_from(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        restored_from = _parse_restored_from(d.pop("restored_from", UNSET))

        configuration_summary = cls(
            name=name,
            revision=revision,
            digest=digest,
            created_at=created_at,
            author=author,
            comment=comment,
            restored_from=restored_from,
        )

        configuration_summary.additional_properties = d
        return configuration_summary

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
