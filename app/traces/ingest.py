"""A trace's bytes in any format to its lines: read once, checked, and packed as they come. Pure.

What comes out is newline-delimited JSON, each line a change or a job, in the order of the file, compressed in chunks of
about a megabyte: a trace is never whole in memory again.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

import msgspec
import zstandard

from app.simulations.schemas import Change, Job, too_many_jobs
from app.solver.model import base
from app.solver.model.base import DurationError, QuantityError, parse_quantity, scale_of, to_datetime
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Node, NodeChanges
from app.traces import jobs as lines
from app.traces.formats import (
    ALIBABA_COLUMNS,
    SWF_COLUMNS,
    Complaints,
    LineError,
    Notes,
    Record,
    SwfHeader,
    alibaba_nodes,
    alibaba_pods,
    swf_records,
)
from app.traces.jobs import DEFAULTS, Format, Mapper, Mapping, Order, filled, problems_of

CHUNK = 1 << 20
_LEVEL = 3
COLUMNS: dict[str, tuple[str, ...]] = {"swf": SWF_COLUMNS, "alibaba-gpu-2023": ALIBABA_COLUMNS}
"""What a mapping can name, by format."""
MOST_QUEUES = 100_000
_MOST_NODES = 100_000
_MOST_CAPACITIES = 1_000_000
"""What a few bytes of a mapping may become: each is held by whoever plays the trace."""
_encode = msgspec.json.Encoder(order="deterministic").encode

Lines = Iterator[tuple[int, Job | Change]]


class Source(NamedTuple):
    """What was sent. ``nodes``: the second list, where the format has one; ``mapping``: None for the format's own."""

    format: Format
    body: bytes
    nodes: bytes | None = None
    mapping: Mapping | None = None


class Chunk(NamedTuple):
    """Some lines, compressed. ``first`` counts the jobs before."""

    first: int
    jobs: int
    data: bytes


@dataclass
class Work:
    """What the jobs of one queue need: ``steps`` of each resource, as quantities count them, times microseconds."""

    group: str | None
    jobs: int = 0
    steps: Counter[str] = field(default_factory=Counter[str])


class Limits(NamedTuple):
    """The most that a trace may have."""

    jobs: int = 1_000_000
    bytes: int = 1 << 30

    @property
    def too_many(self) -> str:
        """What is said of one that has more jobs."""
        return too_many_jobs(self.jobs)


@dataclass
class Ingested:
    """A trace that is good. ``start``: the time of its second 0, where it knows; ``nodes``: where it has a list."""

    digest: str
    jobs: int
    changes: int
    size: int
    start: datetime | None
    span: float
    chunks: list[Chunk]
    queues: dict[str, Work]
    nodes: list[Node]
    notes: Notes
    mapping: Mapping | None


def ingest(source: Source, limits: Limits) -> Ingested:
    """``source`` read, checked and packed. Raises InvalidInput with every problem, the line of each named."""
    mapping = source.mapping or DEFAULTS.get(source.format)
    if source.format != "ndjson":
        assert mapping is not None
        if wrong := problems_of(mapping, COLUMNS[source.format]):
            raise InvalidInput([Problem(pointer=f"/mapping{p.pointer}", detail=p.detail) for p in wrong])
    return _Reading(source, mapping, limits).done()


class _Reading:
    def __init__(self, source: Source, mapping: Mapping | None, limits: Limits) -> None:
        self._source = source
        self._mapping = mapping
        self._limits = limits
        self._complaints = Complaints()
        self._notes = Notes()
        self._order = Order(self._complaints)
        self._queues: dict[str, Work] = {}
        self._header = SwfHeader()
        self._packer = _Packer()
        self._nodes: list[Node] = []

    def done(self) -> Ingested:
        jobs = changes = 0
        for line, entry in self._entries():
            if isinstance(entry, Job):
                jobs += 1
                if jobs > self._limits.jobs:
                    self._complaints.add(line, self._limits.too_many)
                    break
                self._order.job(line, entry)
                self._check_ask(line, entry)
            else:
                changes += 1
                self._order.change(line, entry)
            self._packer.add(_encode(entry), is_job=isinstance(entry, Job))
            if self._packer.size > self._limits.bytes:
                self._complaints.add(
                    line, f"more than {self._limits.bytes} bytes as newline-delimited JSON (ARBITER_TRACE_BYTES)"
                )
                break
        if self._complaints.count:
            raise InvalidInput(_problems(self._complaints))
        return self._ingested(jobs, changes)

    def _ingested(self, jobs: int, changes: int) -> Ingested:
        order = self._order
        start = self._header.start if order.start is None else to_datetime(order.start)
        chunks, digest = self._packer.done()
        return Ingested(
            digest=digest, jobs=jobs, changes=changes, size=self._packer.size, start=start,
            span=0.0 if order.first is None else (order.last - order.first) / 1e6,
            chunks=chunks, queues=self._queues, nodes=self._nodes, notes=self._notes, mapping=self._mapping,
        )  # fmt: skip

    def _entries(self) -> Lines:
        source, mapping = self._source, self._mapping
        if source.format == "ndjson":
            yield from lines.entries(source.body, self._complaints)
            return
        assert mapping is not None
        if source.format == "swf":
            records = swf_records(source.body, self._header, mapping.zero_run_time, self._complaints, self._notes)
        else:
            self._nodes = [] if source.nodes is None else alibaba_nodes(source.nodes, self._complaints)
            records = alibaba_pods(source.body, mapping.zero_run_time, self._complaints, self._notes)
        mapped = self._mapped(records, mapping)
        first = next(mapped, None)  # the header is read by then, and says how many nodes there are
        if mapping.nodes is not None and not self._nodes:
            self._nodes = _group(mapping, self._header, self._complaints)
        if self._nodes:
            yield 1, Change(at=0, nodes=NodeChanges(add=self._nodes))
        if first is not None:
            yield first
        yield from mapped

    def _mapped(self, records: Iterator[Record], mapping: Mapping) -> Lines:
        mapper = Mapper(mapping)
        groups = None if mapping.cluster is None else mapping.cluster.each.groups
        group = None if groups is None else filled(groups)
        for record in records:
            try:
                job = mapper.job(record)
            except LineError as error:
                self._complaints.add(record.line, str(error))
                continue
            if job.ask.queue not in self._queues:
                if len(self._queues) == MOST_QUEUES:
                    self._complaints.add(record.line, f"more than {MOST_QUEUES} queues")
                    return
                self._queues[job.ask.queue] = Work(None if group is None else group(record.columns))
            if job.after and not self._order.knows(job.after[0]):
                self._notes.add(record.line, f"job {job.after[0]}, which precedes it, is not in the trace")
                job = msgspec.structs.replace(job, after=[])
            yield record.line, job

    def _check_ask(self, line: int, job: Job) -> None:
        """Quantities, which only their engine would look at; and what the jobs of each queue need."""
        work = self._queues.get(job.ask.queue)
        if work is None and len(self._queues) < MOST_QUEUES:
            work = self._queues[job.ask.queue] = Work(None)
        try:
            length = base.parse_duration(job.duration)
        except DurationError:  # said by the order already
            length = 0
        for task in job.ask.tasks:
            for resource, amount in task.requests.items():
                try:
                    steps = parse_quantity(amount, scale_of(resource))
                except QuantityError as error:
                    self._complaints.add(line, f"{resource}: {error}")
                    continue
                if work is not None:
                    work.steps[resource] += steps * task.count * length
        if work is not None:
            work.jobs += 1


class _Packer:
    def __init__(self) -> None:
        self.size = 0
        self._hash = sha256()
        self._lines: list[bytes] = []
        self._waiting = 0
        self._jobs = self._jobs_before = 0
        self._chunks: list[Chunk] = []
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)

    def add(self, line: bytes, *, is_job: bool) -> None:
        self._lines.append(line)
        self._waiting += len(line) + 1
        self.size += len(line) + 1
        self._jobs += is_job
        if self._waiting >= CHUNK:
            self._pack()

    def done(self) -> tuple[list[Chunk], str]:
        """All chunks, and the SHA-256 of the lines."""
        if self._lines:
            self._pack()
        return self._chunks, self._hash.hexdigest()

    def _pack(self) -> None:
        text = b"\n".join(self._lines) + b"\n"
        self._hash.update(text)
        self._chunks.append(Chunk(self._jobs_before, self._jobs, self._compressor.compress(text)))
        self._jobs_before += self._jobs
        self._lines, self._waiting, self._jobs = [], 0, 0


def unpacked(data: bytes) -> bytes:
    """The lines of a chunk."""
    return zstandard.ZstdDecompressor().decompress(data)


def _group(mapping: Mapping, header: SwfHeader, complaints: Complaints) -> list[Node]:
    assert mapping.nodes is not None
    count = mapping.nodes.count or header.number("MaxNodes") or header.number("MaxProcs")
    if count is None:
        complaints.add(1, "the header has no MaxNodes, and `nodes.count` of the mapping does not say how many")
        return []
    if count > _MOST_NODES or count * len(mapping.nodes.capacity) > _MOST_CAPACITIES:
        complaints.add(
            1,
            f"{count} nodes of {len(mapping.nodes.capacity)} resources: at most {_MOST_NODES} nodes and "
            f"{_MOST_CAPACITIES} capacities are made",
        )
        return []
    return [Node(name=f"node-{i}", capacity=mapping.nodes.capacity) for i in range(1, count + 1)]


def _problems(complaints: Complaints) -> list[Problem]:
    more = complaints.count - len(complaints.listed)
    last = [Problem(pointer="", detail=f"and {more} more")] if more else []
    return complaints.listed + last
