"""What is free by level of topologies over time: worked out by hand, and recounted from what rounds were asked of."""

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.answering.sources import Compiled
from app.simulations.core.run import run as ran
from app.simulations.core.scenario import scenario_of
from app.simulations.core.sink import Asked
from app.simulations.plots import free_of
from app.simulations.results import FragmentationSeries, edges, fragmentation_of, levels_of, spare_of
from app.simulations.schemas import SimulationRequest, Summary
from app.solver.model.base import micros
from tests.support.levels import Levels, run
from tests.support.profiles import examples
from tests.unit.simulations.running import request_for

RACK, HOST = "rack", "kubernetes.io/hostname"
RACKS = {"a": "r1", "b": "r1", "c": "r2", "d": "r2"}
NODES = [
    {"name": name, "labels": {RACK: rack, HOST: name}, "capacity": {"cpu": 4, "pods": 10}}
    for name, rack in RACKS.items()
]
QUOTA = [{"resources": ["cpu"], "flavors": [{"name": "f", "quota": {"cpu": {"guaranteed": 16}}}]}]
CONFIGURATION = {
    "engine": "kueue",
    "topologies": [{"name": "t", "levels": [RACK, HOST]}],
    "flavors": [{"name": "f", "topology": "t"}],
    "queues": [
        {"name": "q", "resource_groups": QUOTA, "kueue": {"preemption": {"within_cluster_queue": "LowerPriority"}}}
    ],
}


def job(name: str, count: int, cpu: int, at: float, lasts: float, priority: int = 0, **request: Any) -> Any:
    task = {"name": "main", "count": count, "requests": {"cpu": cpu}, "topology_request": request}
    ask = {"id": name, "queue": "q", "priority": priority, "tasks": [task]}
    return {"ask": ask, "submitted_at": at, "duration": lasts}


def request(*jobs: Any, **more: Any) -> SimulationRequest:
    return request_for(CONFIGURATION, jobs, state={"nodes": NODES}, **more)


def series(summary: Summary, lines: list[bytes], points: int, resource: str | None = None) -> FragmentationSeries:
    at = edges(micros(summary.start), micros(summary.end), points)
    return fragmentation_of(at, spare_of(lines), resource)


def test_what_is_free_in_all_and_in_one_domain_by_hand() -> None:
    """For 10 s two hosts of one rack have 1 cpu each; for 4 s of it a third has 2."""
    asked = request(job("one", 2, 3, 0, 10, required=RACK), job("two", 1, 2, 6, 4, required=HOST))
    summary, lines = run(asked)
    racks, hosts = series(summary, lines, 5).levels  # intervals of 2 s
    assert [(racks.flavor, racks.level), (hosts.flavor, hosts.level)] == [("f", RACK), ("f", HOST)]
    assert racks.resources["cpu"].free == hosts.resources["cpu"].free == [20, 20, 20, 16, 16]
    assert racks.resources["cpu"].largest == [16, 16, 16, 12, 12]
    assert hosts.resources["cpu"].largest == [8] * 5
    told = {(of.level, of.resource): of for of in summary.fragmentation}
    assert list(told) == [(RACK, "cpu"), (HOST, "cpu")]
    assert (told[RACK, "cpu"].free, told[RACK, "cpu"].largest, told[HOST, "cpu"].largest) == (92, 72, 40)
    assert told[RACK, "cpu"].share == 1 - 72 / 92
    assert series(summary, lines, 5, "gpu").levels[0].resources == {}
    assert list(levels_of(lines, "f")) == [], "a queue may be called as a flavor is"
    picture = free_of(summary, None, spare_of(lines))
    assert (picture.resource, [panel.name for panel in picture.panels]) == ("cpu", [f"f: {RACK}", f"f: {HOST}"])
    assert (picture.panels[1].usage[0], picture.panels[1].guarantee[0]) == (4, 10)


def test_a_node_that_goes_is_free_no_more() -> None:
    changes = [{"at": 5, "nodes": {"remove": ["d"]}}]
    asked = request_for(CONFIGURATION, [job("one", 1, 4, 0, 10, required=HOST)], changes, state={"nodes": NODES})
    summary, lines = run(asked)
    assert series(summary, lines, 2).levels[0].resources["cpu"].free == [60, 40]


def test_without_topologies_there_is_nothing_to_tell() -> None:
    plain = {**CONFIGURATION, "flavors": [{"name": "f"}], "topologies": []}
    task = {"name": "main", "requests": {"cpu": 1}}
    asked = request_for(plain, [{"ask": {"id": "x", "queue": "q", "tasks": [task]}, "submitted_at": 0, "duration": 5}])
    summary, lines = run(asked)
    assert (summary.fragmentation, spare_of(lines)) == ([], {})


LEVELS = st.sampled_from([{"required": RACK}, {"preferred": RACK}, {"required": HOST}, {"unconstrained": True}])
JOBS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 20), st.integers(1, 9),
                          st.integers(0, 2), LEVELS), min_size=1, max_size=8)  # fmt: skip


@given(JOBS, st.integers(0, 3))
@examples(60)
def test_a_round_that_changes_nothing_finds_free_what_is_told(drawn: list[Any], grace: int) -> None:
    jobs = [job(f"j{i}", *numbers, **level) for i, (*numbers, level) in enumerate(drawn)]
    levels, last = Levels(), dict[int, Asked]()  # of each instant the last round

    def watch(asked: Asked) -> None:
        last[asked.question.now] = asked

    ran(scenario_of(request(*jobs, grace=grace), Compiled(None)), levels, lambda: False, watch)
    told = spare_of(levels.lines)
    for now, asked in last.items():
        if asked.result.plan.evictions or any(one.outcome == "admit" for one in asked.result.decisions):
            continue
        used = defaultdict[str, int](int)
        for workload in asked.loaded.state.workloads:
            for task in workload.tasks:
                for domain in task.topology_assignment.domains if task.topology_assignment is not None else ():
                    used[domain.values[-1]] += domain.count * int(task.requests["cpu"])
        left = {host: 4 - used[host] for host in RACKS}
        racks = [sum(left[host] for host in RACKS if RACKS[host] == rack) for rack in ("r1", "r2")]
        for level, of in ((RACK, racks), (HOST, list(left.values()))):
            _, amounts = next(one for one in reversed(told["f", level]) if one[0] <= now)
            largest, _, free = amounts.get("cpu", (0, 0, 0))
            assert (free, largest) == (1000 * sum(of), 1000 * max(of))
