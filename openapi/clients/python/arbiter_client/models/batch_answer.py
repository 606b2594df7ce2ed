from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.decision_answer import DecisionAnswer
    from ..models.problem_document import ProblemDocument


T = TypeVar("T", bound="BatchAnswer")


@_attrs_define
class BatchAnswer:
    """One line: `line` counts from 1; `answer` where `status` is 200, else `problem`.

    Attributes:
        line (int):
        status (int):
        answer (DecisionAnswer | Unset): `POST /v1/decisions`: only `id` and `stats` (milliseconds by stage) may differ
            between equal requests.
        problem (ProblemDocument | Unset): RFC 9457. `type` is about:blank: the status says what kind it is, `errors`
            what to mend.

                `code` tells cases of one status apart that a program treats differently (`snapshot_lost`,
            `stale_generation`
                with the `generation` that is kept); `findings` come with a configuration that is refused for some of them.
    """

    line: int
    status: int
    answer: DecisionAnswer | Unset = UNSET
    problem: ProblemDocument | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        line = self.line

        status = self.status

        answer: dict[str, Any] | Unset = UNSET
        if not isinstance(self.answer, Unset):
            answer = self.answer.to_dict()

        problem: dict[str, Any] | Unset = UNSET
        if not isinstance(self.problem, Unset):
            problem = self.problem.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "line": line,
                "status": status,
            }
        )
        if answer is not UNSET:
            field_dict["answer"] = answer
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.decision_answer import DecisionAnswer  # noqa: PLC0415
        from ..models.problem_document import ProblemDocument  # noqa: PLC0415

        d = dict(src_dict)
        line = d.pop("line")

        status = d.pop("status")

        _answer = d.pop("answer", UNSET)
        answer: DecisionAnswer | Unset
        if isinstance(_answer, Unset):
            answer = UNSET
        else:
            answer = DecisionAnswer.from_dict(_answer)

        _problem = d.pop("problem", UNSET)
        problem: ProblemDocument | Unset
        if isinstance(_problem, Unset):
            problem = UNSET
        else:
            problem = ProblemDocument.from_dict(_problem)

        batch_answer = cls(
            line=line,
            status=status,
            answer=answer,
            problem=problem,
        )

        batch_answer.additional_properties = d
        return batch_answer

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
