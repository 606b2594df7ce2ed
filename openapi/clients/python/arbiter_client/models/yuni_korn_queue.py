from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.child_template import ChildTemplate
    from ..models.yuni_korn_queue_properties import YuniKornQueueProperties


T = TypeVar("T", bound="YuniKornQueue")


@_attrs_define
class YuniKornQueue:
    """`queue.yunikorn`: properties as YuniKorn spells them.

    Attributes:
        properties (YuniKornQueueProperties | Unset):
        parent (bool | Unset):  Default: False.
        dynamic (bool | Unset):  Default: False.
        child_template (ChildTemplate | None | Unset):
    """

    properties: YuniKornQueueProperties | Unset = UNSET
    parent: bool | Unset = False
    dynamic: bool | Unset = False
    child_template: ChildTemplate | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.child_template import ChildTemplate  # noqa: PLC0415

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        parent = self.parent

        dynamic = self.dynamic

        child_template: dict[str, Any] | None | Unset
        if isinstance(self.child_template, Unset):
            child_template = UNSET
        elif isinstance(self.child_template, ChildTemplate):
            child_template = self.child_template.to_dict()
        else:
            child_template = self.child_template

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if properties is not UNSET:
            field_dict["properties"] = properties
        if parent is not UNSET:
            field_dict["parent"] = parent
        if dynamic is not UNSET:
            field_dict["dynamic"] = dynamic
        if child_template is not UNSET:
            field_dict["child_template"] = child_template

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.child_template import ChildTemplate  # noqa: PLC0415
        from ..models.yuni_korn_queue_properties import YuniKornQueueProperties  # noqa: PLC0415

        d = dict(src_dict)
        _properties = d.pop("properties", UNSET)
        properties: YuniKornQueueProperties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = YuniKornQueueProperties.from_dict(_properties)

        parent = d.pop("parent", UNSET)

        dynamic = d.pop("dynamic", UNSET)

        def _parse_child_template(data: object) -> ChildTemplate | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                child_template_type_0 = ChildTemplate.from_dict(data)

                return child_template_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ChildTemplate | None | Unset, data)

        child_template = _parse_child_template(d.pop("child_template", UNSET))

        yuni_korn_queue = cls(
            properties=properties,
            parent=parent,
            dynamic=dynamic,
            child_template=child_template,
        )

        return yuni_korn_queue
