"""A trace from files on this machine, for the command line: no server, no database."""

import sys
import zlib
from pathlib import Path
from typing import get_args

import zstandard

from app.errors import BadRequest
from app.traces.ingest import Ingested, Limits, ingest
from app.traces.mapping import Format
from app.traces.service import source_of

_LIMITS = Limits(jobs=10_000_000, bytes=16 << 30)
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def load(path: str, form: str | None, mapping: str | None, nodes: str | None) -> Ingested:
    """The trace of ``path``; a format that is not given is told by the name. Raises OSError, InvalidInput,
    ArbiterError."""
    chosen = next((one for one in get_args(Format) if one == form), None) if form else _guessed(path)
    if chosen is None:
        raise BadRequest(f"no format {form!r}; there are {', '.join(get_args(Format))}")
    files = {"": _read(path)}
    if mapping is not None:
        files["mapping"] = _read(mapping)
    if nodes is not None:
        files["nodes"] = _read(nodes)
    return ingest(source_of(chosen, files), _LIMITS)


def _guessed(path: str) -> Format:
    name = Path(path).name
    if ".swf" in name:
        return "swf"
    return "alibaba-gpu-2023" if ".csv" in name else "ndjson"


def _read(path: str) -> bytes:
    """Of standard input where it is ``-``. Raises OSError, BadRequest."""
    body = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        if body.startswith(_GZIP):
            return zlib.decompress(body, 16 + zlib.MAX_WBITS)
        if body.startswith(_ZSTD):
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    except (zlib.error, zstandard.ZstdError) as error:
        raise BadRequest(f"{path}: {error}") from None
    return body
