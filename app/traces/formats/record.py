"""What a line of any format is turned into, before the mapping makes a job of it."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from app.solver.model.problems import Problem

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
        self.found: list[Problem] = []
        self.count = 0

    def add(self, line: int, detail: str, pointer: str = "") -> None:
        """``pointer``: into the line, where that is JSON."""
        self.count += 1
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(pointer=pointer, detail=f"line {line}: {detail}"))


class Notes:
    """Notes by line, the first 100 of them, and how many there are."""

    most = 100

    def __init__(self) -> None:
        self.found: list[Note] = []
        self.count = 0

    def add(self, line: int, detail: str) -> None:
        self.count += 1
        if len(self.found) < self.most:
            self.found.append(Note(line, detail))


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
    found = Decimal(text)
    if found > 2**63:
        raise LineError(f"{name}: {text[:32]} is too large")
    return found
