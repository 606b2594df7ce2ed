"""A process that follows looks for garbage among what is new, now and then."""

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from app.following import tidying
from app.following.tidying import Tidy


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    turn = sys.getswitchinterval()
    yield
    sys.setswitchinterval(turn)
    gc.unfreeze()
    gc.enable()


class _Ring:
    def __init__(self) -> None:
        self.own = self


def test_garbage_is_found_when_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(tidying.time, "monotonic", lambda: now[0])
    tidy = Tidy()
    assert not gc.isenabled()
    gone = weakref.ref(_Ring())
    tidy()
    assert gone() is not None
    now[0] += 5.0
    tidy()
    assert gone() is None
    assert gc.get_freeze_count() > 0
    assert sys.getswitchinterval() < 0.005
