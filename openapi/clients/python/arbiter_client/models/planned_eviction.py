from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PlannedEviction")


@_attrs_define
class PlannedEviction:
    """
    Attributes:
        workload (str):
        queue (str):
        reason (str):
        task (None | str | Unset):
        node (None | str | Unset):
        for_ask (None | str | Unset):
    """

    workload: str
    queue: str
    reason: str
    task: None | str | Unset = UNSET
    node: None | str | Unset = UNSET
    for_ask: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        queue = self.queue

        reason = self.reason

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

        for_ask: None | str | Unset
        if isinstance(self.for_ask, Unset):
            for_ask = UNSET
        else:
            for_ask = self.for_ask

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
                "queue": queue,
                "reason": reason,
            }
        )
        if task is not UNSET:
            field_dict["task"] = task
        if node is not UNSET:
            field_dict["node"] = node
        if for_ask is not UNSET:
            field_dict["for_ask"] = for_ask

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        workload = d.pop("workload")

        queue = d.pop("queue")

        reason = d.pop("reason")

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

        def _parse_for_ask(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        for_ask = _parse_for_ask(d.pop("for_ask", UNSET))

        planned_eviction = cls(
            workload=workload,
            queue=queue,
            reason=reason,
            task=task,
            node=node,
            for_ask=for_ask,
        )

        return planned_eviction
