"""What the pictures of a run need, kept in files that are gone with it."""

from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Literal

from app.answering.answers import encode
from app.simulations.core.amounts import Amounts
from app.simulations.levels import Level, levels_of, line_of
from app.simulations.pictures import evictions_of, resource_of, usage_of, waits_of
from app.simulations.plots.data import Drawing
from app.simulations.plots.elsewhere import drawn
from app.simulations.schemas import Event, JobLine, Summary

_BLOCK = 4 << 20
_Kind = Literal["events", "jobs", "levels"]
_KINDS: tuple[_Kind, ...] = ("events", "jobs", "levels")


class Spool:
    """Lines of events, jobs and levels, for one run."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._files: dict[_Kind, IO[bytes]] = {}

    def __enter__(self) -> "Spool":
        for kind in _KINDS:
            self._files[kind] = self._open.enter_context(TemporaryFile())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        if event.kind in ("submitted", "evicted"):
            self._files["events"].write(encode(event) + b"\n")

    def job(self, line: JobLine) -> None:
        """See ``Sink``."""
        self._files["jobs"].write(encode(line) + b"\n")

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """See ``Sink``."""
        self._files["levels"].write(line_of(queue, since, usage, waiting, guarantee) + b"\n")

    def drawn(self, summary: Summary, variant: str) -> bytes:
        """All pictures in one, as SVG. Raises NotInstalled."""

        def levels(queue: str) -> Iterator[Level]:
            return levels_of(self._blocks("levels"), queue)

        pictures = [
            usage_of(summary, resource_of(summary, None), levels),
            waits_of(self._lines("jobs")),
            evictions_of(self._lines("events")),
        ]
        return drawn(Drawing(f"{summary.engine}: {variant}" if variant else str(summary.engine), pictures))

    def _lines(self, kind: _Kind) -> Iterator[bytes]:
        self._files[kind].seek(0)
        yield from self._files[kind]

    def _blocks(self, kind: _Kind) -> Iterator[bytes]:
        """Whole lines, some megabytes at a time."""
        file = self._files[kind]
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block + file.readline()
