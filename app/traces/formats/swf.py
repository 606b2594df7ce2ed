"""The Standard Workload Format 2.2 of the Parallel Workloads Archive.

Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. A line is a job of 18 fields between blanks; -1 says
that the log does not know. Lines that begin with ``;`` are comments, of which those in front are the header. Where jobs
were swapped or checkpointed, their partial executions (status 2 to 4) follow the line of the whole job: they are parts
of it and no jobs.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from app.solver.model.instant import at
from app.traces.formats.record import Complaints, LineError, Notes, Record, decimal_of, micros_of, numbered

FIELDS: tuple[str, ...] = (
    "job", "submit", "wait", "run_time", "allocated_processors", "cpu_time", "used_memory", "requested_processors",
    "requested_time", "requested_memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding_job", "think_time",
)  # fmt: skip
COLUMNS = (*FIELDS, "processors", "memory")
"""The fields, and what is asked for: as requested where the log knows, else as allocated or used."""
_START = re.compile(r"0{0,9}[1-9][0-9]{0,10}")
_HEADER = re.compile(rb";\s*([A-Za-z][A-Za-z0-9]*):\s*(.*)")
_PARTIAL = frozenset({"2", "3", "4"})
_CANCELLED = "5"
_KNOWN_STATUS = frozenset({"-1", "0", "1", "5"}) | _PARTIAL
_UNKNOWN = "-1"
_HEADERS = 1000


class Header:
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
        return at(int(text) * 1_000_000) if _START.fullmatch(text) else None

    def number(self, name: str) -> int | None:
        """A number of the header, such as ``MaxProcs``; None where it does not say."""
        match = re.match(r"[0-9]{1,12}(?![0-9])", self.fields.get(name, ""))
        return int(match[0]) if match is not None and int(match[0]) > 0 else None


def records(
    body: bytes, header: Header, zero_run_time: str | int | float, complaints: Complaints, notes: Notes
) -> Iterator[Record]:
    """The jobs of ``body`` as they come. ``header`` is filled from the comments before the first of them.

    ``zero_run_time``: what becomes of a job that ran for less than half a second: "refuse", "skip", or its seconds.
    """
    for number, line in numbered(body):
        if line.startswith(b";"):
            header.add(line)
            continue
        if not line.strip():
            continue
        try:
            found = _record(number, line, zero_run_time)
        except LineError as error:
            complaints.add(number, str(error))
            continue
        if isinstance(found, str):
            notes.add(number, found)
        else:
            if found.columns["run_time"].strip("0.") == "":
                notes.add(number, f"its run time of 0 s counts as {found.duration / 1e6:g} s")
            yield found


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
