"""Plug-in points of the actions: victim filters, which judge whole jobs, and scenario validators, which judge what
a simulated scenario would do. Every one of an action's must agree, and each says why it does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.solver.engines.kai.decide.search.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a victim or a scenario is out: a stable rule, the workload or queue it is about, the numbers compared."""

    rule: str
    detail: str
    numbers: dict[str, Any] = field(default_factory=dict[str, Any])


VictimFilter = Callable[[int, int], Refusal | None]
"""(pending job, victim job) -> why the victim may not be taken at all; None where it may."""

ScenarioValidator = Callable[[Scenario], Refusal | None]
"""A solved scenario -> why it may not be carried out; None where it may."""

Foregone = Callable[[Scenario, int], Refusal | None]
"""(scenario, victim that it lists) -> what some validator will say of it and of every scenario that lists more of the
victim; None where that must be seen. It spares simulations and changes no decision."""


def refused_victim(filters: Sequence[VictimFilter], job: int, victim: int) -> Refusal | None:
    """The first filter's refusal; None when all agree."""
    for judge in filters:
        if (refusal := judge(job, victim)) is not None:
            return refusal
    return None


def refused_scenario(validators: Sequence[ScenarioValidator], scenario: Scenario) -> Refusal | None:
    """The first validator's refusal; None when all agree."""
    for judge in validators:
        if (refusal := judge(scenario)) is not None:
            return refusal
    return None
