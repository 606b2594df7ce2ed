"""What holds between the lines of a trace: times that go forward, ids that are told apart. Pure."""

import msgspec

from app.simulations.schemas import Change, Job
from app.solver.model import duration
from app.solver.model.base import Duration, Time
from app.solver.model.duration import DurationError
from app.solver.model.instant import micros
from app.traces.formats.record import Complaints, LineError

_MOST_PROBABLE = 10**17
"""Microseconds: 3,000 years."""


class Order:
    """Told of each line, complains about what does not fit those before it."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._ids: set[str] = set()
        self._absolute: bool | None = None
        self._last_job = self._last_change = -_MOST_PROBABLE
        self.first: int | None = None
        self.last = 0

    @property
    def start(self) -> int | None:
        """The earliest time that a line gives, in microseconds since 1970; None where lines count seconds."""
        return self.first if self._absolute else None

    def knows(self, job: str) -> bool:
        """Whether a line before had the job of that id."""
        return job in self._ids

    def job(self, line: int, job: Job) -> None:
        """A job of line ``line``."""
        try:
            at = self._moment(job.submitted_at, "submitted_at")
            if at < self._last_job:
                raise LineError("submitted_at: it goes backwards: the job before was submitted later")
            self._last_job = at
            if _span(job.duration, "duration") == 0:
                raise LineError("duration: it must be above 0")
            if job.cancelled_at is not None and self._moment(job.cancelled_at, "cancelled_at") < at:
                raise LineError("cancelled_at: it goes backwards: the job is submitted later")
            self._checkpoint(job)
            if job.ask.id in self._ids:
                raise LineError(f"ask.id: {job.ask.id[:64]!r} is there twice")
        except LineError as error:
            self._complaints.add(line, str(error))
            return
        finally:
            self._ids.add(job.ask.id)
        self._seen(at)
        for wanted in job.after:
            if wanted not in self._ids or wanted == job.ask.id:
                self._complaints.add(line, f"after: no job {wanted[:64]!r} before it")

    def change(self, line: int, change: Change) -> None:
        """A change of line ``line``."""
        try:
            at = self._moment(change.at, "at")
            if at < self._last_change:
                raise LineError("at: it goes backwards: the change before is later")
        except LineError as error:
            self._complaints.add(line, str(error))
            return
        self._last_change = at
        self._seen(at)

    def _seen(self, at: int) -> None:
        self.first = at if self.first is None else min(self.first, at)
        self.last = max(self.last, at)

    def _checkpoint(self, job: Job) -> None:
        if job.checkpoint is not None:
            if _span(job.checkpoint.every, "checkpoint.every") == 0:
                raise LineError("checkpoint.every: it must be above 0")
            _span(job.checkpoint.cost, "checkpoint.cost")

    def _moment(self, value: int | float | str, name: str) -> int:
        """In microseconds, since 1970 or since the beginning; a trace has one kind. Raises LineError."""
        absolute, at = moment(value, name)
        if self._absolute is None:
            self._absolute = absolute
        if absolute is not self._absolute:
            raise LineError(f"{name}: {'a time' if absolute else 'seconds'}, where a line before has the other")
        return at


def moment(value: int | float | str, name: str) -> tuple[bool, int]:
    """Whether ``value`` is a time, and microseconds: since 1970, or since the beginning. Raises LineError."""
    if isinstance(value, str) and len(value) >= 20 and value[4:5] == "-":
        try:
            return True, micros(msgspec.convert(value, Time))
        except (msgspec.ValidationError, OverflowError):
            raise LineError(f"{name}: {value[:48]!r} is no time of RFC 3339 with its offset") from None
    return False, _span(value, name)


def _span(value: Duration, name: str) -> int:
    """Microseconds, 0 or more. Raises LineError."""
    try:
        found = duration.parse(value)
    except DurationError as error:
        raise LineError(f"{name}: {error}") from None
    if not 0 <= found <= _MOST_PROBABLE:
        raise LineError(f"{name}: {str(value)[:32]} is out of range")
    return found
