from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.outcome import Outcome, check_outcome

if TYPE_CHECKING:
    from ..models.configuration_used import ConfigurationUsed
    from ..models.decision_summary_stats import DecisionSummaryStats


T = TypeVar("T", bound="DecisionSummary")


@_attrs_define
class DecisionSummary:
    """One line of the log. `asks` and `outcomes` run in parallel; `evictions` counts those of the plan.

    Attributes:
        id (UUID):
        created_at (datetime.datetime):
        now (datetime.datetime):
        engine (str):
        configuration (ConfigurationUsed):
        state_digest (str):
        request_digest (str):
        asks (list[str]):
        outcomes (list[Outcome]):
        evictions (int):
        stats (DecisionSummaryStats):
    """

    id: UUID
    created_at: datetime.datetime
    now: datetime.datetime
    engine: str
    configuration: ConfigurationUsed
    state_digest: str
    request_digest: str
    asks: list[str]
    outcomes: list[Outcome]
    evictions: int
    stats: DecisionSummaryStats
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = str(self.id)

        created_at = self.created_at.isoformat()

        now = self.now.isoformat()

        engine = self.engine

        configuration = self.configuration.to_dict()

        state_digest = self.state_digest

        request_digest = self.request_digest

        asks = self.asks

        outcomes = []
        for outcomes_item_data in self.outcomes:
            outcomes_item: str = outcomes_item_data
            outcomes.append(outcomes_item)

        evictions = self.evictions

        stats = self.stats.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "created_at": created_at,
                "now": now,
                "engine": engine,
                "configuration": configuration,
                "state_digest": state_digest,
                "request_digest": request_digest,
                "asks": asks,
                "outcomes": outcomes,
                "evictions": evictions,
                "stats": stats,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.configuration_used import ConfigurationUsed  # noqa: PLC0415
        from ..models.decision_summary_stats import DecisionSummaryStats  # noqa: PLC0415

        d = dict(src_dict)
        id = UUID(d.pop("id"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        now = datetime.datetime.fromisoformat(d.pop("now"))

        engine = d.pop("engine")

        configuration = ConfigurationUsed.from_dict(d.pop("configuration"))

        state_digest = d.pop("state_digest")

        request_digest = d.pop("request_digest")

        asks = cast(list[str], d.pop("asks"))

        outcomes = []
        _outcomes = d.pop("outcomes")
        for outcomes_item_data in _outcomes:
            outcomes_item = check_outcome(outcomes_item_data)

            outcomes.append(outcomes_item)

        evictions = d.pop("evictions")

        stats = DecisionSummaryStats.from_dict(d.pop("stats"))

        decision_summary = cls(
            id=id,
            created_at=created_at,
            now=now,
            engine=engine,
            configuration=configuration,
            state_digest=state_digest,
            request_digest=request_digest,
            asks=asks,
            outcomes=outcomes,
            evictions=evictions,
            stats=stats,
        )

        decision_summary.additional_properties = d
        return decision_summary

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
