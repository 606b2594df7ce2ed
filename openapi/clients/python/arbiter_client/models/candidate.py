from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.candidate_verdict import CandidateVerdict, check_candidate_verdict
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.candidate_numbers import CandidateNumbers


T = TypeVar("T", bound="Candidate")


@_attrs_define
class Candidate:
    """One running workload or task that was looked at: what became of it, by which rule, on which numbers.

    Attributes:
        workload (str):
        verdict (CandidateVerdict):
        rule (str):
        task (None | str | Unset):
        queue (None | str | Unset):
        node (None | str | Unset):
        detail (str | Unset):
        numbers (CandidateNumbers | Unset):
    """

    workload: str
    verdict: CandidateVerdict
    rule: str
    task: None | str | Unset = UNSET
    queue: None | str | Unset = UNSET
    node: None | str | Unset = UNSET
    detail: str | Unset = UNSET
    numbers: CandidateNumbers | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        verdict: str = self.verdict

        rule = self.rule

        task: None | str | Unset
        if isinstance(self.task, Unset):
            task = UNSET
        else:
            task = self.task

        queue: None | str | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        else:
            queue = self.queue

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        detail = self.detail

        numbers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.numbers, Unset):
            numbers = self.numbers.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
                "verdict": verdict,
                "rule": rule,
            }
        )
        if task is not UNSET:
            field_dict["task"] = task
        if queue is not UNSET:
            field_dict["queue"] = queue
        if node is not UNSET:
            field_dict["node"] = node
        if detail is not UNSET:
            field_dict["detail"] = detail
        if numbers is not UNSET:
            field_dict["numbers"] = numbers

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.candidate_numbers import CandidateNumbers  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        verdict = check_candidate_verdict(d.pop("verdict"))

        rule = d.pop("rule")

        def _parse_task(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        task = _parse_task(d.pop("task", UNSET))

        def _parse_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        detail = d.pop("detail", UNSET)

        _numbers = d.pop("numbers", UNSET)
        numbers: CandidateNumbers | Unset
        if isinstance(_numbers, Unset):
            numbers = UNSET
        else:
            numbers = CandidateNumbers.from_dict(_numbers)

        candidate = cls(
            workload=workload,
            verdict=verdict,
            rule=rule,
            task=task,
            queue=queue,
            node=node,
            detail=detail,
            numbers=numbers,
        )

        return candidate
