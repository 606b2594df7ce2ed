"""The fast search says what the plain one says, in bodies small and large."""

import random

import pytest

from app.base import decoding
from app.base.decoding import occurs
from tests.support.bounds import Bounded

LARGE = 1 << 17
NEEDLE = b"9999-12-31"


@pytest.mark.parametrize("size", [0, 5, 100, LARGE])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_what_is_there_is_found_wherever_it_stands(size: int, at: float) -> None:
    filler = b"2\x00023-11-14 9999-12-30 " * (size // 22)
    cut = int(len(filler) * at)
    assert not occurs(NEEDLE, filler)
    assert occurs(NEEDLE, filler[:cut] + NEEDLE + filler[cut:])
    assert not occurs(NEEDLE, filler + NEEDLE[:-1])


def test_both_ways_agree(bounded: Bounded) -> None:
    draw = random.Random(3)
    cases = [(bytes(draw.choices(b"ab\0", k=n)), bytes(draw.choices(b"ab\0", k=9))) for n in (20, 9_000) * 20]
    bounded(decoding, LARGE_BYTES=0)
    fast = [occurs(needle, body) for body, needle in cases]
    assert fast == [needle in body for body, needle in cases]
    assert {True, False} <= set(fast)
