import asyncio
import gc
import threading
from functools import partial

import pytest

from app.base import ticket
from app.base.errors import DeadlinePassed, TooManyRequests
from app.base.ticket import CLASSES, Class, Ticket, TooSlow, allowing, held, may_wait
from app.workers.dispatcher import Offload, Room, collector_paused
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead


def test_the_collector_is_off_inside_and_on_outside() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_turns_it_on_again() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_it_stays_off_until_the_last_thread_leaves() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collector_paused():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with collector_paused():
        thread.start()
        assert entered.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_unbroken_load_does_not_keep_it_from_collecting(instead: Instead, bounded: Bounded) -> None:
    bounded("app.workers.dispatcher", LONGEST_PAUSE=-1.0)
    collected: list[int] = []
    instead(gc, collect=collected.append)
    with collector_paused():
        with collector_paused():
            pass
        assert collected == [1]
    assert collected == [1, 1]


def offload(threads: int = 1, waiting: int = 1, seconds: float = 20.0) -> Offload:
    return Offload(dict.fromkeys(CLASSES, Room(threads, waiting)), seconds)


def test_work_runs_in_a_thread_of_its_own_and_its_errors_come_back() -> None:
    places = offload()

    async def run() -> str:
        with pytest.raises(ZeroDivisionError):
            await places.run("small", divmod, 1, 0)
        return await places.run("small", lambda: threading.current_thread().name)

    assert asyncio.run(run()).startswith("solve-small")
    places.close()


def test_nothing_is_left_to_be_done_later_for_what_was_answered() -> None:
    places = offload()

    async def run() -> None:
        loop, later = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
        call_later = loop.call_later
        loop.call_later = lambda *args, **more: later.append(call_later(*args, **more)) or later[-1]
        await asyncio.gather(places.run("small", int), places.run("small", int))
        assert [handle.cancelled() for handle in later] == [True]

    asyncio.run(run())
    places.close()


def test_a_class_that_is_full_refuses_its_own_and_nobody_else() -> None:
    places, leave = offload(), threading.Event()

    async def run() -> None:
        full = [asyncio.ensure_future(places.run("large", leave.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        assert (places.inside("large"), places.waiting("large")) == (2, 1)
        with pytest.raises(TooManyRequests):
            await places.run("large", int)
        for of in ("small", "slow", "snapshot"):
            assert await places.run(of, int) == 0
        leave.set()
        assert await asyncio.gather(*full) == [True, True]
        assert await places.run("large", int) == 0

    asyncio.run(run())
    places.close()


def test_those_who_ask_take_turns() -> None:
    places, leave = offload(waiting=9), threading.Event()
    begun: list[str] = []

    async def ask(who: str, what: str) -> None:
        with ticket.asked_by(who):
            await places.run("large", begun.append, what)

    async def run() -> None:
        first = asyncio.ensure_future(places.run("large", leave.wait, 10))
        others = [asyncio.ensure_future(ask(what[0], what)) for what in ("a1", "a2", "a3", "b1", "a4", "b2", "c1")]
        await asyncio.sleep(0)
        leave.set()
        await asyncio.gather(first, *others)

    asyncio.run(run())
    places.close()
    assert begun == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_where_no_place_is_left_the_last_of_who_has_most_gives_way() -> None:
    places, leave = offload(waiting=3), threading.Event()
    begun: list[str] = []

    async def ask(who: str, what: str) -> None:
        with ticket.asked_by(who):
            await places.run("large", begun.append, what)

    async def run() -> None:
        first = asyncio.ensure_future(places.run("large", leave.wait, 10))
        of_a = [asyncio.ensure_future(ask("a", f"a{i}")) for i in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match=r"^4 requests like this one"):
            await ask("a", "a3")
        of_b = asyncio.ensure_future(ask("b", "b0"))
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match=r"^3 of your requests are being answered or wait, and others ask"):
            await of_a[2]
        with pytest.raises(TooManyRequests):  # it has as many as a now, one more would be more
            await ask("b", "b1")
        leave.set()
        await asyncio.gather(first, *of_a[:2], of_b)

    asyncio.run(run())
    places.close()
    assert begun == ["a0", "b0", "a1"]


def test_one_that_waits_in_its_thread_gives_way_where_it_says_so() -> None:
    dropped: list[Ticket] = []
    begun, leave = threading.Semaphore(0), threading.Event()

    def drop(other: Ticket) -> bool:
        dropped.append(other)
        return len(dropped) == 2

    places = Offload(dict.fromkeys(CLASSES, Room(3, 0)), 20.0, drop)

    def work() -> str:
        begun.release()
        leave.wait(10)
        mine = held()
        assert mine is not None
        return mine.who

    async def ask(who: str) -> str:
        with ticket.asked_by(who):
            return await places.run("large", work)

    async def run() -> list[str]:
        asked = [asyncio.ensure_future(ask(who)) for who in ("a", "a", "a")]
        await asyncio.sleep(0)
        asked.append(asyncio.ensure_future(ask("b")))
        await asyncio.sleep(0)
        assert places.inside("large") == 4
        leave.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(run()) == ["a", "a", "a", "b"]
    places.close()
    assert [other.who for other in dropped] == ["a", "a"], "the last one first, until one says that it waited"


def test_waiting_for_a_thread_counts_and_what_did_not_begin_never_does() -> None:
    places, leave = offload(seconds=0.1), threading.Event()
    begun: list[int] = []

    async def run() -> None:
        first = asyncio.ensure_future(places.run("large", leave.wait, 10))
        await asyncio.sleep(0)
        with pytest.raises(DeadlinePassed):
            await places.run("large", begun.append, 1)
        leave.set()
        assert await first

    asyncio.run(run())
    places.close()
    assert begun == []


def test_a_small_one_that_takes_long_begins_again_among_the_slow_within_its_deadline() -> None:
    places = offload()
    tickets: list[Ticket | None] = []

    def work() -> str:
        ticket = held()
        tickets.append(ticket)
        assert ticket is not None
        if ticket.of == "small":
            raise TooSlow
        return threading.current_thread().name

    assert asyncio.run(places.run("small", work)).startswith("solve-slow")
    places.close()
    first, second = tickets
    assert first is not None
    assert second is not None
    assert (first.end, first.seconds) == (second.end, second.seconds)


def test_a_brief_one_is_answered_on_the_event_loop_unless_it_takes_long_or_must_wait() -> None:
    places = offload()
    asked: list[bool] = []

    def work(*, waits: bool) -> str:
        ticket = held()
        assert ticket is not None
        asked.append(ticket.at_once)
        if waits:
            may_wait()
        return threading.current_thread().name

    async def run(*, waits: bool) -> str:
        return await places.run("small", partial(work, waits=waits), brief=True)

    assert asyncio.run(run(waits=False)) == threading.main_thread().name
    assert asyncio.run(run(waits=True)).startswith("solve-small")
    assert asked == [True, True, False]
    places.close()


def test_a_brief_one_does_not_stand_behind_small_ones_that_are_slow() -> None:
    places, leave = offload(), threading.Event()

    def work() -> str:
        may_wait()
        return threading.current_thread().name

    async def run() -> None:
        full = [asyncio.ensure_future(places.run("small", leave.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        assert (await places.run("small", work, brief=True)).startswith("solve-small")
        assert (places.inside("small"), places.waiting("small")) == (2, 1)
        with pytest.raises(TooManyRequests):
            await places.run("small", work)
        leave.set()
        assert await asyncio.gather(*full) == [True, True]

    asyncio.run(run())
    places.close()


def test_a_refusal_says_how_many_there_are() -> None:
    places = offload(1, 0)

    async def run() -> None:
        leave = threading.Event()
        first = asyncio.ensure_future(places.run("large", leave.wait, 10))
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match=r"^1 requests like this one are being answered or wait already$"):
            await places.run("large", int)
        assert (places.inside("large"), places.waiting("large"), places.waiting("small")) == (1, 0, 0)
        leave.set()
        await first

    asyncio.run(run())
    places.close()


@pytest.mark.parametrize(("asked", "allowed"), [(None, 20.0), (3.0, 3.0), (30.0, 20.0)])
def test_a_request_may_ask_for_less_time_and_not_for_more(asked: float | None, allowed: float) -> None:
    places = offload(seconds=20.0)
    asks: list[tuple[Class, bool]] = [("small", False), ("small", True), ("slow", False)]
    for of, brief in asks:
        with allowing(asked):
            ticket = asyncio.run(places.run(of, held, brief=brief))
        assert ticket is not None
        assert (ticket.of, ticket.seconds, ticket.at_once) == (of, allowed, brief)
        assert allowed - 3 < ticket.left <= allowed
    places.close()


def test_brief_ones_of_other_classes_are_not_tried_on_the_event_loop() -> None:
    places = offload()
    assert asyncio.run(places.run("large", lambda: threading.current_thread().name, brief=True)).startswith(
        "solve-large"
    )
    places.close()


@pytest.mark.parametrize(("threads", "brief"), [(2, 2), (9, 4)])
def test_brief_ones_have_four_threads_at_most_and_as_much_room_to_wait(threads: int, brief: int) -> None:
    places = offload(threads, 2)
    leave = threading.Event()

    def work() -> None:
        may_wait()
        leave.wait(10)

    async def run() -> None:
        full = [asyncio.ensure_future(places.run("small", work, brief=True)) for _ in range(brief + 2)]
        await asyncio.sleep(0)
        assert (places.inside("small"), places.waiting("small")) == (brief + 2, 2)
        with pytest.raises(TooManyRequests):
            await places.run("small", work, brief=True)
        leave.set()
        await asyncio.gather(*full)
        assert places.inside("small") == 0

    asyncio.run(run())
    places.close()


def test_who_hangs_up_is_gone_and_no_deadline_has_passed() -> None:
    places, leave = offload(), threading.Event()
    begun: list[int] = []

    async def run() -> None:
        first = asyncio.ensure_future(places.run("large", leave.wait, 10))
        second = asyncio.ensure_future(places.run("large", begun.append, 1))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert places.inside("large") == 1
        third = asyncio.ensure_future(places.run("large", begun.append, 2))
        await asyncio.sleep(0)
        places.close()
        with pytest.raises(asyncio.CancelledError):
            await third
        leave.set()
        assert await first
        with pytest.raises(RuntimeError):
            await places.run("small", int)

    asyncio.run(run())
    assert begun == []


def test_the_wait_for_a_thread_is_told_to_whoever_listens() -> None:
    places, told = offload(), list[ticket.Stage]()
    with ticket.heard_by(told.append):
        assert asyncio.run(places.run("large", divmod, 7, 2)) == (3, 1)
    assert [stage.name for stage in told] == ["waiting"]
    assert asyncio.run(places.run("large", divmod, 7, 2)) == (3, 1)
    assert len(told) == 1
    places.close()


def test_a_pause_counts_from_when_the_collector_was_turned_off(clock: Clock, instead: Instead) -> None:
    collected = list[int]()
    clock.drives("app.workers.dispatcher")
    instead(gc, collect=collected.append)
    with collector_paused():
        clock.now += 4
        with collector_paused():
            clock.now += 1
        assert collected == [], "five seconds are not too long"
        with collector_paused():
            clock.now += 1
        assert collected == [1]
        clock.now += 5
    assert collected == [1], "it had its turn"
    with collector_paused():
        clock.now += 5
    assert collected == [1]
