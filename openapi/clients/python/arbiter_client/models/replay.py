from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.answer import Answer


T = TypeVar("T", bound="Replay")


@_attrs_define
class Replay:
    """`POST /v1/decisions/{id}/replay`. `differences`: JSON pointers into the answers, empty when identical.

    Attributes:
        decision (UUID):
        identical (bool):
        recorded_digest (str):
        replayed_digest (str):
        differences (list[str]):
        answer (Answer): The body of a decision response; `id` and `stats` are added by the service and are not part of
            it.
    """

    decision: UUID
    identical: bool
    recorded_digest: str
    replayed_digest: str
    differences: list[str]
    answer: Answer
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        decision = str(self.decision)

        identical = self.identical

        recorded_digest = self.recorded_digest

        replayed_digest = self.replayed_digest

        differences = self.differences

        answer = self.answer.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "decision": decision,
                "identical": identical,
                "recorded_digest": recorded_digest,
                "replayed_digest": replayed_digest,
                "differences": differences,
                "answer": answer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.answer import Answer  # noqa: PLC0415

        d = dict(src_dict)
        decision = UUID(d.pop("decision"))

        identical = d.pop("identical")

        recorded_digest = d.pop("recorded_digest")

        replayed_digest = d.pop("replayed_digest")

        differences = cast(list[str], d.pop("differences"))

        answer = Answer.from_dict(d.pop("answer"))

        replay = cls(
            decision=decision,
            identical=identical,
            recorded_digest=recorded_digest,
            replayed_digest=replayed_digest,
            differences=differences,
            answer=answer,
        )

        replay.additional_properties = d
        return replay

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
