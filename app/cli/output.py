"""Plain text for people: aligned columns without colour, so that it pipes, greps and diffs well."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from app.base.errors import ArbiterError
from app.solver.model.problems import InvalidInput, Problem

NOTHING, EVICTS, CANNOT, BAD_INPUT, UNREACHABLE = range(5)
DIFFERENT = 1


class ReaderGone(Exception):
    """Nobody reads standard output any more. No OSError: it says nothing about a file that was asked for."""


def say(text: str = "") -> None:
    """A line for the reader. Raises ReaderGone."""
    try:
        print(text)
    except BrokenPipeError as error:
        raise ReaderGone from error


def announce(text: str) -> None:
    """A line that somebody waits for while this process goes on: it leaves at once, into a pipe too.

    Raises ReaderGone.
    """
    say(text)
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def complain(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
    """Columns as wide as they need to be; one that is empty in every row is left out."""
    listed = [list(row) for row in rows]
    shown = [i for i in range(len(header)) if any(row[i] for row in listed)]
    lines = [[header[i] for i in shown], *([row[i] for i in shown] for row in listed)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(shown))]
    for line in lines:
        say(indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def problems(source: str, found: Sequence[Problem]) -> None:
    """Every problem of an input, on standard error."""
    complain(f"{source}: {len(found)} problem{'s' if len(found) != 1 else ''}")
    for problem in found:
        complain(f"  {problem.pointer or '(document)'}: {problem.detail}")


def tried(file: str, act: Callable[[], int]) -> int:
    """``act``'s exit code, or BAD_INPUT with everything that is wrong with ``file`` said on standard error."""
    try:
        return act()
    except OSError as error:
        complain(f"{error.filename or file}: {error.strerror or error}")
    except InvalidInput as invalid:
        problems(file, invalid.problems)
    except ArbiterError as refused:
        if refused.problems:
            problems(file, refused.problems)
        else:
            complain(f"{file}: {refused.detail}")
    return BAD_INPUT


def read(file: str) -> bytes:
    """The bytes of ``file``, or of standard input where it is ``-``. Raises OSError."""
    hint(file)
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def hint(file: str) -> None:
    """Tell somebody at a terminal that standard input is read, where ``file`` says so."""
    if file == "-" and sys.stdin.isatty():
        complain("reading standard input; end it with Ctrl-D, or name a file")
