from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.outcome import Outcome, check_outcome
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.condition import Condition
    from ..models.decision_assignment_type_0 import DecisionAssignmentType0
    from ..models.decision_counts_type_0 import DecisionCountsType0
    from ..models.decision_placements_type_0 import DecisionPlacementsType0
    from ..models.explanation import Explanation
    from ..models.shortage import Shortage
    from ..models.victim import Victim


T = TypeVar("T", bound="Decision")


@_attrs_define
class Decision:
    """The answer for one ask. `beyond` names rules that the origin does not have and that changed this decision.

    Attributes:
        ask (str):
        outcome (Outcome):
        victims (list[Victim]):
        conditions (list[Condition]):
        node (None | str | Unset):
        placements (DecisionPlacementsType0 | None | Unset):
        assignment (DecisionAssignmentType0 | None | Unset):
        borrowing (bool | None | Unset):
        counts (DecisionCountsType0 | None | Unset):
        shortages (list[Shortage] | None | Unset):
        beyond (list[str] | None | Unset):
        starts (list[str] | None | Unset):
        explanation (Explanation | None | Unset):
    """

    ask: str
    outcome: Outcome
    victims: list[Victim]
    conditions: list[Condition]
    node: None | str | Unset = UNSET
    placements: DecisionPlacementsType0 | None | Unset = UNSET
    assignment: DecisionAssignmentType0 | None | Unset = UNSET
    borrowing: bool | None | Unset = UNSET
    counts: DecisionCountsType0 | None | Unset = UNSET
    shortages: list[Shortage] | None | Unset = UNSET
    beyond: list[str] | None | Unset = UNSET
    starts: list[str] | None | Unset = UNSET
    explanation: Explanation | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.decision_assignment_type_0 import DecisionAssignmentType0  # noqa: PLC0415
        from ..models.decision_counts_type_0 import DecisionCountsType0  # noqa: PLC0415
        from ..models.decision_placements_type_0 import DecisionPlacementsType0  # noqa: PLC0415
        from ..models.explanation import Explanation  # noqa: PLC0415

        ask = self.ask

        outcome: str = self.outcome

        victims = []
        for victims_item_data in self.victims:
            victims_item = victims_item_data.to_dict()
            victims.append(victims_item)

        conditions = []
        for conditions_item_data in self.conditions:
            conditions_item = conditions_item_data.to_dict()
            conditions.append(conditions_item)

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        placements: dict[str, Any] | None | Unset
        if isinstance(self.placements, Unset):
            placements = UNSET
        elif isinstance(self.placements, DecisionPlacementsType0):
            placements = self.placements.to_dict()
        else:
            placements = self.placements

        assignment: dict[str, Any] | None | Unset
        if isinstance(self.assignment, Unset):
            assignment = UNSET
        elif isinstance(self.assignment, DecisionAssignmentType0):
            assignment = self.assignment.to_dict()
        else:
            assignment = self.assignment

        borrowing: bool | None | Unset
        if isinstance(self.borrowing, Unset):
            borrowing = UNSET
        else:
            borrowing = self.borrowing

        counts: dict[str, Any] | None | Unset
        if isinstance(self.counts, Unset):
            counts = UNSET
        elif isinstance(self.counts, DecisionCountsType0):
            counts = self.counts.to_dict()
        else:
            counts = self.counts

        shortages: list[dict[str, Any]] | None | Unset
        if isinstance(self.shortages, Unset):
            shortages = UNSET
        elif isinstance(self.shortages, list):
            shortages = []
            for shortages_type_0_item_data in self.shortages:
                shortages_type_0_item = shortages_type_0_item_data.to_dict()
                shortages.append(shortages_type_0_item)

        else:
            shortages = self.shortages

        beyond: list[str] | None | Unset
        if isinstance(self.beyond, Unset):
            beyond = UNSET
        elif isinstance(self.beyond, list):
            beyond = self.beyond

        else:
            beyond = self.beyond

        starts: list[str] | None | Unset
        if isinstance(self.starts, Unset):
            starts = UNSET
        elif isinstance(self.starts, list):
            starts = self.starts

        else:
            starts = self.starts

        explanation: dict[str, Any] | None | Unset
        if isinstance(self.explanation, Unset):
            explanation = UNSET
        elif isinstance(self.explanation, Explanation):
            explanation = self.explanation.to_dict()
        else:
            explanation = self.explanation

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "ask": ask,
                "outcome": outcome,
                "victims": victims,
                "conditions": conditions,
            }
        )
        if node is not UNSET:
            field_dict["node"] = node
        if placements is not UNSET:
            field_dict["placements"] = placements
        if assignment is not UNSET:
            field_dict["assignment"] = assignment
        if borrowing is not UNSET:
            field_dict["borrowing"] = borrowing
        if counts is not UNSET:
            field_dict["counts"] = counts
        if shortages is not UNSET:
            field_dict["shortages"] = shortages
        if beyond is not UNSET:
            field_dict["beyond"] = beyond
        if starts is not UNSET:
            field_dict["starts"] = starts
        if explanation is not UNSET:
            field_dict["explanation"] = explanation

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.condition import Condition  # noqa: PLC0415
        from ..models.decision_assignment_type_0 import DecisionAssignmentType0  # noqa: PLC0415
        from ..models.decision_counts_type_0 import DecisionCountsType0  # noqa: PLC0415
        from ..models.decision_placements_type_0 import DecisionPlacementsType0  # noqa: PLC0415
        from ..models.explanation import Explanation  # noqa: PLC0415
        from ..models.shortage import Shortage  # noqa: PLC0415
        from ..models.victim import Victim  # noqa: PLC0415

        d = dict(src_dict)
        ask = d.pop("ask")

        outcome = check_outcome(d.pop("outcome"))

        victims = []
        _victims = d.pop("victims")
        for victims_item_data in _victims:
            victims_item = Victim.from_dict(victims_item_data)

            victims.append(victims_item)

        conditions = []
        _conditions = d.pop("conditions")
        for conditions_item_data in _conditions:
            conditions_item = Condition.from_dict(conditions_item_data)

            conditions.append(conditions_item)

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        def _parse_placements(data: object) -> DecisionPlacementsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                placements_type_0 = DecisionPlacementsType0.from_dict(data)

                return placements_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DecisionPlacementsType0 | None | Unset, data)

        placements = _parse_placements(d.pop("placements", UNSET))

        def _parse_assignment(data: object) -> DecisionAssignmentType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                assignment_type_0 = DecisionAssignmentType0.from_dict(data)

                return assignment_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DecisionAssignmentType0 | None | Unset, data)

        assignment = _parse_assignment(d.pop("assignment", UNSET))

        def _parse_borrowing(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        borrowing = _parse_borrowing(d.pop("borrowing", UNSET))

        def _parse_counts(data: object) -> DecisionCountsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                counts_type_0 = DecisionCountsType0.from_dict(data)

                return counts_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DecisionCountsType0 | None | Unset, data)

        counts = _parse_counts(d.pop("counts", UNSET))

        def _parse_shortages(data: object) -> list[Shortage] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                shortages_type_0 = []
                _shortages_type_0 = data
                for shortages_type_0_item_data in _shortages_type_0:
                    shortages_type_0_item = Shortage.from_dict(shortages_type_0_item_data)

                    shortages_type_0.append(shortages_type_0_item)

                return shortages_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Shortage] | None | Unset, data)

        shortages = _parse_shortages(d.pop("shortages", UNSET))

        def _parse_beyond(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                beyond_type_0 = cast(list[str], data)

                return beyond_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        beyond = _parse_beyond(d.pop("beyond", UNSET))

        def _parse_starts(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                starts_type_0 = cast(list[str], data)

                return starts_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        starts = _parse_starts(d.pop("starts", UNSET))

        def _parse_explanation(data: object) -> Explanation | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                explanation_type_0 = Explanation.from_dict(data)

                return explanation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Explanation | None | Unset, data)

        explanation = _parse_explanation(d.pop("explanation", UNSET))

        decision = cls(
            ask=ask,
            outcome=outcome,
            victims=victims,
            conditions=conditions,
            node=node,
            placements=placements,
            assignment=assignment,
            borrowing=borrowing,
            counts=counts,
            shortages=shortages,
            beyond=beyond,
            starts=starts,
            explanation=explanation,
        )

        return decision
