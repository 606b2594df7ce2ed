"""When time alone changes what may be done: that very microsecond, and nothing before it or where there is none."""

from datetime import UTC, datetime
from itertools import product

import pytest

from app.solver.engines.kueue.knobs import HOUR, ask_turns, boosted, may_trigger, penalised, victim_turns
from app.solver.model.base import micros
from app.solver.model.kueue import LongRunnerPenalty, Preemption, WaitingBoost
from app.solver.model.state import Ask

MADE = datetime(2026, 1, 1, 11, tzinfo=UTC)
BEGUN = micros(MADE)
ELAPSED = [0, 1, 90_000_000, HOUR, HOUR + 1, 90 * 60_000_000, 3 * HOUR, 30 * HOUR]
RATES = [0.0, 0.5, 7.0, -1.0]


def ask(priority: int | None = None) -> Ask:
    return Ask(id="x", queue="q", priority=priority, created_at=MADE, tasks=[])


@pytest.mark.parametrize(
    ("elapsed", "seconds", "after"),
    [(0, 90.0, 90_000_000), (89_999_999, 90.0, 90_000_000), (90_000_000, 90.0, None), (0, 1e-7, 1), (0, None, None)],
)
def test_when_an_ask_may_first_preempt(elapsed: int, seconds: float | None, after: int | None) -> None:
    block = Preemption(trigger_after_workload_waiting_seconds=seconds)
    assert ask_turns(block, ask(), BEGUN + elapsed) == (None if after is None else BEGUN + after)


def test_of_two_turns_the_first_counts() -> None:
    """A point each half hour after an hour of grace; preemption after 80 minutes."""
    boost = WaitingBoost(grace="1h", rate_per_hour=2.0, ceiling=3)
    block = Preemption(trigger_after_workload_waiting_seconds=4800, waiting_boost=boost)
    turns = [ask_turns(block, ask(), BEGUN + minutes * HOUR // 60) for minutes in (0, 79, 80, 90, 120, 150)]
    expected = [80, 80, 90, 120, 150, None]
    assert turns == [None if at is None else BEGUN + at * HOUR // 60 for at in expected]


@pytest.mark.parametrize(("grace", "rate", "bound", "priority"), [*product(["0s", "90s", "1h"], RATES, [2, 9], [0, 4])])
def test_a_priority_moves_at_its_turn_and_not_before(grace: str, rate: float, bound: int, priority: int) -> None:
    boost = WaitingBoost(grace=grace, rate_per_hour=rate, ceiling=bound)
    penalty = LongRunnerPenalty(grace=grace, rate_per_hour=rate, floor=-bound)
    waits, runs = Preemption(waiting_boost=boost), ask(priority or None)
    for elapsed in ELAPSED:
        now = BEGUN + elapsed
        for turn, of, counts in (
            (ask_turns(waits, runs, now), boost, lambda at: boosted(priority, boost, at)),
            (victim_turns(penalty, priority, BEGUN, now), penalty, lambda at: penalised(priority, penalty, at)),
        ):
            if turn is None:
                assert counts(elapsed) == counts(elapsed + 100 * HOUR) or rate < 0, of
            else:
                assert counts(elapsed) == counts(turn - BEGUN - 1) != counts(turn - BEGUN), of


def test_nothing_turns_where_nothing_is_asked_for() -> None:
    assert victim_turns(None, 3, BEGUN, BEGUN) is None
    assert ask_turns(Preemption(), ask(), BEGUN) is None
    assert may_trigger(None, 0)
