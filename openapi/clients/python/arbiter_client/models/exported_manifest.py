from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.engine_name import EngineName, check_engine_name

if TYPE_CHECKING:
    from ..models.finding import Finding


T = TypeVar("T", bound="ExportedManifest")


@_attrs_define
class ExportedManifest:
    """A configuration in one system's words. `findings` say what it has no words for; pointers into the
    configuration. `text` is YAML.

    Attributes:
        format_ (EngineName):
        text (str):
        findings (list[Finding]):
    """

    format_: EngineName
    text: str
    findings: list[Finding]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        format_: str = self.format_

        text = self.text

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "format": format_,
                "text": text,
                "findings": findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finding import Finding  # noqa: PLC0415

        d = dict(src_dict)
        format_ = check_engine_name(d.pop("format"))

        text = d.pop("text")

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = Finding.from_dict(findings_item_data)

            findings.append(findings_item)

        exported_manifest = cls(
            format_=format_,
            text=text,
            findings=findings,
        )

        exported_manifest.additional_properties = d
        return exported_manifest

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
