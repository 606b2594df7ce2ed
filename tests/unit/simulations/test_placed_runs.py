"""Runs of the engines that place tasks, worked out by hand; and the law of rounds for each of them."""

import random
from datetime import UTC, datetime

import pytest

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.solver.model.problems import InvalidInput
from tests.support.placed_runs import NODES, configuration, mixed, queue
from tests.unit.simulations.running import job, play, played, request_for, rounds_of, told_again, watched

LATER = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus"])
@pytest.mark.parametrize("grace", [0, 3])
def test_every_round_can_be_posted_and_nobody_is_lost(engine: str, grace: int) -> None:
    request = request_for(configuration(engine), mixed(engine), state=NODES, grace=grace)
    told, rounds = play(request), rounds_of(request)
    assert told.summary is not None
    assert told.summary.total.finished == 9
    assert told.summary.total.evictions == len([e for e in told.events if e.kind == "evicted"]) > 0
    for asked in rounds:
        assert answer(asked.request(), LATER, nothing_stored()).body == asked.answer()
    for line in told.jobs:
        lasts = next(one["duration"] for one in mixed(engine) if one["ask"]["id"] == line.job)
        clocks = 2 if line.job.startswith("a") and engine != "kai" else 1
        assert line.ran == clocks * lasts + line.lost


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus", "kube-scheduler"])
@pytest.mark.parametrize("seed", range(3))
def test_a_round_that_nobody_watches_decides_as_one_that_is_watched(engine: str, seed: int) -> None:
    """Of more work than there is room for, of several sizes and priorities, or none."""
    draw = random.Random(seed)
    jobs = mixed(engine)
    for i in range(24):
        more = {"priority": draw.randrange(3)} if i % 4 else {}
        of = job(f"c{i}", queue(engine, draw.choice("ab")), draw.choice((1, 2, 4)), draw.randrange(90), 60, **more)
        of["ask"]["tasks"][0]["count"] = draw.choice((1, 1, 3))
        of["ask"]["preemptible"] = draw.random() < 0.8
        jobs.append(of)
    jobs.sort(key=lambda of: of["submitted_at"])
    request = request_for(configuration(engine), jobs, state=NODES, grace=2)
    told, rounds = watched(request)
    unwatched = play(request)
    assert (told.events, told.rounds, told.jobs) == (unwatched.events, unwatched.rounds, unwatched.jobs)
    assert told.summary == unwatched.summary
    assert told_again(request, told) == told_again(request, unwatched)
    assert any(len(asked.question.asks) > 8 for asked in rounds)


def test_yunikorn_waits_for_its_delay_and_then_reserves() -> None:
    jobs = [job("a", "root.a", 4, 0, 100), job("c", "root.a", 4, 0, 100), job("b", "root.b", 4, 5, 10)]
    jobs[0]["ask"]["preemptible"] = jobs[1]["ask"]["preemptible"] = True
    told = played(configuration("yunikorn"), jobs, state=NODES, grace=2)
    assert told.said()[4:] == [
        "5 submitted b", "35 evicted a", "37 released a", "37 started b", "47 finished b", "47 started a",
        "100 finished c", "147 finished a",
    ]  # fmt: skip


def test_ytsaurus_starves_for_its_timeout_and_then_preempts_and_runs_beside_who_goes() -> None:
    jobs = [job("a", "a", 1, 0, 100), job("b", "b", 4, 5, 10)]
    jobs[0]["ask"]["tasks"][0]["count"] = 8
    told = played(configuration("ytsaurus"), jobs, state=NODES, grace=2)
    said = told.said()[9:]
    at = said.index("35 started b")
    assert said[:at] == ["5 submitted b", *["35 evicted a"] * 4]
    assert said[at + 1 : at + 6] == [*["37 released a"] * 4, "45 finished b"]
    assert said[at + 6 : at + 10] == ["45 started a"] * 4
    assert said[-1] == "145 finished a"
    line = told.of("a")
    lost = 4 * 35.000001  # it starves once it has been below its share for longer than the timeout
    assert (line.ran, line.lost, line.evictions) == (8 * 100 + lost, lost, 4)


def test_kai_reclaims_and_binds_once_the_victim_is_gone() -> None:
    jobs = [job("a", "a", 4, 0, 100), job("c", "a", 4, 0, 100), job("b", "b", 4, 5, 10)]
    for one in jobs:
        one["ask"]["preemptible"] = True
    told = played(configuration("kai"), jobs, state=NODES, grace=2)
    assert told.said()[4:] == [
        "5 submitted b", "5 evicted c", "7 released c", "7 started b", "17 finished b", "17 started c",
        "100 finished a", "117 finished c",
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus"])
@pytest.mark.parametrize("grace", [0, 20])
def test_a_run_is_over_once_time_alone_can_change_nothing(engine: str, grace: int) -> None:
    """The large nodes go and stay away: what is left waits for ever, and is not asked for again and again meanwhile."""
    jobs = [job(f"{q}{i}", queue(engine, q), 3, 4 * i, 20 + i) for i in range(4) for q in "ab"]
    for one in jobs:
        one["ask"]["preemptible"] = True
    gone = [{"at": 40, "nodes": {"remove": ["n0"]}}, {"at": 47, "nodes": {"remove": ["n1"]}}]
    nodes = {"nodes": [*NODES["nodes"], {"name": "small", "capacity": {"cpu": 1, "gpu": 1}}]}
    hour, day = (
        played(configuration(engine), jobs, gone, state=nodes, grace=grace, until=until) for until in ("1h", "24h")
    )
    assert day.summary is not None
    assert 0 < day.summary.total.finished < len(jobs)
    assert hour.rounds == day.rounds


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus"])
def test_who_loses_a_node_is_told_by_name(engine: str) -> None:
    jobs = [job(name, queue(engine, "a"), 1, at, 50) for at, name in enumerate("dbca")]
    nodes = {"nodes": [NODES["nodes"][0]]}
    told = played(configuration(engine), jobs, [{"at": 9, "nodes": {"remove": ["n0"]}}], state=nodes, until=20)
    assert [line for line in told.said() if "evicted" in line] == [f"9 evicted {name}" for name in "abcd"]


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus"])
def test_a_run_is_over_with_the_last_of_its_jobs(engine: str) -> None:
    """Although time alone could have let the one that is given up preempt others."""
    jobs = [job(f"a{i}", queue(engine, "a"), 4, 0, 10) for i in range(3)]
    jobs.append(job("b", queue(engine, "b"), 4, 5, 10, cancelled_at=21))
    for one in jobs:
        one["ask"]["preemptible"] = True
    gone = [{"at": 11, "nodes": {"remove": ["n1"]}}, {"at": 20, "nodes": {"remove": ["n0"]}}]
    for changes in ([], gone):
        told = played(configuration(engine), jobs, changes, state=NODES)
        assert told.summary is not None
        assert told.summary.end == max(told.events[-1].at, told.rounds[-1].at), (engine, told.said())


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus"])
def test_what_never_fits_is_named_before_anything_runs(engine: str) -> None:
    """Also by YuniKorn, which lets it wait for ever; its tasks run each for itself, so that many may be too much."""
    large, many = job("large", queue(engine, "a"), 5, 0, 10), job("many", queue(engine, "a"), 4, 0, 10)
    many["ask"] |= {"tasks": [{"name": "main", "count": 3, "requests": {"cpu": 4}}], "min_available": 2}
    with pytest.raises(InvalidInput) as invalid:
        played(configuration(engine), [many, large], state=NODES)
    assert [problem.pointer for problem in invalid.value.problems] == ["/trace/jobs/1/ask"]
    assert invalid.value.problems[0].detail.startswith("can never run: ")


def test_a_pod_stays_nominated_while_nothing_of_its_job_runs_any_more() -> None:
    """The node of one of two goes, and it waits for somebody to leave; then the other's node goes too."""
    jobs = [job("low", "a", 4, 0, 100), job("two", "b", 4, 1, 10, priority=1)]
    jobs[1]["ask"]["tasks"][0]["count"] = 2
    gone = [{"at": 2, "nodes": {"remove": ["n1"]}}, {"at": 5, "nodes": {"remove": ["n2"]}}]
    nodes = {"nodes": [*NODES["nodes"], {"name": "n2", "capacity": {"cpu": 4}}]}
    ran = played(configuration("kube-scheduler"), jobs, gone, state=nodes, grace=20)
    assert ran.said()[8:] == [
        "2 evicted low", "5 evicted two", "5 released two", "5 node n2", "22 released low", "22 started two",
        "32 finished two", "32 started two", "42 finished two", "42 started low", "142 finished low",
    ]  # fmt: skip


def test_a_pod_that_waits_for_a_victim_to_go_says_nothing_of_another_that_is_like_it() -> None:
    """``high`` takes the node that ``one`` is nominated to; ``two``, who asks for the same, has the other."""
    jobs = [job("low", "a", 4, 0, 100), job("lower", "a", 4, 0, 100), job("one", "b", 4, 10, 10, priority=1)]
    jobs += [job("high", "b", 4, 12, 10, priority=5), job("two", "b", 4, 12, 10, priority=1)]
    ran = played(configuration("kube-scheduler"), jobs, state=NODES, grace=30)
    evicted = [(event.job, event.by) for event in ran.events if event.kind == "evicted"]
    assert evicted == [("low", "one"), ("lower", "two")]
