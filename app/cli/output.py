"""What commands read and print: files, folders and standard input, JSON or YAML; plain text for people.

Text is in aligned columns without colour, so that it pipes, greps and diffs well.
"""

import json
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from app.base.decoding import refuse_keys_twice
from app.base.documents import Path, Unreadable
from app.base.documents import read as parsed
from app.base.errors import ArbiterError
from app.formats.yson import read_any
from app.solver.model.problems import Finding, InvalidInput, Problem
from app.solver.model.problems import pointer as to_pointer

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


def noticed(found: Iterable[Finding], place: Callable[[str], tuple[str, str]] = lambda at: ("", at)) -> None:
    """Every finding, on standard error. ``place``: the file that a pointer leads into, empty where it leads into none,
    and the pointer there."""
    for one in found:
        notice(one.severity, one.detail, one.rule, *place(one.pointer))


def notice(severity: str, detail: str, rule: str, file: str, pointer: str) -> None:
    """One finding as a line on standard error."""
    where = f"{file}: " if file else ""
    complain(f"  {where}{severity} {pointer or '(document)'}: {detail} [{rule}]")


class OfFiles(InvalidInput):
    """What is wrong with some of several files."""

    def __init__(self, found: Iterable[tuple[str, Problem]]) -> None:
        self.by_file: dict[str, list[Problem]] = {}
        for file, problem in found:
            self.by_file.setdefault(file, []).append(problem)
        super().__init__(problem for listed in self.by_file.values() for problem in listed)


@contextmanager
def of_file(name: str) -> Generator[None]:
    """What is wrong with what is read meanwhile is that file's. Raises OfFiles."""
    try:
        yield
    except InvalidInput as invalid:
        raise OfFiles((name, problem) for problem in invalid.problems) from None


def wrong(source: str, invalid: InvalidInput) -> None:
    """Every problem of an input, under the file that it is of."""
    for file, found in (invalid.by_file if isinstance(invalid, OfFiles) else {source: invalid.problems}).items():
        problems(file, found)


def tried(file: str, act: Callable[[], int]) -> int:
    """``act``'s exit code, or BAD_INPUT with everything that is wrong with ``file`` said on standard error."""
    try:
        return act()
    except OSError as error:
        complain(f"{error.filename or file}: {error.strerror or error}")
    except InvalidInput as invalid:
        wrong(file, invalid)
    except ArbiterError as refused:
        if refused.problems:
            problems(file, refused.problems)
        else:
            complain(f"{file}: {refused.detail}")
    return BAD_INPUT


def read(file: str) -> bytes:
    """The bytes of ``file``, or of standard input where it is ``-``. Raises OSError."""
    hint(file)
    return sys.stdin.buffer.read() if file == "-" else FilePath(file).read_bytes()


def hint(file: str) -> None:
    """Tell somebody at a terminal that standard input is read, where ``file`` says so."""
    if file == "-" and sys.stdin.isatty():
        complain("reading standard input; end it with Ctrl-D, or name a file")


Fields = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="With this field of the configuration, as queues.research.quota.gpu.guaranteed=12; may be given several "
        "times.",
    ),
]


def fields_of(words: list[str]) -> dict[str, Any]:
    """``--set PATH=VALUE``, fields of a configuration to set, on the command line: each path with its value, JSON, or
    the text itself. Raises InvalidInput."""
    return dict(map(_field, words))


def _field(word: str) -> tuple[str, Any]:
    path, equals, text = word.partition("=")
    if not equals or not path:
        raise InvalidInput([Problem(pointer="", detail=f"--set {word!r}: a path, = and a value are expected")])
    try:
        return path, json.loads(text)
    except ValueError:
        return path, text


SUFFIXES = (".yaml", ".yml", ".json")

Files = Annotated[
    list[str] | None,
    Parameter(
        name=["--file", "-f"], negative=(), allow_leading_hyphen=True,
        help="Another file, or a folder of manifests; may be given several times.",
    ),
]  # fmt: skip


class Source(NamedTuple):
    """The bytes of a file, and what the reader calls it."""

    name: str
    body: bytes


def gathered(first: str, more: list[str] | None) -> list[Source]:
    """What ``first`` and ``more`` name; standard input where ``first`` is ``-`` and nothing else is named. A folder
    stands for its YAML and JSON files in order of name. Raises OSError."""
    names = [*([] if first == "-" and more else [first]), *(more or [])]
    found: list[Source] = []
    for name in names:
        folder = FilePath(name)
        if name != "-" and folder.is_dir():
            files = sorted(one for one in folder.iterdir() if one.suffix in SUFFIXES)
            if not files:
                raise FileNotFoundError(2, "no .yaml, .yml or .json file in this folder", name)
            found += [Source(str(one), one.read_bytes()) for one in files]
        else:
            found.append(Source(name, read(name)))
    return found


def as_json(body: bytes) -> bytes:
    """``body`` where it is JSON; what one YAML document says as JSON. What is neither stays, for whoever decodes it to
    say so. Raises InvalidInput for YAML of several documents, and for a key that occurs twice in one object."""
    if body.lstrip()[:1] in (b"{", b"[", b""):
        refuse_keys_twice(body)
        return body
    documents = parsed(body)
    if len(documents) != 1:
        raise Unreadable(f"{len(documents)} documents: one is expected")
    document = documents[0][1]
    return json.dumps(document).encode() if isinstance(document, dict | list) else body


class Joined(NamedTuple):
    """All documents of several sources as one list, and where each is from: the source, and its place there."""

    body: bytes
    places: list[tuple[str, Path]]

    def place(self, pointer: str) -> tuple[str, str]:
        """The source that ``pointer`` into the list leads into, empty where it leads into none, and the pointer
        there."""
        number, slash, rest = pointer.removeprefix("/").partition("/")
        if not number.isdigit() or int(number) >= len(self.places):
            return "", pointer
        name, at = self.places[int(number)]
        return name, to_pointer(*at) + slash + rest


def joined(sources: list[Source]) -> Joined:
    """Read several sources together. Raises OfFiles."""
    documents: list[object] = []
    places: list[tuple[str, Path]] = []
    for source in sources:
        with of_file(source.name):
            found = read_any(source.body)
        documents += [document for _, document in found]
        places += [(source.name, at) for at, _ in found]
    return Joined(json.dumps(documents).encode(), places)
