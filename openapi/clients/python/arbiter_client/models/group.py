from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.group_verdict import GroupVerdict, check_group_verdict

T = TypeVar("T", bound="Group")


@_attrs_define
class Group:
    """Candidates that met the same fate by the same rule, collapsed (`explain: summary`).

    Attributes:
        verdict (GroupVerdict):
        rule (str):
        count (int):
        examples (list[str]):
    """

    verdict: GroupVerdict
    rule: str
    count: int
    examples: list[str]

    def to_dict(self) -> dict[str, Any]:
        verdict: str = self.verdict

        rule = self.rule

        count = self.count

        examples = self.examples

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "verdict": verdict,
                "rule": rule,
                "count": count,
                "examples": examples,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        verdict = check_group_verdict(d.pop("verdict"))

        rule = d.pop("rule")

        count = d.pop("count")

        examples = cast(list[str], d.pop("examples"))

        group = cls(
            verdict=verdict,
            rule=rule,
            count=count,
            examples=examples,
        )

        return group
