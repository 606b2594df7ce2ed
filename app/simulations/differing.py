"""The jobs that fare most differently under one variant than under the first. Pure."""

import heapq
from typing import NamedTuple

from app.simulations.results import JobDifference
from app.simulations.schemas import JobLine, Units

_MOST = 20


class _Fate(NamedTuple):
    completion: Units | None
    evictions: int


class Differing:
    """Told of every job of every variant, the first variant's before all others."""

    def __init__(self) -> None:
        self._first: dict[str, _Fate] = {}
        self._largest: dict[str, list[tuple[float, str, _Fate]]] = {}

    def add(self, variant: str, line: JobLine, *, is_first: bool) -> None:
        """The job of ``line`` in ``variant``."""
        ended = line.status == "finished" and line.ended_at is not None
        length = (line.ended_at - line.submitted_at).total_seconds() if ended and line.ended_at is not None else None
        fate = _Fate(length, line.evictions)
        if is_first:
            self._first[line.job] = fate
            return
        before = self._first.get(line.job)
        if before is None or before == fate:
            return
        kept = self._largest.setdefault(variant, [])
        heapq.heappush(kept, (_gap(before, fate), line.job, fate))
        if len(kept) > _MOST:
            heapq.heappop(kept)

    def found(self) -> list[JobDifference]:
        """By variant, the largest difference first."""
        return [
            self._shown(variant, job, fate)
            for variant, kept in self._largest.items()
            for _, job, fate in sorted(kept, key=lambda found: (-found[0], found[1]))
        ]

    def _shown(self, variant: str, job: str, fate: _Fate) -> JobDifference:
        before = self._first[job]
        return JobDifference(
            job=job, variant=variant, completion=before.completion, completion_here=fate.completion,
            evictions=before.evictions, evictions_here=fate.evictions,
        )  # fmt: skip


def _gap(one: _Fate, other: _Fate) -> float:
    """How far apart: ending at all counts more than any time, evictions less."""
    if (one.completion is None) is not (other.completion is None):
        return float("inf")
    if one.completion is None or other.completion is None:
        return abs(one.evictions - other.evictions) * 1e-6
    return abs(one.completion - other.completion) + abs(one.evictions - other.evictions) * 1e-6
