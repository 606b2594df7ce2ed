"""What the pods of a state come to, summed by hand: by job, by node, by queue."""

from typing import Any

import msgspec
import pytest

from app.solver.engines.kai.configuration import compile_configuration
from app.solver.engines.kai.jobs import Portion, portion_of
from app.solver.engines.kai.state import Baseline, CompiledState, baseline, compile_state
from app.solver.model.configuration import Configuration
from app.solver.model.state import State, Task

QUEUES = [{"name": "top"}, {"name": "a", "parent": "top"}, {"name": "b", "parent": "top"}]
NODES = [
    {"name": "m", "capacity": {"cpu": 8, "memory": 800, "gpu": 2, "x": 5}},
    {"name": "n", "capacity": {"cpu": 4, "memory": 400, "gpu": 1}, "occupied": {"cpu": 1}},
]


def compiled(*workloads: Any) -> CompiledState:
    configuration = compile_configuration(msgspec.convert({"queues": QUEUES}, Configuration))
    return compile_state(configuration, msgspec.convert({"nodes": NODES, "workloads": list(workloads)}, State))


def summed(*workloads: Any) -> Baseline:
    return baseline(compiled(*workloads))


def task(name: str, node: str | None, state: str, **requests: Any) -> Any:
    return {"name": name, "state": state, "requests": requests, **({"node": node} if node else {})}


FIRST = {
    "id": "u", "queue": "a",
    "tasks": [
        task("runs", "m", "running", cpu=1, memory=100, gpu=1, x=2), task("runs too", "n", "running", cpu=1, memory=10),
        task("goes", "m", "releasing", cpu=2, gpu="0.5"), task("gone", "m", "released", cpu=3, memory=7),
    ],
}  # fmt: skip
SECOND = {"id": "v", "queue": "b", "preemptible": False, "tasks": [task("part", "n", "running", cpu=1, gpu="0.25")]}


def test_pods_count_for_their_job_their_node_and_every_queue_above() -> None:
    """Shares of a GPU count for queues; on a node devices keep them. What is being released is not free, it is idle's
    alone; what is gone is nowhere."""
    found = summed(FIRST, SECOND)
    assert (found.active, found.used, found.homeless) == ([2, 1], [3, 1], [])
    assert found.free == [[7000, 1000], [700, 390], [1000, 1000], [3, 0]]
    assert found.idle == [[5000, 1000], [700, 390], [1000, 1000], [3, 0]]
    assert found.allocated == [(3000, 110, 1250), (2000, 110, 1000), (1000, 0, 250)]
    assert found.fixed == [(1000, 0, 250), (0, 0, 0), (1000, 0, 250)]
    assert found.columns[:3] == [((0, 1000), (1, 100), (2, 1000), (3, 2)), ((0, 1000), (1, 10)), ((0, 2000),)]


def test_the_sums_are_worked_out_once() -> None:
    state = compiled(FIRST)
    assert baseline(state) is baseline(state)


@pytest.mark.parametrize(
    ("given", "gpus", "portion"),
    [
        ({}, 0, None), ({}, 1000, None), ({}, 1, Portion(1, 1, 0)), ({}, 999, Portion(1, 999, 0)),
        ({"gpu_devices": 3}, 250, Portion(3, 250, 0)), ({"gpu_memory": 500}, 0, Portion(1, 0, 500)),
        ({"gpu_memory": 500, "gpu_devices": 2}, 0, Portion(2, 0, 500)), ({"gpu_devices": 2}, 2000, None),
    ],
)  # fmt: skip
def test_shares_are_parts_or_memory_of_gpus(given: Any, gpus: int, portion: Portion | None) -> None:
    assert portion_of(Task(name="t", **given), gpus) == portion


def test_what_shares_count_on_a_node() -> None:
    assert (Portion(2, 0, 15_000).memory_on(40_000), Portion(2, 0, 15_000).gpus_on(40_000)) == (15_000, 760)
    assert (Portion(1, 290, 0).memory_on(100), Portion(1, 290, 0).gpus_on(100)) == (28, 290), "doubles are cut"


def test_whoever_holds_a_place_that_nobody_names_is_told_by_job_and_place() -> None:
    """It counts for its queue, and for no node. What is gone needs no node."""
    lost = {
        "id": "w", "queue": "a",
        "tasks": [
            task("here", "m", "running", cpu=1), task("where", None, "running", cpu=2),
            task("gone", None, "released", cpu=4), task("going", None, "releasing", cpu=8),
            task("there", "n", "running"),
        ],
    }  # fmt: skip
    found = summed(SECOND, lost)
    assert found.homeless == [(1, 1), (1, 3)]
    assert (found.active, found.used) == ([1, 3], [1, 4])
    assert found.free[0] == found.idle[0] == [7000, 2000]
    assert found.allocated[1] == (3000, 0, 0)
