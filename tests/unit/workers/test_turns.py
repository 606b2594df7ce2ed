import threading
import time

import pytest

from app.base.errors import DeadlinePassed, TooManyRequests, Unavailable
from app.base.ticket import Class, Ticket, asked_by
from app.workers.pool import Turns


class Line:
    """Callers in threads of their own, and the order in which they got a worker."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.served: list[tuple[str, int]] = []
        self.threads: list[threading.Thread] = []

    def join(self, of: Class, name: str, worker: int | None = None, who: str = "") -> None:
        before = self.turns.waiting().total()
        with asked_by(who):
            ticket = Ticket.now(of, 20)

        def wait() -> None:
            at = self.turns.take(ticket, worker)
            self.served.append((name, at))
            self.turns.give(at)

        self.threads.append(threading.Thread(target=wait))
        self.threads[-1].start()
        while self.turns.waiting().total() == before:
            time.sleep(0.001)

    def end(self) -> list[str]:
        for thread in self.threads:
            thread.join()
        return [name for name, _ in self.served]


def test_classes_take_turns_and_within_one_the_first_goes_first() -> None:
    turns = Turns(1)
    line = Line(turns)
    at = turns.take(Ticket.now("large", 20))
    for i in range(4):
        line.join("large", f"large {i}")
    line.join("slow", "slow")
    for i in range(2):
        line.join("snapshot", f"snapshot {i}")
    turns.give(at)
    assert line.end() == ["slow", "snapshot 0", "large 0", "snapshot 1", "large 1", "large 2", "large 3"]


def test_within_a_class_those_who_ask_take_turns() -> None:
    turns = Turns(1)
    line = Line(turns)
    at = turns.take(Ticket.now("large", 20))
    for name in ("a0", "a1", "a2", "b0", "b1", "c0"):
        line.join("large", name, who=name[0])
    line.join("slow", "slow of a", who="a")
    turns.give(at)
    assert line.end() == ["slow of a", "b0", "c0", "a0", "b1", "a1", "a2"], "a has had its turn first, in another class"


def test_one_that_waits_can_be_dropped() -> None:
    turns = Turns(1)
    at = turns.take(running := Ticket.now("large", 20))
    told: list[str] = []
    waits = Ticket.now("large", 20)

    def wait() -> None:
        try:
            turns.take(waits)
        except TooManyRequests as error:
            told.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    while not turns.waiting():
        time.sleep(0.001)
    assert not turns.drop(running)
    assert turns.drop(waits)
    assert not turns.drop(waits)
    thread.join(5)
    assert told == ["many of your requests wait, and others ask as well"]
    turns.give(at)
    assert turns.take(Ticket.now("large", 20)) == at


def test_whoever_wants_one_worker_gets_that_one_and_others_pass() -> None:
    turns = Turns(2)
    line = Line(turns)
    busy = [turns.take(Ticket.now("large", 20)) for _ in range(2)]
    assert sorted(busy) == [0, 1]
    line.join("snapshot", "owner", worker=0)
    line.join("large", "any")
    turns.give(1)
    while not line.served:
        time.sleep(0.001)
    assert line.served == [("any", 1)]
    turns.give(0)
    assert line.end() == ["any", "owner"]
    assert line.served[1] == ("owner", 0)
    assert turns.busy() == 0


def test_waiting_ends_with_the_deadline_and_leaves_the_line() -> None:
    turns = Turns(1)
    at = turns.take(Ticket.now("large", 20))
    with pytest.raises(DeadlinePassed):
        turns.take(Ticket.now("small", 0.02))
    assert not turns.waiting()
    turns.give(at)
    assert turns.take(Ticket.now("large", 20)) == at


def test_closing_tells_who_waits() -> None:
    turns = Turns(1)
    turns.take(Ticket.now("large", 20))
    told: list[Unavailable] = []

    def wait() -> None:
        try:
            turns.take(Ticket.now("large", 20))
        except Unavailable as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not turns.waiting():
        time.sleep(0.001)
    turns.close()
    thread.join(5)
    assert not turns.waiting()
    with pytest.raises(Unavailable) as later:
        turns.take(Ticket.now("large", 20))
    assert [error.headers for error in (*told, later.value)] == [{"Retry-After": "1"}] * 2


def test_a_crowd_of_callers_loses_no_worker() -> None:
    turns, lost = Turns(2), list[int]()
    held = [0, 0]

    def run(number: int) -> None:
        for i in range(200):
            try:
                at = turns.take(Ticket.now("large", 0.0005 * (1 + (number + i) % 3)), None if i % 2 else number % 2)
            except DeadlinePassed:
                continue
            held[at] += 1
            if held[at] != 1:
                lost.append(at)
            held[at] -= 1
            turns.give(at)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (lost, turns.busy(), turns.waiting().total()) == ([], 0, 0)
