"""Rounds of KAI: when the end of a minimum runtime alone makes another session."""

from typing import Any

import msgspec
import pytest

from app.solver.engines.kai.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kai.rounds import KaiRounds
from app.solver.engines.kai.state import CompiledState, compile_state
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Plan, PlannedEviction, Result
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, State, Workload
from tests.unit.simulations.running import job, played

SECOND = 1_000_000
NOW = 1_000 * SECOND


def configuration(rules: str = "documented", *, own: int = 60, other: int = 600) -> Configuration:
    queues = [
        {"name": "root", "kai": {"reclaim_min_runtime": other}},
        {"name": "a", "parent": "root", "kai": {"reclaim_min_runtime": own, "preempt_min_runtime": 5}},
    ]
    settings = {"rules": rules, "default_reclaim_min_runtime": 30}
    return msgspec.convert({"settings": {"kai": settings}, "queues": queues}, Configuration)


def ask(name: str, **more: Any) -> Ask:
    return msgspec.convert({"id": name, "queue": "a", "tasks": [{"name": "t"}], **more}, Ask)


def runs(name: str, since: int | None, *states: str) -> Workload:
    tasks = [{"name": f"t{i}", "node": "n", "requests": {}, "state": state} for i, state in enumerate(states)]
    body: dict[str, Any] = {"id": name, "queue": "a", "tasks": tasks}
    return msgspec.convert(body if since is None else body | {"started_at": to_datetime(since)}, Workload)


def opened(of: Configuration, *workloads: Workload) -> tuple[KaiRounds, CompiledState, State]:
    configured = compile_configuration(of)
    state = State(nodes=[Node(name="n", capacity={"cpu": 9})], workloads=list(workloads))
    return KaiRounds(configured, of, RunOptions()), compile_state(configured, state), state


def beginning(of: Configuration, *workloads: Workload, now: int = NOW) -> KaiRounds:
    """Rounds that have taken note of what runs, with somebody who waits."""
    rounds, loaded, state = opened(of, *workloads)
    assert rounds.before(loaded, state, now) is None
    rounds.arrive(ask("waits"))
    return rounds


def nobody(eviction: PlannedEviction) -> bool:
    del eviction
    return False


def answered(rounds: KaiRounds, now: int, *starts: str) -> None:
    placements = [{"ask": name, "task": "t", "node": "n", "pipelined": False} for name in starts]
    plan = msgspec.convert({"evictions": [], "placements": placements}, Plan)
    rounds.answered(rounds.question(now, lambda _: False), Result(decisions=[], plan=plan), nobody)


def ends(rounds: KaiRounds) -> list[int]:
    """When it wakes, one session after the other, in microseconds after NOW."""
    found: list[int] = []
    while (at_ := rounds.wakes_at()) is not None and len(found) < 9:
        found.append(at_ - NOW)
        answered(rounds, at_)
    return found


def test_every_minimum_that_may_protect_it_ends_once() -> None:
    """Preemption 5 s, another tree 30 s, its own siblings 60 s, those of its parent 600 s; free just after each."""
    one = SECOND
    documented = beginning(configuration(), runs("w", NOW, "running"))
    assert ends(documented) == [5 * one + 1, 30 * one + 1, 60 * one + 1, 600 * one + 1]
    shipped = beginning(configuration("shipped"), runs("w", NOW, "running"))
    assert ends(shipped) == [5 * one, 30 * one, 60 * one, 600 * one]


def test_what_has_run_for_a_minimum_already_waits_for_the_next() -> None:
    rounds = beginning(configuration("shipped"), runs("w", NOW - 30 * SECOND, "releasing", "running"))
    assert ends(rounds) == [30 * SECOND, 570 * SECOND]
    assert ends(beginning(configuration("shipped"), runs("w", NOW - 600 * SECOND, "running"))) == []


@pytest.mark.parametrize("one", [runs("w", None, "running"), runs("w", NOW, "releasing"), runs("w", NOW)])
def test_nothing_ends_of_what_does_not_run_or_began_nobody_knows_when(one: Workload) -> None:
    assert beginning(configuration(), one).wakes_at() is None


def test_nobody_wakes_where_nobody_waits() -> None:
    rounds = beginning(configuration("shipped"), runs("w", NOW, "running"))
    assert rounds.wakes_at() == NOW + 5 * SECOND
    rounds.leave("waits")
    assert rounds.wakes_at() is None


def test_what_a_round_started_is_protected_from_then_on_and_once() -> None:
    rounds = beginning(configuration("shipped"))
    rounds.arrive(ask("x"))
    answered(rounds, NOW, "x")
    assert rounds.wakes_at() == NOW + 5 * SECOND
    rounds.arrive(ask("x"))
    answered(rounds, NOW + SECOND, "x")
    assert ends(rounds) == [5 * SECOND, 30 * SECOND, 60 * SECOND, 600 * SECOND]


def test_who_leaves_or_stops_ends_no_more() -> None:
    two = [runs("v", NOW, "running"), runs("w", NOW + SECOND, "running", "running")]
    rounds = beginning(configuration("shipped"), *two)
    rounds.leave("v")
    assert rounds.wakes_at() == NOW + 6 * SECOND
    left = rounds.evicting(two[1], "t0")
    assert [task.state for task in left.tasks] == ["releasing", "running"]
    assert rounds.wakes_at() == NOW + 6 * SECOND
    rounds.evicting(left, "t1")
    assert rounds.wakes_at() is None
    rounds.leave("v")


def test_what_runs_is_looked_at_once_until_the_configuration_changes() -> None:
    of = configuration("shipped")
    rounds, loaded, state = opened(of, runs("w", NOW, "running"))
    rounds.arrive(ask("waits"))
    assert rounds.before(loaded, state, NOW) is None
    rounds.leave("w")
    rounds.before(loaded, state, NOW)
    assert rounds.wakes_at() is None
    changed = configuration("shipped", own=7, other=8)
    configured: CompiledConfiguration = compile_configuration(changed)
    rounds.changed(configured, changed, [])
    rounds.before(loaded, state, NOW)
    assert ends(rounds) == [5 * SECOND, 7 * SECOND, 8 * SECOND, 30 * SECOND]
    rounds.changed(configured, changed, [])
    rounds.before(loaded, State(), NOW)
    assert rounds.wakes_at() is None


def test_a_delay_before_preemption_counts_from_the_last_eviction_and_its_end_makes_a_session() -> None:
    """``late`` may make somebody go 30 s after it was asked for, and again 30 s after its own eviction."""
    guaranteed = {"cpu": {"guaranteed": 2, "limit": 2}}
    of = {
        "engine": "kai",
        "queues": [{"name": "top", "quota": guaranteed}, {"name": "q", "parent": "top", "quota": guaranteed}],
        "settings": {"kai": {"release": "0.17"}},
    }
    late = job("late", "q", 2, 1, 50, priority=50)
    late["ask"]["preemption_delay"] = 30
    jobs = [
        job("low", "q", 1, 0, 500, priority=10), late, job("high", "q", 2, 41, 500, priority=60, cancelled_at=50),
    ]  # fmt: skip
    small, large = ({"name": name, "capacity": {"cpu": cpu, "pods": 9}} for name, cpu in (("m", 1), ("m", 2)))
    # From 50 s on there is room for ``low`` alone; at 55 s there would be for ``late``, were it not for ``low``.
    changes = [
        {"at": 50, "nodes": {"remove": ["n"], "add": [small]}}, {"at": 55, "nodes": {"change": [large]}},
    ]  # fmt: skip
    nodes = [{"name": "n", "capacity": {"cpu": 2, "pods": 9}}]
    told = played(of, jobs, changes, state={"nodes": nodes}, until=200)
    evicted = [event for event in told.events if event.kind == "evicted"]
    assert [(e.job, e.by, (e.at - told.events[0].at).total_seconds()) for e in evicted] == [
        ("low", "late", 31), ("late", "high", 41), ("low", "late", 71),
    ]  # fmt: skip
