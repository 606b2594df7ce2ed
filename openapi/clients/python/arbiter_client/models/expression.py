from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.expression_operator import ExpressionOperator, check_expression_operator
from ..types import UNSET, Unset

T = TypeVar("T", bound="Expression")


@_attrs_define
class Expression:
    """A node selector requirement, with Kubernetes' operators.

    Attributes:
        key (str):
        operator (ExpressionOperator):
        values (list[str] | Unset):
    """

    key: str
    operator: ExpressionOperator
    values: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        key = self.key

        operator: str = self.operator

        values: list[str] | Unset = UNSET
        if not isinstance(self.values, Unset):
            values = self.values

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "key": key,
                "operator": operator,
            }
        )
        if values is not UNSET:
            field_dict["values"] = values

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        key = d.pop("key")

        operator = check_expression_operator(d.pop("operator"))

        values = cast(list[str], d.pop("values", UNSET))

        expression = cls(
            key=key,
            operator=operator,
            values=values,
        )

        return expression
