"""What the service and its processes say to each other, in frames: a msgpack header, then a body as raw bytes.

Processes that do one thing each and end take what keeps the interpreter busy for seconds, which decisions would wait
for.
"""

import gc
import os
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

import msgspec

from app.answering.answers import Facts
from app.answering.operations import Inquiry, Logged
from app.answering.sources import Documents, LogDocument
from app.base import errors, python
from app.base.decoding import Malformed
from app.base.errors import DeadlinePassed, Unavailable
from app.base.ticket import Stage, Ticket, held
from app.solver.model.problems import InvalidInput, Problem, Unsupported

_LENGTHS = struct.Struct("!IQ")
PIECE = 1 << 20


class Closed(Exception):
    """The other side is gone."""


def limit_waits(connection: socket.socket, seconds: float) -> None:
    """Nothing on it waits longer than so many seconds from now on. Raises Closed, as where this side has closed it."""
    try:
        connection.settimeout(seconds)
    except OSError as error:
        raise Closed from error


def send(connection: socket.socket, header: msgspec.Struct, body: bytes = b"") -> None:
    """Raises Closed."""
    encoded = msgspec.msgpack.encode(header)
    try:
        connection.sendall(_LENGTHS.pack(len(encoded), len(body)) + encoded)
        if body:
            connection.sendall(body)
    except OSError as error:
        raise Closed from error


def receive(connection: socket.socket, shape: Any) -> tuple[Any, bytes]:
    """The next frame's header as ``shape``, and its body. Raises Closed."""
    header_length, body_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    header = msgspec.msgpack.decode(_exactly(connection, header_length), type=shape)
    return header, _exactly(connection, body_length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    """On a blocking socket one call fills one buffer: a body of megabytes is neither joined nor copied."""
    pieces: list[bytes] = []
    while length > 0:
        wait = socket.MSG_WAITALL if connection.gettimeout() is None else 0
        try:
            piece = connection.recv(length if wait else min(length, PIECE), wait)
        except InterruptedError:
            continue
        except OSError as error:
            raise Closed from error
        if not piece:
            raise Closed
        pieces.append(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Head(msgspec.Struct, frozen=True, tag=True):
    """Service to worker: the revision that a reference means now."""

    name: str
    revision: int


class Call(msgspec.Struct, frozen=True, tag=True):
    """Service to worker: answer this. ``end`` and ``seconds``: of its ticket.

    ``heads``: what references in the body mean now, where that is known beforehand; the worker asks for the others."""

    asked: Inquiry
    end: float
    seconds: float
    heads: dict[str, Head] = {}
    traced: bool = False
    """Whether somebody wants to know of its stages."""


class Document(msgspec.Struct, frozen=True, tag=True):
    """Service to worker: the body is that revision's document."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """Worker to service: the body is the answer. ``snapshot_totals``: how many the worker has, and their bytes;
    ``documents``: for the decision log."""

    snapshot_totals: tuple[int, int]
    facts: Facts | None = None
    seconds: dict[str, float] = {}
    documents: list[LogDocument] = []
    logged: Logged | None = None
    stages: list[Stage] = []


class WantHead(msgspec.Struct, frozen=True, tag=True):
    """Worker to service: which revision does ``reference`` mean now?"""

    reference: str


class WantDocument(msgspec.Struct, frozen=True, tag=True):
    """Worker to service: the document of a revision that this worker has not compiled yet."""

    name: str
    revision: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Either way: an error by class name, as it will be shown. ``trace``: of what nobody foresaw."""

    error: str
    detail: str = ""
    problems: list[Problem] = []
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}
    trace: str | None = None
    stages: list[Stage] = []


_INVALID: dict[str, type[InvalidInput]] = {kind.__name__: kind for kind in (InvalidInput, Malformed, Unsupported)}

ToWorker = Call | Head | Document | Failed
FromWorker = Done | WantHead | WantDocument | Failed


class WorkerFault(Exception):
    """A worker met an error that nobody foresaw; its own traceback is the message."""


def failed(error: BaseException, trace: str | None = None) -> Failed:
    """``error`` as it crosses."""
    if isinstance(error, errors.ArbiterError):
        return Failed(type(error).__name__, error.detail, error.problems, error.headers, error.extra)
    if isinstance(error, InvalidInput):
        return Failed(_invalid_name(error), problems=error.problems)
    return Failed("WorkerFault", str(error), trace=trace)


def raised(message: Failed) -> Exception:
    """The error to raise on this side."""
    if message.error in _INVALID:
        return _INVALID[message.error](message.problems)
    known = getattr(errors, message.error, None)
    if isinstance(known, type) and issubclass(known, errors.ArbiterError):
        error = known.__new__(known)
        errors.ArbiterError.__init__(
            error, message.detail, problems=message.problems, headers=message.headers, extra=message.extra
        )
        return error
    return WorkerFault(message.trace or message.detail)


def _invalid_name(error: InvalidInput) -> str:
    name = type(error).__name__
    return name if name in _INVALID else InvalidInput.__name__


class Remote:
    """In the process, which has no database: the service's stored configurations, by asking for them. ``heads``: what
    references mean, where that is known beforehand."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.heads: dict[str, Head] = {}

    def head(self, reference: str) -> tuple[str, int]:
        """See ``Documents``."""
        head = self.heads.get(reference)
        if head is None:
            asked, _ = self._ask(WantHead(reference))
            assert isinstance(asked, Head)
            head = asked
        return head.name, head.revision

    def document(self, name: str, revision: int) -> bytes:
        """See ``Documents``."""
        return self._ask(WantDocument(name, revision))[1]

    def _ask(self, want: WantHead | WantDocument) -> tuple[Head | Document, bytes]:
        send(self._connection, want)
        header, body = receive(self._connection, ToWorker)
        if isinstance(header, Failed):
            raise raised(header)
        return header, body


def supply(connection: socket.socket, want: WantHead | WantDocument, documents: Documents) -> None:
    """In the service: what the process wants, or why it can't have it. Raises Closed."""
    try:
        if isinstance(want, WantHead):
            send(connection, Head(*documents.head(want.reference)))
        else:
            send(connection, Document(), documents.document(want.name, want.revision))
    except Closed:
        raise
    except Exception as error:
        send(connection, failed(error))


_SECONDS = 3600.0
"""For whoever comes without a ticket."""
_NICE = 10
_MOST_BYTES = 8 << 30
"""Of such a process: what would take more is hostile, and ends it instead of the machine."""


class Processes:
    """Those that run at the moment. ``what``: what each does, for the message where one stops."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._guard = Lock()

    @contextmanager
    def started(self, entry: list[str]) -> Generator[socket.socket]:
        """The connection to a new one, whose interpreter is given ``entry`` and its end of it; it ends with the block,
        and waits no longer than the ticket of whoever asks. Raises DeadlinePassed, Unavailable."""
        ticket = held() or Ticket.now("large", _SECONDS)
        try:
            with self._process(entry) as connection:
                limit_waits(connection, max(ticket.left, 0.001))
                yield connection
        except Closed:
            if time.monotonic() >= ticket.end:
                raise DeadlinePassed(ticket.seconds) from None
            raise Unavailable(f"the process that {self._what} stopped, for want of memory most likely") from None

    def close(self) -> None:
        """End them all: who waits for one gets Unavailable."""
        with self._guard:
            self._closed = True
            for process in self._running:
                process.kill()

    @contextmanager
    def _process(self, entry: list[str]) -> Generator[socket.socket]:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = [*python(), *entry, str(theirs.fileno())]
                try:
                    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
                except OSError as error:  # no memory, or too many processes or files
                    raise Unavailable(f"no process can be started: {error.strerror}") from error
            with self._guard:
                self._running.add(process)
                if self._closed:
                    process.kill()
            try:
                yield ours
            finally:
                with self._guard:
                    self._running.discard(process)
                process.kill()
                process.wait()


def serve_once(answer: Callable[[socket.socket], None]) -> None:
    """The entry of such a process: at low priority, one answer, then the end."""
    gc.disable()
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError, ValueError):  # a hard limit below it stays
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    with socket.socket(fileno=int(sys.argv[1])) as connection, suppress(Closed):
        answer(connection)
