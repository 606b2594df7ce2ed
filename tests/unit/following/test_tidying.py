"""A process that follows looks for garbage among what is new, and rarely among all."""

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from app.following import follower
from app.following.follower import Tidy
from tests.support.instead import Clock


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    turn, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(turn)
    gc.set_threshold(*threshold)


class _Ring:
    def __init__(self) -> None:
        self.own = self


@pytest.mark.slow
def test_old_garbage_is_found_when_it_is_time(clock: Clock) -> None:
    clock.drives(follower)
    clock.now = 100.0
    tidy, ring = Tidy(), _Ring()
    gc.collect()  # it is old now
    gone = weakref.ref(ring)
    del ring
    held = [[number] for number in range(500_000)]
    tidy()
    assert gone() is not None, "everything was looked through because much was new"
    clock.now += 3600.0
    tidy()
    assert gone() is None
    assert len(held) == 500_000


def test_threads_take_short_turns() -> None:
    Tidy()
    assert sys.getswitchinterval() <= 0.001
