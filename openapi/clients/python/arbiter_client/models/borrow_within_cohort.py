from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.borrow_within_cohort_policy import BorrowWithinCohortPolicy, check_borrow_within_cohort_policy
from ..types import UNSET, Unset

T = TypeVar("T", bound="BorrowWithinCohort")


@_attrs_define
class BorrowWithinCohort:
    """Preempting in the cohort while borrowing: only at or below the threshold, and below the ask's priority.

    Attributes:
        policy (BorrowWithinCohortPolicy | Unset):  Default: 'Never'.
        max_priority_threshold (int | None | Unset):
    """

    policy: BorrowWithinCohortPolicy | Unset = "Never"
    max_priority_threshold: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        policy: str | Unset = UNSET
        if not isinstance(self.policy, Unset):
            policy = self.policy

        max_priority_threshold: int | None | Unset
        if isinstance(self.max_priority_threshold, Unset):
            max_priority_threshold = UNSET
        else:
            max_priority_threshold = self.max_priority_threshold

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if policy is not UNSET:
            field_dict["policy"] = policy
        if max_priority_threshold is not UNSET:
            field_dict["max_priority_threshold"] = max_priority_threshold

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _policy = d.pop("policy", UNSET)
        policy: BorrowWithinCohortPolicy | Unset
        if isinstance(_policy, Unset):
            policy = UNSET
        else:
            policy = check_borrow_within_cohort_policy(_policy)

        def _parse_max_priority_threshold(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_priority_threshold = _parse_max_priority_threshold(d.pop("max_priority_threshold", UNSET))

        borrow_within_cohort = cls(
            policy=policy,
            max_priority_threshold=max_priority_threshold,
        )

        return borrow_within_cohort
