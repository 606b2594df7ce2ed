import weakref
from contextlib import suppress

import pytest

from app.base.ticket import Ticket, TooSlow, holding, may_wait, release_later, released_at_the_end


class Large:
    pass


def leaving() -> weakref.ref[Large]:
    large = Large()
    release_later(large)
    return weakref.ref(large)


def test_what_is_left_stays_until_the_end() -> None:
    with released_at_the_end():
        left = leaving()
        assert left() is not None
    assert left() is None


def test_outside_it_goes_at_once() -> None:
    assert leaving()() is None


def test_an_error_frees_it_too() -> None:
    left = None
    try:
        with released_at_the_end():
            left = leaving()
            raise KeyError
    except KeyError:
        pass
    assert left is not None
    assert left() is None


def test_only_what_is_done_at_once_may_not_wait() -> None:
    at_once, later = Ticket("small", 1.0, 1.0, at_once=True), Ticket("small", 1.0, 1.0)
    may_wait()
    with holding(later):
        may_wait()
        with holding(at_once), pytest.raises(TooSlow):
            may_wait()
        may_wait()
    with suppress(ZeroDivisionError), holding(at_once):
        raise ZeroDivisionError
    may_wait()
