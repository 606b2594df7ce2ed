from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.ask_preemption_policy import AskPreemptionPolicy, check_ask_preemption_policy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.kueue_ask import KueueAsk
    from ..models.resources import Resources
    from ..models.task import Task
    from ..models.ytsaurus_workload import YtsaurusWorkload
    from ..models.yuni_korn_ask import YuniKornAsk


T = TypeVar("T", bound="Ask")


@_attrs_define
class Ask:
    """Pending work; `workload` names the running one that it belongs to, if any.

    Attributes:
        id (str):
        queue (str):
        tasks (list[Task]):
        workload (None | str | Unset):
        uid (None | str | Unset):
        priority (int | None | Unset):
        created_at (datetime.datetime | None | Unset):
        min_available (int | None | Unset):
        preemption_policy (AskPreemptionPolicy | Unset):  Default: 'PreemptLowerPriority'.
        preemptible (bool | None | Unset):
        originator (bool | Unset):  Default: False.
        required_node (None | str | Unset):
        feasible_nodes (list[str] | None | Unset):
        weight (float | None | Unset):
        limit (None | Resources | Unset):
        ytsaurus (None | Unset | YtsaurusWorkload):
        yunikorn (None | Unset | YuniKornAsk):
        kueue (KueueAsk | None | Unset):
    """

    id: str
    queue: str
    tasks: list[Task]
    workload: None | str | Unset = UNSET
    uid: None | str | Unset = UNSET
    priority: int | None | Unset = UNSET
    created_at: datetime.datetime | None | Unset = UNSET
    min_available: int | None | Unset = UNSET
    preemption_policy: AskPreemptionPolicy | Unset = "PreemptLowerPriority"
    preemptible: bool | None | Unset = UNSET
    originator: bool | Unset = False
    required_node: None | str | Unset = UNSET
    feasible_nodes: list[str] | None | Unset = UNSET
    weight: float | None | Unset = UNSET
    limit: None | Resources | Unset = UNSET
    ytsaurus: None | Unset | YtsaurusWorkload = UNSET
    yunikorn: None | Unset | YuniKornAsk = UNSET
    kueue: KueueAsk | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.kueue_ask import KueueAsk  # noqa: PLC0415
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.ytsaurus_workload import YtsaurusWorkload  # noqa: PLC0415
        from ..models.yuni_korn_ask import YuniKornAsk  # noqa: PLC0415

        id = self.id

        queue = self.queue

        tasks = []
        for tasks_item_data in self.tasks:
            tasks_item = tasks_item_data.to_dict()
            tasks.append(tasks_item)

        workload: None | str | Unset
        if isinstance(self.workload, Unset):
            workload = UNSET
        else:
            workload = self.workload

        uid: None | str | Unset
        if isinstance(self.uid, Unset):
            uid = UNSET
        else:
            uid = self.uid

        priority: int | None | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        created_at: None | str | Unset
        if isinstance(self.created_at, Unset):
            created_at = UNSET
        elif isinstance(self.created_at, datetime.datetime):
            created_at = self.created_at.isoformat()
        else:
            created_at = self.created_at

        min_available: int | None | Unset
        if isinstance(self.min_available, Unset):
            min_available = UNSET
        else:
            min_available = self.min_available

        preemption_policy: str | Unset = UNSET
        if not isinstance(self.preemption_policy, Unset):
            preemption_policy = self.preemption_policy

        preemptible: bool | None | Unset
        if isinstance(self.preemptible, Unset):
            preemptible = UNSET
        else:
            preemptible = self.preemptible

        originator = self.originator

        required_node: None | str | Unset
        if isinstance(self.required_node, Unset):
            required_node = UNSET
        else:
            required_node = self.required_node

        feasible_nodes: list[str] | None | Unset
        if isinstance(self.feasible_nodes, Unset):
            feasible_nodes = UNSET
        elif isinstance(self.feasible_nodes, list):
            feasible_nodes = self.feasible_nodes

        else:
            feasible_nodes = self.feasible_nodes

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

        ytsaurus: dict[str, Any] | None | Unset
        if isinstance(self.ytsaurus, Unset):
            ytsaurus = UNSET
        elif isinstance(self.ytsaurus, YtsaurusWorkload):
            ytsaurus = self.ytsaurus.to_dict()
        else:
            ytsaurus = self.ytsaurus

        yunikorn: dict[str, Any] | None | Unset
        if isinstance(self.yunikorn, Unset):
            yunikorn = UNSET
        elif isinstance(self.yunikorn, YuniKornAsk):
            yunikorn = self.yunikorn.to_dict()
        else:
            yunikorn = self.yunikorn

        kueue: dict[str, Any] | None | Unset
        if isinstance(self.kueue, Unset):
            kueue = UNSET
        elif isinstance(self.kueue, KueueAsk):
            kueue = self.kueue.to_dict()
        else:
            kueue = self.kueue

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
                "queue": queue,
                "tasks": tasks,
            }
        )
        if workload is not UNSET:
            field_dict["workload"] = workload
        if uid is not UNSET:
            field_dict["uid"] = uid
        if priority is not UNSET:
            field_dict["priority"] = priority
        if created_at is not UNSET:
            field_dict["created_at"] = created_at
        if min_available is not UNSET:
            field_dict["min_available"] = min_available
        if preemption_policy is not UNSET:
            field_dict["preemption_policy"] = preemption_policy
        if preemptible is not UNSET:
            field_dict["preemptible"] = preemptible
        if originator is not UNSET:
            field_dict["originator"] = originator
        if required_node is not UNSET:
            field_dict["required_node"] = required_node
        if feasible_nodes is not UNSET:
            field_dict["feasible_nodes"] = feasible_nodes
        if weight is not UNSET:
            field_dict["weight"] = weight
        if limit is not UNSET:
            field_dict["limit"] = limit
        if ytsaurus is not UNSET:
            field_dict["ytsaurus"] = ytsaurus
        if yunikorn is not UNSET:
            field_dict["yunikorn"] = yunikorn
        if kueue is not UNSET:
            field_dict["kueue"] = kueue

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.kueue_ask import KueueAsk  # noqa: PLC0415
        from ..models.resources import Resources  # noqa: PLC0415
        from ..models.task import Task  # noqa: PLC0415
        from ..models.ytsaurus_workload import YtsaurusWorkload  # noqa: PLC0415
        from ..models.yuni_korn_ask import YuniKornAsk  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        queue = d.pop("queue")

        tasks = []
        _tasks = d.pop("tasks")
        for tasks_item_data in _tasks:
            tasks_item = Task.from_dict(tasks_item_data)

            tasks.append(tasks_item)

        def _parse_workload(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workload = _parse_workload(d.pop("workload", UNSET))

        def _parse_uid(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        uid = _parse_uid(d.pop("uid", UNSET))

        def _parse_priority(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

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

        def _parse_min_available(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        min_available = _parse_min_available(d.pop("min_available", UNSET))

        _preemption_policy = d.pop("preemption_policy", UNSET)
        preemption_policy: AskPreemptionPolicy | Unset
        if isinstance(_preemption_policy, Unset):
            preemption_policy = UNSET
        else:
            preemption_policy = check_ask_preemption_policy(_preemption_policy)

        def _parse_preemptible(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        preemptible = _parse_preemptible(d.pop("preemptible", UNSET))

        originator = d.pop("originator", UNSET)

        def _parse_required_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        required_node = _parse_required_node(d.pop("required_node", UNSET))

        def _parse_feasible_nodes(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                feasible_nodes_type_0 = cast(list[str], data)

                return feasible_nodes_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        feasible_nodes = _parse_feasible_nodes(d.pop("feasible_nodes", UNSET))

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

        def _parse_yunikorn(data: object) -> None | Unset | YuniKornAsk:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                yunikorn_type_0 = YuniKornAsk.from_dict(data)

                return yunikorn_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | YuniKornAsk, data)

        yunikorn = _parse_yunikorn(d.pop("yunikorn", UNSET))

        def _parse_kueue(data: object) -> KueueAsk | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                kueue_type_0 = KueueAsk.from_dict(data)

                return kueue_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KueueAsk | None | Unset, data)

        kueue = _parse_kueue(d.pop("kueue", UNSET))

        ask = cls(
            id=id,
            queue=queue,
            tasks=tasks,
            workload=workload,
            uid=uid,
            priority=priority,
            created_at=created_at,
            min_available=min_available,
            preemption_policy=preemption_policy,
            preemptible=preemptible,
            originator=originator,
            required_node=required_node,
            feasible_nodes=feasible_nodes,
            weight=weight,
            limit=limit,
            ytsaurus=ytsaurus,
            yunikorn=yunikorn,
            kueue=kueue,
        )

        return ask
