from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.victim_on_preemption_type_0 import VictimOnPreemptionType0, check_victim_on_preemption_type_0
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.condition import Condition
    from ..models.victim_freed import VictimFreed


T = TypeVar("T", bound="Victim")


@_attrs_define
class Victim:
    """A running workload, or one of its tasks, that the decision evicts; `freed` in whole units.

    Attributes:
        workload (str):
        queue (str):
        reason (str):
        message (str):
        conditions (list[Condition]):
        freed (VictimFreed):
        task (None | str | Unset):
        node (None | str | Unset):
        on_preemption (None | Unset | VictimOnPreemptionType0):
        timeout_seconds (float | None | Unset):
    """

    workload: str
    queue: str
    reason: str
    message: str
    conditions: list[Condition]
    freed: VictimFreed
    task: None | str | Unset = UNSET
    node: None | str | Unset = UNSET
    on_preemption: None | Unset | VictimOnPreemptionType0 = UNSET
    timeout_seconds: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        queue = self.queue

        reason = self.reason

        message = self.message

        conditions = []
        for conditions_item_data in self.conditions:
            conditions_item = conditions_item_data.to_dict()
            conditions.append(conditions_item)

        freed = self.freed.to_dict()

        task: None | str | Unset
        if isinstance(self.task, Unset):
            task = UNSET
        else:
            task = self.task

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        on_preemption: None | str | Unset
        if isinstance(self.on_preemption, Unset):
            on_preemption = UNSET
        elif isinstance(self.on_preemption, str):
            on_preemption = self.on_preemption
        else:
            on_preemption = self.on_preemption

        timeout_seconds: float | None | Unset
        if isinstance(self.timeout_seconds, Unset):
            timeout_seconds = UNSET
        else:
            timeout_seconds = self.timeout_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
                "queue": queue,
                "reason": reason,
                "message": message,
                "conditions": conditions,
                "freed": freed,
            }
        )
        if task is not UNSET:
            field_dict["task"] = task
        if node is not UNSET:
            field_dict["node"] = node
        if on_preemption is not UNSET:
            field_dict["on_preemption"] = on_preemption
        if timeout_seconds is not UNSET:
            field_dict["timeout_seconds"] = timeout_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.condition import Condition  # noqa: PLC0415
        from ..models.victim_freed import VictimFreed  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        queue = d.pop("queue")

        reason = d.pop("reason")

        message = d.pop("message")

        conditions = []
        _conditions = d.pop("conditions")
        for conditions_item_data in _conditions:
            conditions_item = Condition.from_dict(conditions_item_data)

            conditions.append(conditions_item)

        freed = VictimFreed.from_dict(d.pop("freed"))

        def _parse_task(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        task = _parse_task(d.pop("task", UNSET))

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        def _parse_on_preemption(data: object) -> None | Unset | VictimOnPreemptionType0:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                on_preemption_type_0 = check_victim_on_preemption_type_0(data)

                return on_preemption_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | VictimOnPreemptionType0, data)

        on_preemption = _parse_on_preemption(d.pop("on_preemption", UNSET))

        def _parse_timeout_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        timeout_seconds = _parse_timeout_seconds(d.pop("timeout_seconds", UNSET))

        victim = cls(
            workload=workload,
            queue=queue,
            reason=reason,
            message=message,
            conditions=conditions,
            freed=freed,
            task=task,
            node=node,
            on_preemption=on_preemption,
            timeout_seconds=timeout_seconds,
        )

        return victim
