"""A sweep from its document to its folder: a file for each run that is done, a manifest, in the end one table of all.

``runs/<key>.parquet`` is there whole or not at all, and its key is made of everything that the run depends on: what is
there is done. The manifest lists the runs in the order of the grid, so that its bytes do not tell which ended first.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from app.base.decoding import convert, decode
from app.base.documents import read_one
from app.base.errors import BadInput, BadRequest
from app.simulations.schemas import Summary, Trace
from app.solver.engine import ENGINES
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.studies.sweep_executors import Grid, Played, Point, Ran, Runner, TraceFile, parquet, points, rows
from app.traces.ingest import Ingested
from app.traces.preparing import configuration, load, mapping_of

PATIENCE = 20
"""Writing the manifest again may take no more than this part of the time: it names every run, each time."""


class Folder:
    """The folder at ``path`` for a sweep of ``points``."""

    def __init__(self, path: Path, points: Sequence[Point]) -> None:
        self._path = path
        self._points = points
        self._errors: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._again = 0.0
        (path / "runs").mkdir(parents=True, exist_ok=True)

    def left(self) -> list[Point]:
        """The points that are not done yet, each once."""
        missing = {point.key: point for point in self._points if not self._file(point.key).exists()}
        return list(missing.values())

    def keep(self, ran: Ran) -> None:
        """Store what came of a run; the manifest follows, at once where there are few. Raises OSError."""
        key = ran.point.key
        if ran.summary is None:
            self._errors[key] = ran.error
        else:
            self._errors.pop(key, None)
            summary = msgspec.json.decode(ran.summary, type=Summary)
            self._write(self._summary(key), ran.summary)
            self._write(self._file(key), parquet(rows(ran.point, summary)))
            self._digests.pop(key, None)
        if (began := time.monotonic()) >= self._again:
            self._tell()
            self._again = began + PATIENCE * (time.monotonic() - began)

    def finish(self) -> list[tuple[Point, Summary]]:
        """Write the table of all runs that are done; what each came to, in the order of the grid. Raises OSError."""
        done = [
            (point, msgspec.json.decode(self._summary(point.key).read_bytes(), type=Summary))
            for point in self._points
            if self._file(point.key).exists()
        ]
        table = [row for point, summary in done for row in rows(point, summary)]
        self._write(self._path / "results.parquet", parquet(table))
        self._tell()
        return done

    @property
    def errors(self) -> Iterable[tuple[str, str]]:
        """Keys of runs that failed, and why."""
        return self._errors.items()

    def _tell(self) -> None:
        manifest = msgspec.json.encode({"runs": [self._entry(point) for point in self._points]})
        self._write(self._path / "manifest.json", msgspec.json.format(manifest) + b"\n")

    def _entry(self, point: Point) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "key": point.key, "configuration": point.configuration, "trace": point.trace, "seed": point.seed,
            "settings": point.values,
        }  # fmt: skip
        file = self._file(point.key)
        if point.key in self._digests or file.exists():
            return {**entry, "status": "done", "sha256": self._digest(point.key)}
        error = self._errors.get(point.key)
        return {**entry, "status": "waiting"} if error is None else {**entry, "status": "failed", "error": error}

    def _digest(self, key: str) -> str:
        if key not in self._digests:
            self._digests[key] = sha256(self._file(key).read_bytes()).hexdigest()
        return self._digests[key]

    def _file(self, key: str) -> Path:
        return self._path / "runs" / f"{key}.parquet"

    def _summary(self, key: str) -> Path:
        return self._path / "runs" / f"{key}.json"

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        """Whole or not at all."""
        half = path.with_name(f".{path.name}.{os.getpid()}")
        half.write_bytes(content)
        half.replace(path)


_OF_TRACE = "trace"


def read(text: bytes) -> Grid:
    """A grid from YAML or JSON. Raises InvalidInput."""
    return convert(read_one(text, "the grid"), Grid)


def engines(grid: Grid, base: Path) -> set[str]:
    """The engines that its points name, as far as its documents tell before a trace is read. ``base``: where its files
    are; what is wrong with one is told later, when it is needed."""
    named = [grid.request.get("engine")]
    for given in grid.configurations.values():
        if given == _OF_TRACE:
            named += [_mapped(base / part.mapping) for part in map(_part, grid.traces.values()) if part.mapping]
        else:
            with suppress(OSError, BadRequest, InvalidInput):
                named.append(_given(base, given).engine)
    return {name for name in named if isinstance(name, str) and name in ENGINES}


def sweep(
    grid: Grid, base: Path, out: Path, run: Runner, tell: Callable[[Ran, int], None]
) -> tuple[list[tuple[Point, Summary]], dict[str, str]]:
    """Run what is left of a grid. ``base``: where its files are; ``tell`` hears of each run, and how many are left.

    What each point came to, and why those that failed did, by key. Raises OSError, InvalidInput, ArbiterError."""
    traces = {name: _loaded(base, given) for name, given in grid.traces.items()}
    configurations = {
        (name, trace): _configuration(grid, base, name, ingested)
        for name in grid.configurations
        for trace, ingested in traces.items()
    }
    wanted = points(grid, configurations, {name: ingested.digest for name, ingested in traces.items()})
    folder = Folder(out, wanted)
    left = folder.left()
    played = {name: _played(ingested, grid.traces[name]) for name, ingested in traces.items()}
    for number, ran in enumerate(run(left, played) if left else (), 1):
        folder.keep(ran)
        tell(ran, len(left) - number)
    return folder.finish(), dict(folder.errors)


def _loaded(base: Path, given: str | TraceFile) -> Ingested:
    part = _part(given)
    mapping, nodes = (None if name is None else str(base / name) for name in (part.mapping, part.nodes))
    return load(str(base / part.file), part.format, mapping, nodes)


def _part(given: str | TraceFile) -> TraceFile:
    return TraceFile(file=given) if isinstance(given, str) else given


def _mapped(path: Path) -> str | None:
    """The engine of a mapping's cluster."""
    with suppress(OSError, BadRequest, InvalidInput):
        mapping = mapping_of(path.read_bytes())
        return mapping.cluster.engine if mapping is not None and mapping.cluster is not None else None
    return None


def _given(base: Path, given: str | Configuration) -> Configuration:
    return given if isinstance(given, Configuration) else decode((base / given).read_bytes(), Configuration)


def _configuration(grid: Grid, base: Path, name: str, trace: Ingested) -> Configuration:
    given = grid.configurations[name]
    if given != _OF_TRACE:
        return _given(base, given)
    mapped = configuration(trace)
    if mapped is None:
        detail = "the mapping of a trace has no cluster"
        raise BadInput([Problem(pointer=pointer("configurations", name), detail=detail)])
    return mapped


def _played(trace: Ingested, given: str | TraceFile) -> Played:
    sample = given.sample if isinstance(given, TraceFile) else None
    return Played([chunk.data for chunk in trace.chunks], msgspec.json.encode(Trace(start=trace.start)), sample)
