"""A trail that keeps everything, for explanations."""

from collections.abc import Sequence
from typing import Any

from app.solver.engines.kai.decide.overlay import EVICT, Overlay
from app.solver.engines.kai.decide.search.scenario import Scenario
from app.solver.engines.kai.decide.search.validators import Refusal
from app.solver.engines.kai.decide.trail import Search, Trail, Tried


class Recorder(Trail):
    """A trail that keeps everything, for explanations."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[int, dict[tuple[str, int, str, str], Tried]] = {}
        self._searches: dict[int, list[Search]] = {}
        self._search: Search
        self._part: tuple[int, int]

    def begin(self, job: int, action: str) -> None:
        """See ``Trail.begin``."""
        super().begin(job, action)
        self._search, self._part = Search(action), (0, 0)

    def part(self, size: int, of: int) -> None:
        """See ``Trail.part``."""
        self._part = (size, of)

    def note(self, rule: str, detail: str, **numbers: Any) -> None:
        """See ``Trail.note``."""
        super().note(rule, detail, **numbers)
        key = (self._action, self._part[0], rule, detail)
        of_job = self._found.setdefault(self._job, {})
        found = of_job.get(key)
        if found is None:
            found = of_job[key] = Tried(self._action, *self._part, rule, detail, {})
        found.count += 1
        found.numbers = numbers

    def spare(self, victim: int, refusal: Refusal) -> None:
        """See ``Trail.spare``."""
        self._search.refused[victim] = refusal

    def search(self, eligible: Sequence[int]) -> None:
        """See ``Trail.search``."""
        self._search.eligible = frozenset(eligible)
        self._searches.setdefault(self._job, []).append(self._search)

    def found(self, overlay: Overlay) -> None:
        """See ``Trail.found``."""
        search = self._search
        search.ask = overlay.asking(self._job)
        search.taken = frozenset(op.task for op in overlay.ops if op.kind == EVICT)
        search.put_back = frozenset(t for t in search.taken if not overlay.stays_evicted(t))

    def of(self, job: int) -> list[Tried]:
        """See ``Trail.of``."""
        return list(self._found.get(job, {}).values())

    def searches(self, job: int) -> list[Search]:
        """See ``Trail.searches``."""
        return self._searches.get(job, [])

    def _size(self, scenario: Scenario) -> dict[str, int]:
        return {"victims": len(scenario.listed), "pods": scenario.pods}
