"""Files that somebody sent to what is stored of them: packed, summed up, or refused with all that is wrong."""

import gzip
import socket
import sys
import traceback
import zlib
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as ByName
from datetime import datetime
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import get_args

import msgspec
import zstandard

from app.base.decoding import convert
from app.base.documents import read_one
from app.base.errors import BadInput, BadRequest, TooLarge
from app.base.settings import Settings
from app.solver.model.base import Quantity, parse_quantity, scale_of
from app.solver.model.configuration import Configuration, Flavor, FlavorQuotas, Queue, Quota, ResourceGroup
from app.solver.model.problems import Problem
from app.solver.model.state import Node
from app.traces.ingest import Chunk, Ingested, Limits, Source, Work, ingest, unpacked
from app.traces.jobs import Cluster, Each, Format, LineNote, Mapping, TraceQueue, TraceSummary
from app.workers.messages import Failed, Processes, failed, raised, receive, send, serve_once

Steps = dict[str, int]
MOST_QUOTAS = 1_000_000
"""Of a configuration that is made for a trace: a few lines with a name each, and a few flavors, are as many."""


def configuration(trace: Ingested) -> Configuration | None:
    """That of the mapping for ``trace``, on which it is played; None where the mapping has no cluster. A tree with a
    queue for each that its jobs name; what the nodes have, by flavor where there are flavors, is shared among those
    queues as guarantees. Raises BadInput where that would be more quotas than are made."""
    cluster = None if trace.mapping is None else trace.mapping.cluster
    if cluster is None:
        return None
    flavors, resources = max(len(cluster.flavors), 1), len(_resources(trace.queues))
    if len(trace.queues) * flavors * resources > MOST_QUOTAS:
        detail = f"{len(trace.queues)} queues of {flavors} flavors and {resources} resources: at most {MOST_QUOTAS} "
        raise BadInput([Problem(pointer="/mapping/cluster", detail=f"{detail}quotas are made")])
    shares = _shares(trace.queues, cluster.each)
    parts = _parts(cluster, trace.nodes)
    split = _Split(parts)
    queues = [
        _queue_of(name, work, split.next(shares[name]), cluster.each) for name, work in sorted(trace.queues.items())
    ]
    groups = sorted({work.group for work in trace.queues.values() if work.group is not None})
    cohorts = [Queue(name=name, parent=cluster.each.queue.parent, kueue=None) for name in groups]
    return Configuration(
        engine=cluster.engine,
        settings=cluster.settings,
        flavors=cluster.flavors,
        queues=[*cluster.queues, *cohorts, *queues],
    )


def _shares(queues: ByName[str, Work], each: Each) -> dict[str, dict[str, Fraction]]:
    """By queue, the part of each resource that it is guaranteed; the resources are those that any job asks for."""
    resources = _resources(queues)
    if each.share != "work":
        alike = Fraction(1 if each.share == "equal" else 0, max(len(queues), 1))
        return {name: dict.fromkeys(resources, alike) for name in queues}
    whole = {resource: sum(work.steps[resource] for work in queues.values()) for resource in resources}
    return {
        name: {resource: Fraction(work.steps[resource], whole[resource] or 1) for resource in resources}
        for name, work in queues.items()
    }


def _resources(queues: ByName[str, Work]) -> list[str]:
    return sorted({resource for work in queues.values() for resource in work.steps})


def _parts(cluster: Cluster, nodes: Iterable[Node]) -> list[tuple[str, Steps]]:
    """Each flavor with what its nodes have; a node belongs to the first flavor whose labels it has."""
    flavors = cluster.flavors or [Flavor(name="default")]
    parts: list[tuple[str, Steps]] = [(flavor.name, {}) for flavor in flavors]
    for node in nodes:
        for flavor, (_, steps) in zip(flavors, parts, strict=True):
            if flavor.node_labels.items() <= node.labels.items():
                for resource, amount in node.capacity.items():
                    steps[resource] = steps.get(resource, 0) + parse_quantity(amount, scale_of(resource))
                break
    return parts


class _Split:
    """What each flavor has, handed out queue by queue in whole steps: rounded so that nothing is left over, for a job
    as large as the cluster must find all of it in the guarantees."""

    def __init__(self, parts: Iterable[tuple[str, Steps]]) -> None:
        self._parts = list(parts)
        self._shared: dict[str, Fraction] = {}
        self._given: dict[tuple[str, str], int] = {}

    def next(self, share: ByName[str, Fraction]) -> list[tuple[str, Steps]]:
        """The next queue's part of each flavor."""
        for resource, part in share.items():
            self._shared[resource] = self._shared.get(resource, Fraction(0)) + part
        return [(flavor, {r: self._part(flavor, r, steps.get(r, 0)) for r in share}) for flavor, steps in self._parts]

    def _part(self, flavor: str, resource: str, steps: int) -> int:
        until = int(steps * self._shared[resource])
        before = self._given.get((flavor, resource), 0)
        self._given[flavor, resource] = until
        return until - before


def _queue_of(name: str, work: Work, given: Iterable[tuple[str, Steps]], each: Each) -> Queue:
    flavors = [
        FlavorQuotas(name=flavor, quota={r: _quota(r, amount, each) for r, amount in steps.items()})
        for flavor, steps in given
    ]
    queue = msgspec.structs.replace(
        each.queue, name=name, parent=work.group if work.group is not None else each.queue.parent, quota=None
    )
    if len(flavors) == 1 and flavors[0].name == "default":
        return msgspec.structs.replace(queue, quota=flavors[0].quota)
    return msgspec.structs.replace(
        queue, resource_groups=[ResourceGroup(resources=list(flavors[0].quota), flavors=flavors)]
    )


def _quota(resource: str, steps: int, each: Each) -> Quota:
    given = (each.queue.quota or {}).get(resource, Quota())
    scale = scale_of(resource)
    amount: Quantity = steps // scale if steps % scale == 0 else f"{steps}m"
    return msgspec.structs.replace(given, guaranteed=amount)


_CHANGE = b'{"at"'
_encode = msgspec.json.Encoder(order="deterministic").encode


def body(trace: Ingested) -> Iterator[bytes]:
    """The JSON of a simulation, in pieces. Raises BadInput where the mapping has no cluster."""
    configured = configuration(trace)
    if configured is None:
        raise BadInput([Problem(pointer="/mapping/cluster", detail="the mapping has no cluster to play the trace on")])
    yield b'{"configuration":' + _encode(configured)
    yield b',"trace":{'
    if trace.start is not None:
        yield b'"start":' + _encode(trace.start) + b","
    for name, wanted in ((b'"changes":[', True), (b'],"jobs":[', False)):
        yield name
        separator = b""
        for chunk in trace.chunks:
            lines = [line for line in unpacked(chunk.data).splitlines() if line.startswith(_CHANGE) is wanted]
            if lines:
                yield separator + b",\n".join(lines)
                separator = b",\n"
    yield b"]}}\n"


def jobs_and_changes(trace: Ingested) -> Iterator[bytes]:
    """The lines of the trace, some at a time."""
    for chunk in trace.chunks:
        yield unpacked(chunk.data)


PIECE = 1 << 16
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def load(path: str, form: str | None, mapping: str | None, nodes: str | None) -> Ingested:
    """The trace of ``path``, a file on this machine, for the command line: no server, no database. A format that is not
    given is told by the name. Raises OSError, InvalidInput, ArbiterError."""
    chosen = next((candidate for candidate in get_args(Format) if candidate == form), None) if form else _guessed(path)
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
        while count <= most.jobs and (piece := file.read(PIECE)):
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
    configured = configuration(read)
    summary = _summary(upload, read)
    return Prepared(
        digest=read.digest, summary=_packed(summary), configuration=None if configured is None else _packed(configured),
        answer=_json(msgspec.structs.replace(summary, configuration=configured)), chunks=read.chunks,
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
    notes = [LineNote(line=note.line, detail=note.detail) for note in read.notes.listed]
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


ENTRY = ["-m", "app.traces.preparing"]


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
        with self._processes.started(ENTRY) as connection:
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
