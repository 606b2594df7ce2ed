from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kai_action import KaiAction, check_kai_action
from ..models.rules import Rules, check_rules
from ..types import UNSET, Unset

T = TypeVar("T", bound="KaiSettings")


@_attrs_define
class KaiSettings:
    """`settings.kai`: rule set, node-pool defaults of the minimum runtimes, actions of a cycle.

    Attributes:
        rules (Rules | Unset):
        default_reclaim_min_runtime (float | None | str | Unset):
        default_preempt_min_runtime (float | None | str | Unset):
        reclaim_resolve_method (str | Unset):  Default: 'lca'.
        actions (list[KaiAction] | None | Unset):
        use_scheduling_signatures (bool | Unset):  Default: True.
        max_consolidation_preemptees (int | None | Unset):
        allow_consolidating_reclaim (bool | Unset):  Default: True.
    """

    rules: Rules | Unset = UNSET
    default_reclaim_min_runtime: float | None | str | Unset = UNSET
    default_preempt_min_runtime: float | None | str | Unset = UNSET
    reclaim_resolve_method: str | Unset = "lca"
    actions: list[KaiAction] | None | Unset = UNSET
    use_scheduling_signatures: bool | Unset = True
    max_consolidation_preemptees: int | None | Unset = UNSET
    allow_consolidating_reclaim: bool | Unset = True

    def to_dict(self) -> dict[str, Any]:
        rules: str | Unset = UNSET
        if not isinstance(self.rules, Unset):
            rules = self.rules

        default_reclaim_min_runtime: float | None | str | Unset
        if isinstance(self.default_reclaim_min_runtime, Unset):
            default_reclaim_min_runtime = UNSET
        else:
            default_reclaim_min_runtime = self.default_reclaim_min_runtime

        default_preempt_min_runtime: float | None | str | Unset
        if isinstance(self.default_preempt_min_runtime, Unset):
            default_preempt_min_runtime = UNSET
        else:
            default_preempt_min_runtime = self.default_preempt_min_runtime

        reclaim_resolve_method = self.reclaim_resolve_method

        actions: list[str] | None | Unset
        if isinstance(self.actions, Unset):
            actions = UNSET
        elif isinstance(self.actions, list):
            actions = []
            for actions_type_0_item_data in self.actions:
                actions_type_0_item: str = actions_type_0_item_data
                actions.append(actions_type_0_item)

        else:
            actions = self.actions

        use_scheduling_signatures = self.use_scheduling_signatures

        max_consolidation_preemptees: int | None | Unset
        if isinstance(self.max_consolidation_preemptees, Unset):
            max_consolidation_preemptees = UNSET
        else:
            max_consolidation_preemptees = self.max_consolidation_preemptees

        allow_consolidating_reclaim = self.allow_consolidating_reclaim

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if rules is not UNSET:
            field_dict["rules"] = rules
        if default_reclaim_min_runtime is not UNSET:
            field_dict["default_reclaim_min_runtime"] = default_reclaim_min_runtime
        if default_preempt_min_runtime is not UNSET:
            field_dict["default_preempt_min_runtime"] = default_preempt_min_runtime
        if reclaim_resolve_method is not UNSET:
            field_dict["reclaim_resolve_method"] = reclaim_resolve_method
        if actions is not UNSET:
            field_dict["actions"] = actions
        if use_scheduling_signatures is not UNSET:
            field_dict["use_scheduling_signatures"] = use_scheduling_signatures
        if max_consolidation_preemptees is not UNSET:
            field_dict["max_consolidation_preemptees"] = max_consolidation_preemptees
        if allow_consolidating_reclaim is not UNSET:
            field_dict["allow_consolidating_reclaim"] = allow_consolidating_reclaim

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _rules = d.pop("rules", UNSET)
        rules: Rules | Unset
        if isinstance(_rules, Unset):
            rules = UNSET
        else:
            rules = check_rules(_rules)

        def _parse_default_reclaim_min_runtime(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        default_reclaim_min_runtime = _parse_default_reclaim_min_runtime(d.pop("default_reclaim_min_runtime", UNSET))

        def _parse_default_preempt_min_runtime(data: object) -> float | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | str | Unset, data)

        default_preempt_min_runtime = _parse_default_preempt_min_runtime(d.pop("default_preempt_min_runtime", UNSET))

        reclaim_resolve_method = d.pop("reclaim_resolve_method", UNSET)

        def _parse_actions(data: object) -> list[KaiAction] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                actions_type_0 = []
                _actions_type_0 = data
                for actions_type_0_item_data in _actions_type_0:
                    actions_type_0_item = check_kai_action(actions_type_0_item_data)

                    actions_type_0.append(actions_type_0_item)

                return actions_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[KaiAction] | None | Unset, data)

        actions = _parse_actions(d.pop("actions", UNSET))

        use_scheduling_signatures = d.pop("use_scheduling_signatures", UNSET)

        def _parse_max_consolidation_preemptees(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_consolidation_preemptees = _parse_max_consolidation_preemptees(d.pop("max_consolidation_preemptees", UNSET))

        allow_consolidating_reclaim = d.pop("allow_consolidating_reclaim", UNSET)

        kai_settings = cls(
            rules=rules,
            default_reclaim_min_runtime=default_reclaim_min_runtime,
            default_preempt_min_runtime=default_preempt_min_runtime,
            reclaim_resolve_method=reclaim_resolve_method,
            actions=actions,
            use_scheduling_signatures=use_scheduling_signatures,
            max_consolidation_preemptees=max_consolidation_preemptees,
            allow_consolidating_reclaim=allow_consolidating_reclaim,
        )

        return kai_settings
