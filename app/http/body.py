"""Request bodies: read once, capped as sent and after decompression, in time, and within the memory set aside.

A body is one ``bytes`` that msgspec decodes in place. A compressed one is inflated piece by piece, so that a bomb costs
no more than the cap, and no longer than allowed. Of several files (RFC 7578) each is one part, by its field.
"""

import asyncio
import time
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from threading import Lock
from typing import Annotated, Any

import zstandard
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from app.base.errors import BadRequest, DeadlinePassed, RequestTimeout, TooLarge, TooManyRequests, UnsupportedMediaType
from app.base.settings import Settings
from app.base.ticket import FairGate, spend_timeout, timeout_within, who_asks
from app.http.openapi import NDJSON
from app.http.routing import of_scope, service

FREE = 64 << 10
_INFLATING = 2
_WORKING = 2  # what becomes of a large body takes twenty times its size, and all threads share one interpreter
_KEY = "arbiter.hold"
CODINGS = ("gzip", "zstd")
_PIECE = 1 << 18
_BITE = 512
"""So little goes in at once: 4 bytes of zstd can give 128 KiB, and whatever follows the end of a frame is copied."""
_MOST_FRAMES = 10_000
_ZSTD_WINDOW = 8 << 20  # RFC 9659: a zstd content coding needs no more
_GZIP = 16 + zlib.MAX_WBITS
_USED_UP = "request bodies use all the memory that there is for them"


class Budget:
    """``most`` bytes for all requests together; ``inflating``: threads for those that are compressed; ``turns``: whose;
    ``working``: whose large document this process works on itself; ``showing``: for whom it makes a page of one.

    Where they are used up, whoever holds most gives way to others: the last of their bodies that is still being read.
    """

    def __init__(self, most: int) -> None:
        self.inflating, self.turns = CapacityLimiter(_INFLATING), FairGate(_INFLATING)
        self.working, self.showing = FairGate(_WORKING), FairGate(_WORKING)
        self._most = most
        self._lock = Lock()
        self._held: dict[Hold, int] = {}

    @property
    def taken(self) -> int:
        """Bytes in use."""
        return sum(self._held.values())

    def change(self, hold: "Hold", size: int) -> None:
        """``hold`` takes ``size`` bytes, or gives them back where it is negative. Raises TooManyRequests."""
        with self._lock:
            if hold.gave_way:
                if size > 0:
                    raise TooManyRequests(_USED_UP, retry_after=1)
                return
            taken = self.taken + size
            while size > 0 and taken > self._most:
                last = self._dispensable(hold, size)
                if last is None:
                    raise TooManyRequests(_USED_UP, retry_after=1)
                taken -= self._held.pop(last)
                last.give_way()
            if size := self._held.pop(hold, 0) + size:
                self._held[hold] = size

    def _dispensable(self, hold: "Hold", size: int) -> "Hold | None":
        has = Counter[str]()
        for other, held in self._held.items():
            has[other.who] += held
        most = max(has, key=has.__getitem__, default=hold.who)
        if has[most] <= has[hold.who] + size:
            return None
        return next((other for other in reversed(self._held) if other.who == most and other.stop is not None), None)


class Hold:
    """What one request holds, from any thread, until it is released. ``stop``: ends reading its body, while it is
    read."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._size = 0
        self._released = False
        self.who = ""
        self.gave_way = False
        self.stop: Callable[..., object] | None = None

    def change(self, size: int) -> None:
        """Hold ``size`` bytes more, or less. Raises TooManyRequests."""
        with self._lock:
            if self._released:
                return
            wanted = self._size + size
            if more := max(wanted - FREE, 0) - max(self._size - FREE, 0):
                self.who = self.who or who_asks()
                self._budget.change(self, more)
            self._size = wanted

    def give_way(self) -> None:
        """Others have what it held: its body is read no further."""
        self.gave_way, stop = True, self.stop
        if stop is not None:
            stop()

    def release(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            self._released = True
            self._budget.change(self, -max(self._size - FREE, 0))
            self._size = 0


def hold_of(scope: Scope) -> Hold:
    """What the request of ``scope`` holds."""
    held = scope.get(_KEY)
    if isinstance(held, Hold):
        return held
    hold = scope[_KEY] = Hold(of_scope(scope, Budget))
    return hold


def release(scope: Scope) -> None:
    """The request of ``scope`` is answered."""
    if isinstance(hold := scope.get(_KEY), Hold):
        hold.release()


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
        for piece in _pieces(body, coding):
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


def _pieces(body: bytes, coding: str) -> Iterator[bytes]:
    """Members of a gzip stream, or frames of a zstd one, one after the other, in pieces."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    rest = memoryview(body)
    for _ in range(_MOST_FRAMES):
        member = zlib.decompressobj(_GZIP) if coding == "gzip" else None
        frame = member or decompressor.decompressobj()
        while not frame.eof:
            if not rest:
                raise EOFError("it ends early")
            bite, rest = rest[:_BITE], rest[_BITE:]
            yield frame.decompress(bite) if member is None else member.decompress(bite, _PIECE)
            while member is not None and member.unconsumed_tail and not member.eof:
                yield member.decompress(member.unconsumed_tail, _PIECE)
        rest = _left(body, rest, frame.unused_data)
        if not rest:
            return
    raise EOFError("too many members or frames")


def _left(body: bytes, rest: memoryview, unused: bytes) -> memoryview:
    """What follows the end of a frame: ``unused`` of the last bite, then ``rest``."""
    return memoryview(body)[len(body) - len(rest) - len(unused) :]


_MOST_PARTS = 16


def parts(body: bytes, content_type: str) -> dict[str, bytes]:
    """The parts of ``body`` by the name of their field. Raises BadRequest."""
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise BadRequest("multipart/form-data without its boundary")
    reading = _Reading()
    try:
        parser = MultipartParser(boundary, reading.callbacks())  # pyright: ignore[reportArgumentType]
        parser.write(body)
    except FormParserError as error:
        raise BadRequest(f"the body is not valid multipart/form-data: {error}") from None
    if not reading.ended:
        raise BadRequest("the body is not valid multipart/form-data: it ends early")
    return {name: b"".join(pieces) for name, pieces in reading.files.items()}


class _Reading:
    """What the parser has told so far."""

    def __init__(self) -> None:
        self.files: dict[str, list[memoryview]] = {}
        self.ended = False
        self._field = self._value = b""
        self._into: list[memoryview] = []
        self._parts = 0
        self._named = True
        """Whether the last part had a name."""

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS or not self._named:
            raise BadRequest(f"a part without a name, or more than {_MOST_PARTS} parts")
        self._into, self._named = [], False

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            name = parse_options_header(self._value)[1].get(b"name", b"").decode("utf-8", "replace")
            if not name or name in self.files:
                raise BadRequest(f"part {name[:64]!r}: without a name, or there twice")
            self.files[name] = self._into
            self._named = True
        self._field = self._value = b""

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._into.append(memoryview(data)[start:end])

    def _end(self) -> None:
        if not self._named:
            raise BadRequest("a part without a name")
        self.ended = True


LEAST_BYTES_A_SECOND = 64 << 10
"""Bytes a second that earn a body more time than it has anyway."""
LINES = (NDJSON, "application/jsonl", "application/json")
FILES = (NDJSON, "application/jsonl", "text/plain", "text/csv", "application/octet-stream",
         "application/gzip", "application/x-gzip")  # fmt: skip
MULTIPART = "multipart/form-data"
FORM = "application/x-www-form-urlencoded"
_GZIPPED = b"\x1f\x8b\x08"
MANIFESTS = ("application/yaml", "application/json", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain",
             "application/x-yt-yson-text", "application/x-yt-yson-binary")  # fmt: skip


async def read_body(request: Request) -> bytes:
    """The JSON body, decompressed. Raises BadRequest, TooLarge, UnsupportedMediaType."""
    _require_json(request.headers.get("content-type"))
    return await _read(request)


async def read_manifest(request: Request) -> bytes:
    """A body of YAML, JSON or YSON, decompressed. Raises BadRequest, TooLarge, UnsupportedMediaType."""
    media = _media(request.headers.get("content-type"))
    if media not in MANIFESTS and not media.endswith(("+json", "+yaml")):
        raise UnsupportedMediaType(
            f"send {' or '.join(MANIFESTS[:2])}, not {media[:64]!r}", headers={"Accept": ", ".join(MANIFESTS)}
        )
    return await _read(request)


async def read_files(request: Request) -> dict[str, bytes]:
    """The files of a body by field, inflated: those of multipart/form-data, or the whole body as the one named "".

    A file that begins as gzip does is gzip, whatever the headers say. Raises BadRequest, TooLarge,
    UnsupportedMediaType.
    """
    stated = _stated(request.headers.get("content-type"))
    media = _media(stated)
    if media not in (*FILES, MULTIPART):
        raise UnsupportedMediaType(
            f"send {NDJSON} or {MULTIPART}, not {media[:64]!r}", headers={"Accept": ", ".join((*FILES, MULTIPART))}
        )
    body = await _read(request)
    files = {"": body}
    if media == MULTIPART:  # in a thread: looking for the boundaries of 64 MiB takes longer than others may wait
        budget = service(request, Budget)
        async with budget.turns.passed():
            files = await to_thread.run_sync(parts, body, stated, limiter=budget.inflating)
    hold = hold_of(request.scope)
    for name, content in files.items():
        if media == MULTIPART:
            hold.change(len(content))
        if content.startswith(_GZIPPED):
            files[name] = await _inflated(request, content, "gzip", hold)
    return files


async def read_form(request: Request, limit: int) -> bytes:
    """The fields of a page's form, as sent, at most ``limit`` bytes. Raises BadRequest, TooLarge,
    UnsupportedMediaType."""
    if _media(request.headers.get("content-type")) != FORM:
        raise UnsupportedMediaType(f"a form is {FORM}", headers={"Accept": FORM})
    try:
        _check_announced(request.headers.get("content-length"), limit)
        return await _receive(request, limit, service(request, Settings).body_timeout, hold_of(request.scope))
    except TooLarge:
        raise TooLarge(f"the form is larger than {limit} bytes") from None


def require_lines(request: Request) -> None:
    """Lines of JSON are read as they come, never decompressed. Raises UnsupportedMediaType."""
    media = _media(request.headers.get("content-type"))
    if media not in LINES:
        raise UnsupportedMediaType(f"send {NDJSON}, not {media[:64]!r}", headers={"Accept": ", ".join(LINES)})
    if _encoding(request.headers.get("content-encoding")) is not None:
        raise UnsupportedMediaType("lines are sent plain", headers={"Accept-Encoding": "identity"})


async def _read(request: Request) -> bytes:
    settings = service(request, Settings)
    limit = settings.max_body_bytes
    coding = _encoding(request.headers.get("content-encoding"))
    _check_announced(request.headers.get("content-length"), limit)
    hold = hold_of(request.scope)
    body = await _receive(request, limit, settings.body_timeout, hold)
    if coding is None:
        return body
    inflated = await _inflated(request, body, coding, hold)
    hold.change(-len(body))
    return inflated


async def _inflated(request: Request, body: bytes, coding: str, hold: Hold) -> bytes:
    """Never on the event loop, and a part of what the request may take. Raises what ``inflate`` does."""
    budget, most = service(request, Budget), service(request, Settings).max_body_bytes
    async with _within_timeout(request) as (end, seconds), budget.turns.passed():  # in the thread the time is looked at
        bounds = Bounds(most, end, seconds, hold.change)
        return await to_thread.run_sync(inflate, body, coding, bounds, abandon_on_cancel=True, limiter=budget.inflating)


@asynccontextmanager
async def _within_timeout(request: Request) -> AsyncGenerator[tuple[float, float]]:
    """What happens inside is a part of what the request may take: until when, and how long. Raises DeadlinePassed."""
    seconds, began = timeout_within(service(request, Settings).request_timeout), time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            yield began + seconds, seconds
    except TimeoutError:
        raise DeadlinePassed(seconds) from None
    finally:
        spend_timeout(time.monotonic() - began, seconds)


@asynccontextmanager
async def worked_on(request: Request, size: int) -> AsyncGenerator[None]:
    """This process itself works inside on a document of so many bytes: on few that are large at once, of one caller
    after the other. Raises DeadlinePassed."""
    async with AsyncExitStack() as stack:
        if size > FREE:
            async with _within_timeout(request):
                await stack.enter_async_context(service(request, Budget).working.passed())
        yield


async def read_in_turn(request: Request) -> AsyncGenerator[bytes]:
    """The same where the endpoint works on it itself, until it has its answer. Raises DeadlinePassed too."""
    body = await read_body(request)
    async with worked_on(request, len(body)):
        yield body


Body = Annotated[bytes, Depends(read_body)]
OwnBody = Annotated[bytes, Depends(read_in_turn, scope="function")]


def body_or(otherwise: str) -> Any:
    """A JSON body; the refusal of one that is too large says what to do ``otherwise``."""

    async def read(request: Request) -> bytes:
        try:
            return await read_body(request)
        except TooLarge as error:
            raise TooLarge(f"{error}; {otherwise}") from None

    return Depends(read if otherwise else read_body)


Manifest = Annotated[bytes, Depends(read_manifest)]
Files = Annotated[dict[str, bytes], Depends(read_files)]


async def _receive(request: Request, limit: int, seconds: float, hold: Hold) -> bytes:
    """The bytes as sent; ``seconds``: how long they may take, beside what they earn. The pieces are joined once; a body
    of one piece is not copied at all."""
    pieces: list[bytes] = []
    size, loop = 0, asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds) as clock:
            end = clock.when()
            assert end is not None

            def end_now() -> None:
                if hold.stop is not None:
                    clock.reschedule(loop.time())

            hold.stop = partial(loop.call_soon_threadsafe, end_now)
            async for piece in request.stream():
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                if piece:
                    hold.change(len(piece))
                    pieces.append(piece)
                    clock.reschedule(end + size / LEAST_BYTES_A_SECOND)
    except TimeoutError:
        if hold.gave_way:
            raise TooManyRequests(_USED_UP, retry_after=1) from None
        raise RequestTimeout("the body did not arrive in time") from None
    except ClientDisconnect:
        raise BadRequest("the connection closed before the body was complete") from None
    finally:
        hold.stop = None
    if hold.gave_way:
        raise TooManyRequests(_USED_UP, retry_after=1)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _require_json(content_type: str | None) -> None:
    media = _media(content_type)
    if media != "application/json" and not media.endswith("+json"):
        raise UnsupportedMediaType(f"send application/json, not {media[:64]!r}", headers={"Accept": "application/json"})


def _stated(content_type: str | None) -> str:
    """Raises UnsupportedMediaType where nobody says what the body is: a web page can send such a body to any site."""
    if not content_type:
        raise UnsupportedMediaType("say what the body is: Content-Type is missing")
    return content_type


def _media(content_type: str | None) -> str:
    return _stated(content_type).partition(";")[0].strip().lower()


def _encoding(header: str | None) -> str | None:
    name = (header or "identity").strip().lower()
    if name in CODINGS:
        return name
    if name == "identity":
        return None
    raise UnsupportedMediaType(
        f"content coding {name[:64]!r} is not one of {', '.join(CODINGS)}",
        headers={"Accept-Encoding": ", ".join(CODINGS)},
    )


def _check_announced(length: str | None, limit: int) -> None:
    if length is not None and length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise too_large(limit)
