from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.ask import Ask
    from ..models.decision import Decision
    from ..models.plan import Plan


T = TypeVar("T", bound="Carried")


@_attrs_define
class Carried:
    """An answer to carry out, with the asks that it answers; a logged decision is expanded to this.

    Attributes:
        asks (list[Ask]):
        decisions (list[Decision]):
        plan (Plan): What to carry out, in order; each eviction once.
    """

    asks: list[Ask]
    decisions: list[Decision]
    plan: Plan

    def to_dict(self) -> dict[str, Any]:
        asks = []
        for asks_item_data in self.asks:
            asks_item = asks_item_data.to_dict()
            asks.append(asks_item)

        decisions = []
        for decisions_item_data in self.decisions:
            decisions_item = decisions_item_data.to_dict()
            decisions.append(decisions_item)

        plan = self.plan.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "asks": asks,
                "decisions": decisions,
                "plan": plan,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ask import Ask  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.plan import Plan  # noqa: PLC0415

        d = dict(src_dict)
        asks = []
        _asks = d.pop("asks")
        for asks_item_data in _asks:
            asks_item = Ask.from_dict(asks_item_data)

            asks.append(asks_item)

        decisions = []
        _decisions = d.pop("decisions")
        for decisions_item_data in _decisions:
            decisions_item = Decision.from_dict(decisions_item_data)

            decisions.append(decisions_item)

        plan = Plan.from_dict(d.pop("plan"))

        carried = cls(
            asks=asks,
            decisions=decisions,
            plan=plan,
        )

        return carried
