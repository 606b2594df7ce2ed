"""Compressed bodies: inflated piece by piece, so that a bomb costs no more than the cap, and no longer than allowed."""

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO

import zstandard

from app.base.errors import BadRequest, DeadlinePassed, TooLarge

CODINGS = ("gzip", "zstd")
_PIECE = 1 << 18
_BITE = 512
"""So little goes in at once: 4 bytes of zstd can give 128 KiB, and whatever follows the end of a frame is copied."""
_MOST_FRAMES = 10_000
_ZSTD_WINDOW = 8 << 20  # RFC 9659: a zstd content coding needs no more
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Bounds:
    """``most``: bytes inflated; ``end``: an instant of ``time.monotonic()``, ``seconds`` after the beginning; ``hold``
    is told of every piece that is kept."""

    most: int
    end: float
    seconds: float
    hold: Callable[[int], None]


def inflate(body: bytes, coding: str, bounds: Bounds) -> bytes:
    """``body`` decompressed. Raises BadRequest, TooLarge, DeadlinePassed, and what ``hold`` raises."""
    whole = BytesIO()
    try:
        for piece in _gunzip(body) if coding == "gzip" else _unzstd(body):
            if time.monotonic() > bounds.end:
                raise DeadlinePassed(bounds.seconds)
            if whole.tell() + len(piece) > bounds.most:
                raise too_large(bounds.most)
            bounds.hold(len(piece))
            whole.write(piece)
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise BadRequest(f"the body is not valid {coding}: {error}") from None
    return whole.getvalue()


def too_large(most: int) -> TooLarge:
    """The refusal of a body past ``most`` bytes."""
    return TooLarge(f"the body is larger than {most} bytes, as sent or decompressed (ARBITER_MAX_BODY_BYTES)")


def _gunzip(body: bytes) -> Iterator[bytes]:
    """Members of a gzip stream, one after the other, in pieces."""
    rest = memoryview(body)
    for _ in range(_MOST_FRAMES):
        member = zlib.decompressobj(_GZIP)
        while not member.eof:
            if not rest:
                raise EOFError("it ends early")
            bite, rest = rest[:_BITE], rest[_BITE:]
            yield member.decompress(bite, _PIECE)
            while member.unconsumed_tail and not member.eof:
                yield member.decompress(member.unconsumed_tail, _PIECE)
        rest = _left(body, rest, member.unused_data)
        if not rest:
            return
    raise EOFError("too many members")


def _unzstd(body: bytes) -> Iterator[bytes]:
    """Frames of a zstd stream, in pieces."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    rest = memoryview(body)
    for _ in range(_MOST_FRAMES):
        frame = decompressor.decompressobj()
        while not frame.eof:
            if not rest:
                raise EOFError("it ends early")
            bite, rest = rest[:_BITE], rest[_BITE:]
            yield frame.decompress(bite)
        rest = _left(body, rest, frame.unused_data)
        if not rest:
            return
    raise EOFError("too many frames")


def _left(body: bytes, rest: memoryview, unused: bytes) -> memoryview:
    """What follows the end of a frame: ``unused`` of the last bite, then ``rest``."""
    return memoryview(body)[len(body) - len(rest) - len(unused) :]
