"""Recordings of what an API server sent.

JSON lines, compressed where the file's name says so. Each has ``at``, when it was heard, ``kind`` and ``type``:

- `RECORDING`: the first line of every run, with ``version``, ``engine`` and ``cluster``;
- `ITEM`: an ``object`` of a list that is being read, and `LISTED`: that list is whole, with ``count``,
  ``resource_version``, ``api_version`` and ``reason``; without it the items before count for nothing;
- `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`: what a watch says, with its ``object``;
- `ABSENT`, `BROKEN`: the server has no such kind; a list or a watch broke, with ``error``.

An object is as the server sent it but for ``managedFields``. What is never read is no change: a queue's status is
written with every admission, and a node reports every few minutes. Lines of a watch alone, as `kubectl get --watch
--output-watch-events -o json` prints them, are a recording too: without ``at`` it is the latest time that any object
has told of, and what is added first is what there was.
"""

import gzip
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

from app.base.errors import BadRequest
from app.following.objects import Item, Key, Kind, key_of, part, trimmed
from app.solver.model.configuration import EngineName

VERSION = 1
_FLUSH_SECONDS = 1.0
_LEVEL, _WINDOW_LOG = 6, 24
_MOST_LINE = 64 << 20
_UNTOLD = ("managedFields", "selfLink")


class Recorder:
    """Writes down what several threads hear. Appends to a file that is there: it begins with a `RECORDING` again."""

    def __init__(
        self, path: Path, engine: EngineName, cluster: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:  # fmt: skip
        """Raises OSError."""
        self._clock = clock
        self._known: dict[tuple[str, Key], int] = {}
        self._file: IO[bytes] = path.open("ab")
        self._out = _compressed(path, self._file)
        self._lock = threading.Lock()
        self._flushed = time.monotonic()
        self._failed: str | None = None
        self._write("", "RECORDING", version=VERSION, engine=engine, cluster=cluster)

    def item(self, kind: Kind, item: Item) -> None:
        """An object of a list."""
        self._is_news(kind, item)
        self._write(kind.name, "ITEM", object=_told(item))

    def listed(self, kind: Kind, api_version: str, count: int, version: str, reason: str) -> None:
        """The list of which all items have been told is whole."""
        self._write(
            kind.name, "LISTED", count=count, resource_version=version, api_version=api_version, reason=reason
        )  # fmt: skip

    def event(self, kind: Kind, said: dict[str, Any]) -> None:
        """What a watch says."""
        given, word = part(said, "object"), said.get("type")
        if word == "DELETED":
            self._known.pop((kind.name, key_of(given)), None)
        elif word in ("ADDED", "MODIFIED") and not self._is_news(kind, given):
            return
        self._write(kind.name, str(said.get("type")), object=_told(given))

    def absent(self, kind: Kind) -> None:
        """The server has no such kind."""
        self._write(kind.name, "ABSENT")

    def broken(self, kind: Kind, error: str) -> None:
        """A list or a watch could not go on."""
        self._write(kind.name, "BROKEN", error=error)

    def close(self) -> None:
        """Nothing more comes."""
        with self._lock:
            if not self._file.closed:
                if self._out is not self._file:
                    self._out.close()
                self._file.close()

    @property
    def failed(self) -> str | None:
        """Why nothing more is written; None: all is well."""
        return self._failed

    def _is_news(self, kind: Kind, item: Item) -> bool:
        """Whether something that is read is another than it was."""
        read = trimmed(kind.name, msgspec.json.decode(msgspec.json.encode(item)))
        key, seen = (kind.name, key_of(item)), hash(msgspec.json.encode(read, order="deterministic"))
        known, self._known[key] = self._known.get(key), seen
        return known != seen

    def _write(self, kind: str, said: str, **more: Any) -> None:
        at = self._clock()
        line = msgspec.json.encode(
            {"at": at, "kind": kind, "type": said, **more} if kind else {"at": at, "type": said, **more}
        )
        with self._lock:
            if self._failed is not None or self._file.closed:
                return
            try:
                self._out.write(line + b"\n")
                if (now := time.monotonic()) - self._flushed >= _FLUSH_SECONDS:
                    self._flushed = now
                    self._out.flush()
                    self._file.flush()
            except OSError as error:  # a full disk ends the recording, and not the following
                self._failed = str(error)


def _compressed(path: Path, file: IO[bytes]) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="ab"))
    if path.suffix == ".zst":
        untyped: Any = zstandard.ZstdCompressionParameters
        parameters = untyped.from_level(_LEVEL, window_log=_WINDOW_LOG)
        writer = zstandard.ZstdCompressor(compression_params=parameters).stream_writer(file, closefd=False)
        return cast(IO[bytes], writer)
    return file


def _told(item: Item) -> Item:
    metadata = part(item, "metadata")
    if not any(field in metadata for field in _UNTOLD):
        return item
    return {**item, "metadata": {name: value for name, value in metadata.items() if name not in _UNTOLD}}


@contextmanager
def _opened(path: Path) -> Generator[IO[bytes]]:
    with path.open("rb") as file:
        if path.suffix == ".gz":
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file))
        elif path.suffix == ".zst":
            raw = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)
            yield cast(IO[bytes], BufferedReader(cast(Any, raw)))
        else:
            yield file


def engine_of(path: Path) -> str | None:
    """Whose cluster was recorded, as the first line says it; None: that is no recording's. Raises OSError."""
    try:
        first = next(lines(path), dict[str, Any]())
    except BadRequest:
        return None
    return str(first.get("engine") or "") or None if first.get("type") == "RECORDING" else None


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Each line of a recording; one that was cut off at the end is left out. Raises BadRequest, OSError."""
    number = 0
    try:
        with _opened(path) as file:
            while line := file.readline(_MOST_LINE):
                number += 1
                if line.isspace():
                    continue
                if not line.endswith(b"\n") and len(line) == _MOST_LINE:
                    raise BadRequest(f"{path}: line {number} is longer than {_MOST_LINE >> 20} MiB")
                try:
                    said = msgspec.json.decode(line, type=dict[str, Any])
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    if not line.endswith(b"\n"):
                        return
                    raise BadRequest(f"{path}: line {number} is no JSON object: {error}") from None
                yield said
    except (EOFError, zstandard.ZstdError, gzip.BadGzipFile) as error:
        if not number:
            raise BadRequest(f"{path}: {error}") from None
