"""A stored trace as a run reads it: its changes at once, its jobs as they come."""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from app.simulations.schemas import Change, Job
from app.solver.stopping import safe_point
from app.traces.schemas import TraceSummary

_job = msgspec.json.Decoder(Job).decode
_change = msgspec.json.Decoder(Change).decode
_CHANGE = b'{"at"'
"""How a change's line begins, as we have written it: a job's begins with its ask."""


class StoredTrace:
    """One trace. ``lines`` reads its lines from the first, some at a time, and raises Unavailable."""

    def __init__(self, summary: TraceSummary, lines: Callable[[], Iterator[bytes]]) -> None:
        self._lines = lines
        self._summary = summary

    @property
    def start(self) -> datetime | None:
        """The time of its second 0."""
        return self._summary.start

    @property
    def total(self) -> int:
        """How many jobs it has."""
        return self._summary.jobs

    def changes(self) -> list[Change]:
        """In their order."""
        if not self._summary.changes:
            return []
        return [_change(line) for text in self._heeded() for line in text.splitlines() if line.startswith(_CHANGE)]

    def jobs(self) -> Iterator[Job]:
        """In order of submission."""
        for _, job in self.numbered():
            yield job

    def numbered(self) -> Iterator[tuple[int, Job]]:
        """The same with the number of each line, from 1."""
        number = 0
        for text in self._heeded():
            for line in text.splitlines():
                number += 1
                if not line.startswith(_CHANGE):
                    yield number, _job(line)

    def _heeded(self) -> Iterator[bytes]:
        """The lines; whoever wants to stop the reading can, before each piece."""
        for text in self._lines():
            safe_point()
            yield text
