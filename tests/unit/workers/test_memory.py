import subprocess
import sys

import pytest

from app.workers.memory import Reserve

MIB = 1 << 20
COUNT = """
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


def test_the_reserve_grows_with_what_comes_and_stops_at_its_bound() -> None:
    reserve = Reserve(96 * MIB)
    reserve.grow(4 * MIB)
    some = len(reserve)
    assert 20 <= some <= 64
    reserve.grow(4 * MIB)
    assert len(reserve) == some
    reserve.grow(100 * MIB)
    assert some + 20 <= len(reserve) <= 128
    most = len(reserve)
    reserve.grow(1000 * MIB)
    assert len(reserve) == most


@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.platform != "linux", reason="counts Linux pages")
def test_what_is_reserved_is_not_handed_out_again() -> None:
    ran = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    cold, kept = map(int, ran.stdout.split())
    assert kept < cold / 4
