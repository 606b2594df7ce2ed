from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Placement")


@_attrs_define
class Placement:
    """`pipelined`: waits for resources that are still being released.

    Attributes:
        task (str):
        node (str):
        pipelined (bool):
        ask (None | str | Unset):
        workload (None | str | Unset):
        stage (None | str | Unset):
    """

    task: str
    node: str
    pipelined: bool
    ask: None | str | Unset = UNSET
    workload: None | str | Unset = UNSET
    stage: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        task = self.task

        node = self.node

        pipelined = self.pipelined

        ask: None | str | Unset
        if isinstance(self.ask, Unset):
            ask = UNSET
        else:
            ask = self.ask

        workload: None | str | Unset
        if isinstance(self.workload, Unset):
            workload = UNSET
        else:
            workload = self.workload

        stage: None | str | Unset
        if isinstance(self.stage, Unset):
            stage = UNSET
        else:
            stage = self.stage

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "task": task,
                "node": node,
                "pipelined": pipelined,
            }
        )
        if ask is not UNSET:
            field_dict["ask"] = ask
        if workload is not UNSET:
            field_dict["workload"] = workload
        if stage is not UNSET:
            field_dict["stage"] = stage

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        task = d.pop("task")

        node = d.pop("node")

        pipelined = d.pop("pipelined")

        def _parse_ask(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ask = _parse_ask(d.pop("ask", UNSET))

        def _parse_workload(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workload = _parse_workload(d.pop("workload", UNSET))

        def _parse_stage(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stage = _parse_stage(d.pop("stage", UNSET))

        placement = cls(
            task=task,
            node=node,
            pipelined=pipelined,
            ask=ask,
            workload=workload,
            stage=stage,
        )

        return placement
