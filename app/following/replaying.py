"""Recordings of what an API server sent: written, read, and replayed, with every preemption judged. Replaying needs no
cluster and no service.

JSON lines, compressed where the file's name says so, and read whatever it is called: docs/kubernetes.md has the format.
An object is as the server sent it but for ``managedFields``. What is never read is no change: a queue's status is
written with every admission, and a node reports every few minutes. Lines of a watch alone, as `kubectl get --watch
--output-watch-events -o json` prints them, are a recording too: without ``at`` it is the latest time that any object
has told of, and what is added first is what there was.
"""

import gzip
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BufferedReader, BytesIO
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

from app.base.decoding import whole
from app.base.documents import as_list, as_mapping
from app.base.errors import BadRequest
from app.following.history import History, Preemption
from app.following.judging import SETTLED_SECONDS, Judge, Judgement, is_settled
from app.following.mirror import Mirror
from app.following.objects import FOLLOWED, Event, Listed, followed, followed_of, trimmed
from app.formats.objects import Item, Key, Kind, condition, instant, key_of, part
from app.solver.model.configuration import EngineName, Settings
from app.solver.question import safe_point

VERSION = 1
_FLUSH_SECONDS = 1.0
_LEVEL, _WINDOW_LOG = 6, 24
_MOST_LINE = 64 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UNTOLD = ("managedFields", "selfLink")


Source = Path | bytes
"""A recording: its file, or what is in it."""


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
        self._write(kind.name, "ITEM", object=_essential(item))

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
        self._write(kind.name, str(said.get("type")), object=_essential(given))

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
        moment = self._clock()
        line = msgspec.json.encode(
            {"at": moment, "kind": kind, "type": said, **more} if kind else {"at": moment, "type": said, **more}
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


def _essential(item: Item) -> Item:
    metadata = part(item, "metadata")
    if not any(field in metadata for field in _UNTOLD):
        return item
    return {**item, "metadata": {name: value for name, value in metadata.items() if name not in _UNTOLD}}


@contextmanager
def _opened(source: Source) -> Generator[IO[bytes]]:
    with source.open("rb") if isinstance(source, Path) else BytesIO(source) as file:
        first, suffix = file.read(len(_ZSTD)), source.suffix if isinstance(source, Path) else ""
        file.seek(0)
        if suffix == ".gz" or first.startswith(_GZIP):
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file))
        elif suffix == ".zst" or first.startswith(_ZSTD):
            raw = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)
            yield cast(IO[bytes], BufferedReader(cast(Any, raw)))
        else:
            yield file


def engine_of(source: Source) -> str | None:
    """Whose cluster was recorded, as the first line says it; None: that is no recording's. Raises OSError."""
    try:
        first = next(lines(source), dict[str, Any]())
    except BadRequest:
        return None
    return str(first.get("engine") or "") or None if first.get("type") == "RECORDING" else None


def lines(source: Source) -> Iterator[dict[str, Any]]:
    """Each line of a recording; one that was cut off at the end is left out. Raises BadRequest, OSError."""
    number, path = 0, source if isinstance(source, Path) else "the recording"
    try:
        with _opened(source) as file:
            while line := file.readline(_MOST_LINE):
                safe_point()
                number += 1
                if line.isspace():
                    continue
                if not line.endswith(b"\n") and len(line) == _MOST_LINE:
                    raise BadRequest(f"{path}: line {number} is longer than {_MOST_LINE >> 20} MiB")
                try:
                    said = msgspec.json.decode(line, type=dict[str, Any])
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    if number > 1 and not line.endswith(b"\n"):
                        return
                    raise BadRequest(f"{path}: line {number} is no JSON object: {error}") from None
                yield said
    except (EOFError, zstandard.ZstdError, gzip.BadGzipFile) as error:
        if not number:
            raise BadRequest(f"{path}: {error}") from None


_END_SECONDS = 3600.0
_APART = timedelta(seconds=5)
_FAIR, _BORROWING = "InCohortFairSharing", "InCohortReclaimWhileBorrowing"
_TIMES = ("lastTransitionTime", "lastTimestamp", "eventTime", "firstTimestamp", "creationTimestamp", "time")


@dataclass(slots=True)
class Replayed:
    """What was done with a recording. ``skipped``: objects by kinds that are not followed."""

    judged: int = 0
    lines: int = 0
    skipped: Counter[str] = field(default_factory=Counter[str])


class Replay:
    """Follows a recording as if it happened now."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._kinds = {kind.name: kind for kind in followed(engine, shadow=True)}
        self._now = 0.0
        self.mirror = Mirror(tuple(self._kinds.values()), History(engine, clock=lambda: self._now))
        self._listing: dict[str, list[Item]] = {}
        self._again: list[Preemption] = []
        self.counts = Replayed()

    def judge(
        self, said: Callable[[], Iterator[dict[str, Any]]], settings: Settings | None = None
    ) -> Iterator[Judgement]:  # fmt: skip
        """Every cycle of every preemption in the recording that ``said`` gives the lines of, as often as it is asked.
        ``settings``: of the engine; None: as the cluster's own objects say, else as what it did tells: an eviction that
        only one of Kueue's modes makes, else the mode of which fewer cycles differ. Raises BadRequest, OSError."""
        seen = _Seen()
        for line in said():
            seen.add(line)
        sharing = followed_of(self._engine).other_mode
        if settings is not None or sharing is None or seen.configured or seen.borrows:
            yield from self._judge(said, seen, settings)
        elif seen.shares:
            yield from self._judge(said, seen, sharing)
        else:
            judged = list(self._judge(said, seen, None))
            if differing := _differing(judged):
                other = Replay(self._engine)
                shared = list(other._judge(said, seen, sharing))
                judged = shared if _differing(shared) < differing else judged
            yield from judged

    def _judge(
        self, said: Callable[[], Iterator[dict[str, Any]]], seen: "_Seen", settings: Settings | None
    ) -> Iterator[Judgement]:
        for line in said() if seen.in_order else in_order(said()):
            self.hear(line)
            yield from self._ripe(settings)
        self._now += _END_SECONDS
        yield from self._ripe(settings)

    def _ripe(self, settings: Settings | None) -> Iterator[Judgement]:
        due = [preemption for preemption in self._again if self._now - preemption.last >= SETTLED_SECONDS]
        self._again = [preemption for preemption in self._again if preemption not in due]
        for preemption in (*due, *self.mirror.preemptions()):
            judged = Judge(self._engine, "recording", settings).judge(preemption, self.mirror.rewind())
            if is_settled(judged, preemption, self._now):
                self.counts.judged += 1
                yield from judged
            else:
                self._again.append(preemption)

    def now(self) -> datetime:
        """The time of what was heard last."""
        return datetime.fromtimestamp(self._now, UTC)

    def hear(self, line: dict[str, Any]) -> None:
        """One line. Raises BadRequest."""
        self.counts.lines += 1
        said, item = line.get("type"), part(line, "object")
        self._pass_time(line, item)
        if said == "RECORDING":
            if line.get("engine", self._engine) != self._engine:
                raise BadRequest(f"the recording is of {line['engine']}, not of {self._engine}")
            self._listing.clear()
            return
        name = line.get("kind") or item.get("kind") or ""
        if isinstance(items := line.get("items"), list) or isinstance(items := item.get("items"), list):
            self._list(str(name).removesuffix("List"), line if "items" in line else item, cast(list[Any], items))
            return
        kind = self._kinds.get(str(name))
        if kind is None:
            self.counts.skipped[str(name)] += 1
            return
        version = str(part(item, "metadata").get("resourceVersion") or "")
        match said:
            case "ITEM":
                self._listing.setdefault(kind.name, []).append(trimmed(kind.name, item))
            case "LISTED":
                objects = self._listing.pop(kind.name, [])
                if len(objects) != line.get("count", len(objects)):
                    raise BadRequest(f"a list of {kind.name} has {len(objects)} of {line.get('count')} objects")
                listed = Listed(objects, str(line.get("resource_version") or ""))
                api_version = str(line.get("api_version") or kind.api_version(kind.versions[0]))
                self.mirror.listed(kind, api_version, listed, str(line.get("reason") or "recorded"))
            case "ADDED" | "MODIFIED" | "DELETED":
                self.mirror.apply(kind, Event(said == "DELETED", trimmed(kind.name, item), version))
            case "BOOKMARK":
                self.mirror.apply(kind, Event(False, None, version))
            case "ABSENT":
                self.mirror.absent(kind)
            case "BROKEN" | "ERROR":
                error = line.get("error") or item.get("message") or ""
                self._listing.pop(kind.name, None)
                self.mirror.broken(kind, str(error), whole=True)
            case _:
                raise BadRequest(f"{said!r} is no type of a recording's line")

    def _list(self, name: str, holder: dict[str, Any], items: list[Any]) -> None:
        """A whole list, as the server sends it."""
        kind = self._kinds.get(name)
        if kind is None:
            self.counts.skipped[name] += len(items)
            return
        objects = [trimmed(name, {**item, "kind": name}) for item in items if isinstance(item, dict)]
        version = str(part(holder, "metadata").get("resourceVersion") or "")
        self.mirror.listed(kind, kind.api_version(kind.versions[0]), Listed(objects, version), "recorded")

    def _pass_time(self, line: dict[str, Any], item: Item) -> None:
        """Time never goes back."""
        moment = instant(line.get("at")) or _latest(item)
        if moment is not None:
            self._now = max(self._now, moment.timestamp())


def judgements(
    source: Source, engine: EngineName | None = None, settings: Settings | None = None
) -> Iterator[Judgement]:
    """Every cycle of every preemption in a recording. ``engine``: None: as its first line says; ``settings``
    as of ``Replay.judge``. Raises BadRequest, OSError."""
    said = engine_of(source)
    chosen = engine or next((name for name in FOLLOWED if name == said), None)
    if chosen is None:
        raise BadRequest("its first line does not say whose cluster was recorded: `engine` does")
    return Replay(chosen).judge(lambda: lines(source), settings)


def _differing(judged: list[Judgement]) -> int:
    return sum(cycle.outcome == "differs" for cycle in judged)


class _Seen:
    """What is to be known of a recording before it is replayed. ``shares``, ``borrows``: whether it tells of an
    eviction that only fair sharing makes, or only the other mode; ``configured``: whether the manager says its mode;
    ``in_order``: whether it is in the order of time, and not a file a kind after the other."""

    def __init__(self) -> None:
        self.shares = self.borrows = self.configured = False
        self.in_order = True
        self._latest: datetime | None = None

    def add(self, line: dict[str, Any]) -> None:
        """One more line."""
        item = part(line, "object")
        preempted = condition(item, "Preempted")
        reason = None if preempted is None else preempted.get("reason")
        self.shares, self.borrows = self.shares or reason == _FAIR, self.borrows or reason == _BORROWING
        self.configured = self.configured or "ConfigMap" in (line.get("kind"), item.get("kind"))
        moment = instant(line.get("at"))
        if moment is None or (self._latest is not None and moment < self._latest - _APART):
            self.in_order = False
        self._latest = moment or self._latest


def ordered(said: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The lines that ``said`` gives as often as it is asked, by time: all of them are held only where they are not."""
    seen = _Seen()
    for line in said():
        seen.add(line)
    return said() if seen.in_order else in_order(said())


def in_order(said: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A recording by time, and where it tells none by resource version: a list when it was whole. All of it is held."""
    every: list[tuple[tuple[float, int], dict[str, Any]]] = []
    listing: dict[str, list[dict[str, Any]]] = {}
    known: dict[str, int] = {}
    for line in said:
        item = part(line, "object")
        kind = str(line.get("kind") or item.get("kind") or "")
        if line.get("type") == "ITEM":
            listing.setdefault(kind, []).append(line)
            continue
        version = line.get("resource_version") or part(item, "metadata").get("resourceVersion")
        version = version or part(line, "metadata").get("resourceVersion") or ""
        counted = whole(str(version))
        known[kind] = known.get(kind, 0) if counted is None else counted
        moment = instant(line.get("at"))
        place = (moment.timestamp() if moment is not None else 0.0), known[kind]
        every += [(place, of) for of in (*listing.pop(kind, ()), line)]
    every.sort(key=itemgetter(0))
    return (line for _, line in every)


def _latest(item: Item) -> datetime | None:
    """The latest time that an object tells of."""
    metadata = part(item, "metadata")
    conditions, managed = as_list(part(item, "status").get("conditions")), as_list(metadata.get("managedFields"))
    holders = map(as_mapping, (item, metadata, *conditions, *managed))
    moments = (instant(of.get(name)) for of in holders for name in _TIMES)
    return max((moment for moment in moments if moment is not None), default=None)
