"""Which device of a node a share of a GPU goes to, by hand. One node; amounts in thousandths of a GPU."""

from random import Random

import pytest

from app.solver.engines.kai.jobs import ALLOCATED, PIPELINED, RELEASING, RUNNING
from app.solver.engines.kai.nodes import GpuShares
from app.solver.journal import Journal
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload


class Node:
    """A node with whole GPUs, and pods with shares."""

    def __init__(self, gpus: int, *shares: int) -> None:
        self.free, self.idle = [gpus * 1000], [gpus * 1000]
        self.journal = Journal()
        self.gpus = GpuShares(self.journal, list(shares), self.free, self.idle)

    @property
    def left(self) -> tuple[int, int, int]:
        """Whole GPUs free and idle, and what shared ones have left."""
        return self.free[0], self.idle[0], self.gpus.unused(0)


def test_running_shares_are_packed_in_their_order() -> None:
    of = Node(3, 600, 500, 400, 100, 0, 1000, 400)
    for t in range(4):
        of.gpus.seed(t, 0, RUNNING)
    assert of.left == (1000, 1000, 400), "600 + 400 on one, 500 + 100 on another"
    assert of.gpus.fits_shared(6, 0)
    assert of.gpus.share == [600, 500, 400, 100, 0, 0, 400], "whole ones share nothing"


def test_what_is_being_released_takes_a_device_now_and_not_later() -> None:
    of = Node(2, 600, 300)
    of.gpus.seed(0, 0, RELEASING)
    assert of.left == (2000, 1000, 0)
    of.gpus.seed(1, 0, RUNNING)
    assert of.left == (1000, 1000, 700), "both fit on one device"
    of = Node(2, 600, 500)
    of.gpus.seed(0, 0, RELEASING)
    of.gpus.seed(1, 0, RUNNING)
    assert of.left == (1000, 0, 500), "what leaves is still there: a device each"


def test_a_pod_that_waits_takes_an_idle_gpu_before_the_place_of_one_that_leaves() -> None:
    """On the first device 400 run and 400 leave: 500 fit there later, not now. The second is idle."""
    of = Node(2, 400, 400, 500)
    of.gpus.seed(0, 0, RUNNING)
    of.gpus.seed(1, 0, RELEASING)
    of.gpus.enter(2, 0, PIPELINED)
    assert of.left == (0, 1000, 1100), "a device of its own, promised"
    taken = Node(1, 400, 400, 500)
    taken.gpus.seed(0, 0, RUNNING)
    taken.gpus.seed(1, 0, RELEASING)
    assert taken.gpus.fits(2, 0)
    assert not taken.gpus.fits_idle(2, 0)
    taken.gpus.enter(2, 0, PIPELINED)
    assert taken.left == (0, 0, 100), "without one, where it fits later"


def test_a_pod_that_waits_goes_where_it_fits_once_what_leaves_is_gone_however_full_others_are() -> None:
    """On the first device 800 run; on the second 500 leave and 300 are promised, so that 400 fit there later."""
    of = Node(2, 800, 500, 300, 400)
    of.gpus.seed(0, 0, RUNNING)
    of.gpus.seed(1, 0, RELEASING)
    of.gpus.enter(2, 0, PIPELINED)
    assert of.left == (0, 0, 900)
    assert not of.gpus.fits_idle(3, 0)
    assert of.gpus.fits(3, 0)
    of.gpus.enter(3, 0, PIPELINED)
    assert (of.left, of.gpus.overfilled()) == ((0, 0, 500), False)


@pytest.mark.parametrize("seed", range(8))
def test_devices_hold_and_promise_no_more_than_a_gpu(seed: int) -> None:
    """Whatever comes where it fits, leaves, and comes back where it may."""
    random = Random(seed)
    shares = [random.choice((100, 200, 300, 400, 500, 600, 800, 900)) for _ in range(12)]
    of, status, seen = Node(3, *shares), dict[int, int](), set[int]()
    for _ in range(120):
        t = random.randrange(12)
        if t not in status and of.gpus.fits_idle(t, 0):
            of.gpus.enter(t, 0, ALLOCATED)
            status[t] = ALLOCATED
        elif t not in status and of.gpus.fits(t, 0):
            of.gpus.enter(t, 0, PIPELINED)
            status[t] = PIPELINED
        elif status.get(t) == ALLOCATED:
            of.gpus.change(t, 0, ALLOCATED, RELEASING)
            status[t] = RELEASING
        elif status.get(t) == RELEASING and of.gpus.may_return(t, 0):
            of.gpus.change(t, 0, RELEASING, ALLOCATED)
            status[t] = ALLOCATED
        assert not of.gpus.overfilled()
        assert min(of.left) >= 0
        later = sum(shares[t] for t, s in status.items() if s != RELEASING)
        assert of.left[2] == 3000 - of.free[0] - later
        seen.update(status.values())
    assert seen == {ALLOCATED, PIPELINED, RELEASING}


def test_of_shared_devices_the_fullest_with_room_is_taken() -> None:
    of = Node(3, 600, 300, 300, 400)
    for t, status in ((0, RUNNING), (2, RUNNING)):
        of.gpus.enter(t, 0, status)
    assert of.left == (2000, 2000, 100), "300 join the 600"
    of = Node(3, 300, 800, 200, 100)
    for t in range(3):
        of.gpus.enter(t, 0, RUNNING)
    assert of.left == (1000, 1000, 700), "200 join the 800, not the 300"
    of.gpus.enter(3, 0, ALLOCATED)
    assert of.left == (1000, 1000, 600)


@pytest.mark.parametrize(("share", "fits"), [(400, True), (401, False)])
def test_a_device_is_full_at_one_gpu(share: int, fits: bool) -> None:
    of = Node(1, 600, share)
    of.gpus.seed(0, 0, RUNNING)
    assert (of.gpus.fits(1, 0), of.gpus.fits_idle(1, 0), of.gpus.fits_shared(1, 0)) == (fits, fits, fits)
    assert of.gpus.has_room(0)


def test_a_pod_may_come_back_while_its_device_has_room_and_is_a_device_to_be_had() -> None:
    of = Node(1, 600, 600, 400)
    of.gpus.seed(0, 0, RUNNING)
    of.gpus.change(0, 0, RUNNING, RELEASING)
    assert of.left == (1000, 0, 0)
    assert of.gpus.may_return(0, 0)
    of.free[0] = 999
    assert not of.gpus.may_return(0, 0), "somebody else was promised the whole GPU"
    of.free[0] = 1000
    mark = of.journal.checkpoint()
    of.gpus.enter(1, 0, PIPELINED)
    assert of.left == (0, 0, 400)
    assert not of.gpus.may_return(0, 0), "600 are promised"
    of.journal.rollback(mark)
    of.gpus.enter(2, 0, PIPELINED)
    assert of.gpus.may_return(0, 0), "400 are promised, and 600 are left"
    assert not of.gpus.overfilled()
    of.gpus.change(0, 0, RELEASING, RUNNING)
    assert of.left == (0, 0, 0)
    assert not of.gpus.overfilled()
    assert not of.gpus.has_room(0) or of.gpus.unused(0) == 0


def test_pods_of_an_evicted_workload_are_being_released() -> None:
    """Their place is promised at once, and nobody is evicted for it; nobody else could have it now."""
    gone = workload("w", "a", "n", evicted=True)
    case = Case([queue("a", gpu=4)], [node("n", gpu=1)], [gone], ask("p", "a"))
    assert (case.evicted, case.placed, case.waiting) == ([], {"p-0": "n"}, {"p-0"})
    stays = Case([queue("a", gpu=4)], [node("n", gpu=1)], [workload("w", "a", "n")], ask("p", "a"))
    assert (stays.evicted, stays.placed) == ([], {})
