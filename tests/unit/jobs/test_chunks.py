"""Lines of results in chunks: nothing is lost or twice, numbers go up, and what may be stored is bounded."""

import random
from collections.abc import Sequence

import pytest

from app.jobs import worker as chunks
from app.jobs.repository import Chunk
from app.jobs.worker import ChunkWriter, TooManyResults, lines_of
from tests.support.bounds import Bounded


def told(found: Sequence[Chunk]) -> list[tuple[str, int, int, int]]:
    """Stream, number, first line and lines of each chunk."""
    return [(one.stream, one.number, one.first, one.lines) for one in found]


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size).replace(b"\n", b" ")


SIZE = len(chunks.zstandard.ZstdCompressor(level=3).compress(noise(100) + b"\n"))
"""Of a chunk of one line of noise."""


@pytest.fixture(autouse=True)
def small(bounded: Bounded) -> None:
    bounded(chunks, CHUNK=100, TOGETHER=150)


def test_a_chunk_is_full_at_its_size_with_the_ends_of_its_lines() -> None:
    stored: list[Chunk] = []
    writer = ChunkWriter(stored.extend, 10_000)
    for stream, size in (("a", 49), ("b", 99), ("a", 49), ("a", 48), ("a", 49), ("a", 0), ("b", 1)):
        writer.write(stream, b"x" * size)
    assert stored == [], "little is stored together"
    writer.flush()
    assert told(stored) == [("b", 0, 0, 1), ("a", 0, 0, 2), ("a", 1, 2, 3), ("b", 1, 1, 1)]
    writer.flush()
    assert len(stored) == 4


@pytest.mark.parametrize(("more", "together"), [(0, 1), (1, 2)])
def test_chunks_are_stored_together_once_there_is_enough_of_them(more: int, together: int, bounded: Bounded) -> None:
    bounded(chunks, TOGETHER=SIZE + more)
    times: list[int] = []
    writer = ChunkWriter(lambda found: times.append(len(found)), 10_000)
    for _ in range(4):
        writer.write("a", noise(100))
    assert times == [together] * (4 // together)
    if together == 2:
        writer.write("a", noise(100))
        writer.flush()
        assert times == [2, 2, 1]


def test_more_than_may_be_stored_is_refused() -> None:
    for most, written in ((2 * SIZE, 2), (2 * SIZE - 1, 1)):
        writer = ChunkWriter(lambda _: None, most)
        for _ in range(written):
            writer.write("a", noise(100))
        with pytest.raises(TooManyResults):
            writer.write("a", noise(100))


@pytest.mark.parametrize(
    ("skip", "most", "expected"),
    [
        (0, None, b"a\nb\nc\n"), (0, 3, b"a\nb\nc\n"), (0, 2, b"a\nb\n"), (1, None, b"b\nc\n"), (1, 1, b"b\n"),
        (3, None, b""), (0, 0, b""),
    ],
)  # fmt: skip
def test_a_part_of_a_chunk(skip: int, most: int | None, expected: bytes) -> None:
    stored: list[Chunk] = []
    writer = ChunkWriter(stored.extend, 10_000)
    for line in (b"a", b"b", b"c"):
        writer.write("s", line)
    writer.flush()
    assert lines_of(stored[0], skip, most) == (expected, expected.count(b"\n"))
