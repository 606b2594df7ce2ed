"""Laws of every run, on small random clusters and traces, under each engine."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.answering.answers import answer
from app.answering.sources import Compiled, nothing_stored
from app.simulations.core import state as records
from app.simulations.core.run import run
from app.simulations.core.scenario import scenario_of
from app.simulations.core.sink import Asked, time_of
from app.simulations.core.world import World
from app.simulations.schemas import Event, SimulationRequest, Spread, Trace
from app.solver.engines.kueue.rounds import KueueRounds
from app.solver.engines.yunikorn.engine import YuniKornRounds
from app.solver.model.base import micros, parse_quantity
from app.solver.model.kueue import Ask as KueueAsk
from app.solver.model.problems import InvalidInput
from app.solver.rounds import Ahead, Outcome
from tests.properties.recount import Recount, S
from tests.properties.runs import ASKED, ENGINES, contended, crowded, flavored, noting, requests, told_after_asked
from tests.support.bounds import Bounded
from tests.support.profiles import Met, examples
from tests.unit.simulations.running import Told, as_asked, play, told_again, unheard, without_hopeless

Observed = tuple[Asked, int]
LATER = datetime(2030, 1, 1, tzinfo=UTC)
CELLS = ("cpu", "gpu")


@pytest.fixture(scope="module", autouse=True)
def _whole_states_now_and_then() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        Bounded(patch)(records, LEAST_BYTES=1000)
        yield


@pytest.mark.parametrize("engine", ENGINES)
def test_the_laws_of_a_run(engine: str) -> None:
    most = 12 if engine == "ytsaurus" else 40  # it has a round every second while anybody waits

    @given(requests([engine]))
    @examples(most)
    def check(request: SimulationRequest) -> None:
        told, rounds = observed(request)
        _every_round_can_be_posted(told, rounds)
        _rounds_tell_what_events_tell(told, rounds, request)
        assert told_again(request, told) == [asked.request() for asked, _ in rounds]
        _events_counted_give_the_summary(told, rounds, request)
        assert as_asked(request).bytes() == told.bytes()

    check()


@given(flavored())
@examples(40)
def test_what_a_cycle_of_kueue_leaves_behind_is_in_the_next_request(request: SimulationRequest) -> None:
    try:
        told, rounds = observed(request)
    except InvalidInput:
        return  # a job that no queue could ever hold
    _every_round_can_be_posted(told, rounds)
    assert told_again(request, told) == [asked.request() for asked, _ in rounds]
    assert as_asked(request).bytes() == told.bytes()
    left: dict[str, Any] = {}
    for line, (asked, _) in zip(told.rounds, rounds, strict=True):
        for ask in asked.question.asks:
            pending, scan = _carried(ask.kueue)
            assert not scan or scan == left.get(ask.id), "a scan goes on where an answer said it stopped"
            assert not pending or ask.id in left, "pending since an answer said so"
        for decision in asked.result.decisions:
            if decision.kueue is not None and not line.loop:  # else the answer was not carried out
                left[decision.ask] = _carried(decision.kueue)[1]


def test_a_round_of_kueue_that_is_plain_before_it_is_asked_comes_to_what_its_answer_says(met: Met) -> None:
    @given(crowded())
    @examples(60)
    def check(request: SimulationRequest) -> None:
        told, possible = list[Outcome](), without_hopeless(request)
        with pytest.MonkeyPatch.context() as patch:
            noting(patch, KueueRounds, "foreseen", told)
            as_asked(possible)
        met(outcome for outcome in told if outcome.evictions)

    check()


def test_cycles_of_kueue_that_lead_to_nothing_but_another_are_counted_where_nobody_hears_of_them(met: Met) -> None:
    @given(crowded())
    @examples(60)
    def check(request: SimulationRequest) -> None:
        idle, cycles = KueueRounds.idle, list[Hashable]()

        def counted(rounds: KueueRounds, ahead: Ahead[Any], now: int) -> Iterator[Hashable]:
            for carried in idle(rounds, ahead, now):
                cycles.append(carried)
                yield carried

        possible = without_hopeless(request)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KueueRounds, "idle", counted)
            _as_unheard(possible)
        met(cycles)

    check()


@pytest.mark.parametrize("engine", ["yunikorn", "kube-scheduler"])
def test_a_round_that_is_told_before_it_is_asked_comes_to_what_its_answer_says(met: Met, engine: str) -> None:
    @given(contended(engine))
    @examples(40)
    def check(request: SimulationRequest) -> None:
        told, possible = list[Outcome](), without_hopeless(request)
        with pytest.MonkeyPatch.context() as patch:
            noting(patch, World, "_foreseen", told)
            patch.setattr("app.solver.engines.yunikorn.seats._IN_VAIN", 0)
            as_asked(possible)
        met(told if engine != "yunikorn" else [outcome for outcome in told if outcome.evictions])

    check()


def test_rounds_of_yunikorn_that_time_alone_brings_about_are_counted_where_nobody_hears_of_them(met: Met) -> None:
    @given(contended("yunikorn"))
    @examples(60)
    def check(request: SimulationRequest) -> None:
        in_vain, rounds = YuniKornRounds.in_vain, list[int]()

        def counted(of: YuniKornRounds, ahead: Ahead[Any], now: int) -> bool:
            over = in_vain(of, ahead, now)
            rounds.extend([now] if over else [])
            return over

        possible = without_hopeless(request)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(YuniKornRounds, "in_vain", counted)
            told = _as_unheard(possible)
        assert set(rounds) <= {micros(line.at) for line in told.rounds}
        met(rounds)

    check()


def test_a_round_of_yunikorn_that_is_told_and_not_carried_out_changes_nothing(met: Met) -> None:
    @given(contended("yunikorn"))
    @examples(40)
    def check(request: SimulationRequest) -> None:
        foreseen, told, possible = YuniKornRounds.foreseen, list[Outcome](), without_hopeless(request)

        def twice(of: YuniKornRounds, ahead: Ahead[Any], now: int) -> Outcome | None:
            foreseen(of, ahead, now)
            return foreseen(of, ahead, now)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(YuniKornRounds, "foreseen", twice)
            noting(patch, YuniKornRounds, "foreseen", told)
            as_asked(possible)
        met(told)

    check()


@pytest.mark.parametrize("engine", ["kueue", "yunikorn", "kube-scheduler"])
def test_a_round_that_is_asked_in_between_changes_nothing(met: Met, engine: str) -> None:
    @given(crowded() if engine == "kueue" else contended(engine), st.integers(0, 2**32), ASKED)
    @examples(60)
    def check(request: SimulationRequest, seed: int, part: float) -> None:
        met(told_after_asked(request, seed, part))

    check()


def _as_unheard(request: SimulationRequest) -> Told:
    """The run, which comes to the same where nobody hears of its rounds."""
    unheard_of, told = unheard(request), as_asked(request)
    assert (unheard_of.events, unheard_of.jobs, unheard_of.summary) == (told.events, told.jobs, told.summary)
    return told


def _carried(block: KueueAsk | None) -> tuple[bool, Any]:
    scan = None if block is None else block.flavor_scan
    return block is not None and block.preemption_pending, None if scan is None else scan.flavors


def observed(request: SimulationRequest) -> tuple[Told, list[Observed]]:
    """A run; each round of it, as it was asked and answered, with the number of events before it."""
    told, found = Told(), list[Observed]()
    scenario = scenario_of(request, Compiled(None))
    told.summary = run(scenario, told, lambda: False, lambda asked: found.append((asked, len(told.events))))
    return told, found


def _every_round_can_be_posted(told: Told, rounds: list[Observed]) -> None:
    assert len(rounds) == len(told.rounds)
    for line, (asked, _) in zip(told.rounds, rounds, strict=True):
        answered = answer(asked.request(), LATER, nothing_stored())
        assert answered.body == asked.answer()
        assert answered.facts.state_digest == line.state
        assert msgspec.json.decode(answered.body).get("order") == line.order


def _rounds_tell_what_events_tell(told: Told, rounds: list[Observed], request: SimulationRequest) -> None:
    """Each round at a time of its own, or right after the one before; what it did, and for whom."""
    assert isinstance(request.round_every, int)
    assert [line.n for line in told.rounds] == list(range(1, len(rounds) + 1))
    for before, line in pairwise(told.rounds):
        assert line.at == before.at or (line.at - before.at).total_seconds() >= request.round_every
    done: defaultdict[int | None, list[Event]] = defaultdict(list)
    for event in told.events:
        done[event.round].append(event)
    assert not [event for event in done[None] if event.kind in ("started", "moved")]
    for line, (asked, _) in zip(told.rounds, rounds, strict=True):
        mine = done[line.n] if not line.loop else []
        assert {event.at for event in done[line.n]} <= {line.at}
        assert line.at == time_of(asked.question.now)
        assert line.admitted == list(dict.fromkeys(event.job for event in mine if event.kind == "started"))
        asks = {ask.partition("/")[0] for ask in line.asks}  # YuniKorn's are of single tasks
        assert asks.issuperset(line.admitted)
        evicted = Counter((event.job, event.queue, event.by, event.rule) for event in mine if event.kind == "evicted")
        asked_to = Counter((one.job, one.queue, one.by, one.rule) for one in line.evicted)
        assert evicted <= asked_to
        assert asked_to.total() - evicted.total() == sum(event.kind == "moved" for event in mine)
        assert {one.by for one in line.evicted} <= {None, *asks}


def _events_counted_give_the_summary(told: Told, rounds: list[Observed], request: SimulationRequest) -> None:
    """Each job is in one state at every moment and runs as long as it must; nobody starts where there is no room; and
    each round is asked of just what the events before it have left."""
    assert told.summary is not None
    engine = told.summary.engine
    recount = Recount(request, engine)
    times = [event.at for event in told.events]
    assert times == sorted(times)
    asked = iter([*rounds, None])
    coming = next(asked)
    for counted, event in enumerate(recount.count(told.events, micros(told.summary.end)), 1):
        if event.kind == "started":
            _there_is_room(recount, engine, event.queue or "")
        while coming is not None and coming[1] == counted:
            _asked_of_what_is_there(recount, engine, coming[0])
            coming = next(asked)
    assert coming is None
    _jobs_are_as_counted(told, recount, request)
    _queues_are_as_counted(told, recount)
    whole = recount.last is not None and recount.first is not None
    assert told.summary.makespan == ((recount.last or 0) - (recount.first or 0)) / S * whole


def _there_is_room(recount: Recount, engine: str, queue: str) -> None:
    """Now that something of ``queue`` has started. YTsaurus starts at once beside who is on the way out; what moves is
    counted where it goes at once, whoever leaves there yet."""
    on_nodes, in_queues = recount.held(leaving=engine != "ytsaurus")
    staying = recount.held(leaving=False)[0]
    on_nodes = {node: staying.get(node, 0) if node in recount.moved_to else held for node, held in on_nodes.items()}
    assert set(on_nodes) <= recount.nodes
    assert max(on_nodes.values(), default=0) <= 4
    bound = recount.bound(queue)
    assert bound is None or in_queues[queue] <= bound, (queue, in_queues)
    if engine == "kueue":
        assert in_queues[""] <= sum(recount.guaranteed(name) for name in recount.quotas)


def _asked_of_what_is_there(recount: Recount, engine: str, asked: Asked) -> None:
    """What runs where in the state, and who is asked for, as of when. YTsaurus knows only that a node is occupied by
    what goes; Kueue knows no tasks; YuniKorn asks for each."""
    phases = ("running",) if engine == "ytsaurus" else ("running", "leaving")
    there = Counter(
        (job, part.node) for job, parts in recount.parts.items() for part in parts.values() if part.phase in phases
    )
    state = asked.loaded.state
    assert there == Counter(
        (one.id, task.node) for one in state.workloads for task in (one.tasks[:1] if engine == "kueue" else one.tasks)
    )
    assert {node.name for node in state.nodes} == recount.nodes
    if engine == "ytsaurus":
        both, running = recount.held()[0], recount.held(leaving=False)[0]
        occupied = {name: 1000 * (held - running.get(name, 0)) for name, held in both.items()}
        assert {node.name: parse_quantity(node.occupied.get("cpu", 0), 1000) for node in state.nodes} == {
            name: occupied.get(name, 0) for name in recount.nodes
        }
    for ask in asked.question.asks:
        job, _, task = ask.id.partition("/")
        parts = recount.parts[job]
        assert "waiting" in [part.phase for name, part in parts.items() if not task or name in (task, None)], ask
        assert ask.created_at is not None
        assert micros(ask.created_at) == (parts[task].created if task in parts else recount.created[job])


def _jobs_are_as_counted(told: Told, recount: Recount, request: SimulationRequest) -> None:
    assert isinstance(request.trace, Trace)
    assert told.summary is not None
    assert told.summary.rounds == len(told.rounds)
    assert sorted(line.job for line in told.jobs) == sorted(recount.parts)
    kinds = Counter((event.job, event.kind) for event in told.events)
    times = {(event.job, event.kind): event.at for event in reversed(told.events) if event.task is None}
    first = {event.job: event.at for event in reversed(told.events) if event.kind == "started"}
    for line in told.jobs:
        counted, runs = recount.by_job[line.job], recount.runs(line.job)
        assert (line.starts, line.evictions) == (kinds[line.job, "started"], kinds[line.job, "evicted"])
        assert (line.ran, line.lost, line.overhead) == (
            sum(run.ran for run in runs) / S, sum(run.lost for run in runs) / S, sum(run.overhead for run in runs) / S,
        )  # fmt: skip
        assert (line.submitted_at, line.started_at) == (times[line.job, "submitted"], first.get(line.job))
        assert line.ended_at == (times[line.job, line.status] if line.status in ("finished", "cancelled") else None)
        assert (line.wait is None) == (line.started_at is None)
        assert line.wait is None or line.wait == (first[line.job] - line.submitted_at).total_seconds()
        if len(runs) == len(recount.parts[line.job]):
            assert line.waited == counted["waiting"] / S
        phases = {part.phase for part in recount.parts[line.job].values()}
        now = "running" if "running" in phases else "releasing" if "leaving" in phases else "waiting"
        assert line.status == now or line.ended_at is not None


def _queues_are_as_counted(told: Told, recount: Recount) -> None:
    assert told.summary is not None
    engine, queues = told.summary.engine, told.summary.queues
    assert queues.keys() - {"root"} == {name for name in recount.quotas if recount.counted[name].jobs}
    assert ("root" in queues) == (bool(recount.counted[""].jobs) and engine not in ("ytsaurus", "kube-scheduler"))
    for queue, totals in {"": told.summary.total, **queues}.items():
        counted = recount.counted["" if queue == "root" else queue]
        assert (totals.jobs, totals.finished, totals.cancelled, totals.evictions, totals.most_evictions) == (
            counted.jobs, counted.finished, counted.cancelled, counted.evictions, counted.most_evictions,
        )  # fmt: skip
        _spread_is_as_counted(totals.wait, [one / S for one in counted.waits])
        _spread_is_as_counted(totals.completion, [one / S for one in counted.completions])
        _spread_is_as_counted(totals.slowdown, counted.slowdowns)
        done, lost, overhead = ({**dict.fromkeys(CELLS, 0), **found} for found in (
            totals.work_done, totals.work_lost, totals.work_overhead,
        ))  # fmt: skip
        for cell in CELLS:
            assert totals.used.get(cell, 0) == pytest.approx(counted.held / S)
            assert lost[cell] == pytest.approx(counted.lost / S)
            ran = done[cell] + lost[cell] + overhead[cell]
            if engine == "kai":  # where too few tasks of a gang may run to make progress
                assert ran <= counted.running / S + 1e-6
            else:
                assert ran == pytest.approx(counted.running / S)
                assert done[cell] == pytest.approx(counted.done / S)
            if queue != "root":
                assert totals.shortfall.get(cell, 0) == pytest.approx(counted.short / S)
                assert totals.utilisation.get(cell, 0) == pytest.approx(
                    counted.held / counted.due if counted.due else 0
                )


def _spread_is_as_counted(told: Spread | None, values: Sequence[float]) -> None:
    assert (told is None) == (not values)
    if told is not None:
        found = sorted(values)
        assert told.max == found[-1]
        assert told.mean == pytest.approx(sum(found) / len(found))
        for share, value in ((50, told.p50), (90, told.p90), (99, told.p99)):
            assert sum(one <= value for one in found) * 100 >= share * len(found)
            assert sum(one < value for one in found) * 100 < share * len(found)


@given(requests(), st.randoms(use_true_random=False))
@examples(10)
def test_the_order_of_the_request_makes_no_difference(request: SimulationRequest, random: Any) -> None:
    trace = request.trace
    assert not isinstance(trace, str)
    jobs = list(trace.jobs)
    random.shuffle(jobs)
    nodes = list(reversed(request.state.nodes))
    other = replace(request, trace=replace(trace, jobs=jobs), state=replace(request.state, nodes=nodes))
    assert play(other).bytes() == play(request).bytes()
