"""A stored trace as a run reads it: its changes at once, its jobs as they come."""

from collections.abc import Callable, Iterator
from datetime import datetime
from uuid import UUID

import msgspec

from app.simulations.schemas import Change, Job
from app.traces.schemas import TraceSummary
from app.traces.service import Traces

_job = msgspec.json.Decoder(Job).decode
_change = msgspec.json.Decoder(Change).decode
_CHANGE = b'{"at"'
"""How a change's line begins, as we have written it: a job's begins with its ask."""


class StoredTrace:
    """One trace, by its id: it stays the same whatever becomes of its name. Raises Unavailable, NotFound."""

    def __init__(self, traces: Traces, trace: UUID) -> None:
        self._lines: Callable[[], Iterator[bytes]] = lambda: traces.lines(trace)
        self._summary: TraceSummary = traces.by_id(trace)

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
        return [_change(line) for text in self._lines() for line in text.splitlines() if line.startswith(_CHANGE)]

    def jobs(self) -> Iterator[Job]:
        """In order of submission."""
        for text in self._lines():
            for line in text.splitlines():
                if not line.startswith(_CHANGE):
                    yield _job(line)
