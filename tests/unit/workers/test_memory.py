import resource
import sys

import pytest

from app.workers.memory import Reserve, keep_freed_blocks

MIB = 1 << 20


def faults(mib: int) -> int:
    """Pages that the system handed out while ``mib`` MiB of small objects were made."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made = [bytes(400) for _ in range((mib << 20) // 448)]
    assert made
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


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


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or sys.platform != "linux", reason="counts pages as Linux does"
)
def test_what_is_reserved_is_not_handed_out_again() -> None:
    keep_freed_blocks()
    cold = faults(64)
    reserve = Reserve(96 * MIB)
    reserve.grow(96 * MIB)
    assert faults(64) < cold / 4
