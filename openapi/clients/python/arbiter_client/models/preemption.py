from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kueue_sorting import KueueSorting, check_kueue_sorting
from ..models.preemption_reclaim_within_cohort import (
    PreemptionReclaimWithinCohort,
    check_preemption_reclaim_within_cohort,
)
from ..models.preemption_within_cluster_queue import PreemptionWithinClusterQueue, check_preemption_within_cluster_queue
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.borrow_within_cohort import BorrowWithinCohort
    from ..models.long_runner_penalty import LongRunnerPenalty
    from ..models.milestone import Milestone
    from ..models.waiting_boost import WaitingBoost


T = TypeVar("T", bound="Preemption")


@_attrs_define
class Preemption:
    """`queue.kueue.preemption`.

    Attributes:
        within_cluster_queue (PreemptionWithinClusterQueue | Unset):  Default: 'Never'.
        reclaim_within_cohort (PreemptionReclaimWithinCohort | Unset):  Default: 'Never'.
        borrow_within_cohort (BorrowWithinCohort | None | Unset):
        trigger_after_workload_waiting_seconds (float | None | Unset):
        workload_sorting (list[KueueSorting] | None | Unset):
        disruption_cost_milestones (list[Milestone] | None | Unset):
        long_runner_penalty (LongRunnerPenalty | None | Unset):
        waiting_boost (None | Unset | WaitingBoost):
    """

    within_cluster_queue: PreemptionWithinClusterQueue | Unset = "Never"
    reclaim_within_cohort: PreemptionReclaimWithinCohort | Unset = "Never"
    borrow_within_cohort: BorrowWithinCohort | None | Unset = UNSET
    trigger_after_workload_waiting_seconds: float | None | Unset = UNSET
    workload_sorting: list[KueueSorting] | None | Unset = UNSET
    disruption_cost_milestones: list[Milestone] | None | Unset = UNSET
    long_runner_penalty: LongRunnerPenalty | None | Unset = UNSET
    waiting_boost: None | Unset | WaitingBoost = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.borrow_within_cohort import BorrowWithinCohort  # noqa: PLC0415
        from ..models.long_runner_penalty import LongRunnerPenalty  # noqa: PLC0415
        from ..models.waiting_boost import WaitingBoost  # noqa: PLC0415

        within_cluster_queue: str | Unset = UNSET
        if not isinstance(self.within_cluster_queue, Unset):
            within_cluster_queue = self.within_cluster_queue

        reclaim_within_cohort: str | Unset = UNSET
        if not isinstance(self.reclaim_within_cohort, Unset):
            reclaim_within_cohort = self.reclaim_within_cohort

        borrow_within_cohort: dict[str, Any] | None | Unset
        if isinstance(self.borrow_within_cohort, Unset):
            borrow_within_cohort = UNSET
        elif isinstance(self.borrow_within_cohort, BorrowWithinCohort):
            borrow_within_cohort = self.borrow_within_cohort.to_dict()
        else:
            borrow_within_cohort = self.borrow_within_cohort

        trigger_after_workload_waiting_seconds: float | None | Unset
        if isinstance(self.trigger_after_workload_waiting_seconds, Unset):
            trigger_after_workload_waiting_seconds = UNSET
        else:
            trigger_after_workload_waiting_seconds = self.trigger_after_workload_waiting_seconds

        workload_sorting: list[str] | None | Unset
        if isinstance(self.workload_sorting, Unset):
            workload_sorting = UNSET
        elif isinstance(self.workload_sorting, list):
            workload_sorting = []
            for workload_sorting_type_0_item_data in self.workload_sorting:
                workload_sorting_type_0_item: str = workload_sorting_type_0_item_data
                workload_sorting.append(workload_sorting_type_0_item)

        else:
            workload_sorting = self.workload_sorting

        disruption_cost_milestones: list[dict[str, Any]] | None | Unset
        if isinstance(self.disruption_cost_milestones, Unset):
            disruption_cost_milestones = UNSET
        elif isinstance(self.disruption_cost_milestones, list):
            disruption_cost_milestones = []
            for disruption_cost_milestones_type_0_item_data in self.disruption_cost_milestones:
                disruption_cost_milestones_type_0_item = disruption_cost_milestones_type_0_item_data.to_dict()
                disruption_cost_milestones.append(disruption_cost_milestones_type_0_item)

        else:
            disruption_cost_milestones = self.disruption_cost_milestones

        long_runner_penalty: dict[str, Any] | None | Unset
        if isinstance(self.long_runner_penalty, Unset):
            long_runner_penalty = UNSET
        elif isinstance(self.long_runner_penalty, LongRunnerPenalty):
            long_runner_penalty = self.long_runner_penalty.to_dict()
        else:
            long_runner_penalty = self.long_runner_penalty

        waiting_boost: dict[str, Any] | None | Unset
        if isinstance(self.waiting_boost, Unset):
            waiting_boost = UNSET
        elif isinstance(self.waiting_boost, WaitingBoost):
            waiting_boost = self.waiting_boost.to_dict()
        else:
            waiting_boost = self.waiting_boost

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if within_cluster_queue is not UNSET:
            field_dict["within_cluster_queue"] = within_cluster_queue
        if reclaim_within_cohort is not UNSET:
            field_dict["reclaim_within_cohort"] = reclaim_within_cohort
        if borrow_within_cohort is not UNSET:
            field_dict["borrow_within_cohort"] = borrow_within_cohort
        if trigger_after_workload_waiting_seconds is not UNSET:
            field_dict["trigger_after_workload_waiting_seconds"] = trigger_after_workload_waiting_seconds
        if workload_sorting is not UNSET:
            field_dict["workload_sorting"] = workload_sorting
        if disruption_cost_milestones is not UNSET:
            field_dict["disruption_cost_milestones"] = disruption_cost_milestones
        if long_runner_penalty is not UNSET:
            field_dict["long_runner_penalty"] = long_runner_penalty
        if waiting_boost is not UNSET:
            field_dict["waiting_boost"] = waiting_boost

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.borrow_within_cohort import BorrowWithinCohort  # noqa: PLC0415
        from ..models.long_runner_penalty import LongRunnerPenalty  # noqa: PLC0415
        from ..models.milestone import Milestone  # noqa: PLC0415
        from ..models.waiting_boost import WaitingBoost  # noqa: PLC0415

        d = dict(src_dict)
        _within_cluster_queue = d.pop("within_cluster_queue", UNSET)
        within_cluster_queue: PreemptionWithinClusterQueue | Unset
        if isinstance(_within_cluster_queue, Unset):
            within_cluster_queue = UNSET
        else:
            within_cluster_queue = check_preemption_within_cluster_queue(_within_cluster_queue)

        _reclaim_within_cohort = d.pop("reclaim_within_cohort", UNSET)
        reclaim_within_cohort: PreemptionReclaimWithinCohort | Unset
        if isinstance(_reclaim_within_cohort, Unset):
            reclaim_within_cohort = UNSET
        else:
            reclaim_within_cohort = check_preemption_reclaim_within_cohort(_reclaim_within_cohort)

        def _parse_borrow_within_cohort(data: object) -> BorrowWithinCohort | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                borrow_within_cohort_type_0 = BorrowWithinCohort.from_dict(data)

                return borrow_within_cohort_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BorrowWithinCohort | None | Unset, data)

        borrow_within_cohort = _parse_borrow_within_cohort(d.pop("borrow_within_cohort", UNSET))

        def _parse_trigger_after_workload_waiting_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        trigger_after_workload_waiting_seconds = _parse_trigger_after_workload_waiting_seconds(
            d.pop("trigger_after_workload_waiting_seconds", UNSET)
        )

        def _parse_workload_sorting(data: object) -> list[KueueSorting] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                workload_sorting_type_0 = []
                _workload_sorting_type_0 = data
                for workload_sorting_type_0_item_data in _workload_sorting_type_0:
                    workload_sorting_type_0_item = check_kueue_sorting(workload_sorting_type_0_item_data)

                    workload_sorting_type_0.append(workload_sorting_type_0_item)

                return workload_sorting_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[KueueSorting] | None | Unset, data)

        workload_sorting = _parse_workload_sorting(d.pop("workload_sorting", UNSET))

        def _parse_disruption_cost_milestones(data: object) -> list[Milestone] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                disruption_cost_milestones_type_0 = []
                _disruption_cost_milestones_type_0 = data
                for disruption_cost_milestones_type_0_item_data in _disruption_cost_milestones_type_0:
                    disruption_cost_milestones_type_0_item = Milestone.from_dict(
                        disruption_cost_milestones_type_0_item_data
                    )

                    disruption_cost_milestones_type_0.append(disruption_cost_milestones_type_0_item)

                return disruption_cost_milestones_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Milestone] | None | Unset, data)

        disruption_cost_milestones = _parse_disruption_cost_milestones(d.pop("disruption_cost_milestones", UNSET))

        def _parse_long_runner_penalty(data: object) -> LongRunnerPenalty | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                long_runner_penalty_type_0 = LongRunnerPenalty.from_dict(data)

                return long_runner_penalty_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LongRunnerPenalty | None | Unset, data)

        long_runner_penalty = _parse_long_runner_penalty(d.pop("long_runner_penalty", UNSET))

        def _parse_waiting_boost(data: object) -> None | Unset | WaitingBoost:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                waiting_boost_type_0 = WaitingBoost.from_dict(data)

                return waiting_boost_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WaitingBoost, data)

        waiting_boost = _parse_waiting_boost(d.pop("waiting_boost", UNSET))

        preemption = cls(
            within_cluster_queue=within_cluster_queue,
            reclaim_within_cohort=reclaim_within_cohort,
            borrow_within_cohort=borrow_within_cohort,
            trigger_after_workload_waiting_seconds=trigger_after_workload_waiting_seconds,
            workload_sorting=workload_sorting,
            disruption_cost_milestones=disruption_cost_milestones,
            long_runner_penalty=long_runner_penalty,
            waiting_boost=waiting_boost,
        )

        return preemption
