"""Request bodies: read once, capped as sent and after decompression.

A body is one ``bytes`` that msgspec decodes in place. Compressed ones are inflated piece by piece, so that a
bomb costs no more than the cap.
"""

import zlib
from collections.abc import Iterator
from typing import Annotated

import zstandard
from anyio import to_thread
from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from app.errors import BadRequest, TooLarge, UnsupportedMediaType
from app.http.services import service
from app.settings import Settings

_PIECE = 1 << 18
_INLINE = 1 << 16
_BITE = 512
_MOST_FRAMES = 10_000
_ZSTD_WINDOW = 8 << 20  # RFC 9659: a zstd content coding needs no more
_GZIP = 16 + zlib.MAX_WBITS
ENCODINGS = ("gzip", "zstd")
LINES = ("application/x-ndjson", "application/jsonl", "application/json")
MANIFESTS = ("application/yaml", "application/json", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")


async def read_body(request: Request) -> bytes:
    """The JSON body, decompressed. Raises BadRequest, TooLarge, UnsupportedMediaType."""
    _require_json(request.headers.get("content-type"))
    return await _read(request)


async def read_manifest(request: Request) -> bytes:
    """A body of YAML or JSON, decompressed. Raises BadRequest, TooLarge, UnsupportedMediaType."""
    media = _media(request.headers.get("content-type"))
    if media not in MANIFESTS and not media.endswith(("+json", "+yaml")):
        raise UnsupportedMediaType(
            f"send {' or '.join(MANIFESTS[:2])}, not {media[:64]!r}", headers={"Accept": ", ".join(MANIFESTS)}
        )
    return await _read(request)


def require_lines(request: Request) -> None:
    """Lines of JSON are read as they come, never decompressed. Raises UnsupportedMediaType."""
    media = _media(request.headers.get("content-type"))
    if media not in LINES:
        raise UnsupportedMediaType(f"send {LINES[0]}, not {media[:64]!r}", headers={"Accept": ", ".join(LINES)})
    if _encoding(request.headers.get("content-encoding")) is not None:
        raise UnsupportedMediaType("lines are sent plain", headers={"Accept-Encoding": "identity"})


async def _read(request: Request) -> bytes:
    limit = service(request, Settings).max_body_bytes
    encoding = _encoding(request.headers.get("content-encoding"))
    _check_announced(request.headers.get("content-length"), limit)
    body = await _receive(request, limit)
    if encoding is None:
        return body
    if len(body) <= _INLINE:
        return inflate(body, encoding, limit)
    return await to_thread.run_sync(inflate, body, encoding, limit)


Body = Annotated[bytes, Depends(read_body)]
Manifest = Annotated[bytes, Depends(read_manifest)]


async def _receive(request: Request, limit: int) -> bytes:
    """The bytes as sent. The pieces are joined once; a body of one piece is not copied at all."""
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            if piece:
                pieces.append(piece)
    except ClientDisconnect:
        raise BadRequest("the connection closed before the body was complete") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """``body`` decompressed, at most ``limit`` bytes of it. Raises BadRequest, TooLarge."""
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in _gunzip(body) if encoding == "gzip" else _unzstd(body):
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise BadRequest(f"the body is not valid {encoding}: {error}") from None
    return b"".join(pieces)


def _gunzip(body: bytes) -> Iterator[bytes]:
    """Members of a gzip stream, one after the other, in pieces."""
    for _ in range(_MOST_FRAMES):
        member = zlib.decompressobj(_GZIP)
        rest = body
        while not member.eof:
            piece = member.decompress(rest, _PIECE)
            rest = member.unconsumed_tail
            if not piece and not rest and not member.eof:
                raise EOFError("it ends early")
            yield piece
        body = member.unused_data
        if not body:
            return
    raise EOFError("too many members")


def _unzstd(body: bytes) -> Iterator[bytes]:
    """Frames of a zstd stream, in pieces. Small bites bound what one step can blow up to: 4 bytes give 128 KiB."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    rest = memoryview(body)
    for _ in range(_MOST_FRAMES):
        frame = decompressor.decompressobj()
        while not frame.eof:
            if not rest:
                raise EOFError("it ends early")
            bite, rest = rest[:_BITE], rest[_BITE:]
            yield frame.decompress(bite)
        if frame.unused_data:
            rest = memoryview(body)[len(body) - len(rest) - len(frame.unused_data) :]
        if not rest:
            return
    raise EOFError("too many frames")


def _require_json(content_type: str | None) -> None:
    media = _media(content_type)
    if media != "application/json" and not media.endswith("+json"):
        raise UnsupportedMediaType(f"send application/json, not {media[:64]!r}", headers={"Accept": "application/json"})


def _media(content_type: str | None) -> str:
    return (content_type or "application/json").partition(";")[0].strip().lower()


def _encoding(header: str | None) -> str | None:
    name = (header or "identity").strip().lower()
    if name in ENCODINGS:
        return name
    if name == "identity":
        return None
    raise UnsupportedMediaType(
        f"content coding {name[:64]!r} is not one of {', '.join(ENCODINGS)}",
        headers={"Accept-Encoding": ", ".join(ENCODINGS)},
    )


def _check_announced(length: str | None, limit: int) -> None:
    if length is not None and length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is larger than {limit} bytes, as sent or decompressed")
