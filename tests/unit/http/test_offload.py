import asyncio
import gc
import threading

import pytest

from app.http.offload import Offload, collector_paused


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


def test_unbroken_load_does_not_keep_it_from_collecting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.http.offload._LONGEST_PAUSE", -1.0)
    collected: list[int] = []
    monkeypatch.setattr(gc, "collect", collected.append)
    with collector_paused():
        with collector_paused():
            pass
        assert collected == [1]
    assert collected == [1, 1]


def test_work_runs_in_a_thread_of_its_own_and_its_errors_come_back() -> None:
    offload = Offload(1)

    async def run() -> str:
        with pytest.raises(ZeroDivisionError):
            await offload.run(divmod, 1, 0)
        return await offload.run(lambda: threading.current_thread().name)

    assert asyncio.run(run()).startswith("solve")
    offload.close()
