"""Rounds of YuniKorn: how tasks are asked for, who holds which node, and when time alone makes another cycle."""

import random
from typing import Any

import msgspec
import pytest

from app.simulations.schemas import SimulationRequest
from app.solver import solve
from app.solver.engines.yunikorn.ahead import Line
from app.solver.engines.yunikorn.configuration import compile_configuration
from app.solver.engines.yunikorn.engine import YuniKornRounds
from app.solver.model import yunikorn as wire
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, State, Workload
from app.solver.rounds import Turn
from tests.support.yunikorn_world import queue
from tests.unit.simulations.running import as_asked, unheard

Json = dict[str, Any]
SECOND = 1_000_000
NOW = 1_000_000 * SECOND
NODES = [Node(name=name, capacity={"cpu": 4}) for name in ("m", "n")]


def configuration(delay: str = "10s") -> Configuration:
    queues = [queue("root"), queue("root.a", preemption_delay=delay), queue("root.b")]
    return msgspec.convert({"engine": "yunikorn", "queues": queues}, Configuration)


def job(name: str, *tasks: str, age: float = 60, **more: Any) -> Ask:
    """A job ``age`` seconds old at NOW; without ``tasks`` one of its own name."""
    wanted = [{"name": task} for task in tasks or (name,)]
    created = to_datetime(NOW - round(age * SECOND))
    return msgspec.convert({"id": name, "queue": "root.a", "created_at": created, "tasks": wanted, **more}, Ask)


def opened(*jobs: Ask, delay: str = "10s") -> YuniKornRounds:
    of = configuration(delay)
    rounds = YuniKornRounds(compile_configuration(of), of, RunOptions())
    for one in jobs:
        rounds.arrive(one)
    return rounds


def answered(rounds: YuniKornRounds, seconds: float = 0, **said: Any) -> Turn:
    """A cycle ``seconds`` after NOW. ``decided``: (ask, outcome, node), in the order of the cycle, the others wait;
    ``tried``, ``triggered``: asks; ``checked``: when an ask was last tried; ``cancelled``: (node, ask); ``evicted``:
    tasks, of which ``going`` are on their way out already."""
    question = rounds.question(NOW + round(seconds * SECOND), nobody_runs)
    named = {name for name, _, _ in said.get("decided", ())}
    rest = [(one.id, "wait", None) for one in question.asks if one.id not in named]
    decided = [*said.get("decided", ()), *rest]
    asks: dict[str, Json] = {one.id: {} for one in question.asks}
    for name, after in said.get("checked", {}).items():
        asks[name]["last_preemption_check_at"] = to_datetime(NOW + round(after * SECOND))
    for name in said.get("tried", ()):
        asks[name]["last_preemption_check_at"] = to_datetime(question.now)
    for name in said.get("triggered", ()):
        asks[name]["triggered_preemption"] = True
    answer: Json = {
        "decisions": [
            {"ask": name, "outcome": kind, "node": node, "victims": [], "conditions": []}
            for name, kind, node in reversed(decided)
        ],
        "order": [name for name, _, _ in decided],
        "plan": {
            "evictions": [
                {"workload": "w", "task": t, "queue": "root.b", "reason": "r"} for t in said.get("evicted", ())
            ],
            "placements": [],
        },
        "notes": {
            "asks": asks,
            "cancelled_reservations": [{"node": node, "ask": name} for node, name in said.get("cancelled", ())],
        },
    }
    going = said.get("going", ())
    return rounds.answered(question, msgspec.convert(answer, Result), lambda one: one.task in going)


def nobody(eviction: PlannedEviction) -> bool:
    del eviction
    return False


def wakes(rounds: YuniKornRounds) -> float | None:
    """Seconds after NOW."""
    instant = rounds.wakes_at()
    return None if instant is None else (instant - NOW) / SECOND


def asked(rounds: YuniKornRounds) -> dict[str, list[str]]:
    return {one.id: [task.name for task in one.tasks] for one in rounds.question(NOW, nobody_runs).asks}


def nobody_runs(name: str) -> bool:
    del name
    return False


def holds(turn: Turn) -> list[tuple[str, str]]:
    return [(held.node, held.ask.id) for held in turn.reservations or []]


def test_every_task_is_an_ask_of_its_own_named_for_its_job() -> None:
    rounds = opened(job("y", "u", "t", workload="other"), job("x", "only"))
    question = rounds.question(NOW, lambda name: name == "y")
    assert (question.now, question.mode, question.options) == (NOW, "cycle", Options())
    assert [(one.id, one.workload, [task.name for task in one.tasks]) for one in question.asks] == [
        ("x", None, ["only"]), ("y/t", "y", ["t"]), ("y/u", "y", ["u"]),
    ]  # fmt: skip
    assert [one.workload for one in rounds.question(NOW, nobody_runs).asks] == [None] * 3
    assert [one.queue for one in question.asks] == ["root.a"] * 3
    assert [rounds.job_of(name) for name in ("x", "y/t", "y/u")] == ["x", "y", "y"]


def test_a_task_that_starts_is_asked_for_no_longer_and_keeps_its_name_when_it_comes_again() -> None:
    whole = job("x", "t", "u")
    rounds = opened(whole, job("y"))
    turn = answered(rounds, decided=[("x/u", "admit", "n")], checked={"x/t": 0})
    assert [(one.job, [(t.name, t.node, t.state, t.started_at) for t in one.tasks]) for one in turn.started] == [
        ("x", [("u", "n", "running", to_datetime(NOW))])
    ]
    assert asked(rounds) == {"x/t": ["t"], "y": ["y"]}
    assert [task.name for task in rounds.waiting["x"].tasks] == ["t"]
    rounds.arrive(whole)
    blocks = {one.id: one.yunikorn for one in rounds.question(NOW, nobody_runs).asks}
    assert blocks["x/u"] is None, "it comes as a new one"
    assert blocks["x/t"] == wire.Ask(last_preemption_check_at=to_datetime(NOW)), "it goes on waiting"
    answered(rounds, 1, decided=[("x/t", "admit", "n"), ("x/u", "admit", "m")])
    assert (asked(rounds), list(rounds.waiting), rounds.job_of("x/u")) == ({"y": ["y"]}, ["y"], "x")
    rounds.arrive(job("x", "u"))
    assert asked(rounds) == {"x/u": ["u"], "y": ["y"]}


def test_who_leaves_is_forgotten_and_may_come_back_under_another_name() -> None:
    rounds = opened(job("x", "t", "u", age=0), job("y"))
    turn = answered(rounds, decided=[("x/t", "preempt", "n"), ("y", "preempt", "m")], triggered=["x/t", "y"])
    assert (holds(turn), wakes(rounds)) == ([("n", "x/t"), ("m", "y")], 10)
    rounds.leave("x")
    rounds.leave("x")
    assert (asked(rounds), wakes(rounds)) == ({"y": ["y"]}, None)
    with pytest.raises(KeyError):
        rounds.job_of("x/t")
    rounds.arrive(job("x", "t"))
    assert (asked(rounds), rounds.job_of("x")) == ({"x": ["t"], "y": ["y"]}, "x")
    assert holds(answered(rounds, 1)) == [("m", "y")]


def test_a_job_that_has_started_whole_leaves_when_it_is_done() -> None:
    rounds = opened(job("x"))
    answered(rounds, decided=[("x", "admit", "n")])
    assert (rounds.waiting, rounds.job_of("x")) == ({}, "x")
    rounds.leave("x")
    with pytest.raises(KeyError):
        rounds.job_of("x")


def test_a_reservation_says_what_its_ask_has_done() -> None:
    """Only one that triggered preemption keeps its node against any priority, and what it asks for counts as its own
    until it comes."""
    rounds = opened(job("x"))
    turn = answered(rounds, decided=[("x", "preempt", "n")], triggered=["x"], tried=["x"])
    assert holds(turn) == [("n", "x")]
    assert turn.reservations is not None
    block = turn.reservations[0].ask.yunikorn
    assert block == wire.Ask(last_preemption_check_at=to_datetime(NOW), triggered_preemption=True)
    assert rounds.question(NOW, nobody_runs).asks[0].yunikorn == block
    assert answered(rounds, 1, triggered=["x"]).reservations is None, "as it was"


def test_reservations_end_with_their_node_by_giving_way_and_when_their_ask_is_placed() -> None:
    rounds = opened(*(job(name) for name in "vxyz"))
    pairs = [("n", "v"), ("n", "x"), ("m", "y"), ("m", "z")]
    held = [holds(answered(rounds, i, decided=[(name, "preempt", n)])) for i, (n, name) in enumerate(pairs)]
    assert held == [pairs[:1], pairs[:2], pairs[:3], pairs]
    version = rounds.version
    assert answered(rounds, 5).reservations is None
    assert rounds.version == version, "nothing came of it"
    assert holds(answered(rounds, 6, cancelled=[("n", "v")])) == pairs[1:]
    assert rounds.version == version + 1
    assert holds(answered(rounds, 7, decided=[("z", "admit", "n")])) == pairs[1:3]
    assert rounds.version == version + 2
    of = configuration()
    rounds.changed(compile_configuration(of), of, NODES[1:])
    assert rounds.version == version + 3
    assert holds(answered(rounds, 8)) == [("n", "x")]
    rounds.leave("x")
    assert answered(rounds, 9).reservations == []


def test_who_goes_already_is_not_evicted_again() -> None:
    rounds = opened(job("x"))
    version = rounds.version
    turn = answered(rounds, evicted=["t", "u"], going=["u"])
    assert [one.task for one in turn.evicted] == ["t"]
    assert rounds.version == version + 1
    turn = answered(rounds, 1, evicted=["u"], going=["u"])
    assert (turn.evicted, rounds.version) == ([], version + 1)


def test_what_is_preempted_is_called_so_while_it_goes() -> None:
    running = {"id": "w", "queue": "root.b", "tasks": [{"name": "a"}, {"name": "b"}]}
    left = opened().evicting(msgspec.convert(running, Workload), "b")
    assert [task.state for task in left.tasks] == ["running", "preempted"]
    assert (YuniKornRounds.unit, YuniKornRounds.infeasible) == ("task", False)


def test_an_ask_wakes_when_its_queues_delay_is_over() -> None:
    """Ten seconds, counted from its own birth, else its job's; the first that is due counts."""
    rounds = opened(job("x", age=4), job("y", age=1))
    assert wakes(rounds) is None, "nobody has been asked for yet"
    answered(rounds)
    assert wakes(rounds) == 6
    answered(rounds, 6)
    assert wakes(rounds) == 9
    answered(rounds, 9)
    assert wakes(rounds) is None
    own = [{"name": "t", "created_at": to_datetime(NOW - 3 * SECOND)}]
    rounds = opened(job("x", age=1, tasks=own))
    answered(rounds)
    assert wakes(rounds) == 7
    rounds = opened(job("x", created_at=None))
    answered(rounds)
    assert wakes(rounds) is None, "older than everything"


@pytest.mark.parametrize(("delay", "micro"), [("1500ns", 2), ("2us", 2), ("2001ns", 3), ("1ns", 1)])
def test_a_delay_is_over_at_the_first_microsecond_that_is_not_before_its_end(delay: str, micro: int) -> None:
    rounds = opened(job("x", age=0), delay=delay)
    answered(rounds)
    assert rounds.wakes_at() == NOW + micro


def test_who_may_not_preempt_or_has_done_so_needs_no_time() -> None:
    rounds = opened(job("x", age=0, preemption_policy="Never"), job("y", age=0))
    answered(rounds, triggered=["y"])
    assert wakes(rounds) is None
    rounds = opened(job("x", age=0))
    answered(rounds)
    assert wakes(rounds) == 10
    answered(rounds, 1, triggered=["x"])
    assert wakes(rounds) is None


def test_the_delay_that_counts_is_that_of_the_settings_as_they_are() -> None:
    rounds = opened(job("x", age=0))
    of = configuration("20s")
    rounds.changed(compile_configuration(of), of, NODES)
    answered(rounds)
    assert wakes(rounds) == 20


def test_what_was_tried_in_vain_is_tried_again_after_15_seconds_where_something_has_changed() -> None:
    rounds = opened(job("x"))
    answered(rounds, tried=["x"])
    assert wakes(rounds) is None
    answered(rounds, 1, checked={"x": 0})
    assert wakes(rounds) is None, "nothing has changed since"
    rounds.freed("root.b")
    answered(rounds, 2, checked={"x": 0})
    assert wakes(rounds) == 15
    answered(rounds, 3, checked={"x": 0})
    assert wakes(rounds) == 15, "still"
    answered(rounds, 15, tried=["x"])
    assert wakes(rounds) is None, "and once"
    answered(rounds, 16, checked={"x": 15})
    assert wakes(rounds) is None


def test_what_the_cycle_did_that_tried_it_is_news() -> None:
    """x is tried in vain; then y starts, which is known only to the next cycle."""
    rounds = opened(job("x"), job("y"))
    answered(rounds, tried=["x"], decided=[("y", "admit", "n")])
    assert wakes(rounds) is None
    answered(rounds, 1, checked={"x": 0})
    assert wakes(rounds) == 15
    rounds.arrive(job("z"))
    answered(rounds, 15, tried=["x"], decided=[("z", "admit", "n")])
    assert wakes(rounds) is None, "15 seconds are over, and it has been tried"


def test_an_ask_that_comes_again_has_tried_nothing() -> None:
    rounds = opened(job("x"))
    answered(rounds, tried=["x"])
    rounds.freed("root.b")
    answered(rounds, 2, checked={"x": 0})
    assert wakes(rounds) == 15
    answered(rounds, 3, decided=[("x", "admit", "n")])
    assert wakes(rounds) is None
    rounds.arrive(job("x", age=-3))
    answered(rounds, 3)
    assert wakes(rounds) == 13


def test_a_node_held_by_who_evicted_for_it_counts_as_its_own_in_the_next_round() -> None:
    """b holds all eight cpus, a is due two of them. x evicts for them; while its victim is on its way out, y has no
    claim left, and evicts nobody."""
    quota = {"cpu": 2}
    queues = [queue("root"), queue("root.a", quota, preemption_delay="1s"), queue("root.b")]
    of = msgspec.convert({"engine": "yunikorn", "queues": queues}, Configuration)
    rounds = YuniKornRounds(compile_configuration(of), of, RunOptions())
    tasks = [{"name": f"t{i}", "node": "mn"[i % 2], "requests": {"cpu": 2}} for i in range(4)]
    state = State(nodes=NODES, workloads=[msgspec.convert({"id": "w", "queue": "root.b", "tasks": tasks}, Workload)])
    for name in "xy":
        rounds.arrive(job(name, tasks=[{"name": name, "requests": {"cpu": 2}}], age=60 if name == "x" else 0))
    configured = solve.configure(of)
    evicted: list[list[str | None]] = []
    for seconds in (0, 1):
        question = rounds.question(NOW + seconds * SECOND, nobody_runs)
        turn = rounds.answered(question, solve.planned(solve.load(configured, state), question), nobody)
        evicted.append([one.task for one in turn.evicted])
        left = [rounds.evicting(state.workloads[0], one.task) for one in turn.evicted] or state.workloads
        held = state.reservations if turn.reservations is None else turn.reservations
        state = State(nodes=NODES, workloads=left, reservations=held)
    assert [len(one) for one in evicted] == [1, 0]
    assert [held.ask.id for held in state.reservations] == ["x"]


def test_whoever_looks_in_vain_takes_turns_with_more_than_may_look_in_one_cycle() -> None:
    """Those that looked in one cycle come back between those that have not had their turn: sixty ask for two places,
    by priorities in no order, and each of two queues may look ten times a cycle. Whether rounds are told or asked."""
    for seed in range(2):
        rng = random.Random(seed)
        queues = [queue("root"), *(queue(f"root.{name}") | {"quota": {"cpu": {"guaranteed": 1}}} for name in "ab")]
        jobs = [
            {
                "ask": {
                    "id": f"j{i}", "queue": f"root.{rng.choice('ab')}", "priority": rng.randint(0, 9),
                    "tasks": [{"name": "t", "requests": {"cpu": 1}}],
                },
                "submitted_at": rng.randint(0, 90), "duration": rng.randint(2, 30),
            }
            for i in range(60)
        ]  # fmt: skip
        body = {
            "configuration": {"engine": "yunikorn", "queues": queues}, "trace": {"jobs": jobs}, "until": 600,
            "state": {"nodes": [{"name": "n", "capacity": {"cpu": 2}}]}, "start": to_datetime(NOW),
        }  # fmt: skip
        request = msgspec.convert(body, SimulationRequest)
        told, unheard_of = as_asked(request), unheard(request)
        assert (unheard_of.events, unheard_of.jobs, unheard_of.summary) == (told.events, told.jobs, told.summary)


def test_who_is_awake_between_those_that_leave_a_line_stays() -> None:
    """Of three that leave the second rests, and one that stays is awake in its place."""
    line = Line.__new__(Line)
    everybody: list[Any] = [((0, i, f"j{i}"), f"j{i}") for i in range(6)]
    line.members, line.awake = list(everybody), [everybody[i] for i in (1, 2, 4, 5)]
    line.leave([everybody[i][0] for i in (1, 3, 4)])
    assert [name for _, name in line.members] == ["j0", "j2", "j5"]
    assert [name for _, name in line.awake] == ["j2", "j5"]
    line.leave([everybody[i][0] for i in (2, 5)])
    assert (line.members, line.awake) == ([everybody[0]], [])
