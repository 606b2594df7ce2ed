"""Files that somebody sent to what is stored of them: packed, summed up, or refused with all that is wrong."""

import gzip
import socket
import sys
import traceback
import zlib
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import get_args

import msgspec
import zstandard

from app.base.decoding import convert
from app.base.documents import read_one
from app.base.errors import BadInput, BadRequest, TooLarge
from app.base.settings import Settings
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Problem
from app.solver.model.quantity import scale_of
from app.traces.cluster import configuration
from app.traces.ingest import Chunk, Ingested, Limits, Source, Work, ingest
from app.traces.mapping import Format, Mapping
from app.traces.schemas import LineNote, TraceQueue, TraceSummary
from app.workers.messages import Failed, failed, raised, receive, send
from app.workers.single import Processes, serve_once

_PIECE = 1 << 16
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def load(path: str, form: str | None, mapping: str | None, nodes: str | None) -> Ingested:
    """The trace of ``path``, a file on this machine, for the command line: no server, no database. A format that is not
    given is told by the name. Raises OSError, InvalidInput, ArbiterError."""
    chosen = next((one for one in get_args(Format) if one == form), None) if form else _guessed(path)
    if chosen is None:
        raise BadRequest(f"no format {form!r}; there are {', '.join(get_args(Format))}")
    most = limits()
    given = {"": path, "mapping": mapping, "nodes": nodes}
    files = {field: bounded(name, most.bytes) for field, name in given.items() if name is not None}
    return ingest(source_of(chosen, files), most)


def _guessed(path: str) -> Format:
    name = Path(path).name
    if ".swf" in name:
        return "swf"
    return "alibaba-gpu-2023" if ".csv" in name else "ndjson"


def limits() -> Limits:
    """What a trace may have on this machine, as the service's settings say. Raises BadRequest."""
    try:
        settings = Settings()
    except ValueError as error:
        raise BadRequest(str(error)) from None
    return Limits(settings.trace_jobs, settings.trace_bytes)


def bounded(path: str, most: int) -> bytes:
    """A file, or standard input where it is ``-``, inflated where it is gzip or zstd. Never more than ``most`` bytes
    are in memory, as it stands and inflated. Raises OSError, BadRequest, TooLarge."""
    if path == "-":
        body = sys.stdin.buffer.read(most + 1)
    else:
        with Path(path).open("rb") as file:
            body = file.read(most + 1)
    if len(body) <= most:
        try:
            if body.startswith(_GZIP):
                body = gzip.GzipFile(fileobj=BytesIO(body)).read(most + 1)
            elif body.startswith(_ZSTD):
                body = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True).read(most + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise BadRequest(f"{path}: {error}") from None
    if len(body) > most:
        raise TooLarge(f"{path}: more than {most} bytes (ARBITER_TRACE_BYTES)")
    return body


def lines_within(path: str, most: Limits) -> int:
    """How many lines a file has; one more than there may be jobs where it has more, which are not read. Raises OSError,
    BadRequest where it is no file that could be read twice, TooLarge before more bytes are read than there may be."""
    if Path(path).exists() and not Path(path).is_file():
        raise BadRequest(f"{path}: jobs are read twice, which takes a file")
    count = size = 0
    last = b"\n"
    with Path(path).open("rb") as file:
        while count <= most.jobs and (piece := file.read(_PIECE)):
            size += len(piece)
            if size > most.bytes:
                raise TooLarge(f"{path}: more than {most.bytes} bytes (ARBITER_TRACE_BYTES)")
            count += piece.count(b"\n")
            last = piece[-1:]
    return min(count + (last != b"\n"), most.jobs + 1)


_SHOWN_QUEUES = 1000
_LARGEST_MAPPING = 1 << 20
_FIELDS = {"ndjson": {"trace"}, "swf": {"trace", "mapping"}, "alibaba-gpu-2023": {"pods", "nodes", "mapping"}}


class Upload(msgspec.Struct, frozen=True):
    """A trace on its way in, without its files."""

    name: str
    format: Format
    moment: datetime
    limits: Limits


class Prepared(msgspec.Struct, frozen=True):
    """A trace that is good. ``summary`` and ``configuration`` as they are stored; ``answer``: both, as JSON."""

    digest: str
    summary: bytes
    configuration: bytes | None
    answer: bytes
    chunks: list[Chunk]


def prepare(upload: Upload, files: dict[str, bytes]) -> Prepared:
    """Raises InvalidInput, BadInput, BadRequest. Pure."""
    read = ingest(source_of(upload.format, files), upload.limits)
    made = configuration(read)
    summary = _summary(upload, read)
    return Prepared(
        digest=read.digest, summary=_packed(summary), configuration=None if made is None else _packed(made),
        answer=_json(msgspec.structs.replace(summary, configuration=made)), chunks=read.chunks,
    )  # fmt: skip


def source_of(form: Format, files: dict[str, bytes]) -> Source:
    """What the files of a body are, by the names of their fields. Raises BadInput, BadRequest, InvalidInput."""
    main = "pods" if form == "alibaba-gpu-2023" else "trace"
    if strange := sorted(set(files) - {""} - _FIELDS[form]):
        named = ", ".join(sorted(_FIELDS[form]))
        raise BadRequest(f"format {form} has no file {strange[0][:64]!r}; there are {named}")
    body = files.get("", files.get(main))
    if body is None:
        raise BadInput([Problem(pointer="", detail=f"file {main!r} is missing")])
    return Source(form, body, files.get("nodes"), mapping_of(files.get("mapping")))


def mapping_of(text: bytes | None) -> Mapping | None:
    """A mapping from JSON or YAML. Raises InvalidInput."""
    if text is None:
        return None
    return convert(read_one(text, "the mapping", _LARGEST_MAPPING), Mapping)


def _summary(upload: Upload, read: Ingested) -> TraceSummary:
    notes = [LineNote(line=note.line, detail=note.detail) for note in read.notes.found]
    queues = {queue: _queue(work) for queue, work in sorted(read.queues.items())[:_SHOWN_QUEUES]}
    return TraceSummary(
        name=upload.name, digest=read.digest, format=upload.format, jobs=read.jobs, changes=read.changes,
        nodes=len(read.nodes), bytes=read.size, start=read.start, seconds=read.span, queues=queues,
        notes=read.notes.count, first_notes=notes, created_at=upload.moment,
    )  # fmt: skip


def _queue(work: Work) -> TraceQueue:
    units = {resource: steps / scale_of(resource) / 1e6 for resource, steps in sorted(work.steps.items())}
    return TraceQueue(jobs=work.jobs, work=units)


def _packed(document: TraceSummary | Configuration) -> bytes:
    return zstandard.ZstdCompressor().compress(_json(document))


def _json(document: TraceSummary | Configuration) -> bytes:
    return msgspec.json.encode(document, order="deterministic")


_ENTRY = ["-m", "app.traces.preparing"]


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
    """The processes that read at the moment.

    A large trace is read in a process of its own, at low priority: it takes the interpreter for seconds, which
    decisions would have to wait for.
    """

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
