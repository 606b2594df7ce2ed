"""What rounds carry over, step by step: starvation, volumes, what heartbeats leave on nodes, when to look again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from app.solver import solve
from app.solver.engines.ytsaurus.engine import YtsaurusRounds
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, QueueState, State
from app.solver.rounds import Turn
from tests.unit.solver.engines.ytsaurus.cluster import alloc, node, operation, pool

Json = dict[str, Any]
SECOND, PAST = 1_000_000, 1
"""PAST: a timeout is over one microsecond after it."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
Y = operation("y", "b", [alloc(f"y{i}", i) for i in range(10)])
"""It fills a node of ten cpus, of which five are due to it once others want as many."""


def clock(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def waiting(count: int = 5, cpu: int = 1, of: str = "x") -> Ask:
    tasks = [{"name": f"{of}{i}", "requests": {"user_slots": 1, "cpu": cpu}} for i in range(count)]
    return msgspec.convert({"id": of, "queue": "a", "tasks": tasks}, Ask)


class World:
    """A state, the rounds on it, and what they carry into it."""

    def __init__(self, *operations: Json, pools: list[Json] | None = None, cpu: int = 10, **settings: Any) -> None:
        queues = [pool("a"), pool("b")] if pools is None else pools
        document = {"engine": "ytsaurus", "settings": {"ytsaurus": settings}, "queues": queues}
        configuration = msgspec.convert(document, Configuration)
        self.configured = solve.configure(configuration)
        self.rounds = YtsaurusRounds(self.configured.compiled, configuration, RunOptions())
        self.state = msgspec.convert({"nodes": [node(cpu=cpu), node("m", 0)], "workloads": operations}, State)

    def update(self, seconds: float, more: int = 0) -> Turn | None:
        """The update after so long, and so many microseconds ``more``; what it carries is in the state then."""
        loaded = solve.load(self.configured, self.state)
        turn = self.rounds.before(loaded.compiled, self.state, micros(clock(seconds)) + more)
        if turn is not None:
            said = {one.id: one for one in turn.workloads}
            workloads = [said.get(one.id, one) for one in self.state.workloads]
            self.state = replace(self.state, workloads=workloads, queues=self.state.queues | turn.queues)
        return turn

    def heartbeats(self, seconds: float) -> Turn:
        """A round after so long, with what it leaves on nodes; who starts or stops stays as it is."""
        ids = {one.id for one in self.state.workloads}
        question = self.rounds.question(micros(clock(seconds)), ids.__contains__)
        result = solve.planned(solve.load(self.configured, self.state), question)
        turn = self.rounds.answered(question, result, lambda _: False)
        nodes = {one.name: one for one in turn.nodes}
        self.state = replace(self.state, nodes=[nodes.get(one.name, one) for one in self.state.nodes])
        return turn

    def asked(self, of: str = "x") -> Ask:
        ids = {one.id for one in self.state.workloads}
        return next(one for one in self.rounds.question(0, ids.__contains__).asks if one.id == of)

    @property
    def wakes(self) -> float | None:
        at = self.rounds.wakes_at()
        return None if at is None else (at - PAST - micros(BEGIN)) / SECOND


def standing(of: Any) -> tuple[str | None, datetime | None]:
    return of.ytsaurus.starvation, of.ytsaurus.below_fair_share_since


def test_who_waits_below_its_share_starves_after_the_timeout_with_its_pool() -> None:
    world = World(Y)
    world.rounds.arrive(waiting())
    assert world.asked().ytsaurus is None
    before = world.rounds.version
    turn = world.update(10)
    assert turn is not None
    assert {name: standing(one) for name, one in turn.queues.items()} == {"a": ("non_starving", clock(10))}
    assert (turn.workloads, standing(world.asked())) == ([], ("non_starving", clock(10)))
    assert world.asked().workload is None
    assert (world.wakes, world.rounds.version) == (40, before + 1)
    assert world.update(11) is None, "nothing has changed"
    assert (world.wakes, world.rounds.version) == (40, before + 1)
    assert world.update(40) is None
    turn = world.update(40, PAST)
    assert turn is not None
    assert {name: standing(one) for name, one in turn.queues.items()} == {"a": ("starving", clock(10))}
    assert standing(world.asked()) == ("starving", clock(10))
    assert (world.wakes, world.rounds.version) == (None, before + 2)
    world.rounds.leave("x")
    world.rounds.arrive(waiting())
    assert world.asked().ytsaurus is None, "it comes as a new one"


def test_the_standing_of_those_who_wait_is_news_too() -> None:
    """Pools can't starve, so that nothing is carried in the state; without nodes nobody is due anything."""
    world = World(Y, enable_pool_starvation=False)
    world.rounds.arrive(waiting())
    version = world.rounds.version
    assert world.update(0) is None
    assert (standing(world.asked()), world.rounds.version) == (("non_starving", clock(0)), version + 1)
    world.state = replace(world.state, nodes=[], workloads=[])
    assert world.update(2) is None
    assert (world.asked().ytsaurus, world.rounds.version) == (None, version + 2)


def test_those_who_wait_are_served_in_the_order_in_which_they_are_asked_for() -> None:
    """Of two operations as old as each other a FIFO pool serves the first, which alone is below its share then."""
    world = World(pools=[pool("a", ytsaurus={"mode": "fifo"}), pool("b")])
    world.rounds.arrive(waiting(10, of="x2"))
    world.rounds.arrive(waiting(10, of="x1"))
    world.update(0)
    assert standing(world.asked("x1")) == ("non_starving", clock(0))
    assert world.asked("x2").ytsaurus is None


def test_who_runs_already_carries_its_standing_in_the_state_beside_its_other_options() -> None:
    x = operation("x", "a", [alloc("x9", cpu=1)], ytsaurus={"is_gang": True, "starvation": "non_starving"})
    world = World(x, Y, cpu=11)
    world.rounds.arrive(waiting())
    turn = world.update(0)
    assert turn is not None
    assert [(one.id, standing(one)) for one in turn.workloads] == [("x", ("non_starving", clock(0)))]
    assert turn.workloads[0].ytsaurus is not None
    assert turn.workloads[0].ytsaurus.is_gang
    assert (world.asked().workload, world.asked().ytsaurus) == ("x", None)
    assert world.update(5) is None
    turn = world.update(31)
    assert turn is not None
    assert [(one.id, standing(one)) for one in turn.workloads] == [("x", ("starving", clock(0)))]
    world.rounds.leave("x")
    turn = world.update(32)
    assert turn is not None
    assert [(one.id, standing(one)) for one in turn.workloads] == [("x", ("non_starving", None))]


def test_a_pool_that_starved_and_has_its_share_is_quiet_again() -> None:
    world = World()
    starving = msgspec.convert({"ytsaurus": {"starvation": "starving"}}, QueueState)
    quiet = msgspec.convert({"ytsaurus": {"starvation": "non_starving"}}, QueueState)
    world.state = replace(world.state, queues={"a": starving, "b": quiet})
    turn = world.update(0)
    assert turn is not None
    assert {name: standing(one) for name, one in turn.queues.items()} == {"a": ("non_starving", None)}
    assert world.update(1) is None


def test_volumes_are_refilled_from_update_to_update() -> None:
    """A tenth of a hundred cpus flows in, saved from the first update on."""
    integral = {"guarantee_type": "relaxed", "resource_flow": {"cpu": 10}}
    world = World(cpu=100, pools=[pool("p", ytsaurus={"integral_guarantees": integral}), pool("q")])
    for seconds, saved in ((0, 0.0), (60, 600.0), (90, 900.0)):
        turn = world.update(seconds)
        assert turn is not None
        assert list(turn.queues) == ["p"]
        block = turn.queues["p"].ytsaurus
        assert block is not None
        assert (block.accumulated_volume or {})["cpu"] == saved
        assert block.last_share_ratio == 0.0


def starving(need: int) -> World:
    """x starves since 30 s and wants ``need`` cpus, of which five could be preempted."""
    world = World(Y)
    world.rounds.arrive(waiting(1, need))
    world.update(0)
    world.update(31)
    return world


def times(of: Node) -> tuple[datetime | None, datetime | None]:
    assert of.ytsaurus is not None
    return of.ytsaurus.last_preemptive_scheduling_at, of.ytsaurus.overcommit_since


def test_what_was_tried_in_vain_is_tried_again_once_something_has_changed_and_the_backoff_is_over() -> None:
    world = starving(6)
    turn = world.heartbeats(31)
    assert [(one.name, times(one)) for one in turn.nodes] == [("n", (clock(31), None)), ("m", (clock(31), None))]
    assert world.wakes is None, "nothing has changed since"
    world.rounds.freed("b")
    world.update(33)
    assert world.heartbeats(33).nodes == [], "they were tried 2 s ago, and stay as they are"
    assert world.wakes == 36
    world.update(36, PAST)
    world.heartbeats(37)
    assert world.wakes is None


def test_what_a_round_did_itself_is_news_for_the_next() -> None:
    world = starving(3)
    turn = world.heartbeats(31)
    assert (len(turn.evicted), [one.job for one in turn.started]) == (3, ["x"])
    assert world.wakes == 36


def test_where_nobody_starves_nobody_looks_again() -> None:
    world = World(Y)
    world.rounds.arrive(waiting(1, 6))
    world.update(0)
    world.heartbeats(0)
    world.rounds.freed("b")
    world.update(2)
    world.heartbeats(2)
    assert world.wakes == 30, "when x begins to starve"


def test_an_overcommit_is_looked_at_again_when_it_has_lasted_too_long() -> None:
    """y uses 12 cpus of 10, and all of it is protected; x would starve later."""
    y = operation("y", "b", [alloc(f"y{i}", i) for i in range(12)])
    world = World(y, non_preemptible_resource_usage_threshold={"cpu": 100})
    world.rounds.arrive(waiting())
    world.update(0)
    turn = world.heartbeats(1)
    assert [(one.name, times(one)) for one in turn.nodes] == [("n", (clock(1), clock(1))), ("m", (clock(1), None))]
    assert world.wakes == 16
    world.update(5)
    assert (world.heartbeats(5).nodes, world.wakes) == ([], 16)
    turn = world.heartbeats(17)
    assert [one.task for one in turn.evicted] == ["y10", "y11"]


def test_who_is_evicted_is_no_part_of_its_workload_any_more() -> None:
    world = World(Y)
    (y,) = world.state.workloads
    assert [one.name for one in world.rounds.evicting(y, "y3").tasks] == [f"y{i}" for i in range(10) if i != 3]
    assert world.rounds.evicting(y, None).tasks == []
