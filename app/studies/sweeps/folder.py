"""A sweep's folder: a file for each run that is done, a manifest, and in the end one table of all.

``runs/<key>.parquet`` is there whole or not at all, and its key is made of everything that the run depends on: what is
there is done. The manifest lists the runs in the order of the grid, so that its bytes do not tell which ended first.
"""

import os
import time
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from app.simulations.schemas import Summary
from app.studies.sweeps.executors import Ran
from app.studies.sweeps.grid import Point
from app.studies.sweeps.tables import parquet, rows

_PATIENCE = 20
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
        found = {point.key: point for point in self._points if not self._file(point.key).exists()}
        return list(found.values())

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
            self._again = began + _PATIENCE * (time.monotonic() - began)

    def finish(self) -> list[tuple[Point, Summary]]:
        """Write the table of all runs that are done; what each came to, in the order of the grid. Raises OSError."""
        done = [
            (point, msgspec.json.decode(self._summary(point.key).read_bytes(), type=Summary))
            for point in self._points
            if self._file(point.key).exists()
        ]
        found = [row for point, summary in done for row in rows(point, summary)]
        self._write(self._path / "results.parquet", parquet(found))
        self._tell()
        return done

    @property
    def errors(self) -> Iterable[tuple[str, str]]:
        """Keys of runs that failed, and why."""
        return self._errors.items()

    def _tell(self) -> None:
        self._write(self._path / "manifest.json", msgspec.json.format(msgspec.json.encode(self._manifest())) + b"\n")

    def _manifest(self) -> dict[str, Any]:
        return {"runs": [self._entry(point) for point in self._points]}

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
