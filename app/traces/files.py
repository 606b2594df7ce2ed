"""A trace from files on this machine, for the command line: no server, no database."""

import gzip
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import get_args

import zstandard

from app.base.errors import BadRequest, TooLarge
from app.base.settings import Settings
from app.traces.ingest import Ingested, Limits, ingest
from app.traces.mapping import Format
from app.traces.preparing import source_of

_PIECE = 1 << 16
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def load(path: str, form: str | None, mapping: str | None, nodes: str | None) -> Ingested:
    """The trace of ``path``; a format that is not given is told by the name. Raises OSError, InvalidInput,
    ArbiterError."""
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
