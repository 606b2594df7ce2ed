from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.ytsaurus_preemption_mode import YtsaurusPreemptionMode, check_ytsaurus_preemption_mode
from ..models.ytsaurus_starvation import YtsaurusStarvation, check_ytsaurus_starvation
from ..models.ytsaurus_status import YtsaurusStatus, check_ytsaurus_status
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.resources import Resources


T = TypeVar("T", bound="YtsaurusWorkload")


@_attrs_define
class YtsaurusWorkload:
    """`workload.ytsaurus`: an operation's options, and the starvation state carried between requests.

    Attributes:
        starvation (None | Unset | YtsaurusStarvation):
        status (None | Unset | YtsaurusStatus):
        below_fair_share_since (datetime.datetime | None | Unset):
        is_gang (bool | Unset):  Default: False.
        suspended (bool | Unset):  Default: False.
        preemption_mode (YtsaurusPreemptionMode | Unset):
        fair_share_starvation_tolerance (float | None | Unset):
        fair_share_starvation_timeout (float | None | str | Unset):
        non_preemptible_resource_usage_threshold (None | Resources | Unset):
        max_unpreemptible_running_job_count (int | None | Unset):
        allocation_preemption_timeout (float | None | str | Unset):
        job_interrupt_timeout (float | None | str | Unset):
        allocation_graceful_preemption_timeout (float | None | str | Unset):
        resource_limits (None | Resources | Unset):
    """

    starvation: None | Unset | YtsaurusStarvation = UNSET
    status: None | Unset | YtsaurusStatus = UNSET
    below_fair_share_since: datetime.datetime | None | Unset = UNSET
    is_gang: bool | Unset = False
    suspended: bool | Unset = False
    preemption_mode: YtsaurusPreemptionMode | Unset = UNSET
    fair_share_starvation_tolerance: float | None | Unset = UNSET
    fair_share_starvation_timeout: float | None | str | Unset = UNSET
    non_preemptible_resource_usage_threshold: None | Resources | Unset = UNSET
    max_unpreemptible_running_job_count: int | None | Unset = UNSET
    allocation_preemption_timeout: float | None | str | Unset = UNSET
    job_interrupt_timeout: float | None | str | Unset = UNSET
    allocation_graceful_preemption_timeout: float | None | str | Unset = UNSET
    resource_limits: None | Resources | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.resources import Resources  # noqa: PLC0415

        starvation: None | str | Unset
        if isinstance(self.starvation, Unset):
            starvation = UNSET
        elif isinstance(self.starvation, str):
            starvation = self.starvation
        else:
            starvation = self.starvation

        status: None | str | Unset
        if isinstance(self.status, Unset):
            status = UNSET
        elif isinstance(self.status, str):
            status = self.status
        else:
            status = self.status

        below_fair_share_since: None | str | Unset
        if isinstance(self.below_fair_share_since, Unset):
            below_fair_share_since = UNSET
        elif isinstance(self.below_fair_share_since, datetime.datetime):
            below_fair_share_since = self.below_fair_share_since.isoformat()
        else:
            below_fair_share_since = self.below_fair_share_since

        is_gang = self.is_gang

        suspended = self.suspended

        preemption_mode: str | Unset = UNSET
        if not isinstance(self.preemption_mode, Unset):
            preemption_mode = self.preemption_mode

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

        allocation_preemption_timeout: float | None | str | Unset
        if isinstance(self.allocation_preemption_timeout, Unset):
            allocation_preemption_timeout = UNSET
        else:
            allocation_preemption_timeout = self.allocation_preemption_timeout

        job_interrupt_timeout: float | None | str | Unset
        if isinstance(self.job_interrupt_timeout, Unset):
            job_interrupt_timeout = UNSET
        else:
            job_interrupt_timeout = self.job_interrupt_timeout

        allocation_graceful_preemption_timeout: float | None | str | Unset
        if isinstance(self.allocation_graceful_preemption_timeout, Unset):
            allocation_graceful_preemption_timeout = UNSET
        else:
            allocation_graceful_preemption_timeout = self.allocation_graceful_preemption_timeout

        resource_limits: dict[str, Any] | None | Unset
        if isinstance(self.resource_limits, Unset):
            resource_limits = UNSET
        elif isinstance(self.resource_limits, Resources):
            resource_limits = self.resource_limits.to_dict()
        else:
            resource_limits = self.resource_limits

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if starvation is not UNSET:
            field_dict["starvation"] = starvation
        if status is not UNSET:
            field_dict["status"] = status
        if below_fair_share_since is not UNSET:
            field_dict["below_fair_share_since"] = below_fair_share_since
        if is_gang is not UNSET:
            field_dict["is_gang"] = is_gang
        if suspended is not UNSET:
            field_dict["suspended"] = suspended
        if preemption_mode is not UNSET:
            field_dict["preemption_mode"] = preemption_mode
        if fair_share_starvation_tolerance is not UNSET:
            field_dict["fair_share_starvation_tolerance"] = fair_share_starvation_tolerance
        if fair_share_starvation_timeout is not UNSET:
            field_dict["fair_share_starvation_timeout"] = fair_share_starvation_timeout
        if non_preemptible_resource_usage_threshold is not UNSET:
            field_dict["non_preemptible_resource_usage_threshold"] = non_preemptible_resource_usage_threshold
        if max_unpreemptible_running_job_count is not UNSET:
            field_dict["max_unpreemptible_running_job_count"] = max_unpreemptible_running_job_count
        if allocation_preemption_timeout is not UNSET:
            field_dict["allocation_preemption_timeout"] = allocation_preemption_timeout
        if job_interrupt_timeout is not UNSET:
            field_dict["job_interrupt_timeout"] = job_interrupt_timeout
        if allocation_graceful_preemption_timeout is not UNSET:
            field_dict["allocation_graceful_preemption_timeout"] = allocation_graceful_preemption_timeout
        if resource_limits is not UNSET:
            field_dict["resource_limits"] = resource_limits

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.resources import Resources  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_starvation(data: object) -> None | Unset | YtsaurusStarvation:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                starvation_type_0 = check_ytsaurus_starvation(data)

                return starvation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusStarvation, data)

        starvation = _parse_starvation(d.pop("starvation", UNSET))

        def _parse_status(data: object) -> None | Unset | YtsaurusStatus:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                status_type_0 = check_ytsaurus_status(data)

                return status_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusStatus, data)

        status = _parse_status(d.pop("status", UNSET))

        def _parse_below_fair_share_since(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                below_fair_share_since_type_0 = datetime.datetime.fromisoformat(data)

                return below_fair_share_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        below_fair_share_since = _parse_below_fair_share_since(d.pop("below_fair_share_since", UNSET))

        is_gang = d.pop("is_gang", UNSET)

        suspended = d.pop("suspended", UNSET)

        _preemption_mode = d.pop("preemption_mode", UNSET)
        preemption_mode: YtsaurusPreemptionMode | Unset
        if isinstance(_preemption_mode, Unset):
            preemption_mode = UNSET
        else:
            preemption_mode = check_ytsaurus_preemption_mode(_preemption_mode)

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

        def _parse_allocation_preemption_timeout(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        allocation_preemption_timeout = _parse_allocation_preemption_timeout(
            d.pop("allocation_preemption_timeout", UNSET)
        )

        def _parse_job_interrupt_timeout(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        job_interrupt_timeout = _parse_job_interrupt_timeout(d.pop("job_interrupt_timeout", UNSET))

        def _parse_allocation_graceful_preemption_timeout(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        allocation_graceful_preemption_timeout = _parse_allocation_graceful_preemption_timeout(
            d.pop("allocation_graceful_preemption_timeout", UNSET)
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

        ytsaurus_workload = cls(
            starvation=starvation,
            status=status,
            below_fair_share_since=below_fair_share_since,
            is_gang=is_gang,
            suspended=suspended,
            preemption_mode=preemption_mode,
            fair_share_starvation_tolerance=fair_share_starvation_tolerance,
            fair_share_starvation_timeout=fair_share_starvation_timeout,
            non_preemptible_resource_usage_threshold=non_preemptible_resource_usage_threshold,
            max_unpreemptible_running_job_count=max_unpreemptible_running_job_count,
            allocation_preemption_timeout=allocation_preemption_timeout,
            job_interrupt_timeout=job_interrupt_timeout,
            allocation_graceful_preemption_timeout=allocation_graceful_preemption_timeout,
            resource_limits=resource_limits,
        )

        return ytsaurus_workload
