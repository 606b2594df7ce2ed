from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.task import Task


T = TypeVar("T", bound="TaskOf")


@_attrs_define
class TaskOf:
    """
    Attributes:
        workload (str):
        task (Task): A pod set, allocation, pod or job; `requests` are per unit of `count`.
    """

    workload: str
    task: Task

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        task = self.task.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
                "task": task,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.task import Task  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        task = Task.from_dict(d.pop("task"))

        task_of = cls(
            workload=workload,
            task=task,
        )

        return task_of
