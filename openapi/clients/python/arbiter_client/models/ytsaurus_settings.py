from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.rules import Rules, check_rules
from ..models.ytsaurus_priority_scope import YtsaurusPriorityScope, check_ytsaurus_priority_scope
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.resources import Resources


T = TypeVar("T", bound="YtsaurusSettings")


@_attrs_define
class YtsaurusSettings:
    """`settings.ytsaurus`: the pool tree's level of every setting, and the scheduler's own few.

    Attributes:
        rules (Rules | Unset):
        fair_share_starvation_tolerance (float | None | Unset):
        fair_share_starvation_timeout (float | None | str | Unset):
        fair_share_aggressive_starvation_timeout (float | None | str | Unset):
        enable_aggressive_starvation (bool | None | Unset):
        enable_pool_starvation (bool | None | Unset):
        enable_absolute_fair_share_starvation_tolerance (bool | None | Unset):
        preemption_satisfaction_threshold (float | None | Unset):
        aggressive_preemption_satisfaction_threshold (float | None | Unset):
        non_preemptible_resource_usage_threshold (None | Resources | Unset):
        max_unpreemptible_running_job_count (int | None | Unset):
        consider_allocation_on_fair_share_bound_preemptible (bool | None | Unset):
        preemptive_scheduling_backoff (float | None | str | Unset):
        scheduling_preemption_priority_scope (None | Unset | YtsaurusPriorityScope):
        allow_preemption_from_starving_operations (bool | None | Unset):
        allow_aggressive_preemption_for_gang_operations (bool | None | Unset):
        allocation_count_preemption_timeout_coefficient (float | None | Unset):
        allocation_preemption_timeout (float | None | str | Unset):
        job_interrupt_timeout (float | None | str | Unset):
        allocation_graceful_preemption_timeout (float | None | str | Unset):
        allowed_node_resources_overcommit_duration (float | None | str | Unset):
        min_spare_allocation_resources (None | Resources | Unset):
        min_spare_allocation_resources_on_node (None | Resources | Unset):
        use_precommit_for_preemption (bool | None | Unset):
        infer_weight_from_guarantees_share_multiplier (float | None | Unset):
        enable_best_allocation_share (bool | None | Unset):
        main_resource (None | str | Unset):
    """

    rules: Rules | Unset = UNSET
    fair_share_starvation_tolerance: float | None | Unset = UNSET
    fair_share_starvation_timeout: float | None | str | Unset = UNSET
    fair_share_aggressive_starvation_timeout: float | None | str | Unset = UNSET
    enable_aggressive_starvation: bool | None | Unset = UNSET
    enable_pool_starvation: bool | None | Unset = UNSET
    enable_absolute_fair_share_starvation_tolerance: bool | None | Unset = UNSET
    preemption_satisfaction_threshold: float | None | Unset = UNSET
    aggressive_preemption_satisfaction_threshold: float | None | Unset = UNSET
    non_preemptible_resource_usage_threshold: None | Resources | Unset = UNSET
    max_unpreemptible_running_job_count: int | None | Unset = UNSET
    consider_allocation_on_fair_share_bound_preemptible: bool | None | Unset = UNSET
    preemptive_scheduling_backoff: float | None | str | Unset = UNSET
    scheduling_preemption_priority_scope: None | Unset | YtsaurusPriorityScope = UNSET
    allow_preemption_from_starving_operations: bool | None | Unset = UNSET
    allow_aggressive_preemption_for_gang_operations: bool | None | Unset = UNSET
    allocation_count_preemption_timeout_coefficient: float | None | Unset = UNSET
    allocation_preemption_timeout: float | None | str | Unset = UNSET
    job_interrupt_timeout: float | None | str | Unset = UNSET
    allocation_graceful_preemption_timeout: float | None | str | Unset = UNSET
    allowed_node_resources_overcommit_duration: float | None | str | Unset = UNSET
    min_spare_allocation_resources: None | Resources | Unset = UNSET
    min_spare_allocation_resources_on_node: None | Resources | Unset = UNSET
    use_precommit_for_preemption: bool | None | Unset = UNSET
    infer_weight_from_guarantees_share_multiplier: float | None | Unset = UNSET
    enable_best_allocation_share: bool | None | Unset = UNSET
    main_resource: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.resources import Resources  # noqa: PLC0415

        rules: str | Unset = UNSET
        if not isinstance(self.rules, Unset):
            rules = self.rules

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

        fair_share_aggressive_starvation_timeout: float | None | str | Unset
        if isinstance(self.fair_share_aggressive_starvation_timeout, Unset):
            fair_share_aggressive_starvation_timeout = UNSET
        else:
            fair_share_aggressive_starvation_timeout = self.fair_share_aggressive_starvation_timeout

        enable_aggressive_starvation: bool | None | Unset
        if isinstance(self.enable_aggressive_starvation, Unset):
            enable_aggressive_starvation = UNSET
        else:
            enable_aggressive_starvation = self.enable_aggressive_starvation

        enable_pool_starvation: bool | None | Unset
        if isinstance(self.enable_pool_starvation, Unset):
            enable_pool_starvation = UNSET
        else:
            enable_pool_starvation = self.enable_pool_starvation

        enable_absolute_fair_share_starvation_tolerance: bool | None | Unset
        if isinstance(self.enable_absolute_fair_share_starvation_tolerance, Unset):
            enable_absolute_fair_share_starvation_tolerance = UNSET
        else:
            enable_absolute_fair_share_starvation_tolerance = self.enable_absolute_fair_share_starvation_tolerance

        preemption_satisfaction_threshold: float | None | Unset
        if isinstance(self.preemption_satisfaction_threshold, Unset):
            preemption_satisfaction_threshold = UNSET
        else:
            preemption_satisfaction_threshold = self.preemption_satisfaction_threshold

        aggressive_preemption_satisfaction_threshold: float | None | Unset
        if isinstance(self.aggressive_preemption_satisfaction_threshold, Unset):
            aggressive_preemption_satisfaction_threshold = UNSET
        else:
            aggressive_preemption_satisfaction_threshold = self.aggressive_preemption_satisfaction_threshold

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

        consider_allocation_on_fair_share_bound_preemptible: bool | None | Unset
        if isinstance(self.consider_allocation_on_fair_share_bound_preemptible, Unset):
            consider_allocation_on_fair_share_bound_preemptible = UNSET
        else:
            consider_allocation_on_fair_share_bound_preemptible = (
                self.consider_allocation_on_fair_share_bound_preemptible
            )

        preemptive_scheduling_backoff: float | None | str | Unset
        if isinstance(self.preemptive_scheduling_backoff, Unset):
            preemptive_scheduling_backoff = UNSET
        else:
            preemptive_scheduling_backoff = self.preemptive_scheduling_backoff

        scheduling_preemption_priority_scope: None | str | Unset
        if isinstance(self.scheduling_preemption_priority_scope, Unset):
            scheduling_preemption_priority_scope = UNSET
        elif isinstance(self.scheduling_preemption_priority_scope, str):
            scheduling_preemption_priority_scope = self.scheduling_preemption_priority_scope
        else:
            scheduling_preemption_priority_scope = self.scheduling_preemption_priority_scope

        allow_preemption_from_starving_operations: bool | None | Unset
        if isinstance(self.allow_preemption_from_starving_operations, Unset):
            allow_preemption_from_starving_operations = UNSET
        else:
            allow_preemption_from_starving_operations = self.allow_preemption_from_starving_operations

        allow_aggressive_preemption_for_gang_operations: bool | None | Unset
        if isinstance(self.allow_aggressive_preemption_for_gang_operations, Unset):
            allow_aggressive_preemption_for_gang_operations = UNSET
        else:
            allow_aggressive_preemption_for_gang_operations = self.allow_aggressive_preemption_for_gang_operations

        allocation_count_preemption_timeout_coefficient: float | None | Unset
        if isinstance(self.allocation_count_preemption_timeout_coefficient, Unset):
            allocation_count_preemption_timeout_coefficient = UNSET
        else:
            allocation_count_preemption_timeout_coefficient = self.allocation_count_preemption_timeout_coefficient

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

        allowed_node_resources_overcommit_duration: float | None | str | Unset
        if isinstance(self.allowed_node_resources_overcommit_duration, Unset):
            allowed_node_resources_overcommit_duration = UNSET
        else:
            allowed_node_resources_overcommit_duration = self.allowed_node_resources_overcommit_duration

        min_spare_allocation_resources: dict[str, Any] | None | Unset
        if isinstance(self.min_spare_allocation_resources, Unset):
            min_spare_allocation_resources = UNSET
        elif isinstance(self.min_spare_allocation_resources, Resources):
            min_spare_allocation_resources = self.min_spare_allocation_resources.to_dict()
        else:
            min_spare_allocation_resources = self.min_spare_allocation_resources

        min_spare_allocation_resources_on_node: dict[str, Any] | None | Unset
        if isinstance(self.min_spare_allocation_resources_on_node, Unset):
            min_spare_allocation_resources_on_node = UNSET
        elif isinstance(self.min_spare_allocation_resources_on_node, Resources):
            min_spare_allocation_resources_on_node = self.min_spare_allocation_resources_on_node.to_dict()
        else:
            min_spare_allocation_resources_on_node = self.min_spare_allocation_resources_on_node

        use_precommit_for_preemption: bool | None | Unset
        if isinstance(self.use_precommit_for_preemption, Unset):
            use_precommit_for_preemption = UNSET
        else:
            use_precommit_for_preemption = self.use_precommit_for_preemption

        infer_weight_from_guarantees_share_multiplier: float | None | Unset
        if isinstance(self.infer_weight_from_guarantees_share_multiplier, Unset):
            infer_weight_from_guarantees_share_multiplier = UNSET
        else:
            infer_weight_from_guarantees_share_multiplier = self.infer_weight_from_guarantees_share_multiplier

        enable_best_allocation_share: bool | None | Unset
        if isinstance(self.enable_best_allocation_share, Unset):
            enable_best_allocation_share = UNSET
        else:
            enable_best_allocation_share = self.enable_best_allocation_share

        main_resource: None | str | Unset
        if isinstance(self.main_resource, Unset):
            main_resource = UNSET
        else:
            main_resource = self.main_resource

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if rules is not UNSET:
            field_dict["rules"] = rules
        if fair_share_starvation_tolerance is not UNSET:
            field_dict["fair_share_starvation_tolerance"] = fair_share_starvation_tolerance
        if fair_share_starvation_timeout is not UNSET:
            field_dict["fair_share_starvation_timeout"] = fair_share_starvation_timeout
        if fair_share_aggressive_starvation_timeout is not UNSET:
            field_dict["fair_share_aggressive_starvation_timeout"] = fair_share_aggressive_starvation_timeout
        if enable_aggressive_starvation is not UNSET:
            field_dict["enable_aggressive_starvation"] = enable_aggressive_starvation
        if enable_pool_starvation is not UNSET:
            field_dict["enable_pool_starvation"] = enable_pool_starvation
        if enable_absolute_fair_share_starvation_tolerance is not UNSET:
            field_dict["enable_absolute_fair_share_starvation_tolerance"] = (
                enable_absolute_fair_share_starvation_tolerance
            )
        if preemption_satisfaction_threshold is not UNSET:
            field_dict["preemption_satisfaction_threshold"] = preemption_satisfaction_threshold
        if aggressive_preemption_satisfaction_threshold is not UNSET:
            field_dict["aggressive_preemption_satisfaction_threshold"] = aggressive_preemption_satisfaction_threshold
        if non_preemptible_resource_usage_threshold is not UNSET:
            field_dict["non_preemptible_resource_usage_threshold"] = non_preemptible_resource_usage_threshold
        if max_unpreemptible_running_job_count is not UNSET:
            field_dict["max_unpreemptible_running_job_count"] = max_unpreemptible_running_job_count
        if consider_allocation_on_fair_share_bound_preemptible is not UNSET:
            field_dict["consider_allocation_on_fair_share_bound_preemptible"] = (
                consider_allocation_on_fair_share_bound_preemptible
            )
        if preemptive_scheduling_backoff is not UNSET:
            field_dict["preemptive_scheduling_backoff"] = preemptive_scheduling_backoff
        if scheduling_preemption_priority_scope is not UNSET:
            field_dict["scheduling_preemption_priority_scope"] = scheduling_preemption_priority_scope
        if allow_preemption_from_starving_operations is not UNSET:
            field_dict["allow_preemption_from_starving_operations"] = allow_preemption_from_starving_operations
        if allow_aggressive_preemption_for_gang_operations is not UNSET:
            field_dict["allow_aggressive_preemption_for_gang_operations"] = (
                allow_aggressive_preemption_for_gang_operations
            )
        if allocation_count_preemption_timeout_coefficient is not UNSET:
            field_dict["allocation_count_preemption_timeout_coefficient"] = (
                allocation_count_preemption_timeout_coefficient
            )
        if allocation_preemption_timeout is not UNSET:
            field_dict["allocation_preemption_timeout"] = allocation_preemption_timeout
        if job_interrupt_timeout is not UNSET:
            field_dict["job_interrupt_timeout"] = job_interrupt_timeout
        if allocation_graceful_preemption_timeout is not UNSET:
            field_dict["allocation_graceful_preemption_timeout"] = allocation_graceful_preemption_timeout
        if allowed_node_resources_overcommit_duration is not UNSET:
            field_dict["allowed_node_resources_overcommit_duration"] = allowed_node_resources_overcommit_duration
        if min_spare_allocation_resources is not UNSET:
            field_dict["min_spare_allocation_resources"] = min_spare_allocation_resources
        if min_spare_allocation_resources_on_node is not UNSET:
            field_dict["min_spare_allocation_resources_on_node"] = min_spare_allocation_resources_on_node
        if use_precommit_for_preemption is not UNSET:
            field_dict["use_precommit_for_preemption"] = use_precommit_for_preemption
        if infer_weight_from_guarantees_share_multiplier is not UNSET:
            field_dict["infer_weight_from_guarantees_share_multiplier"] = infer_weight_from_guarantees_share_multiplier
        if enable_best_allocation_share is not UNSET:
            field_dict["enable_best_allocation_share"] = enable_best_allocation_share
        if main_resource is not UNSET:
            field_dict["main_resource"] = main_resource

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.resources import Resources  # noqa: PLC0415

        d = dict(src_dict)
        _rules = d.pop("rules", UNSET)
        rules: Rules | Unset
        if isinstance(_rules, Unset):
            rules = UNSET
        else:
            rules = check_rules(_rules)

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

        def _parse_fair_share_aggressive_starvation_timeout(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        fair_share_aggressive_starvation_timeout = _parse_fair_share_aggressive_starvation_timeout(
            d.pop("fair_share_aggressive_starvation_timeout", UNSET)
        )

        def _parse_enable_aggressive_starvation(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        enable_aggressive_starvation = _parse_enable_aggressive_starvation(d.pop("enable_aggressive_starvation", UNSET))

        def _parse_enable_pool_starvation(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        enable_pool_starvation = _parse_enable_pool_starvation(d.pop("enable_pool_starvation", UNSET))

        def _parse_enable_absolute_fair_share_starvation_tolerance(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        enable_absolute_fair_share_starvation_tolerance = _parse_enable_absolute_fair_share_starvation_tolerance(
            d.pop("enable_absolute_fair_share_starvation_tolerance", UNSET)
        )

        def _parse_preemption_satisfaction_threshold(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        preemption_satisfaction_threshold = _parse_preemption_satisfaction_threshold(
            d.pop("preemption_satisfaction_threshold", UNSET)
        )

        def _parse_aggressive_preemption_satisfaction_threshold(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        aggressive_preemption_satisfaction_threshold = _parse_aggressive_preemption_satisfaction_threshold(
            d.pop("aggressive_preemption_satisfaction_threshold", UNSET)
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

        def _parse_consider_allocation_on_fair_share_bound_preemptible(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        consider_allocation_on_fair_share_bound_preemptible = (
            _parse_consider_allocation_on_fair_share_bound_preemptible(
                d.pop("consider_allocation_on_fair_share_bound_preemptible", UNSET)
            )
        )

        def _parse_preemptive_scheduling_backoff(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        preemptive_scheduling_backoff = _parse_preemptive_scheduling_backoff(
            d.pop("preemptive_scheduling_backoff", UNSET)
        )

        def _parse_scheduling_preemption_priority_scope(data: object) -> None | Unset | YtsaurusPriorityScope:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                scheduling_preemption_priority_scope_type_0 = check_ytsaurus_priority_scope(data)

                return scheduling_preemption_priority_scope_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusPriorityScope, data)

        scheduling_preemption_priority_scope = _parse_scheduling_preemption_priority_scope(
            d.pop("scheduling_preemption_priority_scope", UNSET)
        )

        def _parse_allow_preemption_from_starving_operations(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        allow_preemption_from_starving_operations = _parse_allow_preemption_from_starving_operations(
            d.pop("allow_preemption_from_starving_operations", UNSET)
        )

        def _parse_allow_aggressive_preemption_for_gang_operations(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        allow_aggressive_preemption_for_gang_operations = _parse_allow_aggressive_preemption_for_gang_operations(
            d.pop("allow_aggressive_preemption_for_gang_operations", UNSET)
        )

        def _parse_allocation_count_preemption_timeout_coefficient(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        allocation_count_preemption_timeout_coefficient = _parse_allocation_count_preemption_timeout_coefficient(
            d.pop("allocation_count_preemption_timeout_coefficient", UNSET)
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

        def _parse_allowed_node_resources_overcommit_duration(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        allowed_node_resources_overcommit_duration = _parse_allowed_node_resources_overcommit_duration(
            d.pop("allowed_node_resources_overcommit_duration", UNSET)
        )

        def _parse_min_spare_allocation_resources(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                min_spare_allocation_resources_type_0 = Resources.from_dict(data)

                return min_spare_allocation_resources_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        min_spare_allocation_resources = _parse_min_spare_allocation_resources(
            d.pop("min_spare_allocation_resources", UNSET)
        )

        def _parse_min_spare_allocation_resources_on_node(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                min_spare_allocation_resources_on_node_type_0 = Resources.from_dict(data)

                return min_spare_allocation_resources_on_node_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        min_spare_allocation_resources_on_node = _parse_min_spare_allocation_resources_on_node(
            d.pop("min_spare_allocation_resources_on_node", UNSET)
        )

        def _parse_use_precommit_for_preemption(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        use_precommit_for_preemption = _parse_use_precommit_for_preemption(d.pop("use_precommit_for_preemption", UNSET))

        def _parse_infer_weight_from_guarantees_share_multiplier(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        infer_weight_from_guarantees_share_multiplier = _parse_infer_weight_from_guarantees_share_multiplier(
            d.pop("infer_weight_from_guarantees_share_multiplier", UNSET)
        )

        def _parse_enable_best_allocation_share(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        enable_best_allocation_share = _parse_enable_best_allocation_share(d.pop("enable_best_allocation_share", UNSET))

        def _parse_main_resource(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        main_resource = _parse_main_resource(d.pop("main_resource", UNSET))

        ytsaurus_settings = cls(
            rules=rules,
            fair_share_starvation_tolerance=fair_share_starvation_tolerance,
            fair_share_starvation_timeout=fair_share_starvation_timeout,
            fair_share_aggressive_starvation_timeout=fair_share_aggressive_starvation_timeout,
            enable_aggressive_starvation=enable_aggressive_starvation,
            enable_pool_starvation=enable_pool_starvation,
            enable_absolute_fair_share_starvation_tolerance=enable_absolute_fair_share_starvation_tolerance,
            preemption_satisfaction_threshold=preemption_satisfaction_threshold,
            aggressive_preemption_satisfaction_threshold=aggressive_preemption_satisfaction_threshold,
            non_preemptible_resource_usage_threshold=non_preemptible_resource_usage_threshold,
            max_unpreemptible_running_job_count=max_unpreemptible_running_job_count,
            consider_allocation_on_fair_share_bound_preemptible=consider_allocation_on_fair_share_bound_preemptible,
            preemptive_scheduling_backoff=preemptive_scheduling_backoff,
            scheduling_preemption_priority_scope=scheduling_preemption_priority_scope,
            allow_preemption_from_starving_operations=allow_preemption_from_starving_operations,
            allow_aggressive_preemption_for_gang_operations=allow_aggressive_preemption_for_gang_operations,
            allocation_count_preemption_timeout_coefficient=allocation_count_preemption_timeout_coefficient,
            allocation_preemption_timeout=allocation_preemption_timeout,
            job_interrupt_timeout=job_interrupt_timeout,
            allocation_graceful_preemption_timeout=allocation_graceful_preemption_timeout,
            allowed_node_resources_overcommit_duration=allowed_node_resources_overcommit_duration,
            min_spare_allocation_resources=min_spare_allocation_resources,
            min_spare_allocation_resources_on_node=min_spare_allocation_resources_on_node,
            use_precommit_for_preemption=use_precommit_for_preemption,
            infer_weight_from_guarantees_share_multiplier=infer_weight_from_guarantees_share_multiplier,
            enable_best_allocation_share=enable_best_allocation_share,
            main_resource=main_resource,
        )

        return ytsaurus_settings
