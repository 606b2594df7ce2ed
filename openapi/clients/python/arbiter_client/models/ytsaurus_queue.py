from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.ytsaurus_mode import YtsaurusMode, check_ytsaurus_mode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.resources import Resources


T = TypeVar("T", bound="YtsaurusQueue")


@_attrs_define
class YtsaurusQueue:
    """`queue.ytsaurus`: what a pool is and what it overrides.

    Attributes:
        mode (YtsaurusMode | Unset):
        fair_share_starvation_tolerance (float | None | Unset):
        fair_share_starvation_timeout (float | None | str | Unset):
        enable_aggressive_starvation (bool | None | Unset):
        allow_aggressive_preemption (bool | None | Unset):
        allow_normal_preemption (bool | None | Unset):
        non_preemptible_resource_usage_threshold (None | Resources | Unset):
        max_unpreemptible_running_job_count (int | None | Unset):
        resource_limits (None | Resources | Unset):
        resource_limits_overcommit_tolerance (None | Resources | Unset):
        forbid_immediate_operations (bool | None | Unset):
    """

    mode: YtsaurusMode | Unset = UNSET
    fair_share_starvation_tolerance: float | None | Unset = UNSET
    fair_share_starvation_timeout: float | None | str | Unset = UNSET
    enable_aggressive_starvation: bool | None | Unset = UNSET
    allow_aggressive_preemption: bool | None | Unset = UNSET
    allow_normal_preemption: bool | None | Unset = UNSET
    non_preemptible_resource_usage_threshold: None | Resources | Unset = UNSET
    max_unpreemptible_running_job_count: int | None | Unset = UNSET
    resource_limits: None | Resources | Unset = UNSET
    resource_limits_overcommit_tolerance: None | Resources | Unset = UNSET
    forbid_immediate_operations: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.resources import Resources  # noqa: PLC0415

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode

        fair_share_starvation_tolerance: float | None | Unset
        if isinstance(self.fair_share_starvation_tolerance, Unset):
            fair_share_starvation_tolerance = UNSET
        else:
            fair_share_starvation_tolerance = self.fair_share_starvation_tolerance

        fair_share_starvation_timeout: float | None | str | Unset
        if isinstance(self.fair_share_starvation_timeout, Unset):
            fair_share_starvation_timeout = UNSET
        else:
            fair_share_starvation_timeout = self.fair_share_starvation_timeout

        enable_aggressive_starvation: bool | None | Unset
        if isinstance(self.enable_aggressive_starvation, Unset):
            enable_aggressive_starvation = UNSET
        else:
            enable_aggressive_starvation = self.enable_aggressive_starvation

        allow_aggressive_preemption: bool | None | Unset
        if isinstance(self.allow_aggressive_preemption, Unset):
            allow_aggressive_preemption = UNSET
        else:
            allow_aggressive_preemption = self.allow_aggressive_preemption

        allow_normal_preemption: bool | None | Unset
        if isinstance(self.allow_normal_preemption, Unset):
            allow_normal_preemption = UNSET
        else:
            allow_normal_preemption = self.allow_normal_preemption

        non_preemptible_resource_usage_threshold: dict[str, Any] | None | Unset
        if isinstance(self.non_preemptible_resource_usage_threshold, Unset):
            non_preemptible_resource_usage_threshold = UNSET
        elif isinstance(self.non_preemptible_resource_usage_threshold, Resources):
            non_preemptible_resource_usage_threshold = self.non_preemptible_resource_usage_threshold.to_dict()
        else:
            non_preemptible_resource_usage_threshold = self.non_preemptible_resource_usage_threshold

        max_unpreemptible_running_job_count: int | None | Unset
        if isinstance(self.max_unpreemptible_running_job_count, Unset):
            max_unpreemptible_running_job_count = UNSET
        else:
            max_unpreemptible_running_job_count = self.max_unpreemptible_running_job_count

        resource_limits: dict[str, Any] | None | Unset
        if isinstance(self.resource_limits, Unset):
            resource_limits = UNSET
        elif isinstance(self.resource_limits, Resources):
            resource_limits = self.resource_limits.to_dict()
        else:
            resource_limits = self.resource_limits

        resource_limits_overcommit_tolerance: dict[str, Any] | None | Unset
        if isinstance(self.resource_limits_overcommit_tolerance, Unset):
            resource_limits_overcommit_tolerance = UNSET
        elif isinstance(self.resource_limits_overcommit_tolerance, Resources):
            resource_limits_overcommit_tolerance = self.resource_limits_overcommit_tolerance.to_dict()
        else:
            resource_limits_overcommit_tolerance = self.resource_limits_overcommit_tolerance

        forbid_immediate_operations: bool | None | Unset
        if isinstance(self.forbid_immediate_operations, Unset):
            forbid_immediate_operations = UNSET
        else:
            forbid_immediate_operations = self.forbid_immediate_operations

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if mode is not UNSET:
            field_dict["mode"] = mode
        if fair_share_starvation_tolerance is not UNSET:
            field_dict["fair_share_starvation_tolerance"] = fair_share_starvation_tolerance
        if fair_share_starvation_timeout is not UNSET:
            field_dict["fair_share_starvation_timeout"] = fair_share_starvation_timeout
        if enable_aggressive_starvation is not UNSET:
            field_dict["enable_aggressive_starvation"] = enable_aggressive_starvation
        if allow_aggressive_preemption is not UNSET:
            field_dict["allow_aggressive_preemption"] = allow_aggressive_preemption
        if allow_normal_preemption is not UNSET:
            field_dict["allow_normal_preemption"] = allow_normal_preemption
        if non_preemptible_resource_usage_threshold is not UNSET:
            field_dict["non_preemptible_resource_usage_threshold"] = non_preemptible_resource_usage_threshold
        if max_unpreemptible_running_job_count is not UNSET:
            field_dict["max_unpreemptible_running_job_count"] = max_unpreemptible_running_job_count
        if resource_limits is not UNSET:
            field_dict["resource_limits"] = resource_limits
        if resource_limits_overcommit_tolerance is not UNSET:
            field_dict["resource_limits_overcommit_tolerance"] = resource_limits_overcommit_tolerance
        if forbid_immediate_operations is not UNSET:
            field_dict["forbid_immediate_operations"] = forbid_immediate_operations

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.resources import Resources  # noqa: PLC0415

        d = dict(src_dict)
        _mode = d.pop("mode", UNSET)
        mode: YtsaurusMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = check_ytsaurus_mode(_mode)

        def _parse_fair_share_starvation_tolerance(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        fair_share_starvation_tolerance = _parse_fair_share_starvation_tolerance(
            d.pop("fair_share_starvation_tolerance", UNSET)
        )

        def _parse_fair_share_starvation_timeout(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        fair_share_starvation_timeout = _parse_fair_share_starvation_timeout(
            d.pop("fair_share_starvation_timeout", UNSET)
        )

        def _parse_enable_aggressive_starvation(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        enable_aggressive_starvation = _parse_enable_aggressive_starvation(d.pop("enable_aggressive_starvation", UNSET))

        def _parse_allow_aggressive_preemption(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        allow_aggressive_preemption = _parse_allow_aggressive_preemption(d.pop("allow_aggressive_preemption", UNSET))

        def _parse_allow_normal_preemption(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        allow_normal_preemption = _parse_allow_normal_preemption(d.pop("allow_normal_preemption", UNSET))

        def _parse_non_preemptible_resource_usage_threshold(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                non_preemptible_resource_usage_threshold_type_0 = Resources.from_dict(data)

                return non_preemptible_resource_usage_threshold_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        non_preemptible_resource_usage_threshold = _parse_non_preemptible_resource_usage_threshold(
            d.pop("non_preemptible_resource_usage_threshold", UNSET)
        )

        def _parse_max_unpreemptible_running_job_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_unpreemptible_running_job_count = _parse_max_unpreemptible_running_job_count(
            d.pop("max_unpreemptible_running_job_count", UNSET)
        )

        def _parse_resource_limits(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                resource_limits_type_0 = Resources.from_dict(data)

                return resource_limits_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        resource_limits = _parse_resource_limits(d.pop("resource_limits", UNSET))

        def _parse_resource_limits_overcommit_tolerance(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                resource_limits_overcommit_tolerance_type_0 = Resources.from_dict(data)

                return resource_limits_overcommit_tolerance_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        resource_limits_overcommit_tolerance = _parse_resource_limits_overcommit_tolerance(
            d.pop("resource_limits_overcommit_tolerance", UNSET)
        )

        def _parse_forbid_immediate_operations(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        forbid_immediate_operations = _parse_forbid_immediate_operations(d.pop("forbid_immediate_operations", UNSET))

        ytsaurus_queue = cls(
            mode=mode,
            fair_share_starvation_tolerance=fair_share_starvation_tolerance,
            fair_share_starvation_timeout=fair_share_starvation_timeout,
            enable_aggressive_starvation=enable_aggressive_starvation,
            allow_aggressive_preemption=allow_aggressive_preemption,
            allow_normal_preemption=allow_normal_preemption,
            non_preemptible_resource_usage_threshold=non_preemptible_resource_usage_threshold,
            max_unpreemptible_running_job_count=max_unpreemptible_running_job_count,
            resource_limits=resource_limits,
            resource_limits_overcommit_tolerance=resource_limits_overcommit_tolerance,
            forbid_immediate_operations=forbid_immediate_operations,
        )

        return ytsaurus_queue
