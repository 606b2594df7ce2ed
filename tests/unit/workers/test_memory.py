"""Each in a process of its own: what other tests have left behind would be counted too."""

import subprocess
import sys

import pytest

GROWING = """
from app.workers.memory import Reserve

reserve = Reserve(96 << 20)
for body in (4 << 20, 4 << 20, 100 << 20, 1000 << 20):
    reserve.grow(body)
    print(len(reserve))
"""
COUNTING = """
import resource
from app.workers.memory import Reserve, keep_freed_blocks

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
