from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.child_template_properties import ChildTemplateProperties


T = TypeVar("T", bound="ChildTemplate")


@_attrs_define
class ChildTemplate:
    """What queues made at run time below this one start with.

    Attributes:
        properties (ChildTemplateProperties | Unset):
    """

    properties: ChildTemplateProperties | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if properties is not UNSET:
            field_dict["properties"] = properties

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.child_template_properties import ChildTemplateProperties  # noqa: PLC0415

        d = dict(src_dict)
        _properties = d.pop("properties", UNSET)
        properties: ChildTemplateProperties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = ChildTemplateProperties.from_dict(_properties)

        child_template = cls(
            properties=properties,
        )

        return child_template
