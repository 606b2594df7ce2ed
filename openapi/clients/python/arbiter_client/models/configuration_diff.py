from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.element_changes import ElementChanges
    from ..models.value_change import ValueChange


T = TypeVar("T", bound="ConfigurationDiff")


@_attrs_define
class ConfigurationDiff:
    """What became of revision `against` in `revision`; against 0, the empty document, everything is added.

    `reordered`: queues or flavors that both have stand in another order.

    Attributes:
        name (str):
        revision (int):
        against (int):
        identical (bool):
        settings (list[ValueChange]):
        flavors (ElementChanges): Queues or flavors that differ, by name.
        queues (ElementChanges): Queues or flavors that differ, by name.
        reordered (bool):
    """

    name: str
    revision: int
    against: int
    identical: bool
    settings: list[ValueChange]
    flavors: ElementChanges
    queues: ElementChanges
    reordered: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        revision = self.revision

        against = self.against

        identical = self.identical

        settings = []
        for settings_item_data in self.settings:
            settings_item = settings_item_data.to_dict()
            settings.append(settings_item)

        flavors = self.flavors.to_dict()

        queues = self.queues.to_dict()

        reordered = self.reordered

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "revision": revision,
                "against": against,
                "identical": identical,
                "settings": settings,
                "flavors": flavors,
                "queues": queues,
                "reordered": reordered,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.element_changes import ElementChanges  # noqa: PLC0415
        from ..models.value_change import ValueChange  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        revision = d.pop("revision")

        against = d.pop("against")

        identical = d.pop("identical")

        settings = []
        _settings = d.pop("settings")
        for settings_item_data in _settings:
            settings_item = ValueChange.from_dict(settings_item_data)

            settings.append(settings_item)

        flavors = ElementChanges.from_dict(d.pop("flavors"))

        queues = ElementChanges.from_dict(d.pop("queues"))

        reordered = d.pop("reordered")

        configuration_diff = cls(
            name=name,
            revision=revision,
            against=against,
            identical=identical,
            settings=settings,
            flavors=flavors,
            queues=queues,
            reordered=reordered,
        )

        configuration_diff.additional_properties = d
        return configuration_diff

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
