"""uvicorn's HTTP protocol with limits on time, size and connections, tuned for bodies of megabytes.

None of the limits needs the cooperation of the other side. uvicorn bounds neither how long a client may take for a head
or a body, nor the size and number of headers, nor what one connection may ask for ahead. ``Connections`` watches the
time; ``BulkProtocol`` counts the rest.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Literal, Protocol

import httptools
import msgspec
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.base.identifiers import network_of
from app.http.body import LEAST_BYTES_A_SECOND

ENDED = "arbiter.ended"  # where a scope says that its client says no more: nearly all of them have hung up
Phase = Literal["idle", "head", "body", "stream", "rest", "answer"]
"""``stream``: a body that is being answered already; ``rest``: one that nobody will read any more."""

_SWEEP_SECONDS = 1.0
_LATER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, and how many connections at once. ``answer``: for a client to take what it was sent, beside what it
    earns by taking it; ``untaken``: bytes that all clients together may leave here."""

    connections: int = 1000
    head: float = 10.0
    body: float = 30.0
    idle: float = 75.0
    stream: float = 300.0
    answer: float = 30.0
    untaken: int = 512 << 20

    def of(self, phase: Phase) -> float | None:
        """How long a connection may be in that phase without any progress."""
        # A body's own limit answers 408; this one is for bodies that nobody reads.
        seconds = {"idle": self.idle, "head": self.head, "body": self.body + _LATER_SECONDS, "stream": self.stream}
        return _LATER_SECONDS if phase == "rest" else seconds.get(phase)


class Connection(Protocol):
    """What is known of one connection."""

    phase: Phase
    since: float

    @property
    def address(self) -> str:
        """Where the other side is."""
        ...

    def overdue(self) -> None:
        """Its time is up."""
        ...

    def unsent(self) -> int:
        """Bytes that the other side has not taken yet."""
        ...

    def reading_is_paused(self) -> bool:
        """Whether it is us who keep it waiting."""
        ...

    def drop(self) -> None:
        """Close it at once, whatever is under way."""
        ...


class Connections:
    """All connections of one server: who is connected, whom we wait for, and for how long. Used on its event loop only.

    A connection is either waited for (idle, sending a head, sending a body, taking an answer) or being answered. Each
    way of waiting has its limit, and one look a second finds who is past it. At the limit of connections a new one
    takes the place of one that is waited for, of the address that has the most of them the one waited for longest:
    sockets that do nothing shut nobody out, and few of those are closed whose owner has few. Where all are being
    answered, who has more than half of them makes room for others with the one that came last.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] | None = None) -> None:
        self.limits = limits
        self._clock = clock
        self._all: dict[Connection, None] = {}
        self._of: Counter[str] = Counter()  # how many of each address
        self._waited_for: dict[Connection, None] = {}  # the longest first
        self._untaken: dict[Connection, tuple[float, int]] = {}  # since when, how many bytes then; the longest first
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

    def now(self) -> float:
        """Seconds that never go back."""
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()

    def joined(self, connection: Connection) -> bool:
        """Whether there is room for it, or any makes room."""
        if len(self._all) >= self.limits.connections:
            dispensable = self._dispensable(connection.address)
            if dispensable is None:
                return False
            self._expel(dispensable)
        self._all[connection] = None
        self._of[connection.address] += 1
        self.enter(connection, "head")
        if self._sweeping is None and self._clock is None:
            self._sweep_later()
        return True

    def left(self, connection: Connection) -> None:
        """It is closed."""
        if connection not in self._all:
            return
        del self._all[connection]
        self._of[connection.address] -= 1
        if not self._of[connection.address]:
            del self._of[connection.address]
        self._waited_for.pop(connection, None)
        self._untaken.pop(connection, None)

    def enter(self, connection: Connection, phase: Phase) -> None:
        """It is in ``phase`` from now on, or made progress in it."""
        connection.phase, connection.since = phase, self.now()
        self._wait(connection)

    def left_untaken(self, connection: Connection) -> None:
        """The other side has not taken all that was written. Where all together leave too much, those who have longest
        go."""
        if connection not in self._all:
            return
        self._untaken[connection] = (self.now(), connection.unsent())
        self._wait(connection)
        unsent = sum(other.unsent() for other in self._untaken)
        while len(self._untaken) > 1 and unsent > self.limits.untaken:
            longest = next(iter(self._untaken))
            unsent -= longest.unsent()
            self._expel(longest)

    def taken(self, connection: Connection) -> None:
        """The other side has taken all that was written."""
        self._untaken.pop(connection, None)
        self._wait(connection)

    def _wait(self, connection: Connection) -> None:
        """Wait for it anew, if it is its turn."""
        self._waited_for.pop(connection, None)
        if connection in self._untaken or (connection.phase != "answer" and connection in self._all):
            self._waited_for[connection] = None

    def _dispensable(self, comes_from: str) -> Connection | None:
        first: dict[str, Connection] = {}
        for connection in self._waited_for:
            first.setdefault(connection.address, connection)
        if first:
            return max(first.values(), key=lambda connection: self._of[connection.address])
        most, count = max(self._of.items(), key=itemgetter(1), default=(comes_from, 0))
        if most == comes_from or 2 * count <= self.limits.connections:
            return None
        return next(connection for connection in reversed(self._all) if connection.address == most)

    def _expel(self, connection: Connection) -> None:
        self.left(connection)
        connection.drop()

    def sweep(self) -> None:
        """Tell everyone whose time is up."""
        now = self.now()
        for connection in list(self._all):
            if connection in self._untaken:
                since, size = self._untaken[connection]
                earned = (size - connection.unsent()) / LEAST_BYTES_A_SECOND
                if now - since > self.limits.answer + earned:
                    connection.drop()
            elif connection.phase == "body" and connection.reading_is_paused():
                connection.since = now
            elif (allowed := self.limits.of(connection.phase)) is not None and now - connection.since > allowed:
                connection.overdue()

    def _sweep_later(self) -> None:
        def run() -> None:
            self._sweeping = None
            self.sweep()
            if self._all:
                self._sweep_later()

        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, run)


_HIGH_WATER = 1 << 20
_UNASKED = 1 << 16
"""Of a body that the application has not asked for yet."""
_MOST_HEADERS = 100
_MOST_HEAD_BYTES = 32 << 10
_MOST_AHEAD = 4
_SLICE = 4 << 10
"""Parsed at once, so that no more is asked ahead than it holds."""
_SLICE_OF_A_BODY = 16 << 10
_THROWN_AWAY = struct.pack("ii", 1, 0)
"""Closed with SO_LINGER of no seconds: what is unsent goes with it."""
_WHY = {
    400: "this is not HTTP/1.1",
    408: "the request did not arrive in time",
    431: f"a head has at most {_MOST_HEADERS} headers and {_MOST_HEAD_BYTES} bytes",
    503: "there are too many connections; all of them are busy",
}


class _Flow(FlowControl):
    """Reading stays paused while there is something left that was read already."""

    full = False

    def resume_reading(self) -> None:
        """Go on, unless what was read comes first."""
        if not self.full:
            super().resume_reading()


class _Refused(Exception):
    """The parser is to stop here."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class BulkProtocol(HttpToolsProtocol):
    """Pauses reading at 1 MiB instead of 64 KiB; reads requests that offer an upgrade as what they are; has limits.

    uvicorn stops reading from the socket whenever 64 KiB of a body are not yet taken, so a body of 11 MB arrives in
    some fifty turns between transport and application. Ours is wanted whole and is capped, so we let more of it pile
    up.

    A client may offer to go on in another protocol (Java's, unless told otherwise, offers HTTP/2 with every request),
    and a server may ignore that (RFC 9110, section 7.8). The parser can't: it takes what follows such a head for the
    other protocol, and so loses the body. Such a head is therefore parsed again without the offer.
    """

    parser: httptools.HttpRequestParser
    since: float
    _flow: _Flow
    _unfed: bytes
    """Read, and not parsed yet."""
    _header_bytes: int
    """Of the head that is being read."""
    _begun: bool
    """Whether anything of the body has come."""
    _asked: bool
    """Whether the application has taken any of it."""
    _owing: bool
    """Whether an answer is written and not taken yet."""

    def __init__(self, *args: Any, among: Connections, **named: Any) -> None:
        super().__init__(*args, **named)
        self._among = among
        self._in_head = False
        self._head_bytes = 0
        self._unfed = b""
        self._broken: int | None = None
        self._owing = False
        self.phase: Phase = "head"

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Somebody has connected."""
        super().connection_made(transport)
        self.flow = self._flow = _Flow(transport)
        transport.set_write_buffer_limits(0)  # told of everything that is left here
        if not self._among.joined(self):
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody is gone."""
        self._among.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes of some requests have arrived."""
        if self.transport.is_closing() or self._broken is not None:
            return
        self._unset_keepalive_if_required()
        if self.phase == "idle" and not self._owing:
            self._among.enter(self, "head")
        self._unfed += data
        self._go_on()

    def eof_received(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The other side says no more. It is answered what it asked (``nc -N`` hears on), unless it leaves a stream."""
        cycle: Any = self.cycle
        if self.phase != "answer" or cycle.response_complete or (cycle.response_started and not self._begun):
            return False
        cycle.scope[ENDED], cycle.keep_alive = True, False
        return True

    def _go_on(self) -> None:
        """Parse what was read, as long as there is room for what is asked ahead."""
        if self.transport.is_closing() or self._broken is not None:
            return
        try:
            while self._unfed and len(self.pipeline) < _MOST_AHEAD and not self._owing:
                size = _SLICE if self._in_head or self.phase != "body" else _SLICE_OF_A_BODY
                piece, self._unfed = self._unfed[:size], self._unfed[size:]
                size = len(piece)
                while piece:
                    piece = self._fed(piece)
                self._head_bytes = self._head_bytes + size if self._in_head else 0
                if self._head_bytes > _MOST_HEAD_BYTES:
                    raise _Refused(431)
        except (httptools.HttpParserError, _Refused) as error:
            cause = error if isinstance(error, _Refused) else error.__context__
            self._refuse(cause.status if isinstance(cause, _Refused) else 400)
            return
        self._flow.full = bool(self._unfed)
        if self._unfed:
            self.flow.pause_reading()

    def _go_on_reading(self) -> None:
        self._go_on()
        if not self.pipeline:  # else the next answer's end does it
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._header_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or one behind the body, which nobody reads."""
        self._count(len(name) + len(value))
        if not self._in_head:
            return
        super().on_header(name, value)
        if len(self.headers) > _MOST_HEADERS:
            raise _Refused(431)

    def on_headers_complete(self) -> None:
        """A head is there; one with an offer comes again without it."""
        if self.parser.should_upgrade():
            return
        self._in_head, self._begun, self._asked = False, False, False
        super().on_headers_complete()
        self._among.enter(self, "body")

    def on_message_complete(self) -> None:
        """A request is there, and so is the end of a head with an offer."""
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._among.enter(self, "idle" if self.cycle.response_complete else "answer")

    def on_body(self, body: bytes) -> None:
        """A piece of the body has arrived."""
        if self.cycle.response_complete:
            return
        self._among.enter(self, "stream" if self.cycle.response_started else "body")
        self._asked = self._asked or (self._begun and not self.cycle.body)
        self._begun = True
        self._keep(body)
        if len(self.cycle.body) > (_HIGH_WATER if self._asked else _UNASKED):
            self.flow.pause_reading()
        self.cycle.message_event.set()

    def _keep(self, body: bytes) -> None:
        """A piece that comes when the last one is taken, as nearly all of a long body do, is not copied."""
        cycle: Any = self.cycle
        if not cycle.body:
            cycle.body = body
            return
        if isinstance(cycle.body, bytes):
            cycle.body = bytearray(cycle.body)
        cycle.body += body

    def pause_writing(self) -> None:
        """Something that was written is left here."""
        super().pause_writing()
        self._among.left_untaken(self)

    def resume_writing(self) -> None:
        """All that was written is taken."""
        super().resume_writing()
        self._among.taken(self)
        if self._owing:
            self._owing = False
            self._answered()

    def on_response_complete(self) -> None:
        """An answer is written; once it is taken the next request of the connection may begin. Else whoever asks and
        takes nothing would have one answer after the other made and kept."""
        if self.flow.write_paused and not self.transport.is_closing():
            self._owing = True
        else:
            self._answered()

    def _answered(self) -> None:
        unread = self.cycle.more_body and self.cycle.response_complete
        super().on_response_complete()
        if not self.cycle.response_complete:
            self._among.enter(self, "body" if self.cycle.more_body else "answer")
        else:
            self._among.enter(self, "rest" if unread else "idle")
        if self._broken is not None and not self.pipeline and self.phase in ("idle", "rest"):
            self._refuse(self._broken)
        elif self._unfed:
            self._flow.full = False
            self.loop.call_soon(self._go_on_reading)

    def overdue(self) -> None:
        """Nothing came for too long: whoever has begun to ask is told, the others know."""
        if self.phase == "head" and self._head_bytes:
            self._refuse(408)
        elif self.phase == "body" and self.cycle.response_started and not self.cycle.response_complete:
            self._among.enter(self, "stream")  # the answer began after the last piece had come
        else:
            self.drop()

    @property
    def address(self) -> str:
        """Of the other side, or its network."""
        return network_of(self.client[0]) if self.client else ""

    def unsent(self) -> int:
        """Bytes that the other side has not taken yet."""
        return self.transport.get_write_buffer_size()

    def reading_is_paused(self) -> bool:
        """Whether the application does not take what has arrived."""
        return self.flow.read_paused

    def drop(self) -> None:
        """Close the connection at once. What the other side does not take the system would go on keeping for it."""
        connected: socket.socket | None = self.transport.get_extra_info("socket")
        if connected is not None and self.unsent():
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _THROWN_AWAY)
        self.transport.abort()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _MOST_HEAD_BYTES:
            raise _Refused(431)

    def _refuse(self, status: int) -> None:
        """Say why and close. Whoever asked before gets an answer first: nothing may come between its bytes."""
        if self.phase == "answer" or self.pipeline:
            self._broken, self._unfed = status, b""
            self.flow.pause_reading()
            return
        if self.phase in ("body", "stream"):
            if self.cycle.response_started:
                self.drop()
                return
            self.cycle.disconnected = True  # whoever reads the body hears that there will be no more of it
            self.cycle.message_event.set()
        title, detail = HTTPStatus(status).phrase, _WHY[status]
        body = msgspec.json.encode({"type": "about:blank", "title": title, "status": status, "detail": detail})
        fields = [
            *self.server_state.default_headers, (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()), (b"connection", b"close"),
            *([(b"retry-after", b"1")] if status == 503 else []),
        ]  # fmt: skip
        head = b"".join(b"%b: %b\r\n" % field for field in fields)
        self.transport.write(STATUS_LINE[status] + head + b"\r\n" + body)
        self.transport.close()

    def _fed(self, data: bytes) -> bytes:
        """What is left to parse of ``data``. Raises HttpParserError."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("this is no proxy") from None
            head = self._head_without_offer()
            self.parser.feed_data(head)
            return data[offer.args[0] :]
        return b""

    def _head_without_offer(self) -> bytes:
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                others = [word for word in value.split(b",") if word.strip().lower() != b"upgrade"]
                lines.append(name + b": " + b",".join(others))
            elif name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join((*lines, b"", b""))
