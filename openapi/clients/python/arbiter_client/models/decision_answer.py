from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.decision import Decision
    from ..models.decision_answer_notes_type_0 import DecisionAnswerNotesType0
    from ..models.decision_answer_stats import DecisionAnswerStats
    from ..models.plan import Plan
    from ..models.state_used import StateUsed


T = TypeVar("T", bound="DecisionAnswer")


@_attrs_define
class DecisionAnswer:
    """`POST /v1/decisions`: only `id` and `stats` (milliseconds by stage) may differ between equal requests.

    Attributes:
        engine (str):
        configuration (ConfigurationUsed):
        state (StateUsed):
        decisions (list[Decision]):
        plan (Plan): What to carry out, in order; each eviction once.
        id (UUID):
        stats (DecisionAnswerStats):
        order (list[str] | None | Unset):
        notes (DecisionAnswerNotesType0 | None | Unset):
    """

    engine: str
    configuration: ConfigurationUsed
    state: StateUsed
    decisions: list[Decision]
    plan: Plan
    id: UUID
    stats: DecisionAnswerStats
    order: list[str] | None | Unset = UNSET
    notes: DecisionAnswerNotesType0 | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.decision_answer_notes_type_0 import DecisionAnswerNotesType0  # noqa: PLC0415

        engine = self.engine

        configuration = self.configuration.to_dict()

        state = self.state.to_dict()

        decisions = []
        for decisions_item_data in self.decisions:
            decisions_item = decisions_item_data.to_dict()
            decisions.append(decisions_item)

        plan = self.plan.to_dict()

        id = str(self.id)

        stats = self.stats.to_dict()

        order: list[str] | None | Unset
        if isinstance(self.order, Unset):
            order = UNSET
        elif isinstance(self.order, list):
            order = self.order

        else:
            order = self.order

        notes: dict[str, Any] | None | Unset
        if isinstance(self.notes, Unset):
            notes = UNSET
        elif isinstance(self.notes, DecisionAnswerNotesType0):
            notes = self.notes.to_dict()
        else:
            notes = self.notes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "engine": engine,
                "configuration": configuration,
                "state": state,
                "decisions": decisions,
                "plan": plan,
                "id": id,
                "stats": stats,
            }
        )
        if order is not UNSET:
            field_dict["order"] = order
        if notes is not UNSET:
            field_dict["notes"] = notes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.decision_answer_notes_type_0 import DecisionAnswerNotesType0  # noqa: PLC0415
        from ..models.decision_answer_stats import DecisionAnswerStats  # noqa: PLC0415
        from ..models.plan import Plan  # noqa: PLC0415
        from ..models.state_used import StateUsed  # noqa: PLC0415

        d = dict(src_dict)
        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        state = StateUsed.from_dict(d.pop("state"))

        decisions = []
        _decisions = d.pop("decisions")
        for decisions_item_data in _decisions:
            decisions_item = Decision.from_dict(decisions_item_data)

            decisions.append(decisions_item)

        plan = Plan.from_dict(d.pop("plan"))

        id = UUID(d.pop("id"))

        stats = DecisionAnswerStats.from_dict(d.pop("stats"))

        def _parse_order(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                order_type_0 = cast(list[str], data)

                return order_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        order = _parse_order(d.pop("order", UNSET))

        def _parse_notes(data: object) -> DecisionAnswerNotesType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                notes_type_0 = DecisionAnswerNotesType0.from_dict(data)

                return notes_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DecisionAnswerNotesType0 | None | Unset, data)

        notes = _parse_notes(d.pop("notes", UNSET))

        decision_answer = cls(
            engine=engine,
            configuration=configuration,
            state=state,
            decisions=decisions,
            plan=plan,
            id=id,
            stats=stats,
            order=order,
            notes=notes,
        )

        decision_answer.additional_properties = d
        return decision_answer

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
