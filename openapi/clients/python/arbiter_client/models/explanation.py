from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.explanation_level import ExplanationLevel, check_explanation_level
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.candidate import Candidate
    from ..models.change import Change
    from ..models.group import Group
    from ..models.step import Step


T = TypeVar("T", bound="Explanation")


@_attrs_define
class Explanation:
    """Why. `blocker`: what stands most in the way of an ask that waits.

    Attributes:
        level (ExplanationLevel):
        steps (list[Step]):
        headline (str | Unset):
        candidates (list[Candidate] | None | Unset):
        groups (list[Group] | None | Unset):
        blocker (None | str | Unset):
        smallest_change (list[Change] | None | Unset):
    """

    level: ExplanationLevel
    steps: list[Step]
    headline: str | Unset = UNSET
    candidates: list[Candidate] | None | Unset = UNSET
    groups: list[Group] | None | Unset = UNSET
    blocker: None | str | Unset = UNSET
    smallest_change: list[Change] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        level: str = self.level

        steps = []
        for steps_item_data in self.steps:
            steps_item = steps_item_data.to_dict()
            steps.append(steps_item)

        headline = self.headline

        candidates: list[dict[str, Any]] | None | Unset
        if isinstance(self.candidates, Unset):
            candidates = UNSET
        elif isinstance(self.candidates, list):
            candidates = []
            for candidates_type_0_item_data in self.candidates:
                candidates_type_0_item = candidates_type_0_item_data.to_dict()
                candidates.append(candidates_type_0_item)

        else:
            candidates = self.candidates

        groups: list[dict[str, Any]] | None | Unset
        if isinstance(self.groups, Unset):
            groups = UNSET
        elif isinstance(self.groups, list):
            groups = []
            for groups_type_0_item_data in self.groups:
                groups_type_0_item = groups_type_0_item_data.to_dict()
                groups.append(groups_type_0_item)

        else:
            groups = self.groups

        blocker: None | str | Unset
        if isinstance(self.blocker, Unset):
            blocker = UNSET
        else:
            blocker = self.blocker

        smallest_change: list[dict[str, Any]] | None | Unset
        if isinstance(self.smallest_change, Unset):
            smallest_change = UNSET
        elif isinstance(self.smallest_change, list):
            smallest_change = []
            for smallest_change_type_0_item_data in self.smallest_change:
                smallest_change_type_0_item = smallest_change_type_0_item_data.to_dict()
                smallest_change.append(smallest_change_type_0_item)

        else:
            smallest_change = self.smallest_change

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "level": level,
                "steps": steps,
            }
        )
        if headline is not UNSET:
            field_dict["headline"] = headline
        if candidates is not UNSET:
            field_dict["candidates"] = candidates
        if groups is not UNSET:
            field_dict["groups"] = groups
        if blocker is not UNSET:
            field_dict["blocker"] = blocker
        if smallest_change is not UNSET:
            field_dict["smallest_change"] = smallest_change

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.candidate import Candidate  # noqa: PLC0415
        from ..models.change import Change  # noqa: PLC0415
        from ..models.group import Group  # noqa: PLC0415
        from ..models.step import Step  # noqa: PLC0415

        d = dict(src_dict)
        level = check_explanation_level(d.pop("level"))

        steps = []
        _steps = d.pop("steps")
        for steps_item_data in _steps:
            steps_item = Step.from_dict(steps_item_data)

            steps.append(steps_item)

        headline = d.pop("headline", UNSET)

        def _parse_candidates(data: object) -> list[Candidate] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                candidates_type_0 = []
                _candidates_type_0 = data
                for candidates_type_0_item_data in _candidates_type_0:
                    candidates_type_0_item = Candidate.from_dict(candidates_type_0_item_data)

                    candidates_type_0.append(candidates_type_0_item)

                return candidates_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Candidate] | None | Unset, data)

        candidates = _parse_candidates(d.pop("candidates", UNSET))

        def _parse_groups(data: object) -> list[Group] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                groups_type_0 = []
                _groups_type_0 = data
                for groups_type_0_item_data in _groups_type_0:
                    groups_type_0_item = Group.from_dict(groups_type_0_item_data)

                    groups_type_0.append(groups_type_0_item)

                return groups_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Group] | None | Unset, data)

        groups = _parse_groups(d.pop("groups", UNSET))

        def _parse_blocker(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        blocker = _parse_blocker(d.pop("blocker", UNSET))

        def _parse_smallest_change(data: object) -> list[Change] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                smallest_change_type_0 = []
                _smallest_change_type_0 = data
                for smallest_change_type_0_item_data in _smallest_change_type_0:
                    smallest_change_type_0_item = Change.from_dict(smallest_change_type_0_item_data)

                    smallest_change_type_0.append(smallest_change_type_0_item)

                return smallest_change_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Change] | None | Unset, data)

        smallest_change = _parse_smallest_change(d.pop("smallest_change", UNSET))

        explanation = cls(
            level=level,
            steps=steps,
            headline=headline,
            candidates=candidates,
            groups=groups,
            blocker=blocker,
            smallest_change=smallest_change,
        )

        return explanation
