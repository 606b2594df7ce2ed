"""Bounds on GPUs: never wrong where they say no, and KAI's own filter wrong in KAI's way."""

from random import Random

import msgspec

from app.solver.engine import Question
from app.solver.engines.kai.compile.configuration import compile_configuration
from app.solver.engines.kai.compile.state import compile_state
from app.solver.engines.kai.decide.budget import Budget
from app.solver.engines.kai.decide.cycle import Cycle, begin
from app.solver.engines.kai.decide.search.gpu_room import GpuRoom, Headroom
from app.solver.engines.kai.decide.trail import Trail
from app.solver.model.configuration import Configuration
from app.solver.model.instant import micros
from app.solver.model.request import DecisionRequest
from app.solver.model.state import State
from tests.kai_world import NOW, Json, Shape, cluster
from tests.unit.solver.engines.kai.case import ask, node, queue, workload


def cycle_of(body: Json) -> Cycle:
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    state = compile_state(compile_configuration(request.configuration), request.state)
    question = Question(micros(NOW), request.asks)
    return begin(state, question.asks, question.now, Budget(), Trail(), strict=False)


def body(nodes: list[Json], workloads: list[Json], *asks: Json) -> Json:
    queues = [queue("a", gpu=8)]
    return {
        "engine": "kai", "configuration": {"queues": queues}, "asks": list(asks),
        "state": {"nodes": nodes, "workloads": workloads}, "now": NOW.isoformat(),
    }  # fmt: skip


def test_the_filter_counts_what_is_given() -> None:
    overlay = cycle_of(
        body(
            [node("n"), node("m")],
            [workload("w", "a", "n", "n", "n"), workload("v", "a", "m")],
            ask("p", "a", 2, gpu=4),
        )
    ).overlay
    part = overlay.jobs.tasks[2]
    room = GpuRoom(overlay, part, overlay.nodes.gpu_free())
    assert not room.enough()
    room.give(overlay.jobs.tasks[0])
    assert not room.enough()
    room.need(part[:1])
    assert room.enough()
    room.need(part)
    room.give(overlay.jobs.tasks[1])
    assert room.enough()


def test_the_filter_fits_mixed_sizes_largest_first() -> None:
    mixed = ask("p", "a", 0) | {
        "tasks": [{"name": f"t{i}", "requests": {"gpu": gpu}} for i, gpu in enumerate((2, 3, 3))],
        "min_available": 3,
    }
    overlay = cycle_of(body([node("n", gpu=5), node("m", gpu=3)], [], mixed)).overlay
    assert GpuRoom(overlay, overlay.jobs.tasks[0], overlay.nodes.gpu_free()).enough()
    overlay = cycle_of(body([node("n", gpu=4), node("m", gpu=4)], [], mixed)).overlay
    assert not GpuRoom(overlay, overlay.jobs.tasks[0], overlay.nodes.gpu_free()).enough()


def test_pods_without_gpu_always_have_room() -> None:
    overlay = cycle_of(body([node("n", gpu=0)], [], ask("p", "a", 3, gpu=0))).overlay
    part = overlay.jobs.tasks[0]
    assert GpuRoom(overlay, part, overlay.nodes.gpu_free()).enough()
    assert Headroom(overlay, part, lambda _: None).enough([])


def test_headroom_is_never_wrong_where_it_says_no() -> None:
    """Evict some pods at random; where the gang then finds a place, headroom had said yes."""
    refused = agreed = 0
    for seed in range(400):
        random = Random(seed)
        cycle = cycle_of(cluster(seed, Shape(queues=2, nodes=4, workloads=12, asks=2, constraints=seed % 2 == 0)))
        overlay, placer = cycle.overlay, cycle.tools.placer
        for job in sorted(overlay.pending_jobs()):
            part = overlay.wanted(job)[0]
            headroom = Headroom(overlay, part, placer.allowed)
            running = [t for t in range(overlay.running_tasks) if overlay.status[t] == 1]
            victims = random.sample(running, min(len(running), random.randint(0, 6)))
            mark = overlay.checkpoint()
            for t in victims:
                overlay.evict(t)
            fits = placer.place_job(job, part, placer.everywhere, bind=False)
            overlay.rollback(mark)
            assert headroom.enough(victims) or not fits
            refused += not headroom.enough(victims)
            agreed += fits
    assert refused > 50
    assert agreed > 50
