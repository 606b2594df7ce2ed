"""Bodies made to cost more than their length: what they cost grows as they do, so that no worker is stuck with one."""

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from app.answering.comparison import refuse_duplicates
from app.answering.sources import Compiled
from app.base.decoding import decode
from app.base.errors import BadInput
from app.formats import export
from app.simulations.accepting import variant_names
from app.simulations.core.scenario import variants_of
from app.simulations.schemas import SimulationRequest
from app.solver import check, solve
from app.solver.apply import Index, delta_of
from app.solver.delta import apply_delta, in_delta
from app.solver.engine import ENGINES
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, Placement, Plan, PlannedEviction
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, Delta, State, Task, Workload
from app.solver.question import Question, stoppable
from tests.support.countdown import Countdown, Stopped

LINEAR = 24.0
"""Times as long that eight times as much may take: about 8 where the time is linear, 64 where it is quadratic."""
QUEUES = {"q"}
Work = Callable[[], object]


def _state(**fields: Any) -> State:
    return msgspec.convert(fields, State)


def _removed(count: int) -> Work:
    """The first half of a state goes: of a list, each one that goes moves all that follow."""
    nodes: list[Any] = [{"name": str(i), "capacity": {}} for i in range(count)]
    workloads = [{"id": str(i), "queue": "q"} for i in range(count)]
    state = _state(nodes=nodes, workloads=workloads)
    half = {"remove": [str(i) for i in range(count // 2)]}
    delta = msgspec.convert({"generation": 1, "nodes": half, "workloads": half}, Delta)
    index = Index(state)

    def work() -> None:
        new, after, _ = apply_delta(state, index, delta)
        assert [node.name for node in new.nodes] == [workload.id for workload in new.workloads]
        assert after.workloads[str(count - 1)] == len(new.workloads) - 1 == count - 1 - count // 2

    return work


def _all_wrong(count: int) -> Work:
    """Everything that a delta brings is in no queue, and each is named where it was sent."""
    state = _state()
    add = [{"id": str(i), "queue": "nowhere"} for i in range(count)]
    delta = msgspec.convert({"generation": 1, "workloads": {"add": add}}, Delta)

    def work() -> None:
        new = apply_delta(state, Index(state), delta)[0]
        problems = list(in_delta(check.state_problems(QUEUES, new), new, delta))
        assert problems[-1].pointer == f"/workloads/add/{count - 1}/queue"

    return work


def _task_by_task(count: int) -> Work:
    """Every task of one workload is evicted by itself, every unit of one ask placed by itself."""
    state = _state(workloads=[{"id": "w", "queue": "q", "tasks": [{"name": f"t{i}"} for i in range(count)]}])
    ask = Ask(id="a", queue="q", tasks=[Task(name="t", count=count)])
    evictions = [PlannedEviction(workload="w", task=f"t{i}", queue="q", reason="r") for i in range(count)]
    placements = [Placement(ask="a", task="t", node="n", pipelined=False) for _ in range(count)]
    plan = Plan(evictions=evictions, placements=placements)
    decision = Decision(ask="a", outcome="preempt", victims=[], conditions=[])

    def work() -> None:
        delta = delta_of(state, Index(state), 1, [ask], [decision], plan, 0)
        (left,), (added,) = delta.workloads.change, delta.workloads.add
        assert left.tasks == []
        assert [task.name for task in added.tasks] == [f"t-{i}" for i in range(count)]

    return work


def _devices(count: int) -> Work:
    """A pod runs on shares of many GPUs, and another one wants as many."""
    task = {"name": "t", "gpu_devices": count, "requests": {"gpu": "0.5"}}
    node = {"name": "n", "capacity": {"cpu": 1, "gpu": 2 * count}}
    running = {"id": "w", "queue": "q", "tasks": [{**task, "node": "n"}]}
    queue = {"name": "q", "quota": {"gpu": {"guaranteed": 2 * count}}}
    loaded = solve.load(
        solve.configure(msgspec.convert({"engine": "kai", "queues": [queue]}, Configuration)),
        _state(nodes=[node], workloads=[running]),
    )
    ask = msgspec.convert({"id": "a", "queue": "q", "tasks": [task]}, Ask)

    def work() -> None:
        assert solve.decide(loaded, Question(0, [ask], "cycle")).decisions[0].outcome == "admit"

    return work


def _deep(count: int) -> Work:
    """A queue at the greatest depth, with many below it."""
    queues = [{"name": "p0"}, *({"name": f"p{i}", "parent": f"p{i - 1}"} for i in range(1, 256))]
    queues += [{"name": str(i), "parent": "p255"} for i in range(count)]
    configuration = msgspec.convert({"queues": queues}, Configuration)

    def work() -> None:
        assert check.configuration_problems(configuration) == []

    return work


def _variants(count: int) -> Work:
    """Many variants of one request, each with a name of its own."""
    job: dict[str, Any] = {"ask": {"id": "j", "queue": "q", "tasks": []}, "submitted_at": 0, "duration": 1}
    variants = [{"name": str(i)} for i in range(count)]
    fields: dict[str, Any] = {
        "configuration": {"queues": [{"name": "q"}]},
        "trace": {"jobs": [job]},
        "variants": variants,
    }
    request = msgspec.convert(fields, SimulationRequest)
    assert request.variants is not None
    listed = request.variants

    def work() -> None:
        refuse_duplicates(listed)
        with pytest.raises(BadInput, match=f"{count} variants"):
            variant_names(request, 1)
        assert next(variants_of(request, Compiled(None)))[0] == "0"

    return work


def _criteria(count: int) -> Work:
    """One criterion of a queue's order, again and again."""
    preemption = {"workload_sorting": ["ByLowestPriority"] * count}
    queue = {"name": "q", "kueue": {"preemption": preemption}}
    configuration = msgspec.convert({"engine": "kueue", "queues": [queue]}, Configuration)

    def work() -> None:
        assert len(solve.findings(configuration)) == count - 1

    return work


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (_removed, 20_000),
        (_all_wrong, 1000),
        (_task_by_task, 1000),
        (_devices, 100),
        (_variants, 4000),
        (_criteria, 4000),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
def test_what_it_costs_grows_as_it_does(made: Callable[[int], Work], count: int) -> None:
    """In one of three tries: another process may hold up any of them, and what is quadratic fails in all."""
    assert any(_time(made(8 * count)) < LINEAR * _time(made(count)) for _ in range(3))


def _time(work: Work) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _many_queues(engine: str, count: int) -> Configuration:
    """All below one, where the engine has trees."""
    parent = {"kube-scheduler": None}.get(engine, "root")
    queues: list[dict[str, Any]] = [{"name": "root"}] if parent else []
    queues += [{"name": f"root.q{i}", "parent": parent, "quota": {"cpu": {"guaranteed": 1}}} for i in range(count)]
    return msgspec.convert({"engine": engine, "queues": queues}, Configuration)


ABOUT: dict[str, Callable[[Configuration], object]] = {
    "findings": solve.findings,
    "settings": lambda configuration: solve.effective_settings(solve.configure(configuration), None),
    "shares": lambda configuration: solve.shares(solve.load(solve.configure(configuration), State()), [], 0),
    "export": lambda configuration: export(configuration, configuration.engine or ""),
}


@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_told_of_a_configuration_costs_what_its_queues_do(engine: str, about: str) -> None:
    """Nothing that is told of one queue is worked out of all of them again."""
    few, many = (partial(ABOUT[about], _many_queues(engine, count)) for count in (500, 4000))
    assert any(_time(many) < LINEAR * _time(few) for _ in range(3))


def test_a_deep_tree_costs_what_a_flat_one_does() -> None:
    flat = msgspec.convert({"queues": [{"name": str(i)} for i in range(30_000)]}, Configuration)
    once = partial(check.configuration_problems, flat)
    assert any(_time(_deep(30_000)) < 10 * _time(once) for _ in range(3))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: decode(
            msgspec.json.encode({"state": {"workloads": [{"id": "w", "queue": "q"}] * 100}, "surprise": 1}),
            DecisionRequest,
        ),
        lambda: check.state_problems(set(), State(workloads=[Workload(id="w", queue="q")] * 100)),
        lambda: check.configuration_problems(msgspec.convert({"queues": [{"name": "q"}] * 100}, Configuration)),
    ],
    ids=["shape", "state", "configuration"],
)
def test_naming_what_is_wrong_ends_at_the_deadline(wrong: Callable[[], object]) -> None:
    with pytest.raises(Stopped), stoppable(Countdown(50)):
        wrong()


@pytest.mark.parametrize("engine", ["kueue", "yunikorn", "kai", "ytsaurus"])
def test_compiling_many_queues_ends_at_the_deadline(engine: str) -> None:
    queues = [{"name": "root"}, *({"name": f"q{i}", "parent": "root"} for i in range(100))]
    configuration = msgspec.convert({"engine": engine, "queues": queues}, Configuration)
    with stoppable(Countdown(len(queues) + 50)), pytest.raises(Stopped):  # the first hundred while it is checked
        solve.configure(configuration)


def _passed(work: Work) -> int:
    """Safe points on the way through ``work``."""
    many = 1 << 30
    left = Countdown(many)
    with stoppable(left):
        work()
    return many - left.left


def _nodes(engine: str, count: int) -> Work:
    """A state of nodes that nobody runs on."""
    configured = solve.configure(msgspec.convert({"engine": engine, "queues": [{"name": "q"}]}, Configuration))
    state = _state(nodes=[{"name": f"n{i}", "capacity": {"cpu": 1}} for i in range(count)])
    return lambda: solve.load(configured, state)


def _on_a_node(engine: str, queues: list[Any], count: int, **fields: Any) -> Work:
    """All that runs is on one node, and an ask for all of the node takes all of it."""
    tasks = [{"name": "t", "requests": {"cpu": 1}, "node": "n"}]
    queue = queues[-1]["name"]
    running = [{"id": f"w{i}", "queue": queue, "tasks": tasks} for i in range(count)]
    loaded = solve.load(
        solve.configure(msgspec.convert({"engine": engine, "queues": queues}, Configuration)),
        _state(nodes=[{"name": "n", "capacity": {"cpu": count}}], workloads=running),
    )
    task = {"name": "t", "requests": {"cpu": count}, **fields}
    ask = msgspec.convert({"id": "a", "queue": queue, "priority": 9, "tasks": [task]}, Ask)

    def work() -> None:
        decision = solve.decide(loaded, Question(0, [ask], explain="full")).decisions[0]
        assert len(decision.victims) == count

    return work


ROOTED = [{"name": "root"}, {"name": "root.q", "parent": "root"}]
LONG: dict[str, Callable[[int], Work]] = {
    "KAI's nodes": lambda count: _nodes("kai", count),
    "kube-scheduler's nodes": lambda count: _nodes("kube-scheduler", count),
    "who kube-scheduler takes, told in full": lambda count: _on_a_node("kube-scheduler", [{"name": "q"}], count),
    "who may go on YuniKorn's required node": lambda count: _on_a_node("yunikorn", ROOTED, count, required_node="n"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_pass_over_many_has_safe_points_for_many(name: str) -> None:
    few, many = (_passed(LONG[name](count)) for count in (20, 220))
    assert many - few >= 200 // 20
