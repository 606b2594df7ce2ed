"""Bounds on GPUs: never wrong where they say no, and KAI's own filter wrong in KAI's way."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from app.solver.engines.kai.jobs import RUNNING
from app.solver.engines.kai.scenario import FreeGpus, GpuRoom, Headroom
from tests.support.gpu_room import body, cycle_of
from tests.support.kai_world import Shape, cluster
from tests.unit.solver.engines.kai.case import ask, node, workload


def test_the_filter_counts_what_is_given() -> None:
    overlay = cycle_of(
        body(
            [node("n"), node("m")],
            [workload("w", "a", "n", "n", "n"), workload("v", "a", "m")],
            ask("p", "a", 2, gpu=4),
        )
    ).overlay
    part = overlay.jobs.tasks[2]
    room = GpuRoom(overlay, part, FreeGpus(overlay))
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
    assert GpuRoom(overlay, overlay.jobs.tasks[0], FreeGpus(overlay)).enough()
    overlay = cycle_of(body([node("n", gpu=4), node("m", gpu=4)], [], mixed)).overlay
    assert not GpuRoom(overlay, overlay.jobs.tasks[0], FreeGpus(overlay)).enough()


def dense(random: Random) -> Any:
    """Six pods that hold places on four nodes, -1 for none, and six that ask for some."""
    request = [(0, 0, random.choice((0, 1, 2, 3))) for _ in range(12)]
    free = [random.randint(-2, 4) for _ in range(4)]

    def gpus_of(t: int) -> int:
        return request[t][2]

    return SimpleNamespace(
        node=[random.choice((-1, 0, 1, 2, 3)) for _ in range(6)] + [-1] * 6, request=request,
        nodes=SimpleNamespace(gpu_free=lambda: free, columns=[()] * 12), free=[[0] * 4, [0] * 4, free],
        gpus=SimpleNamespace(any=False), in_doubles=False, gpus_of=gpus_of,
    )  # fmt: skip


def holds(free: list[int], needs: list[int]) -> bool:
    """First fit, the largest pod first and the emptiest node first."""
    left = sorted(free, reverse=True)
    for need in sorted(needs, reverse=True):
        at = next((n for n, have in enumerate(left) if have >= need), None)
        if at is None:
            return False
        left[at] -= need
    return True


def test_the_filter_is_first_fit_whatever_is_given_and_asked_for() -> None:
    said: list[bool] = []
    for seed in range(400):
        random = Random(seed)
        overlay = dense(random)
        free = overlay.nodes.gpu_free().copy()
        alike = random.random() < 0.5
        for t in range(6, 12):
            overlay.request[t] = (0, 0, 2) if alike else overlay.request[t]
        part = random.sample(range(6, 12), random.randint(1, 3))
        room = GpuRoom(overlay, part, FreeGpus(overlay))
        for t in random.sample(range(6), 4):
            room.give([t])
            if overlay.node[t] >= 0:
                free[overlay.node[t]] += overlay.request[t][2]
            if random.random() < 0.5:
                part = random.sample(range(6, 12), random.randint(1, 4))
                room.need(part)
            said.append(holds(free, [overlay.request[t][2] for t in part if overlay.request[t][2]]))
            assert room.enough() is said[-1], seed
    assert 0.3 < sum(said) / len(said) < 0.8


def test_headroom_counts_by_size_and_by_constraint() -> None:
    """Of every size no more pods that are as large or larger than nodes have slots of it, of all pods together and of
    those with the same constraint."""
    said: list[bool] = []
    for seed in range(400):
        random = Random(seed)
        overlay = dense(random)
        masks = [None, [True, True, False, False], [False, True, True, False]]
        mask = {t: random.choice(masks) for t in range(12)}
        part, gone = random.sample(range(6, 12), random.randint(1, 4)), random.sample(range(6), 3)
        gone = [t for t in gone if overlay.node[t] >= 0]
        free = overlay.nodes.gpu_free().copy()
        for t in gone:
            free[overlay.node[t]] += overlay.request[t][2]
        enough = True
        for of in masks:
            needs = [overlay.request[t][2] for t in part if of is None or mask[t] is of]
            for size in set(needs) - {0}:
                slots = sum(max(0, have) // size for n, have in enumerate(free) if of is None or of[n])
                enough = enough and sum(need >= size for need in needs) <= slots
        said.append(enough)
        for first in range(len(gone) + 1):
            headroom = Headroom(overlay, part, mask.__getitem__, gone=gone[:first])
            assert headroom.enough(gone[first:]) is enough, (seed, first)
    assert 0.3 < sum(said) / len(said) < 0.8


def test_pods_without_gpu_always_have_room() -> None:
    overlay = cycle_of(body([node("n", gpu=0)], [], ask("p", "a", 3, gpu=0))).overlay
    part = overlay.jobs.tasks[0]
    assert GpuRoom(overlay, part, FreeGpus(overlay)).enough()
    assert Headroom(overlay, part, lambda _: None).enough([])


@pytest.mark.parametrize(
    ("gone", "enough"), [((), False), ((0,), False), ((0, 1), True), ((0, 2), False), ((0, 1, 2), True)]
)
def test_headroom_counts_the_places_that_victims_open(gone: tuple[int, ...], enough: bool) -> None:
    """Two pods of 2 GPUs. n has 2 of 4 free: a place; with one GPU more it has no other, with two more it has. m has
    none of 1 free, and never a place."""
    running = [workload("a0", "a", "n"), workload("a1", "a", "n"), workload("a2", "a", "m")]
    overlay = cycle_of(body([node("n"), node("m", gpu=1)], running, ask("p", "a", 2, gpu=2))).overlay
    headroom = Headroom(overlay, overlay.jobs.tasks[3], lambda _: None)
    assert headroom.enough(t for job in gone for t in overlay.jobs.tasks[job]) is enough


def test_headroom_counts_only_nodes_that_a_pod_may_go_to() -> None:
    """One pod of 2 GPUs may go to n alone, which has 1 of 2 free; m has 2 free."""
    overlay = cycle_of(body([node("n", gpu=2), node("m", gpu=2)], [workload("a0", "a", "n")], ask("p", "a", gpu=2)))
    part = overlay.overlay.jobs.tasks[1]
    assert Headroom(overlay.overlay, part, lambda _: None).enough([])
    here = Headroom(overlay.overlay, part, lambda _: [True, False])
    assert not here.enough([])
    assert here.enough(overlay.overlay.jobs.tasks[0])
    assert not Headroom(overlay.overlay, part, lambda _: [False, False]).enough(overlay.overlay.jobs.tasks[0])


@pytest.mark.parametrize(
    ("pods", "gone", "enough"),
    [(1, (), False), (1, (0,), True), (1, (2,), True), (2, (0,), False), (2, (2,), False), (2, (0, 2), True)],
)
def test_pods_without_gpu_are_as_large_as_all_that_they_request(pods: int, gone: tuple[int, ...], enough: bool) -> None:
    """Pods of 4 CPUs and 1 GiB. n and m have 3 of 5 CPUs free; l has all 16 and half a GiB of one and a half. Without
    ``whole`` all have room."""
    running = [
        workload("a0", "a", "n", gpu=0, cpu=2), workload("a1", "a", "m", gpu=0, cpu=2),
        workload("a2", "a", "l", gpu=0, cpu=0),
    ]  # fmt: skip
    nodes = [node("n", 0, 5), node("m", 0, 5), node("l", 0, capacity={"memory": "1536Mi"})]
    overlay = cycle_of(body(nodes, running, ask("p", "a", pods, gpu=0, cpu=4))).overlay
    part, victims = overlay.jobs.tasks[3], [t for job in gone for t in overlay.jobs.tasks[job]]
    assert Headroom(overlay, part, lambda _: None).enough(victims) is enough
    assert Headroom(overlay, part, lambda _: None, whole=False).enough(())


def test_a_node_in_debt_opens_no_place_until_the_debt_is_gone() -> None:
    """n has 1 GPU and runs two pods of 2: 3 short. With one of them gone it is 1 short, with both it has its 1."""
    running = [workload("a0", "a", "n", gpu=2), workload("a1", "a", "n", gpu=2)]
    overlay = cycle_of(body([node("n", gpu=1)], running, ask("p", "a", gpu=1))).overlay
    assert overlay.nodes.gpu_free() == [-3000]
    headroom = Headroom(overlay, overlay.jobs.tasks[2], lambda _: None)
    filter_ = GpuRoom(overlay, overlay.jobs.tasks[2], FreeGpus(overlay))
    for gone, enough in (((), False), ((0,), False), ((0, 1), True)):
        assert headroom.enough(t for job in gone for t in overlay.jobs.tasks[job]) is enough
    for job, enough in ((0, False), (1, True)):
        filter_.give(overlay.jobs.tasks[job])
        assert filter_.enough() is enough


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


def test_a_node_is_overfilled_when_this_cycle_promised_what_it_has_not() -> None:
    """n and m are full, o was in debt before: one CPU more is too much for n, and o is no news."""
    running = [workload("a0", "a", "n", cpu=2), workload("a1", "a", "m", cpu=2), workload("a2", "a", "o", cpu=3)]
    nodes = [node("n", cpu=2), node("m", cpu=3), node("o", cpu=2)]
    overlay = cycle_of(body(nodes, running, ask("p", "a", 3, gpu=0))).overlay
    p0, p1, p2 = overlay.jobs.tasks[3]
    overlay.pipeline(p0, 1)
    overlay.pipeline(p1, 2)
    assert not overlay.nodes.overfilled()
    overlay.pipeline(p2, 0)
    assert overlay.nodes.overfilled()


def test_many_nodes_are_asked_as_one_by_one() -> None:
    """Shares and whole GPUs, idle and once somebody has gone, with some evicted."""
    said: list[bool] = []
    for seed in range(60):
        overlay = cycle_of(cluster(seed, Shape(shares_of_gpus=True, asks=10))).overlay
        for t in range(0, overlay.running_tasks, 3):
            if overlay.status[t] == RUNNING:
                overlay.evict(t)
        nodes, of = list(range(len(overlay.node_names))), overlay.nodes
        for t in range(overlay.running_tasks, len(overlay.status)):
            assert of.fitting(t, nodes) == [n for n in nodes if of.fits(t, n)], (seed, t)
            assert of.fitting_idle(t, nodes) == [n for n in nodes if of.fits_idle(t, n)], (seed, t)
            said += [of.fits(t, n) != of.fits_idle(t, n) for n in nodes if overlay.gpus.share[t]]
    assert any(said)
    assert not all(said)
