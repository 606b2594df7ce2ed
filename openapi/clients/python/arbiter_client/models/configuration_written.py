from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.finding import Finding


T = TypeVar("T", bound="ConfigurationWritten")


@_attrs_define
class ConfigurationWritten:
    """What a write did, or with `dry_run` would do.

    `created`: there was none of that name (of that queue's, where one queue was written). `changed` is false when
    the document equals the current revision: then there is no new one. `findings` point into the whole document.

    Attributes:
        name (str):
        revision (int):
        digest (str):
        dry_run (bool):
        created (bool):
        changed (bool):
        findings (list[Finding]):
    """

    name: str
    revision: int
    digest: str
    dry_run: bool
    created: bool
    changed: bool
    findings: list[Finding]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        revision = self.revision

        digest = self.digest

        dry_run = self.dry_run

        created = self.created

        changed = self.changed

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "revision": revision,
                "digest": digest,
                "dry_run": dry_run,
                "created": created,
                "changed": changed,
                "findings": findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finding import Finding  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        revision = d.pop("revision")

        digest = d.pop("digest")

        dry_run = d.pop("dry_run")

        created = d.pop("created")

        changed = d.pop("changed")

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = Finding.from_dict(findings_item_data)

            findings.append(findings_item)

        configuration_written = cls(
            name=name,
            revision=revision,
            digest=digest,
            dry_run=dry_run,
            created=created,
            changed=changed,
            findings=findings,
        )

        configuration_written.additional_properties = d
        return configuration_written

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
