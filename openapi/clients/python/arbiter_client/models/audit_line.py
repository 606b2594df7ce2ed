from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.audit_line_detail_type_0 import AuditLineDetailType0


T = TypeVar("T", bound="AuditLine")


@_attrs_define
class AuditLine:
    """Who did what, or was refused; `actor` is `token:NAME`, `oidc:SUBJECT`, `cli:USER` or `anonymous`.

    Attributes:
        id (int):
        at (datetime.datetime):
        actor (str):
        action (str):
        target (str):
        detail (AuditLineDetailType0 | None | Unset):
    """

    id: int
    at: datetime.datetime
    actor: str
    action: str
    target: str
    detail: AuditLineDetailType0 | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.audit_line_detail_type_0 import AuditLineDetailType0  # noqa: PLC0415

        id = self.id

        at = self.at.isoformat()

        actor = self.actor

        action = self.action

        target = self.target

        detail: dict[str, Any] | None | Unset
        if isinstance(self.detail, Unset):
            detail = UNSET
        elif isinstance(self.detail, AuditLineDetailType0):
            detail = self.detail.to_dict()
        else:
            detail = self.detail

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "at": at,
                "actor": actor,
                "action": action,
                "target": target,
            }
        )
        if detail is not UNSET:
            field_dict["detail"] = detail

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audit_line_detail_type_0 import AuditLineDetailType0  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        actor = d.pop("actor")

        action = d.pop("action")

        target = d.pop("target")

        def _parse_detail(data: object) -> AuditLineDetailType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                detail_type_0 = AuditLineDetailType0.from_dict(data)

                return detail_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AuditLineDetailType0 | None | Unset, data)

        detail = _parse_detail(d.pop("detail", UNSET))

        audit_line = cls(
            id=id,
            at=at,
            actor=actor,
            action=action,
            target=target,
            detail=detail,
        )

        audit_line.additional_properties = d
        return audit_line

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
