from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Quota")


@_attrs_define
class Quota:
    """What a queue is entitled to of one resource (contract.md: guaranteed, limit and their native names).

    Attributes:
        guaranteed (float | None | str | Unset):
        limit (float | None | str | Unset):
        borrowing_limit (float | None | str | Unset):
        lending_limit (float | None | str | Unset):
        weight (float | None | Unset):
    """

    guaranteed: float | None | str | Unset = UNSET
    limit: float | None | str | Unset = UNSET
    borrowing_limit: float | None | str | Unset = UNSET
    lending_limit: float | None | str | Unset = UNSET
    weight: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        guaranteed: float | None | str | Unset
        if isinstance(self.guaranteed, Unset):
            guaranteed = UNSET
        else:
            guaranteed = self.guaranteed

        limit: float | None | str | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        borrowing_limit: float | None | str | Unset
        if isinstance(self.borrowing_limit, Unset):
            borrowing_limit = UNSET
        else:
            borrowing_limit = self.borrowing_limit

        lending_limit: float | None | str | Unset
        if isinstance(self.lending_limit, Unset):
            lending_limit = UNSET
        else:
            lending_limit = self.lending_limit

        weight: float | None | Unset
        if isinstance(self.weight, Unset):
            weight = UNSET
        else:
            weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if guaranteed is not UNSET:
            field_dict["guaranteed"] = guaranteed
        if limit is not UNSET:
            field_dict["limit"] = limit
        if borrowing_limit is not UNSET:
            field_dict["borrowing_limit"] = borrowing_limit
        if lending_limit is not UNSET:
            field_dict["lending_limit"] = lending_limit
        if weight is not UNSET:
            field_dict["weight"] = weight

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_guaranteed(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        guaranteed = _parse_guaranteed(d.pop("guaranteed", UNSET))

        def _parse_limit(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_borrowing_limit(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        borrowing_limit = _parse_borrowing_limit(d.pop("borrowing_limit", UNSET))

        def _parse_lending_limit(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        lending_limit = _parse_lending_limit(d.pop("lending_limit", UNSET))

        def _parse_weight(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        weight = _parse_weight(d.pop("weight", UNSET))

        quota = cls(
            guaranteed=guaranteed,
            limit=limit,
            borrowing_limit=borrowing_limit,
            lending_limit=lending_limit,
            weight=weight,
        )

        return quota
