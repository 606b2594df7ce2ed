"""Where a run tells what happens; whoever listens decides what to keep."""

from typing import Protocol

from app.simulations.core.amounts import Amounts
from app.simulations.schemas import Event, JobLine, RoundLine


class Stopped(Exception):
    """Somebody asked the run to stop; what it told so far stands."""


class Sink(Protocol):
    """Called in order, from the thread of the run. What a method raises ends the run. ``leveled``: whether ``level`` is
    to be called; ``recorded``: whether ``record`` is; ``digested``: whether rounds tell the digest of their state."""

    leveled: bool
    recorded: bool
    digested: bool

    def event(self, event: Event) -> None:
        """Something happened."""
        ...

    def round(self, line: RoundLine) -> None:
        """A round was answered; the events that follow from it come after."""
        ...

    def record(self, line: bytes) -> None:
        """What the request of the round that was told last can be made of again, as a line of ``core.records``."""
        ...

    def job(self, line: JobLine) -> None:
        """A job has ended, or the run has, with the job as it then was."""
        ...

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """What a queue with all below it holds, waits for and is guaranteed from an instant on; of all queues together
        where it has no name. Amounts in steps, which are not to be kept: they go on changing."""
        ...

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """Once an instant: the virtual time in microseconds since 1970, jobs that ended of all (None: not known), and
        rounds."""
        ...


class Silence:
    """A sink that keeps nothing; to be subclassed by those who want some of it."""

    leveled = recorded = digested = False

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        del event

    def round(self, line: RoundLine) -> None:
        """See ``Sink``."""
        del line

    def record(self, line: bytes) -> None:
        """See ``Sink``."""
        del line

    def job(self, line: JobLine) -> None:
        """See ``Sink``."""
        del line

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """See ``Sink``."""
        del queue, since, usage, waiting, guarantee

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """See ``Sink``."""
        del now, ended, total, rounds
