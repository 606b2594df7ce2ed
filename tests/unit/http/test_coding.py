"""Inflating: off the event loop, in time, and what it makes is held."""

import gzip
import json
import threading
import time

import pytest
import zstandard
from starlette.testclient import TestClient

from app.errors import DeadlinePassed, TooLarge, TooManyRequests
from app.http import body
from app.http.budget import FREE, Budget, Hold
from app.http.coding import Bounds, inflate
from tests.api.requests import decision

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
def test_the_event_loop_inflates_nothing_however_small(
    homeless: TestClient, coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = list[str]()

    def watched(coded: bytes, coding: str, bounds: Bounds) -> bytes:
        inside.append(threading.current_thread().name)
        return inflate(coded, coding, bounds)

    monkeypatch.setattr(body, "inflate", watched)
    plain = json.dumps(decision()).encode()
    coded = gzip.compress(plain) if coding == "gzip" else zstandard.compress(plain)
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    assert homeless.post("/v1/decisions", content=coded, headers=headers).status_code == 200
    assert len(inside) == 1
    assert "worker" in inside[0].lower()


def test_small_bodies_get_in_when_the_budget_is_used_up() -> None:
    budget = Budget(100)
    greedy, small, second = Hold(budget), Hold(budget), Hold(budget)
    greedy.change(FREE + 100)
    small.change(FREE)
    with pytest.raises(TooManyRequests):
        second.change(FREE + 1)
    second.release()
    greedy.change(-50)
    small.change(50)
    assert budget.taken == 100
    greedy.release()
    small.release()
    greedy.change(1 << 20)  # too late to hold anything
    assert budget.taken == 0
