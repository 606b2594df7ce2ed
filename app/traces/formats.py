"""The formats of traces (Alibaba's, SWF): what a line of each is turned into, before the mapping makes a job of it."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from app.solver.model.base import to_datetime
from app.solver.model.problems import Problem
from app.solver.model.state import Node

MAX_PROBLEMS = 200
_SECONDS = Decimal(10) ** 6
MAX_SECONDS = 10**10
"""Some 317 years: what is past it is no time of a trace."""


class LineError(ValueError):
    """What is wrong with one line; the text says which field and why."""


class Record(NamedTuple):
    """One job as its format has it.

    ``line`` from 1; ``submitted``, ``duration`` in microseconds, from the trace's beginning; ``columns``: every column
    by name, as text, "" where the line does not say.
    """

    line: int
    id: str
    submitted: int
    duration: int
    columns: Mapping[str, str]
    after: str | None = None


class Note(NamedTuple):
    """What was done about a line that is legal and no job as it stands."""

    line: int
    detail: str


class Complaints:
    """Problems by line, the first ``MAX_PROBLEMS`` of them, and how many there are."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.count = 0

    def add(self, line: int, detail: str, pointer: str = "") -> None:
        """``pointer``: into the line, where that is JSON."""
        self.count += 1
        if len(self.listed) < MAX_PROBLEMS:
            self.listed.append(Problem(pointer=pointer, detail=f"line {line}: {detail}"))


class Notes:
    """Notes by line, the first 100 of them, and how many there are."""

    most = 100

    def __init__(self) -> None:
        self.listed: list[Note] = []
        self.count = 0

    def add(self, line: int, detail: str) -> None:
        self.count += 1
        if len(self.listed) < self.most:
            self.listed.append(Note(line, detail))


def numbered(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of ``body`` without their ends, from 1; one at a time, so that none of them is there twice."""
    start, number = 0, 0
    while start < len(body):
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        number += 1
        yield number, body[start:end].rstrip(b"\r")
        start = end + 1


def micros_of(text: str, name: str) -> int:
    """Seconds, whole or with a fraction, in microseconds. Raises LineError for anything else."""
    if text.isascii() and text.isdigit():
        if len(text) > 20 or int(text) > MAX_SECONDS:
            raise LineError(f"{name}: {text[:32]} is past {MAX_SECONDS} s")
        return int(text) * 1_000_000
    return int(decimal_of(text, name) * _SECONDS)


def decimal_of(text: str, name: str) -> Decimal:
    """A number that is finite and not negative. Raises LineError."""
    plain = text.replace(".", "", 1)
    if not (plain.isascii() and plain.isdigit() and len(text) <= 32):
        raise LineError(f"{name}: {text[:32]!r} is not a number of 0 or more")
    number = Decimal(text)
    if number > 2**63:
        raise LineError(f"{name}: {text[:32]} is too large")
    return number


def _job(number: int, read: Callable[[], Record | str], complaints: Complaints, notes: Notes) -> Record | None:
    """What ``read`` makes of a line; None, and what is wrong with it or why it is no job is told."""
    try:
        record = read()
    except LineError as error:
        complaints.add(number, str(error))
        return None
    if isinstance(record, str):
        notes.add(number, record)
        return None
    return record


POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
    "deletion_time", "scheduled_time",
)  # fmt: skip
ALIBABA_COLUMNS = (*POD_COLUMNS, "cpus", "memory_bytes", "gpus")
"""The pods' columns, and the same in whole CPUs, bytes and GPUs."""
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
MODEL_LABEL = "gpu-model"


def alibaba_pods(
    body: bytes, zero_run_time: str | int | float, complaints: Complaints, notes: Notes
) -> Iterator[Record]:
    """The pods of Alibaba's cluster-trace-gpu-v2023, one list of pods, one of nodes, both CSV with a line of names, as
    they come.

    Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023. Times are seconds from the trace's
    beginning; ``gpu_milli`` is the part of each of ``num_gpu`` GPUs that a pod asks for, in thousandths; ``gpu_spec``
    the models that it accepts, ``|`` between them. A pod runs from ``scheduled_time`` to ``deletion_time``; one that
    was never scheduled would have run for an unknown time: it is taken from its creation.
    """
    for number, columns in _rows(body, POD_COLUMNS, complaints):
        record = _job(number, partial(_pod, number, columns, zero_run_time), complaints, notes)
        if record is not None:
            yield record


def alibaba_nodes(body: bytes, complaints: Complaints) -> list[Node]:
    """The nodes of the list, in its order; the model of their GPUs is the label ``gpu-model``."""
    nodes: dict[str, Node] = {}
    for number, columns in _rows(body, NODE_COLUMNS, complaints):
        try:
            node = _node(columns)
        except LineError as error:
            complaints.add(number, f"nodes: {error}")
            continue
        if node.name in nodes:
            complaints.add(number, f"nodes: {node.name[:64]!r} is there twice")
        nodes.setdefault(node.name, node)
    return list(nodes.values())


def _rows(body: bytes, wanted: tuple[str, ...], complaints: Complaints) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by column name, in whatever order the first line has them; more columns are let be."""
    names: list[str] | None = None
    for number, line in numbered(body):
        try:
            row: list[str] = next(csv.reader([line.decode()]), list[str]())
        except (UnicodeDecodeError, csv.Error):
            complaints.add(number, "not UTF-8, or not a line of CSV")
            continue
        if names is None:
            names = row
            if missing := [name for name in wanted if name not in names]:
                complaints.add(number, f"the names of the columns lack {', '.join(missing)}")
                return
        elif row:
            if len(row) != len(names):
                complaints.add(number, f"{len(row)} columns, {len(names)} are needed")
                continue
            yield number, dict(zip(names, row, strict=True))


def _pod(number: int, columns: dict[str, str], zero_run_time: str | int | float) -> Record | str:
    """Raises LineError."""
    if not columns["name"]:
        raise LineError("name: it has none")
    created = micros_of(columns["creation_time"], "creation_time")
    if not columns["deletion_time"]:
        return "it has no end: deletion_time is empty"
    deleted = micros_of(columns["deletion_time"], "deletion_time")
    begun = micros_of(columns["scheduled_time"], "scheduled_time") if columns["scheduled_time"] else created
    if deleted < begun or begun < created:
        raise LineError("its times go backwards: creation_time, scheduled_time, deletion_time")
    duration = deleted - begun
    if duration == 0:
        if zero_run_time == "refuse":
            raise LineError("it ran for 0 s; zero_run_time of the mapping says what becomes of such pods")
        if isinstance(zero_run_time, str):
            return "it ran for 0 s"
        duration = round(zero_run_time * 1_000_000)
    gpus = decimal_of(columns["num_gpu"], "num_gpu") * decimal_of(columns["gpu_milli"], "gpu_milli") / 1000
    cells = columns | {
        "cpus": _plain(decimal_of(columns["cpu_milli"], "cpu_milli") / 1000),
        "memory_bytes": _plain(decimal_of(columns["memory_mib"], "memory_mib") * 2**20),
        "gpus": _plain(gpus),
    }
    return Record(number, columns["name"], created, duration, cells)


def _node(columns: dict[str, str]) -> Node:
    """Raises LineError."""
    if not columns["sn"]:
        raise LineError("sn: it has no name")
    gpus = decimal_of(columns["gpu"], "gpu")
    capacity: dict[str, int | float | str] = {
        "cpu": _plain(decimal_of(columns["cpu_milli"], "cpu_milli") / 1000),
        "memory": _plain(decimal_of(columns["memory_mib"], "memory_mib") * 2**20),
    }
    if gpus:
        capacity["gpu"] = _plain(gpus)
    labels = {MODEL_LABEL: columns["model"]} if columns["model"] else {}
    return Node(name=columns["sn"], capacity=capacity, labels=labels)


def _plain(number: Decimal) -> str:
    """Without an exponent, and without zeros at the end of a fraction."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


FIELDS: tuple[str, ...] = (
    "job", "submit", "wait", "run_time", "allocated_processors", "cpu_time", "used_memory", "requested_processors",
    "requested_time", "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding_job", "think_time",
)  # fmt: skip
SWF_COLUMNS = (*FIELDS, "processors", "memory")
"""The fields, and what is asked for: as requested where the log knows, else as allocated or used."""
_START = re.compile(r"0{0,9}[1-9][0-9]{0,10}")
_HEADER = re.compile(rb";\s*([A-Za-z][A-Za-z0-9]*):\s*(.*)")
_PARTIAL = frozenset({"2", "3", "4"})
_CANCELLED = "5"
_KNOWN_STATUS = frozenset({"-1", "0", "1", "5"}) | _PARTIAL
_UNKNOWN = "-1"
_HEADERS = 1000


class SwfHeader:
    """What the comments in front say, by name; the first of each name."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}

    def add(self, line: bytes) -> None:
        match = _HEADER.match(line)
        if match is not None and len(self.fields) < _HEADERS:
            self.fields.setdefault(match[1].decode(), match[2].decode("utf-8", "replace").strip())

    @property
    def start(self) -> datetime | None:
        """When second 0 was: ``UnixStartTime``."""
        text = self.fields.get("UnixStartTime", "")
        return to_datetime(int(text) * 1_000_000) if _START.fullmatch(text) else None

    def number(self, name: str) -> int | None:
        """A number of the header, such as ``MaxProcs``; None where it does not say."""
        match = re.match(r"[0-9]{1,12}(?![0-9])", self.fields.get(name, ""))
        return int(match[0]) if match is not None and int(match[0]) > 0 else None


def swf_records(
    body: bytes, header: SwfHeader, zero_run_time: str | int | float, complaints: Complaints, notes: Notes
) -> Iterator[Record]:
    """The jobs of ``body``, in the Standard Workload Format 2.2 of the Parallel Workloads Archive, as they come.
    ``header`` is filled from the comments before the first of them.

    ``zero_run_time``: what becomes of a job that ran for less than half a second: "refuse", "skip", or its seconds.

    Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. A line is a job of 18 fields between blanks; -1
    says that the log does not know. Lines that begin with ``;`` are comments, of which those in front are the header.
    Where jobs were swapped or checkpointed, their partial executions (status 2 to 4) follow the line of the whole job:
    they are parts of it and no jobs.
    """
    for number, line in numbered(body):
        if line.startswith(b";"):
            header.add(line)
            continue
        if not line.strip():
            continue
        record = _job(number, partial(_record, number, line, zero_run_time), complaints, notes)
        if record is not None:
            if record.columns["run_time"].strip("0.") == "":
                notes.add(number, f"its run time of 0 s counts as {record.duration / 1e6:g} s")
            yield record


def _record(number: int, line: bytes, zero_run_time: str | int | float) -> Record | str:
    """The job of a line, or why it is none. Raises LineError."""
    try:
        values = line.decode("ascii").split()
    except UnicodeDecodeError:
        raise LineError("not ASCII") from None
    if len(values) != len(FIELDS):
        raise LineError(f"{len(values)} fields, {len(FIELDS)} are needed")
    columns: dict[str, str] = dict(zip(FIELDS, values, strict=True))
    _check(columns)
    if columns["status"] in _PARTIAL:
        return f"a partial execution (status {columns['status']}) is part of the job before it"
    if columns["submit"] == _UNKNOWN:
        raise LineError("submit: the time of submission is needed")
    run_time = columns["run_time"]
    columns["processors"] = _first(columns, "requested_processors", "allocated_processors")
    columns["memory"] = _first(columns, "requested_memory", "used_memory")
    if _never_ran(columns):
        return "it never ran: no run time is known" if run_time == _UNKNOWN else "it was cancelled before it ran"
    duration = micros_of(run_time, "run_time")
    if duration == 0:
        if zero_run_time == "refuse":
            raise LineError("run_time: 0 s; zero_run_time of the mapping says what becomes of such jobs")
        if isinstance(zero_run_time, str):
            return "its run time is 0 s"
        duration = round(zero_run_time * 1_000_000)
    shown = {name: "" if value == _UNKNOWN else value for name, value in columns.items()}
    preceding = columns["preceding_job"]
    after = preceding if preceding not in (_UNKNOWN, "0") else None
    return Record(number, columns["job"], micros_of(columns["submit"], "submit"), duration, shown, after)


def _check(columns: Mapping[str, str]) -> None:
    """Every field is a number or -1. Raises LineError."""
    for name, value in columns.items():
        if not value.isdigit() and value != _UNKNOWN:
            decimal_of(value, name)
    if columns["status"] not in _KNOWN_STATUS:
        raise LineError(f"status: {columns['status'][:32]} is none of -1 and 0 to 5")


def _never_ran(columns: Mapping[str, str]) -> bool:
    if columns["run_time"] == _UNKNOWN:
        return True
    ran = columns["run_time"].strip("0.") != ""
    return columns["status"] == _CANCELLED and not ran


def _first(columns: Mapping[str, str], *names: str) -> str:
    """The first that the log knows; no job asks for 0."""
    return next((columns[name] for name in names if columns[name] not in (_UNKNOWN, "0")), _UNKNOWN)
