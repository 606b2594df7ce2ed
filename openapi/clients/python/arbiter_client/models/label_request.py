from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="LabelRequest")


@_attrs_define
class LabelRequest:
    """`PUT` of a label: the revision that it shall mean.

    Attributes:
        revision (int):
    """

    revision: int

    def to_dict(self) -> dict[str, Any]:
        revision = self.revision

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "revision": revision,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        revision = d.pop("revision")

        label_request = cls(
            revision=revision,
        )

        return label_request
