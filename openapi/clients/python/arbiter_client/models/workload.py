from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.workload_on_preemption_type_0 import WorkloadOnPreemptionType0, check_workload_on_preemption_type_0
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.milestone import Milestone
    from ..models.resources import Resources
    from ..models.task import Task
    from ..models.ytsaurus_workload import YtsaurusWorkload


T = TypeVar("T", bound="Workload")


@_attrs_define
class Workload:
    """A Kueue Workload, YuniKorn application, KAI PodGroup or YTsaurus operation that runs.

    Attributes:
        id (str):
        queue (str):
        uid (None | str | Unset):
        priority (int | Unset):  Default: 0.
        created_at (datetime.datetime | None | Unset):
        started_at (datetime.datetime | None | Unset):
        preemptible (bool | Unset):  Default: True.
        evicted (bool | Unset):  Default: False.
        min_available (int | None | Unset):
        weight (float | None | Unset):
        limit (None | Resources | Unset):
        on_preemption (None | Unset | WorkloadOnPreemptionType0):
        disruption_cost_milestones (list[Milestone] | None | Unset):
        ytsaurus (None | Unset | YtsaurusWorkload):
        tasks (list[Task] | Unset):
    """

    id: str
    queue: str
    uid: None | str | Unset = UNSET
    priority: int | Unset = 0
    created_at: datetime.datetime | None | Unset = UNSET
    started_at: datetime.datetime | None | Unset = UNSET
    preemptible: bool | Unset = True
    evicted: bool | Unset = False
    min_available: int | None | Unset = UNSET
    weight: float | None | Unset = UNSET
    limit: None | Resources | Unset = UNSET
    on_preemption: None | Unset | WorkloadOnPreemptionType0 = UNSET
    disruption_cost_milestones: list[Milestone] | None | Unset = UNSET
    ytsaurus: None | Unset | YtsaurusWorkload = UNSET
    tasks: list[Task] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.ytsaurus_workload import YtsaurusWorkload  # noqa: PLC0415

        id = self.id

        queue = self.queue

        uid: None | str | Unset
        if isinstance(self.uid, Unset):
            uid = UNSET
        else:
            uid = self.uid

        priority = self.priority

        created_at: None | str | Unset
        if isinstance(self.created_at, Unset):
            created_at = UNSET
        elif isinstance(self.created_at, datetime.datetime):
            created_at = self.created_at.isoformat()
        else:
            created_at = self.created_at

        started_at: None | str | Unset
        if isinstance(self.started_at, Unset):
            started_at = UNSET
        elif isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        preemptible = self.preemptible

        evicted = self.evicted

        min_available: int | None | Unset
        if isinstance(self.min_available, Unset):
            min_available = UNSET
        else:
            min_available = self.min_available

        weight: float | None | Unset
        if isinstance(self.weight, Unset):
            weight = UNSET
        else:
            weight = self.weight

        limit: dict[str, Any] | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        elif isinstance(self.limit, Resources):
            limit = self.limit.to_dict()
        else:
            limit = self.limit

        on_preemption: None | str | Unset
        if isinstance(self.on_preemption, Unset):
            on_preemption = UNSET
        elif isinstance(self.on_preemption, str):
            on_preemption = self.on_preemption
        else:
            on_preemption = self.on_preemption

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

        ytsaurus: dict[str, Any] | None | Unset
        if isinstance(self.ytsaurus, Unset):
            ytsaurus = UNSET
        elif isinstance(self.ytsaurus, YtsaurusWorkload):
            ytsaurus = self.ytsaurus.to_dict()
        else:
            ytsaurus = self.ytsaurus

        tasks: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.tasks, Unset):
            tasks = []
            for tasks_item_data in self.tasks:
                tasks_item = tasks_item_data.to_dict()
                tasks.append(tasks_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
                "queue": queue,
            }
        )
        if uid is not UNSET:
            field_dict["uid"] = uid
        if priority is not UNSET:
            field_dict["priority"] = priority
        if created_at is not UNSET:
            field_dict["created_at"] = created_at
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if preemptible is not UNSET:
            field_dict["preemptible"] = preemptible
        if evicted is not UNSET:
            field_dict["evicted"] = evicted
        if min_available is not UNSET:
            field_dict["min_available"] = min_available
        if weight is not UNSET:
            field_dict["weight"] = weight
        if limit is not UNSET:
            field_dict["limit"] = limit
        if on_preemption is not UNSET:
            field_dict["on_preemption"] = on_preemption
        if disruption_cost_milestones is not UNSET:
            field_dict["disruption_cost_milestones"] = disruption_cost_milestones
        if ytsaurus is not UNSET:
            field_dict["ytsaurus"] = ytsaurus
        if tasks is not UNSET:
            field_dict["tasks"] = tasks

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.milestone import Milestone  # noqa: PLC0415
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.task import Task  # noqa: PLC0415
        from ..models.ytsaurus_workload import YtsaurusWorkload  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        queue = d.pop("queue")

        def _parse_uid(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        uid = _parse_uid(d.pop("uid", UNSET))

        priority = d.pop("priority", UNSET)

        def _parse_created_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                created_at_type_0 = datetime.datetime.fromisoformat(data)

                return created_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        created_at = _parse_created_at(d.pop("created_at", UNSET))

        def _parse_started_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        started_at = _parse_started_at(d.pop("started_at", UNSET))

        preemptible = d.pop("preemptible", UNSET)

        evicted = d.pop("evicted", UNSET)

        def _parse_min_available(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        min_available = _parse_min_available(d.pop("min_available", UNSET))

        def _parse_weight(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        weight = _parse_weight(d.pop("weight", UNSET))

        def _parse_limit(data: object) -> None | Resources | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                limit_type_0 = Resources.from_dict(data)

                return limit_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Resources | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_on_preemption(data: object) -> None | Unset | WorkloadOnPreemptionType0:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                on_preemption_type_0 = check_workload_on_preemption_type_0(data)

                return on_preemption_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WorkloadOnPreemptionType0, data)

        on_preemption = _parse_on_preemption(d.pop("on_preemption", UNSET))

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

        def _parse_ytsaurus(data: object) -> None | Unset | YtsaurusWorkload:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                ytsaurus_type_0 = YtsaurusWorkload.from_dict(data)

                return ytsaurus_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YtsaurusWorkload, data)

        ytsaurus = _parse_ytsaurus(d.pop("ytsaurus", UNSET))

        _tasks = d.pop("tasks", UNSET)
        tasks: list[Task] | Unset = UNSET
        if _tasks is not UNSET:
            tasks = []
            for tasks_item_data in _tasks:
                tasks_item = Task.from_dict(tasks_item_data)

                tasks.append(tasks_item)

        workload = cls(
            id=id,
            queue=queue,
            uid=uid,
            priority=priority,
            created_at=created_at,
            started_at=started_at,
            preemptible=preemptible,
            evicted=evicted,
            min_available=min_available,
            weight=weight,
            limit=limit,
            on_preemption=on_preemption,
            disruption_cost_milestones=disruption_cost_milestones,
            ytsaurus=ytsaurus,
            tasks=tasks,
        )

        return workload
