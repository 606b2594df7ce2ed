"""Reading a large trace in a process of its own, at low priority: it takes the interpreter for seconds, which decisions
would have to wait for."""

import socket
import traceback

import msgspec

from app.traces.ingest import Chunk
from app.traces.preparing import Prepared, Upload, prepare
from app.workers.frames import receive, send
from app.workers.messages import Failed, failed, raised
from app.workers.single import Processes, serve_once

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
        self._processes = Processes("read the trace")

    def prepared(self, upload: Upload, files: dict[str, bytes]) -> Prepared:
        """See ``prepare``. Raises what it does, DeadlinePassed, Unavailable."""
        with self._processes.started(_ENTRY) as connection:
            send(connection, _Files(upload, list(files)))
            for content in files.values():
                send(connection, _File(), content)
            return _received(connection)

    def close(self) -> None:
        """End them all: who waits for one gets Unavailable."""
        self._processes.close()


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


def _read(connection: socket.socket) -> None:
    """In the process: one trace. Raises Closed."""
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
    serve_once(_read)
