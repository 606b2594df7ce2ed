"""The circles under ``examples/loops``, and those that a design rules out."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from app.base.decoding import decode
from app.simulations.schemas import SimulationRequest
from app.solver.model.configuration import Configuration, Settings
from app.solver.model.ytsaurus import Settings as Block
from tests.unit.simulations.running import Told, play

LOOPS = Path(__file__).parents[3] / "examples" / "loops"


def request(name: str) -> SimulationRequest:
    return decode((LOOPS / f"{name}.json").read_bytes(), SimulationRequest)


def loops(told: Told, until: int | None = None) -> int:
    """A run is over with the last thing that happened: time alone brings nothing about."""
    assert told.summary is not None
    if (told.summary.end - told.summary.start).total_seconds() != until:
        assert told.summary.end == max(told.events[-1].at, told.rounds[-1].at)
    return told.summary.loops


def test_a_workload_of_kueue_is_evicted_for_another_and_comes_back_before_it_under_fair_sharing() -> None:
    told = play(request("kueue-fair-sharing"))
    assert loops(told) == 1
    assert told.summary is not None
    first = told.summary.first_loops[0]
    assert first.jobs == ["red-cpu"]
    assert [(e.job, e.by, e.rule) for e in first.evictions] == [("red-cpu", "blue-cpu", "InCohortFairSharing")]
    same = [line for line in told.rounds if line.n in (first.first, first.second)]
    assert same[0].asks == same[1].asks
    assert [line.loop for line in same] == [False, True]
    assert told.summary.total.finished == 4  # whoever runs where the loop stops, runs to its end


def test_of_two_workloads_of_kueue_the_one_that_is_evicted_finds_room_at_a_lower_level_and_comes_first() -> None:
    """x fits into the lower cohort, y only with what the upper one lends: in the order who borrows less comes first.
    The first time that y stops x nothing was pending for it; the third time all is as the second time."""
    told = play(request("kueue-two-workloads"))
    assert loops(told) == 1
    assert told.summary is not None
    first = told.summary.first_loops[0]
    assert [(e.job, e.by, e.rule) for e in first.evictions] == [("x", "y", "InCohortReclaimWhileBorrowing")]
    assert [(line.asks, line.admitted, line.loop) for line in told.rounds] == [
        (["x"], ["x"], False), (["y"], [], False), (["x", "y"], ["x"], False), (["y"], [], False),
        (["x", "y"], ["x"], False), (["y"], [], True), (["y"], ["y"], False),
    ]  # fmt: skip
    assert told.summary.total.finished == 2


def test_a_loop_goes_on_where_the_caller_wants_that_and_the_clock_with_it() -> None:
    stopped = request("kueue-fair-sharing")
    told = play(replace(stopped, on_loop="continue", until=3))
    assert loops(told, 3) > 10
    assert told.summary is not None
    assert told.summary.total.evictions == len([e for e in told.events if e.kind == "evicted"])


def test_ytsaurus_taken_literally_gives_one_cpu_to_two_operations_in_turn() -> None:
    told = play(request("ytsaurus-documented"))
    assert loops(told) > 0
    assert told.summary is not None
    assert told.summary.first_loops[0].jobs == ["blue", "red"]
    configuration = told_configuration("ytsaurus-documented")
    released = replace(configuration, settings=Settings(ytsaurus=Block(rules="shipped")))
    # Ten times as long as the timeouts after which anybody would be stopped.
    assert loops(play(replace(request("ytsaurus-documented"), configuration=released, until=1200)), 1200) == 0


def told_configuration(name: str) -> Configuration:
    configuration = request(name).configuration
    assert isinstance(configuration, Configuration)
    return configuration


@pytest.mark.parametrize("name", sorted(path.stem for path in LOOPS.glob("yunikorn-*.json")))
def test_what_yunikorns_design_rules_out_does_not_happen_under_its_documented_rules(name: str) -> None:
    told = play(request(name))
    assert loops(told) == 0
    assert told.summary is not None
    assert told.summary.total.finished == 4
