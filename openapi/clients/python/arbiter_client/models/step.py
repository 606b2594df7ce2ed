from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.step_numbers import StepNumbers


T = TypeVar("T", bound="Step")


@_attrs_define
class Step:
    """One step of the algorithm: an attempt, a round, a scenario, a node considered.

    Attributes:
        rule (str):
        detail (str):
        numbers (StepNumbers | Unset):
    """

    rule: str
    detail: str
    numbers: StepNumbers | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        rule = self.rule

        detail = self.detail

        numbers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.numbers, Unset):
            numbers = self.numbers.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "rule": rule,
                "detail": detail,
            }
        )
        if numbers is not UNSET:
            field_dict["numbers"] = numbers

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.step_numbers import StepNumbers  # noqa: PLC0415

        d = dict(src_dict)
        rule = d.pop("rule")

        detail = d.pop("detail")

        _numbers = d.pop("numbers", UNSET)
        numbers: StepNumbers | Unset
        if isinstance(_numbers, Unset):
            numbers = UNSET
        else:
            numbers = StepNumbers.from_dict(_numbers)

        step = cls(
            rule=rule,
            detail=detail,
            numbers=numbers,
        )

        return step
