"""What KEP-83 proposed and deferred, as pure arithmetic: waiting before preempting, priorities that move with time,
and what it costs to stop a workload that has run for so long.

All off by default. Times are microseconds; results are exact (rational arithmetic, no rounding that a platform or
an order of evaluation could change). Priorities move in whole points: a point counts once its time has passed.
"""

from collections.abc import Sequence
from fractions import Fraction

from app.solver.model.duration import parse
from app.solver.model.kueue import LongRunnerPenalty, Milestone, Preemption, Sorting, WaitingBoost

HOUR = 3_600_000_000
SECOND = 1_000_000
DEFAULT_SORTING: tuple[Sorting, ...] = ("ByLowestPriority", "ByLowestRuntime")

Curve = tuple[tuple[Fraction, Fraction], ...]
"""(running time in microseconds, cost), by time."""


def points(rate_per_hour: float, elapsed: int) -> int:
    """Whole priority points that ``elapsed`` microseconds are worth; none before time 0."""
    return int(Fraction(rate_per_hour) * max(0, elapsed) / HOUR)


def penalised(priority: int, penalty: LongRunnerPenalty | None, running: int) -> int:
    """Priority of a workload that has run for ``running``: falls after the grace period, never below the floor. A
    priority that is at or below the floor already stays."""
    if penalty is None:
        return priority
    fallen = priority - points(penalty.rate_per_hour, running - parse(penalty.grace))
    return max(fallen, min(priority, penalty.floor))


def boosted(priority: int, boost: WaitingBoost | None, waiting: int) -> int:
    """Priority of an ask that has waited for ``waiting``: rises after the grace period, never above the ceiling."""
    if boost is None:
        return priority
    risen = priority + points(boost.rate_per_hour, waiting - parse(boost.grace))
    return min(risen, max(priority, boost.ceiling))


def may_trigger(preemption: Preemption | None, waiting: int) -> bool:
    """Whether an ask that has waited for ``waiting`` may preempt yet."""
    seconds = preemption.trigger_after_workload_waiting_seconds if preemption is not None else None
    return seconds is None or waiting >= Fraction(seconds) * SECOND


def curve(milestones: Sequence[Milestone]) -> Curve:
    """Milestones as exact numbers."""
    return tuple((Fraction(m.seconds) * SECOND, Fraction(m.cost)) for m in milestones)


def cost(of: Curve, running: int) -> Fraction:
    """Linear between milestones, constant before the first and after the last; no milestones cost nothing."""
    if not of:
        return Fraction(0)
    before = of[0]
    if running <= before[0]:
        return before[1]
    for after in of[1:]:
        if running <= after[0]:
            part = (running - before[0]) / (after[0] - before[0])
            return before[1] + (after[1] - before[1]) * part
        before = after
    return before[1]
