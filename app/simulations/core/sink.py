"""Where a run tells what happens; whoever listens decides what to keep."""

from typing import Protocol

from app.simulations.schemas import Event, JobLine, RoundLine


class Stopped(Exception):
    """Somebody asked the run to stop; what it told so far stands."""


class Sink(Protocol):
    """Called in order, from the thread of the run. What a method raises ends the run."""

    def event(self, event: Event) -> None:
        """Something happened."""
        ...

    def round(self, line: RoundLine) -> None:
        """A round was answered; the events that follow from it come after."""
        ...

    def job(self, line: JobLine) -> None:
        """A job has ended, or the run has, with the job as it then was."""
        ...

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """Once an instant: the virtual time in microseconds since 1970, jobs that ended of all (None: not known), and
        rounds."""
        ...


class Silence:
    """A sink that keeps nothing; to be subclassed by those who want some of it."""

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        del event

    def round(self, line: RoundLine) -> None:
        """See ``Sink``."""
        del line

    def job(self, line: JobLine) -> None:
        """See ``Sink``."""
        del line

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """See ``Sink``."""
        del now, ended, total, rounds
