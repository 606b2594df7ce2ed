from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.answer_notes_type_0 import AnswerNotesType0
    from ..models.configuration_used import ConfigurationUsed
    from ..models.decision import Decision
    from ..models.plan import Plan
    from ..models.state_used import StateUsed


T = TypeVar("T", bound="Answer")


@_attrs_define
class Answer:
    """The body of a decision response; `id` and `stats` are added by the service and are not part of it.

    Attributes:
        engine (str):
        configuration (ConfigurationUsed):
        state (StateUsed):
        decisions (list[Decision]):
        plan (Plan): What to carry out, in order; each eviction once.
        order (list[str] | None | Unset):
        notes (AnswerNotesType0 | None | Unset):
    """

    engine: str
    configuration: ConfigurationUsed
    state: StateUsed
    decisions: list[Decision]
    plan: Plan
    order: list[str] | None | Unset = UNSET
    notes: AnswerNotesType0 | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.answer_notes_type_0 import AnswerNotesType0  # noqa: PLC0415

        engine = self.engine

        configuration = self.configuration.to_dict()

        state = self.state.to_dict()

        decisions = []
        for decisions_item_data in self.decisions:
            decisions_item = decisions_item_data.to_dict()
            decisions.append(decisions_item)

        plan = self.plan.to_dict()

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
        elif isinstance(self.notes, AnswerNotesType0):
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
            }
        )
        if order is not UNSET:
            field_dict["order"] = order
        if notes is not UNSET:
            field_dict["notes"] = notes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.answer_notes_type_0 import AnswerNotesType0  # noqa: PLC0415
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
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

        def _parse_notes(data: object) -> AnswerNotesType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                notes_type_0 = AnswerNotesType0.from_dict(data)

                return notes_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AnswerNotesType0 | None | Unset, data)

        notes = _parse_notes(d.pop("notes", UNSET))

        answer = cls(
            engine=engine,
            configuration=configuration,
            state=state,
            decisions=decisions,
            plan=plan,
            order=order,
            notes=notes,
        )

        answer.additional_properties = d
        return answer

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
