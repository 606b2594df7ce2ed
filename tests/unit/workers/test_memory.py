"""Each in a process of its own: what other tests have left behind would be counted too."""

import subprocess
import sys

import pytest

GROWING = """
from app.workers.worker import Reserve

reserve = Reserve(96 << 20)
for body in (4 << 20, 4 << 20, 100 << 20, 1000 << 20):
    reserve.grow(body)
    print(len(reserve))
"""
COUNTING = """
import resource
from app.workers.worker import Reserve, keep_freed_blocks

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made = [bytes(400) for _ in range((64 << 20) // 448)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_blocks()
cold = faults()
reserve = Reserve(96 << 20)
reserve.grow(96 << 20)
print(cold, faults())
"""
"""Pages that the system hands out for 64 MiB of small objects, before and after they are reserved."""


GIVING_BACK = """
import asyncio
from contextlib import suppress
from app.workers import worker as memory

memory.keep_freed_blocks()
reserve = memory.Reserve(64 << 20)
start = memory._resident()

async def used():
    resting = asyncio.create_task(memory.give_back_when_idle(0.2))
    await asyncio.sleep(0)
    blocks = [b"x" * (1 << 20) for _ in range(200)] + [b"y" * 1000]
    reserve.grow(64 << 20)
    full = memory._resident() - start
    pin = blocks[-1]  # what lies above everything else keeps malloc from giving back by itself
    blocks.clear()
    reserve.release()
    await asyncio.sleep(1)
    print(full >> 20, (memory._resident() - start) >> 20, len(reserve))
    resting.cancel()
    with suppress(asyncio.CancelledError):
        await resting

asyncio.run(used())
"""
"""MiB more than at the start: with 200 MiB of blocks and a reserve, and once they are gone and nothing is done."""


def printed(program: str) -> list[int]:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return list(map(int, ran.stdout.split()))


def test_the_reserve_grows_with_what_comes_and_stops_at_its_bound() -> None:
    first, again, most, past = printed(GROWING)
    assert 40 <= first <= 80
    assert again == first
    assert most >= first + 30
    assert past == most


@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.platform != "linux", reason="counts Linux pages")
def test_what_is_reserved_is_not_handed_out_again() -> None:
    cold, kept = printed(COUNTING)
    assert kept < cold / 4


@pytest.mark.slow
@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.platform != "linux", reason="counts Linux pages")
def test_who_has_nothing_to_do_gives_back_what_is_kept_of_freed_blocks() -> None:
    full, left, reserved = printed(GIVING_BACK)
    assert full > 200
    assert left < 60
    assert reserved == 0
