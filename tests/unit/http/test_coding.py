"""Inflating: off the event loop, in time, and what it makes is held."""

import gzip
import json
import threading
import time
from functools import partial

import pytest
import zstandard
from starlette.testclient import TestClient

from app.base.errors import BadRequest, DeadlinePassed, TooLarge, TooManyRequests
from app.http import body as module
from app.http.body import FREE, Bounds, Budget, Hold, inflate
from tests.api.requests import decision
from tests.support.instead import Clock, Instead

WHOLE = b"x" * (8 << 20)
CODED = {"gzip": gzip.compress(WHOLE), "zstd": zstandard.compress(WHOLE)}


def bounds(most: int = 1 << 30, seconds: float = 60.0, hold: Hold | None = None) -> Bounds:
    return Bounds(most, time.monotonic() + seconds, seconds, (hold or Hold(Budget(1 << 30))).change)


@pytest.mark.parametrize("coding", CODED)
def test_what_comes_out_is_held(coding: str) -> None:
    budget = Budget(1 << 30)
    hold = Hold(budget)
    assert inflate(CODED[coding], coding, bounds(hold=hold)) == WHOLE
    assert budget.taken == len(WHOLE) - FREE
    hold.release()
    assert budget.taken == 0


@pytest.mark.parametrize("coding", CODED)
def test_it_ends_at_the_cap_the_budget_and_the_deadline(coding: str) -> None:
    for refused, given in (
        (TooLarge, bounds(most=1 << 20)),
        (TooManyRequests, bounds(hold=Hold(Budget(1 << 20)))),
        (DeadlinePassed, bounds(seconds=0.0)),
    ):
        with pytest.raises(refused):
            inflate(CODED[coding], coding, given)


@pytest.mark.parametrize("coding", CODED)
def test_ten_thousand_empty_members_take_no_time_worth_mentioning(coding: str) -> None:
    empty = gzip.compress(b"") if coding == "gzip" else zstandard.compress(b"")
    padded = empty * 9_999 + CODED[coding]
    began = time.process_time()
    assert inflate(padded, coding, bounds()) == WHOLE
    assert time.process_time() - began < 2


@pytest.mark.parametrize("coding", CODED)
def test_the_event_loop_inflates_nothing_however_small(homeless: TestClient, coding: str, instead: Instead) -> None:
    inside = list[str]()

    def watched(coded: bytes, coding: str, bounds: Bounds) -> bytes:
        inside.append(threading.current_thread().name)
        return inflate(coded, coding, bounds)

    instead(module, inflate=watched)
    plain = json.dumps(decision()).encode()
    coded = gzip.compress(plain) if coding == "gzip" else zstandard.compress(plain)
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    assert homeless.post("/v1/decisions", content=coded, headers=headers).status_code == 200
    assert len(inside) == 1
    assert "worker" in inside[0].lower()


@pytest.mark.parametrize("coding", CODED)
def test_the_last_byte_and_the_last_moment_are_allowed(coding: str, clock: Clock) -> None:
    clock.drives(module)
    clock.now = 7.0
    assert inflate(CODED[coding], coding, Bounds(len(WHOLE), 7.0, 2.0, lambda _: None)) == WHOLE
    with pytest.raises(TooLarge):
        inflate(CODED[coding], coding, Bounds(len(WHOLE) - 1, 7.0, 2.0, lambda _: None))
    with pytest.raises(DeadlinePassed, match="no answer within 2 s"):
        inflate(CODED[coding], coding, Bounds(len(WHOLE), 6.999, 2.0, lambda _: None))


@pytest.mark.parametrize("coding", CODED)
def test_what_is_cut_or_none_at_all(coding: str) -> None:
    for coded, why in ((CODED[coding][:-1], "it ends early"), (b"", "it ends early"), (CODED[coding] + b"x", "")):
        with pytest.raises(BadRequest, match=f"the body is not valid {coding}: {why}"):
            inflate(coded, coding, bounds())
    empty = gzip.compress(b"") if coding == "gzip" else zstandard.compress(b"")
    with pytest.raises(BadRequest, match=r"too many (members|frames)"):
        inflate(empty * 10_001, coding, bounds())
    assert inflate(empty * 10_000, coding, bounds()) == b""


def test_small_bodies_get_in_when_the_budget_is_used_up() -> None:
    budget = Budget(100)
    greedy, small, second = Hold(budget), Hold(budget), Hold(budget)
    greedy.change(FREE + 100)
    small.change(FREE)
    with pytest.raises(TooManyRequests) as refused:
        second.change(FREE + 1)
    assert refused.value.headers == {"Retry-After": "1"}
    second.release()
    greedy.change(-50)
    small.change(50)
    assert budget.taken == 100
    greedy.release()
    greedy.release()
    assert budget.taken == 50, "given back once"
    small.release()
    greedy.change(1 << 20)  # too late to hold anything
    assert budget.taken == 0


def test_who_holds_most_gives_way_with_what_is_still_read() -> None:
    budget, stopped = Budget(100), list[str]()

    def hold(who: str, *, reading: bool) -> Hold:
        made = Hold(budget)
        made.who = who
        made.stop = partial(stopped.append, who) if reading else None
        return made

    whole, first, second = (hold("many", reading=reading) for reading in (False, True, True))
    few, other = (hold("few", reading=True) for _ in range(2))
    for of, size in ((few, 20), (whole, 30), (first, 20), (second, 30)):
        of.change(FREE + size)
    other.change(FREE + 10)
    assert (stopped, second.gave_way, budget.taken) == (["many"], True, 80)
    with pytest.raises(TooManyRequests):
        second.change(1)
    second.release()
    assert budget.taken == 80, "it was taken from it before"
    with pytest.raises(TooManyRequests):  # of two that would hold as much then, nobody gives way
        other.change(30)
    assert (stopped, budget.taken) == (["many"], 80)
    other.release()
    with pytest.raises(TooManyRequests):  # nor to oneself
        whole.change(200)
    assert not first.gave_way
