from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.imported_manifest_format import ImportedManifestFormat, check_imported_manifest_format

if TYPE_CHECKING:
    from ..models.ask import Ask
    from ..models.configuration import Configuration
    from ..models.finding import Finding
    from ..models.state import State


T = TypeVar("T", bound="ImportedManifest")


@_attrs_define
class ImportedManifest:
    """A manifest in Arbiter's words.

        `findings` say what could not be carried over; their pointers lead into the manifest, with the number of the
        document first where there are several. `configuration_findings` are remarks about the configuration itself, as
    a
        write of it would give; errors among them would refuse the write.

        Attributes:
            format_ (ImportedManifestFormat):
            configuration (Configuration): `engine` is the default of requests that use this configuration.
            state (State):
            asks (list[Ask]):
            findings (list[Finding]):
            configuration_findings (list[Finding]):
    """

    format_: ImportedManifestFormat
    configuration: Configuration
    state: State
    asks: list[Ask]
    findings: list[Finding]
    configuration_findings: list[Finding]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        format_: str = self.format_

        configuration = self.configuration.to_dict()

        state = self.state.to_dict()

        asks = []
        for asks_item_data in self.asks:
            asks_item = asks_item_data.to_dict()
            asks.append(asks_item)

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        configuration_findings = []
        for configuration_findings_item_data in self.configuration_findings:
            configuration_findings_item = configuration_findings_item_data.to_dict()
            configuration_findings.append(configuration_findings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "format": format_,
                "configuration": configuration,
                "state": state,
                "asks": asks,
                "findings": findings,
                "configuration_findings": configuration_findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ask import Ask  # noqa: PLC0415
        from ..models.configuration import Configuration  # noqa: PLC0415
        from ..models.finding import Finding  # noqa: PLC0415
        from ..models.state import State  # noqa: PLC0415

        d = dict(src_dict)
        format_ = check_imported_manifest_format(d.pop("format"))

        configuration = Configuration.from_dict(d.pop("configuration"))

        state = State.from_dict(d.pop("state"))

        asks = []
        _asks = d.pop("asks")
        for asks_item_data in _asks:
            asks_item = Ask.from_dict(asks_item_data)

            asks.append(asks_item)

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = Finding.from_dict(findings_item_data)

            findings.append(findings_item)

        configuration_findings = []
        _configuration_findings = d.pop("configuration_findings")
        for configuration_findings_item_data in _configuration_findings:
            configuration_findings_item = Finding.from_dict(configuration_findings_item_data)

            configuration_findings.append(configuration_findings_item)

        imported_manifest = cls(
            format_=format_,
            configuration=configuration,
            state=state,
            asks=asks,
            findings=findings,
            configuration_findings=configuration_findings,
        )

        imported_manifest.additional_properties = d
        return imported_manifest

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
