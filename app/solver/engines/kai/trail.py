"""Why a job waits: the scenarios of its attempts, equal ones counted once; and the steps that one request may spend on
simulations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.solver.engines.kai.overlay import NO_ASK, Overlay
from app.solver.engines.kai.queue_order import OverBound
from app.solver.engines.kai.validators import Refusal, Scenario
from app.solver.stopping import safe_point

MOST_STEPS = 1_000_000


class Budget:
    """Counts down; ``spent`` once nothing is left."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self._left = steps

    @property
    def spent(self) -> bool:
        """Whether the search was cut short."""
        return self._left <= 0

    def spend(self, steps: int = 1) -> bool:
        """Pay for some steps, each of them a safe point. False when there is nothing left."""
        safe_point()
        self._left -= steps
        return self._left > 0


_SUCCEEDED = ("placed", "solved")

_TELLS = {
    "no-easier": 0, "no-room": 1, "too-few-gpus-free": 1, "no-victims": 1, "too-few-gpus": 2, "too-few-victims": 3,
    "over-limit": 5, "non-preemptible-over-quota": 5, "search-cut-short": 6,
}  # fmt: skip
_REFUSED = 4
"""How much a failure tells about what stands in the way, most last; what is not listed was refused by a validator or
by reclaim's gate."""


@dataclass(slots=True)
class Tried:
    """Scenarios of one action that ended alike: how many, and the numbers of the last one."""

    action: str
    part: int
    of: int
    rule: str
    detail: str
    numbers: dict[str, Any]
    count: int = 0


@dataclass(slots=True)
class Search:
    """One search for victims: the action, who might be taken, whom a filter kept out and why. Where it found room: the
    ask that it was for, and the pods that its statement took, those that it put back among them."""

    action: str
    eligible: frozenset[int] = frozenset()
    refused: dict[int, Refusal] = field(default_factory=dict[int, Refusal])
    ask: int = NO_ASK
    taken: frozenset[int] = frozenset()
    put_back: frozenset[int] = frozenset()


class Trail:
    """Hears the moments of a search, one job at a time, and keeps what every job's main failure was: nothing that an
    answer without explanations can do without. ``Recorder`` keeps the rest."""

    def __init__(self) -> None:
        self._main: dict[int, tuple[int, str, str, str]] = {}
        self._job: int
        self._action: str

    def begin(self, job: int, action: str) -> None:
        """What follows is about this job in this action."""
        self._job, self._action = job, action

    def part(self, size: int, of: int) -> None:
        """The gang's first ``size`` pods are being solved."""

    def note(self, rule: str, detail: str, **numbers: Any) -> None:
        """Count one way to fail, or to succeed."""
        if rule not in _SUCCEEDED:
            tells = _TELLS.get(rule, _REFUSED)
            if tells >= self._main.get(self._job, (0,))[0]:
                self._main[self._job] = tells, self._action, rule, detail

    def cut_short(self) -> None:
        """The budget ran out."""
        self.note("search-cut-short", "the search for a place ran out of steps before it had seen every scenario")

    def spare(self, victim: int, refusal: Refusal) -> None:
        """A filter keeps a job from being a victim."""

    def search(self, eligible: Sequence[int]) -> None:
        """A search begins; it may take from these jobs."""

    def found(self, overlay: Overlay) -> None:
        """The search found room; its statement is still open."""

    def too_short(self, scenario: Scenario) -> None:
        """The listed victims' GPUs can't hold the part."""
        self.note("too-few-gpus", "nodes could not hold the GPUs, were all these victims gone", **self._size(scenario))

    def no_room(self, scenario: Scenario, bound: OverBound | None) -> None:
        """The part found no place."""
        size = self._size(scenario)
        if bound is not None:
            self.note(bound.rule, "a queue would pass its bound", **size)
        else:
            self.note("too-few-victims", "no place for the pods with the victims of that node gone", **size)

    def judged(self, scenario: Scenario, refusal: Refusal | None) -> None:
        """The part found its place, and the validators spoke."""
        size = self._size(scenario)
        if refusal is None:
            self.note("solved", "the pods fit with these victims", **size)
        else:
            self.note(refusal.rule, refusal.detail, **size, **refusal.numbers)

    def _size(self, scenario: Scenario) -> dict[str, int]:
        """How large a scenario is, for those who keep it."""
        del scenario
        return {}

    def main(self, job: int) -> tuple[str, str, str] | None:
        """Action, rule and sentence of the job's failure that tells most, the latest of those; None without any."""
        found = self._main.get(job)
        return None if found is None else found[1:]

    def of(self, job: int) -> list[Tried]:
        """What was recorded of a job, in order."""
        del job
        return []

    def searches(self, job: int) -> list[Search]:
        """The searches for one job, in order."""
        del job
        return []
