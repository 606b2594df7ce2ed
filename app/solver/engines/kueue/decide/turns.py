"""When time alone lets a waiting ask preempt, or a running workload be preempted: the knobs that KEP-83 deferred.

Pure arithmetic, exact as ``knobs``; times are microseconds.
"""

from fractions import Fraction

from app.solver.engines.kueue.decide import knobs
from app.solver.engines.kueue.decide.knobs import HOUR, SECOND, points
from app.solver.engines.kueue.decide.run import waiting_since
from app.solver.model.duration import parse
from app.solver.model.kueue import LongRunnerPenalty, Preemption
from app.solver.model.state import Ask


def ask_turns(block: Preemption, ask: Ask, now: int) -> int | None:
    """When ``ask``, after ``now``, may first preempt at all, or next counts for another priority; None: never."""
    since = waiting_since(ask)
    found: list[int] = []
    after = block.trigger_after_workload_waiting_seconds
    if after is not None and not knobs.may_trigger(block, now - since):
        found.append(since + _up(Fraction(after) * SECOND))
    boost = block.waiting_boost
    if boost is not None and knobs.boosted(ask.priority or 0, boost, now - since) < boost.ceiling:
        found += _next_point(boost.rate_per_hour, since + parse(boost.grace), now)
    return min(found, default=None)


def victim_turns(penalty: LongRunnerPenalty | None, priority: int, since: int, now: int) -> int | None:
    """When a workload of ``priority`` that runs since ``since`` next counts for less, after ``now``; None: never."""
    if penalty is None or knobs.penalised(priority, penalty, now - since) <= penalty.floor:
        return None
    return next(iter(_next_point(penalty.rate_per_hour, since + parse(penalty.grace), now)), None)


def _next_point(rate_per_hour: float, start: int, now: int) -> list[int]:
    """When the next whole point is reached, counted from ``start``: after ``now``, as those until then are counted."""
    if rate_per_hour <= 0:
        return []
    return [start + _up((points(rate_per_hour, now - start) + 1) * HOUR / Fraction(rate_per_hour))]


def _up(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
