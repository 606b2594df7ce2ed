"""Which devices of a node shares of GPUs go to, by hand. One node; GPUs of 100 MiB; shares in thousandths of a GPU."""

from random import Random
from typing import Any

import pytest

from app.solver.compiled import Journal
from app.solver.engines.kai.jobs import ALLOCATED, PIPELINED, RELEASING, RUNNING, Portion
from app.solver.engines.kai.nodes import GpuNodes, GpuShares
from app.solver.model.problems import InvalidInput
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload


class Node:
    """A node with whole GPUs, and pods with shares."""

    def __init__(self, gpus: int, *shares: int | Portion) -> None:
        self.free, self.idle = [gpus * 1000], [gpus * 1000]
        self.journal = Journal()
        portions = [
            share if isinstance(share, Portion) else Portion(1, share, 0) if share else None for share in shares
        ]
        self.gpus = GpuShares(self.journal, self.journal, GpuNodes([100], [gpus], [0], portions), self.free, self.idle)

    @property
    def left(self) -> tuple[int, int, int]:
        """Whole GPUs free and idle, and what shared ones have left once releases are done."""
        return self.free[0], self.idle[0], round(sum(self.gpus.room(0)) * 1000)

    def seed(self, *status: int) -> None:
        """Pods of the state, from the first on."""
        for t, s in enumerate(status):
            self.gpus.seed(t, 0, s, None)

    def put(self, t: int, *, now: bool) -> int | None:
        """Place a pod where it fits; its status then."""
        chosen = self.gpus.choose(t, 0, now=now and self.gpus.fits_idle(t, 0)) if self.gpus.fits(t, 0) else None
        if chosen is None:
            return None
        status = PIPELINED if chosen[1] else ALLOCATED
        self.gpus.enter(t, 0, status, chosen[0])
        return status


def test_running_shares_are_packed_in_their_order() -> None:
    of = Node(3, 600, 500, 400, 100, 0, 400)
    of.seed(*[RUNNING] * 4)
    assert of.left == (1000, 1000, 400), "600 + 400 on one, 500 + 100 on another"
    assert of.gpus.fitting_shared(5, [0])
    assert of.gpus.share == [True] * 4 + [False, True], "whole ones share nothing"


def test_running_shares_are_where_the_state_says() -> None:
    of = Node(3, 300, 300, 300)
    for t, name in enumerate(("a", "b", "a")):
        of.gpus.seed(t, 0, RUNNING, name)
    assert of.gpus.on(0) == of.gpus.on(2) != of.gpus.on(1)


def test_a_device_that_everybody_leaves_is_a_whole_one_for_who_comes() -> None:
    of = Node(1, 600, 600)
    of.seed(RELEASING)
    assert of.left[:2] == (1000, 0)
    assert not of.gpus.fitting_shared(1, [0])
    assert of.put(1, now=True) == PIPELINED
    assert of.left[:2] == (0, 0)
    assert set(of.gpus.on(0)).isdisjoint(of.gpus.on(1))


def test_of_shared_devices_the_fullest_with_room_is_taken() -> None:
    of = Node(3, 300, 800, 200, 100)
    of.seed(RUNNING, RUNNING)
    assert of.put(2, now=True) == ALLOCATED
    assert of.gpus.on(2) == of.gpus.on(1)
    assert of.put(3, now=True) == ALLOCATED
    assert of.gpus.on(3) == of.gpus.on(0)


def test_a_pod_waits_for_a_share_that_is_being_released() -> None:
    of = Node(1, 400, 400, 500)
    of.seed(RUNNING, RELEASING)
    assert of.put(2, now=True) == PIPELINED
    assert of.gpus.on(2) == of.gpus.on(0)
    assert not of.gpus.overfilled()


def test_a_pod_with_several_shares_takes_as_many_devices() -> None:
    of = Node(3, 500, Portion(2, 0, 50), Portion(2, 0, 60), Portion(2, 0, 101))
    of.seed(RUNNING)
    assert of.put(1, now=True) == ALLOCATED
    assert len(set(of.gpus.on(1))) == 2
    assert of.gpus.on(1)[0] == of.gpus.on(0)[0]
    assert not of.gpus.fits(2, 0), "one GPU is left for two shares"
    assert not of.gpus.fits(3, 0), "no GPU has so much memory"


@pytest.mark.parametrize("devices", [1, 2])
def test_a_node_short_of_a_gpu_takes_no_share_whatever_room_its_devices_have(devices: int) -> None:
    of = Node(3, 600, 600, 600, Portion(devices, 300, 0))
    of.seed(*[RUNNING] * 3)
    assert of.left == (0, 0, 1200)
    assert of.gpus.fits(3, 0)
    assert of.gpus.fits_idle(3, 0)
    of.free[0] = of.idle[0] = -1000
    assert not of.gpus.fits(3, 0), "of devices with room so many count as it wants, of which one is missing"
    assert not of.gpus.fits_idle(3, 0)


@pytest.mark.parametrize(("share", "fits"), [(400, True), (410, False)])
def test_a_device_is_full_at_one_gpu(share: int, fits: bool) -> None:
    of = Node(1, 600, share)
    of.seed(RUNNING)
    assert (of.gpus.fits(1, 0), of.gpus.fits_idle(1, 0), bool(of.gpus.fitting_shared(1, [0]))) == (fits, fits, fits)
    assert of.gpus.room(0) == (0.4, 0)


@pytest.mark.parametrize("seed", range(8))
def test_devices_hold_and_promise_no_more_than_a_gpu(seed: int) -> None:
    """Whatever comes where it fits, leaves, and comes back where it may; undone, all is as it was."""
    random = Random(seed)
    shares = [random.choice((100, 200, 300, 400, 500, 600, 800, 900)) for _ in range(12)]
    of, status, seen = Node(3, *shares), dict[int, int](), set[int]()
    for _ in range(120):
        t = random.randrange(12)
        if t not in status:
            before = of.left
            mark = of.journal.checkpoint()
            if (put := of.put(t, now=len(status) < 6 or random.random() < 0.7)) is None:
                continue
            if random.random() < 0.2:
                of.journal.rollback(mark)
                assert of.left == before
            else:
                status[t] = put
        elif status[t] == ALLOCATED:
            of.gpus.change(t, 0, ALLOCATED, RELEASING)
            status[t] = RELEASING
        elif status[t] == RELEASING and of.gpus.may_return(t, 0):
            of.gpus.change(t, 0, RELEASING, ALLOCATED)
            status[t] = ALLOCATED
        assert not of.gpus.overfilled()
        assert of.free[0] >= 0
        seen.update(status.values())
    assert seen == {ALLOCATED, PIPELINED, RELEASING}


def test_a_pod_may_come_back_while_its_device_has_room_and_is_a_device_to_be_had() -> None:
    of = Node(1, 600, 600)
    of.seed(RUNNING)
    of.gpus.change(0, 0, RUNNING, RELEASING)
    assert of.gpus.may_return(0, 0)
    of.free[0] = 999
    assert not of.gpus.may_return(0, 0), "somebody else was promised the whole GPU"
    of.free[0] = 1000
    of.gpus.change(0, 0, RELEASING, RUNNING)
    assert of.left == (0, 0, 400)


@pytest.mark.parametrize(
    ("part", "counts"), [(120, 120), (125, 130), (124, 120), (145, 140), (575, 570), (5, 10), (4, 0), (995, 1000)]
)
def test_parts_count_to_the_nearest_hundredth_for_each_device(part: int, counts: int) -> None:
    """As doubles have it: 14.5 and 57.5 hundredths are a little less. Devices give what is asked for."""
    assert Portion(1, part, 0).gpus_on(1000) == counts
    assert Portion(3, part, 0).gpus_on(1000) == 3 * counts
    assert Portion(3, part, 0).memory_on(1000) == part


@pytest.mark.parametrize("rules", ["shipped", "documented"])
@pytest.mark.parametrize("release", ["0.13", "0.17"])
@pytest.mark.parametrize(
    ("limit", "part", "more", "placed"),
    [(0.25, 0.125, {}, 1), (0.26, 0.125, {}, 2), (0.24, 0.124, {}, 2), (0.5, 0.125, {"gpu_devices": 2}, 1)],
)
def test_queues_count_hundredths_of_devices(
    limit: float, part: float, more: dict[str, int], placed: int, release: str, rules: str
) -> None:
    asks = [ask(name, "a", gpu=part, task=more) for name in "pq"]
    queues = [queue("a", gpu="unlimited", gpus={"limit": limit})]
    case = Case(queues, [node("n", gpu=2)], [], *asks, release=release, rules=rules)
    assert len(case.placed) == placed


@pytest.mark.parametrize("release", ["0.13", "0.17"])
@pytest.mark.parametrize(("part", "where"), [(0.005, "m"), (0.004, "n")])
def test_a_share_that_counts_nothing_goes_where_pods_without_gpu_go(part: float, where: str, release: str) -> None:
    """Packed by CPU, on its device all the same."""
    nodes = [node("m", gpu=1, gpu_memory=20_000), node("n", gpu=4, cpu=8, gpu_memory=20_000)]
    pending = ask("p", "a", gpu=part)
    assert Case([queue("a", gpu="unlimited")], nodes, [], pending, release=release).placed == {"p-0": where}


def test_memory_of_gpus_is_asked_for_and_refused_beside_gpus() -> None:
    pending = ask("p", "a", gpu=0, task={"gpu_memory": 30_000})
    where = [node("n", gpu=1, gpu_memory=20_000), node("m", gpu=1, gpu_memory=40_000)]
    for release in ("0.13", "0.17"):
        assert Case([queue("a", gpu=4)], where, [], pending, release=release).placed == {"p-0": "m"}
    with pytest.raises(InvalidInput) as refused:
        Case([queue("a", gpu=4)], where, [], ask("p", "a", gpu=1, task={"gpu_memory": 1}))
    assert [problem.pointer for problem in refused.value.problems] == ["/asks/0/tasks/0/gpu_memory"]


def test_pods_of_an_evicted_workload_are_being_released() -> None:
    """Their place is promised at once, and nobody is evicted for it; nobody else could have it now."""
    gone = workload("w", "a", "n", evicted=True)
    case = Case([queue("a", gpu=4)], [node("n", gpu=1)], [gone], ask("p", "a"))
    assert (case.evicted, case.placed, case.waiting) == ([], {"p-0": "n"}, {"p-0"})
    stays = Case([queue("a", gpu=4)], [node("n", gpu=1)], [workload("w", "a", "n")], ask("p", "a"))
    assert (stays.evicted, stays.placed) == ([], {})


def shared(shares: int, rules: str) -> Case:
    """Pods that each have a tenth of the only GPU, by memory, in a queue that deserves none; another one wants it."""
    of = workload("w", "b", *["n"] * shares, gpu=0)
    of["min_available"] = 1
    of["tasks"] = [task | {"gpu_memory": 8000} for task in of["tasks"]]
    queues = [queue("a", gpu=1), queue("b")]
    where = [node("n", gpu=1, gpu_memory=80_000)]
    return Case(queues, where, [of], ask("p", "a"), actions=["reclaim"], release="0.17", rules=rules)


@pytest.mark.parametrize(("shares", "evicted"), [(1, 1), (2, 2), (3, 0)])
def test_released_filters_add_up_parts_of_gpus_in_doubles(shares: int, evicted: int) -> None:
    """1 - 0.3 + 0.1 + 0.1 + 0.1 is less than 1 in doubles: who wants the GPU whole never gets it."""
    assert (0.7 + 0.1 + 0.1 + 0.1 < 1, 0.8 + 0.1 + 0.1 < 1) == (True, False)
    assert len(shared(shares, "shipped").evicted) == evicted
    assert len(shared(shares, "documented").evicted) == shares


@pytest.mark.parametrize(("rules", "moved"), [("shipped", []), ("documented", ["w-0"])])
def test_consolidation_adds_up_free_parts_of_gpus_in_doubles(rules: str, moved: list[str]) -> None:
    """1 - 0.8, 1 - 0.8 and 0.6 are a bit less than 1 in all; exactly, one pod moves and leaves a whole GPU."""
    assert (1 - 0.8) + (1 - 0.8) + 0.6 < 1
    running = [workload("v", "a", "m", gpu=0.8), workload("u", "a", "n", gpu=0.8), workload("w", "a", "o", gpu=0.4)]
    running[0]["preemptible"] = running[1]["preemptible"] = False
    running[2]["tasks"][0] |= {"requests": {"cpu": 1}, "gpu_memory": 40}
    where = [node("m", gpu=1, gpu_memory=200), node("n", gpu=1, gpu_memory=200), node("o", gpu=1, gpu_memory=100)]
    queues, settings = [queue("a", gpu=3)], {"release": "0.17", "rules": rules}
    case = Case(queues, where, running, ask("p", "a"), actions=["consolidation"], **settings)
    assert case.evicted == moved


@pytest.mark.parametrize(("shares", "first"), [({"gpu_memory": 100}, "v-0"), ({}, "w-0")])
def test_memory_of_gpus_counts_nothing_in_what_a_victim_gives_back(shares: dict[str, int], first: str) -> None:
    """Without its victim either queue would hold nothing, and the older goes last; by memory it would hold as much."""
    running = [workload("v", "a", "n", gpu=0 if shares else 1), workload("w", "b", "m")]
    running[0]["tasks"][0] |= shares
    queues = [queue(name, gpu=4, created_at=f"2026-01-0{day}T00:00:00Z") for day, name in enumerate("abc", 1)]
    where = [node(name, gpu=2, gpu_memory=100) for name in "nm"]
    pending, settings = ask("p", "c", gpu=2), {"release": "0.17", "rules": "shipped"}
    case = Case(queues, where, running, pending, actions=["consolidation"], **settings)
    assert case.evicted == [first]


@pytest.mark.parametrize("release", ["0.13", "0.17"])
@pytest.mark.parametrize(
    ("share", "group", "room", "placed"),
    [
        (0.5, "uuid", 1, False),  # whoever is on it already, it is new for KAI
        (0.5, "uuid", 2, True),
        (0.5, "0", 1, True),
        (0.7, "0", 1, False),  # it needs the other GPU
        (0.7, "0", 2, True),
        (1, "uuid", 1, True),
    ],
)
def test_a_share_needs_room_for_the_pod_that_keeps_its_device(
    share: float, group: str, room: int, *, placed: bool, release: str
) -> None:
    running = workload("w", "a", "n", gpu=0.5)
    running["tasks"][0]["gpu_group"] = group
    nodes = [node("n", gpu=2, capacity={"pods": 1 + room})]
    case = Case([queue("a", gpu=4)], nodes, [running], ask("p", "a", gpu=share), release=release)
    assert bool(case.placed) == placed


@pytest.mark.parametrize(
    ("devices", "memory", "bound", "released"),
    [
        (1, 4000, {"gpus": {"limit": 0.5}}, {"0.13": "m", "0.17": "m"}),  # a fourth there, half of one here
        (1, 4001, {"gpus": {"limit": 0.5}}, {"0.13": "n", "0.17": "n"}),
        (1, 8001, {"gpus": {"limit": 0.5}}, {"0.13": None, "0.17": None}),
        (2, 4000, {"gpus": {"limit": 0.5}}, {"0.13": "m", "0.17": "n"}),
        (1, 4001, {"gpu": 0.5}, {"0.13": "n", "0.17": "n"}),
    ],
)
def test_memory_of_gpus_is_held_to_bounds_by_the_size_of_each_node(
    devices: int, memory: int, bound: dict[str, Any], released: dict[str, str | None]
) -> None:
    """m is the fuller node, its GPUs have half of the memory."""
    nodes = [node("m", gpu=2, gpu_memory=8000), node("n", gpu=4, gpu_memory=16000)]
    pending = ask("p", "a", gpu=0, task={"gpu_memory": memory, "gpu_devices": devices}, preemptible="gpu" not in bound)
    for release, where in released.items():
        case = Case(
            [queue("a", gpu=bound.get("gpu", 4), gpus=bound.get("gpus", {}))],
            nodes,
            [],
            pending,
            release=release,
            actions=["allocate"],
        )
        assert case.placed == ({} if where is None else {"p-0": where})


@pytest.mark.parametrize("release", ["0.13", "0.17"])
@pytest.mark.parametrize(("rules", "cpu", "where"), [("shipped", 8, "n"), ("shipped", 4, "m"), ("documented", 4, "n")])
def test_a_try_that_is_taken_back_leaves_a_node_less_idle(rules: str, cpu: int, where: str, release: str) -> None:
    """The first part moves two pods of w to other devices of n. Taken back, they count there twice, and n is short of
    CPU for the next part, as KAI sees it."""
    first = workload("w", "a", "n", "n", "m", gpu=0.75, priority=25, created_at="2027-01-10T00:00:00Z")
    for task, group in zip(first["tasks"], ("g1", "g2", "g3"), strict=True):
        task["gpu_group"] = group
    others = [
        workload("x", "a", "m", gpu=2, created_at="2027-01-09T00:00:00Z"),
        workload("y", "a", "m", gpu=0.3, created_at="2027-01-08T00:00:00Z"),
    ]
    pending = ask("p", "a", 2, gpu=0.25, priority=125, created_at="2027-01-07T00:00:00Z")
    del pending["tasks"][0]["requests"]["gpu"]
    nodes = [node("m", cpu=8), node("n", cpu=cpu)]
    case = Case(
        [queue("a", gpu=2)], nodes, [first, *others], pending, actions=["preempt"], rules=rules, release=release
    )
    assert {t: n for t, n in case.placed.items() if t != "w-0"} == {"p-0": "m", "p-1": "m", "w-1": "n", "w-2": "n"}
    assert case.placed["w-0"] == where
