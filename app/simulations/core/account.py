"""What one queue has come to: exact areas under its usage, and the times of its jobs."""

from array import array
from collections.abc import Callable, Mapping
from math import fsum

from app.simulations.core.amounts import Amounts, work
from app.simulations.core.holding import Areas
from app.simulations.core.life import Life
from app.simulations.schemas import Spread, Totals
from app.solver.model.duration import seconds

Level = Callable[[str, int, Amounts, Amounts, Amounts], None]
"""Told of a queue, since when, and what it then holds, waits for and is guaranteed, until it tells again. The amounts
go on changing: whoever wants to keep them copies them."""


class Account:
    """Jobs, times and areas of one queue with all that is below it. ``now`` never goes back; ``level`` is told once an
    instant at which something changed, when the instant is over.

    Memory grows by 24 bytes for each job that finishes: percentiles are exact."""

    __slots__ = (
        "_at", "_changed", "_completions", "_demand", "_guarantee", "_guaranteed", "_level", "_missing", "_name",
        "_slowdowns", "_usage", "_used",
        "_waits", "cancelled", "evictions", "finished", "jobs", "most_evictions", "work_done", "work_lost",
        "work_overhead",
    )  # fmt: skip

    def __init__(self, now: int, guarantee: Amounts, name: str = "", level: Level | None = None) -> None:
        self._at = now
        self._name = name
        self._level = level
        self._changed = True
        self._guarantee = guarantee
        self._usage: Amounts = {}
        self._demand: Amounts = {}
        self._used: Areas = {}
        self._guaranteed: Areas = {}
        self._missing: Areas = {}
        self._waits, self._completions, self._slowdowns = array("q"), array("q"), array("d")
        self.jobs = self.finished = self.cancelled = self.evictions = self.most_evictions = 0
        self.work_done: Areas = {}
        self.work_lost: Areas = {}
        self.work_overhead: Areas = {}

    def hold(self, now: int, amounts: Amounts, sign: int) -> None:
        """``amounts`` are held from now on, or (``sign`` -1) no longer."""
        self.advance(now)
        self._changed = True
        _add(self._usage, amounts, sign)

    def want(self, now: int, amounts: Amounts, sign: int) -> None:
        """``amounts`` are waited for from now on, or no longer."""
        self.advance(now)
        self._changed = True
        _add(self._demand, amounts, sign)

    def entitle(self, now: int, guarantee: Amounts) -> None:
        """The guarantee is another from now on."""
        self.advance(now)
        self._changed = True
        self._guarantee = guarantee

    def advance(self, now: int) -> None:
        """Add what has passed to the areas."""
        passed = now - self._at
        if not passed:
            return
        usage, demand, guarantee = self._usage, self._demand, self._guarantee
        if self._changed and self._level is not None:
            self._changed = False
            self._level(self._name, self._at, usage, demand, guarantee)
        self._at = now
        _add(self._used, usage, passed)
        _add(self._guaranteed, guarantee, passed)
        for resource, wanted in demand.items():
            held = usage.get(resource, 0)
            short = min(guarantee.get(resource, 0), held + wanted) - held
            if wanted and short > 0:
                self._missing[resource] = self._missing.get(resource, 0) + short * passed

    def started(self, wait: int) -> None:
        """A job started for the first time, after so long."""
        self._waits.append(wait)

    def ran(self, amounts: Amounts, made: int, lost: int, overhead: int) -> None:
        """A run is over: what it made and kept, what was thrown away, what checkpoints took."""
        _add(self.work_done, amounts, made)
        if lost:
            _add(self.work_lost, amounts, lost)
        if overhead:
            _add(self.work_overhead, amounts, overhead)

    def evicted(self, life: Life) -> None:
        """A job was evicted."""
        self.evictions += 1
        self.most_evictions = max(self.most_evictions, life.evictions)

    def done(self, life: Life, now: int) -> None:
        """A job finished. How long one took that ran before the run began is not known."""
        self.finished += 1
        if life.initial:
            return
        completion = now - life.submitted
        self._completions.append(completion)
        self._slowdowns.append(completion / max(clock.duration for clock in life.clocks.values()))

    def totals(self) -> Totals:
        """Everything, as the wire has it."""
        return Totals(
            jobs=self.jobs, finished=self.finished, cancelled=self.cancelled, wait=_spread(self._waits),
            completion=_spread(self._completions), slowdown=_ratios(self._slowdowns),
            evictions=self.evictions, most_evictions=self.most_evictions, work_done=_works(self.work_done),
            work_lost=_works(self.work_lost), work_overhead=_works(self.work_overhead), used=_works(self._used),
            utilisation={r: self._used.get(r, 0) / area for r, area in sorted(self._guaranteed.items()) if area},
            shortfall=_works(self._missing),
        )  # fmt: skip


def _add(into: dict[str, int], amounts: Mapping[str, int], times: int) -> None:
    for resource, amount in amounts.items():
        into[resource] = into.get(resource, 0) + amount * times


def _works(areas: Areas) -> dict[str, int | float]:
    return {resource: work(area, resource) for resource, area in sorted(areas.items()) if area}


def _spread(values: "array[int]") -> Spread | None:
    if not values:
        return None
    found = sorted(values)
    p50, p90, p99 = (seconds(found[rank(len(found), share)]) for share in (50, 90, 99))
    total, count = sum(found), len(found) * 10**6
    mean = total // count if total % count == 0 else total / count
    return Spread(mean=mean, p50=p50, p90=p90, p99=p99, max=seconds(found[-1]))


def _ratios(values: "array[float]") -> Spread | None:
    if not values:
        return None
    found = sorted(values)
    p50, p90, p99 = (found[rank(len(found), share)] for share in (50, 90, 99))
    return Spread(mean=fsum(found) / len(found), p50=p50, p90=p90, p99=p99, max=found[-1])


def rank(count: int, percent: int) -> int:
    """The place, in ascending order, of the smallest value that ``percent`` of all do not exceed."""
    return max(0, -(-count * percent // 100) - 1)
