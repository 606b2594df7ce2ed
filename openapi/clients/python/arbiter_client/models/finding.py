from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.finding_severity import FindingSeverity, check_finding_severity

T = TypeVar("T", bound="Finding")


@_attrs_define
class Finding:
    """A remark about a configuration. `rule` is a stable id; errors refuse the write, warnings do not.

    Attributes:
        rule (str):
        severity (FindingSeverity):
        pointer (str):
        detail (str):
    """

    rule: str
    severity: FindingSeverity
    pointer: str
    detail: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        rule = self.rule

        severity: str = self.severity

        pointer = self.pointer

        detail = self.detail

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "rule": rule,
                "severity": severity,
                "pointer": pointer,
                "detail": detail,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        rule = d.pop("rule")

        severity = check_finding_severity(d.pop("severity"))

        pointer = d.pop("pointer")

        detail = d.pop("detail")

        finding = cls(
            rule=rule,
            severity=severity,
            pointer=pointer,
            detail=detail,
        )

        finding.additional_properties = d
        return finding

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
