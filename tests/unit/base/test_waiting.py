from contextlib import suppress

import pytest

from app.base.waiting import TooSlow, at_once, may_wait


def test_only_what_is_done_at_once_may_not_wait() -> None:
    may_wait()
    with at_once():
        with at_once(), pytest.raises(TooSlow):
            may_wait()
        with pytest.raises(TooSlow):
            may_wait()
    may_wait()
    with suppress(ZeroDivisionError), at_once():
        raise ZeroDivisionError
    may_wait()
