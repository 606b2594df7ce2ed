"""Reading a large trace in a process of its own, at low priority: it takes the interpreter for seconds, which decisions
would have to wait for."""

import gc
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Lock

import msgspec

from app.errors import DeadlinePassed, Unavailable
from app.traces.ingest import Chunk
from app.traces.preparing import Prepared, Upload, prepare
from app.workers.frames import Closed, receive, send
from app.workers.messages import Failed, failed, raised
from app.workers.ticket import Ticket, held

_SECONDS = 3600.0
"""For whoever comes without a ticket."""
_NICE = 10
_ENTRY = ["-m", "app.traces.elsewhere"]


class _Files(msgspec.Struct, frozen=True, tag=True):
    """Service to process: what comes, and the fields of the files, each of which follows as a frame of its own."""

    upload: Upload
    fields: list[str]


class _File(msgspec.Struct, frozen=True, tag=True):
    """Service to process: the body is a file."""


class _Read(msgspec.Struct, frozen=True, tag=True):
    """Process to service: what came of it, without its chunks; so many of them follow."""

    prepared: Prepared
    chunks: int


class _Chunk(msgspec.Struct, frozen=True, tag=True):
    """Process to service: the body is a chunk."""

    first: int
    jobs: int


class Readers:
    """The processes that read at the moment."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._guard = Lock()

    def prepared(self, upload: Upload, files: dict[str, bytes]) -> Prepared:
        """See ``prepare``. Raises what it does, DeadlinePassed, Unavailable."""
        ticket = held() or Ticket.now("large", _SECONDS)
        try:
            with self._process() as connection:
                connection.settimeout(ticket.left)
                send(connection, _Files(upload, list(files)))
                for content in files.values():
                    send(connection, _File(), content)
                connection.settimeout(max(ticket.left, 0.001))
                return _received(connection)
        except Closed:
            if time.monotonic() >= ticket.end:
                raise DeadlinePassed(ticket.seconds) from None
            raise Unavailable("the process that read the trace stopped, for want of memory most likely") from None

    def close(self) -> None:
        """End them all: who waits for one gets Unavailable."""
        with self._guard:
            self._closed = True
            for process in self._running:
                process.kill()

    @contextmanager
    def _process(self) -> Generator[socket.socket]:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = [sys.executable, *_ENTRY, str(theirs.fileno())]
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
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


def _received(connection: socket.socket) -> Prepared:
    """Raises what reading did, Closed."""
    header, _ = receive(connection, _Read | Failed)
    if isinstance(header, Failed):
        raise raised(header)
    chunks: list[Chunk] = []
    for _ in range(header.chunks):
        of, data = receive(connection, _Chunk)
        chunks.append(Chunk(of.first, of.jobs, data))
    return msgspec.structs.replace(header.prepared, chunks=chunks)


def main() -> None:
    """The process's entry: one trace, then the end."""
    gc.disable()
    with suppress(OSError):
        os.nice(_NICE)
    with socket.socket(fileno=int(sys.argv[1])) as connection, suppress(Closed):
        header, _ = receive(connection, _Files)
        files = {field: receive(connection, _File)[1] for field in header.fields}
        try:
            read = prepare(header.upload, files)
        except Exception as error:
            send(connection, failed(error, traceback.format_exc()))
            return
        send(connection, _Read(msgspec.structs.replace(read, chunks=[]), len(read.chunks)))
        for chunk in read.chunks:
            send(connection, _Chunk(chunk.first, chunk.jobs), chunk.data)


if __name__ == "__main__":
    main()
