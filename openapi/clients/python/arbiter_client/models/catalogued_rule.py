from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.engine_name import EngineName, check_engine_name

T = TypeVar("T", bound="CataloguedRule")


@_attrs_define
class CataloguedRule:
    """A rule with the engine whose rule it is; the same id may mean something else in another engine.

    Attributes:
        rule (str):
        sentence (str):
        source (str):
        engine (EngineName):
    """

    rule: str
    sentence: str
    source: str
    engine: EngineName
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        rule = self.rule

        sentence = self.sentence

        source = self.source

        engine: str = self.engine

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "rule": rule,
                "sentence": sentence,
                "source": source,
                "engine": engine,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        rule = d.pop("rule")

        sentence = d.pop("sentence")

        source = d.pop("source")

        engine = check_engine_name(d.pop("engine"))

        catalogued_rule = cls(
            rule=rule,
            sentence=sentence,
            source=source,
            engine=engine,
        )

        catalogued_rule.additional_properties = d
        return catalogued_rule

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
