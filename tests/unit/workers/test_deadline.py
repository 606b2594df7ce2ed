import threading
import time

import pytest

from app.errors import DeadlinePassed
from app.workers.deadline import deadline


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))


def late(limit: float, work: float) -> bool:
    try:
        with deadline(limit):
            spin(work)
    except DeadlinePassed:
        return True
    return False


def in_thread(limit: float, work: float) -> bool:
    found: list[bool] = []

    def run() -> None:
        found.append(late(limit, work))
        spin(0.05)  # whatever follows is not disturbed

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    return found[0]


@pytest.mark.parametrize("run", [late, in_thread])
def test_work_stops_at_its_deadline_and_not_before(run: object) -> None:
    assert callable(run)
    assert run(0.05, 10)
    assert not run(30, 0.01)


def test_no_deadline_is_no_deadline() -> None:
    with deadline(None):
        spin(0.01)


def test_work_that_swallows_exceptions_is_stopped_all_the_same() -> None:
    def stubborn() -> None:
        while True:
            try:
                spin(10)
            except Exception:
                continue

    with pytest.raises(DeadlinePassed), deadline(0.05):
        stubborn()
