"""Lines of results on their way into the database: gathered, compressed, stored some at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import zstandard

from app.jobs.repository import Chunk

_CHUNK = 256 << 10
_LEVEL = 3
_TOGETHER = 2 << 20
"""Compressed bytes that are stored in one transaction."""


class TooManyResults(Exception):
    """The results of a job are past what it may store."""


@dataclass
class _Stream:
    lines: list[bytes] = field(default_factory=list[bytes])
    waiting: int = 0
    first: int = 0
    number: int = 0


class ChunkWriter:
    """Streams of lines, each by a name. ``store`` takes what is ready; ``most``: compressed bytes over all."""

    def __init__(self, store: Callable[[Sequence[Chunk]], None], most: int) -> None:
        self._store = store
        self._most = most
        self._streams: dict[str, _Stream] = {}
        self._ready: list[Chunk] = []
        self._ready_bytes = self._total = 0
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)

    def write(self, stream: str, line: bytes) -> None:
        """One line, without its end. Raises TooManyResults, and what ``store`` raises."""
        found = self._streams.get(stream)
        if found is None:
            found = self._streams[stream] = _Stream()
        found.lines.append(line)
        found.waiting += len(line) + 1
        if found.waiting >= _CHUNK:
            self._pack(stream, found)

    def flush(self) -> None:
        """Store all that is left."""
        for name, stream in self._streams.items():
            if stream.lines:
                self._pack(name, stream)
        self._send()

    def _pack(self, name: str, stream: _Stream) -> None:
        data = self._compressor.compress(b"\n".join(stream.lines) + b"\n")
        self._ready.append(Chunk(name, stream.number, stream.first, len(stream.lines), data))
        self._total += len(data)
        self._ready_bytes += len(data)
        stream.first += len(stream.lines)
        stream.number += 1
        stream.lines, stream.waiting = [], 0
        if self._total > self._most:
            raise TooManyResults
        if self._ready_bytes >= _TOGETHER:
            self._send()

    def _send(self) -> None:
        if self._ready:
            self._store(self._ready)
            self._ready, self._ready_bytes = [], 0


def lines_of(chunk: Chunk, skip: int, most: int | None) -> tuple[bytes, int]:
    """The lines of a chunk with their ends, without the first ``skip`` and at most so many; and how many they are."""
    text = zstandard.ZstdDecompressor().decompress(chunk.data)
    if skip == 0 and (most is None or most >= chunk.lines):
        return text, chunk.lines
    found = text.splitlines(keepends=True)[skip:][:most]
    return b"".join(found), len(found)
