from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.carried import Carried


T = TypeVar("T", bound="ApplyRequest")


@_attrs_define
class ApplyRequest:
    """`POST /v1/snapshots/{name}/apply`. `decision`: the id of a logged one, or an answer with its asks.

    `generation`: refuse (409) unless the snapshot is still at it; absent: the one the decision was made on.

    Attributes:
        decision (Carried | str):
        generation (int | None | Unset):
        now (datetime.datetime | None | Unset):
    """

    decision: Carried | str
    generation: int | None | Unset = UNSET
    now: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.carried import Carried  # noqa: PLC0415

        decision: dict[str, Any] | str
        if isinstance(self.decision, Carried):
            decision = self.decision.to_dict()
        else:
            decision = self.decision

        generation: int | None | Unset
        if isinstance(self.generation, Unset):
            generation = UNSET
        else:
            generation = self.generation

        now: None | str | Unset
        if isinstance(self.now, Unset):
            now = UNSET
        elif isinstance(self.now, datetime.datetime):
            now = self.now.isoformat()
        else:
            now = self.now

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "decision": decision,
            }
        )
        if generation is not UNSET:
            field_dict["generation"] = generation
        if now is not UNSET:
            field_dict["now"] = now

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.carried import Carried  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_decision(data: object) -> Carried | str:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_1 = Carried.from_dict(data)

                return decision_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Carried | str, data)

        decision = _parse_decision(d.pop("decision"))

        def _parse_generation(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        generation = _parse_generation(d.pop("generation", UNSET))

        def _parse_now(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                now_type_0 = datetime.datetime.fromisoformat(data)

                return now_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        now = _parse_now(d.pop("now", UNSET))

        apply_request = cls(
            decision=decision,
            generation=generation,
            now=now,
        )

        return apply_request
