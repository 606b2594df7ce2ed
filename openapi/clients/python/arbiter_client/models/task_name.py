from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="TaskName")


@_attrs_define
class TaskName:
    """
    Attributes:
        workload (str):
        task (str):
    """

    workload: str
    task: str

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        task = self.task

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
        d = dict(src_dict)
        workload = d.pop("workload")

        task = d.pop("task")

        task_name = cls(
            workload=workload,
            task=task,
        )

        return task_name
