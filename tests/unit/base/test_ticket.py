import asyncio
import weakref
from contextlib import suppress

import pytest

from app.base.ticket import FairGate, Ticket, TooSlow, asked_by, holding, may_wait, release_later, released_at_the_end


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


def test_a_gate_lets_those_who_ask_in_by_turns_and_loses_no_place() -> None:
    async def run() -> list[str]:
        gate, order = FairGate(2), list[str]()

        async def work(name: str) -> None:
            with asked_by(name[0]):
                async with gate.passed():
                    order.append(name)
                    await asyncio.sleep(0)

        asked = [asyncio.ensure_future(work(name)) for name in ("a0", "a1", "a2", "a3", "b0", "a4", "c0", "b1")]
        await asyncio.sleep(0)
        asked[3].cancel()  # while it waits
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.gather(*asked, return_exceptions=True)
        assert [gate.enter(""), gate.enter("")] == [None, None]
        assert gate.enter("") is not None
        return order

    assert asyncio.run(run()) == ["a0", "a1", "a2", "b0", "c0", "b1", "a4"]


def test_whoever_gives_up_as_its_turn_comes_leaves_the_place() -> None:
    async def run() -> None:
        gate = FairGate(1)
        assert gate.enter("") is None
        turn = gate.enter("")
        waiting = asyncio.ensure_future(gate.wait(turn))
        await asyncio.sleep(0)
        gate.leave()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert gate.enter("") is None
        last = gate.enter("")
        assert last is not None
        gate.close()
        assert last.cancelled()

    asyncio.run(run())
