"""Which nodes a pod may use, which of them it takes, and whether there is any, by hand and against looking at all."""

from random import Random

import msgspec
import pytest

from app.solver.engines.kai.jobs import constraints
from app.solver.engines.kai.placing import Predicates
from app.solver.model.state import Ask, Node, Task
from tests.support.gpu_room import cycle_of
from tests.support.kai_world import Json, Shape, cluster
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

ONE = [queue("a", gpu=99)]


def test_a_share_joins_a_gpu_that_is_shared_already_although_another_node_is_fuller() -> None:
    half = workload("w", "a", "n", gpu="500m")
    case = Case(ONE, [node("m", gpu=1), node("n", gpu=4)], [half], ask("p", "a", gpu="500m"))
    assert case.placed == {"p-0": "n"}
    case = Case(ONE, [node("m", gpu=1), node("n", gpu=4)], [half], ask("p", "a", gpu="600m"))
    assert case.placed == {"p-0": "m"}, "no room on it: the node with fewer GPUs free"


def test_what_is_idle_comes_before_what_is_being_released_and_the_fuller_node_before_the_name() -> None:
    leaving = workload("w", "a", "m", "m", "m", "m", evicted=True)
    case = Case(ONE, [node("m"), node("n", gpu=8)], [leaving], ask("p", "a"))
    assert case.placed == {"p-0": "n"}
    case = Case(ONE, [node("l", gpu=8), node("m", gpu=4), node("n", gpu=4)], [], ask("p", "a"))
    assert case.placed == {"p-0": "m"}


@pytest.mark.parametrize(("cpus", "chosen"), [((16, 16), "m"), ((16, 8), "n"), ((8, 16), "m"), ((0, 16), "n")])
def test_a_pod_without_gpu_takes_the_node_with_the_least_cpu_left(cpus: tuple[int, int], chosen: str) -> None:
    nodes = [node(name, gpu=0, cpu=cpu) for name, cpu in zip("mn", cpus, strict=True)]
    assert Case(ONE, nodes, [], ask("p", "a", gpu=0)).placed == {"p-0": chosen}


def test_keeping_off_gpu_nodes_outweighs_packing() -> None:
    """m is nearly full and has a GPU: 9 for packing; n has none: 10."""
    full = workload("w", "a", "m", gpu=0, cpu=14)
    assert Case(ONE, [node("m"), node("n", gpu=0)], [full], ask("p", "a", gpu=0)).placed == {"p-0": "n"}


@pytest.mark.parametrize("shares", [False, True])
def test_some_node_fits_where_looking_at_all_finds_one(shares: bool) -> None:
    """After some pods were placed anywhere and others evicted."""
    said = {True: 0, False: 0}
    for seed in range(40):
        random = Random(seed)
        shape = Shape(nodes=4, workloads=12, asks=5, shares_of_gpus=shares, constraints=seed % 2 == 0)
        cycle = cycle_of(cluster(seed, shape))
        overlay, placer = cycle.overlay, cycle.tools.placer
        for t in random.sample(range(overlay.running_tasks), overlay.running_tasks // 2):
            if overlay.status[t] == 1:
                overlay.evict(t)
        pending = range(overlay.running_tasks, len(overlay.status))
        for t in pending:
            open_nodes = frozenset(random.sample(range(4), random.randint(0, 4)))
            allowed = placer.allowed(t)
            any_of = any(overlay.fits(t, n) and (allowed is None or allowed[n]) for n in open_nodes)
            assert placer.fits_somewhere(t, open_nodes) is any_of
            said[any_of] += 1
            if any_of and random.random() < 0.5:
                placer.place_job(overlay.jobs.task_job[t], [t], open_nodes, bind=False)
    assert min(said.values()) > 30


def task(**more: object) -> Task:
    return msgspec.convert({"name": "t", "requests": {}} | more, Task)


def asking(**more: object) -> Ask:
    return msgspec.convert({"id": "p", "queue": "a", "tasks": []} | more, Ask)


ANYWHERE = task()
TERM = [{"key": "zone", "operator": "In", "values": ["a"]}]
CONSTRAINED: list[tuple[Task, Ask | None]] = [
    (task(required_node="n"), None),
    (task(required_node="m"), None),
    (ANYWHERE, asking(feasible_nodes=["m", "n"])),
    (ANYWHERE, asking(feasible_nodes=[])),
    (task(node_selector={"zone": "a"}), None),
    (task(node_selector={"zone": "b"}), None),
    (task(tolerations=[{"key": "reserved"}]), None),
    (task(tolerations=[{"key": "reserved", "effect": "NoSchedule"}]), None),
    (task(node_affinity=[TERM]), None),
]


def test_equal_constraints_are_one_and_no_two_others_are() -> None:
    assert constraints(ANYWHERE, None) == constraints(ANYWHERE, asking()) == ""
    assert constraints(task(node_selector={}, tolerations=[], node_affinity=[]), asking()) == ""
    found = [constraints(*one) for one in CONSTRAINED]
    assert "" not in found
    assert len(set(found)) == len(found)
    assert constraints(ANYWHERE, asking(required_node="n")) == found[0]
    assert constraints(task(required_node="n"), asking(required_node="m")) == found[0], "the pod's own comes first"
    assert constraints(ANYWHERE, asking(feasible_nodes=["n", "m"])) == found[2]
    both = [
        constraints(task(node_selector=dict(pairs)), None)
        for pairs in ([("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")])
    ]
    assert both[0] == both[1]


NODES: list[Json] = [
    {"name": "m", "capacity": {}, "labels": {"zone": "a"}},
    {"name": "n", "capacity": {}, "labels": {"zone": "b"}},
    {"name": "tainted", "capacity": {}, "taints": [{"key": "reserved", "effect": "NoSchedule"}]},
    {"name": "closed", "capacity": {}, "schedulable": False},
]


@pytest.mark.parametrize(
    ("of", "by", "allowed"),
    [
        ({}, {}, [True, True, False, False]),
        ({"required_node": "n"}, {}, [False, True, False, False]),
        ({}, {"required_node": "n"}, [False, True, False, False]),
        ({}, {"feasible_nodes": ["m", "closed"]}, [True, False, False, False]),
        ({"node_selector": {"zone": "a"}}, {}, [True, False, False, False]),
        ({"node_affinity": [TERM]}, {}, [True, False, False, False]),
        ({"tolerations": [{"key": "reserved", "operator": "Exists"}]}, {}, [True, True, True, False]),
        ({"required_node": "closed"}, {}, [False] * 4),
        ({"required_node": "tainted"}, {}, [False] * 4),
    ],
)  # fmt: skip
def test_where_a_pod_may_run(of: Json, by: Json, allowed: list[bool]) -> None:
    nodes = msgspec.convert(NODES, list[Node])
    open_nodes = [node.schedulable and not node.taints for node in nodes]
    pod, by_whom = task(**of), asking(**by)
    who = pod, by_whom, constraints(pod, by_whom)
    predicates = Predicates(nodes, open_nodes, {})
    for _ in range(2):
        assert predicates.allowed(*who) == allowed
    plain = Predicates(nodes[:2], open_nodes[:2], {})
    assert plain.allowed(*who) == (None if not of and not by else allowed[:2])
