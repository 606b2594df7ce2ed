"""What is to happen, in order: by instant, then by kind, then by job.

Jobs on their way: read from the trace when their time comes, and held back until those before them have ended.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from app.simulations.core.sink import moment
from app.simulations.schemas import Job

FINISH, RELEASE, CANCEL, CHANGE, ARRIVE = 0, 1, 2, 3, 4
"""The order of kinds at one instant."""

Item = tuple[int, int, str, int, Any]
"""(instant, kind, job, serial number, what else there is to know: never compared)."""


class Agenda:
    """A queue of events. Those that turn out never to happen are dropped by whoever takes them out."""

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._serial = 0

    def add(self, at: int, kind: int, job: str, detail: Any = None) -> None:
        """Something is to happen at ``at``, in microseconds."""
        self._serial += 1
        heappush(self._heap, (at, kind, job, self._serial, detail))

    def first(self) -> int | None:
        """When the next thing happens; None: nothing does any more."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: int) -> Item | None:
        """The next thing that happens at ``now`` or before; None: nothing does."""
        return heappop(self._heap) if self._heap and self._heap[0][0] <= now else None

    def skip(self, wanted: Callable[[Item], bool]) -> None:
        """Drop what comes next as long as it is not wanted any more."""
        while self._heap and not wanted(self._heap[0]):
            heappop(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def prune(self, wanted: Callable[[Item], bool]) -> None:
        """Drop everything that is not wanted any more."""
        self._heap = [item for item in self._heap if wanted(item)]
        heapify(self._heap)


class Arrivals:
    """``jobs`` in order of submission; ``start``: of the run; ``alive``: whether a job has come and not ended.

    Never reads further ahead than one job past the present instant."""

    def __init__(self, jobs: Iterator[Job], agenda: Agenda, start: int, alive: Callable[[str], bool]) -> None:
        self._jobs = jobs
        self._agenda = agenda
        self._start = start
        self._alive = alive
        self._coming: dict[str, Job] = {}
        self._waits_for: dict[str, set[str]] = {}
        self._followers: dict[str, list[str]] = {}
        self._next = self._read()
        self.given_up = 0

    def first(self) -> int | None:
        """When the next job of the trace is submitted; None: there is none left."""
        return None if self._next is None else max(self._start, self._next[0])

    def pull(self, now: int) -> None:
        """Put what is submitted at ``now`` or before on the agenda."""
        while self._next is not None and self._next[0] <= now:
            at, job = self._next
            name = job.ask.id
            self._coming[name] = job
            self._agenda.add(max(self._start, at), ARRIVE, name)
            if job.cancelled_at is not None:
                self._agenda.add(max(self._start, moment(job.cancelled_at, self._start)), CANCEL, name)
            self._next = self._read()

    def take(self, name: str) -> Job | None:
        """The job, which arrives now; None where it is held back, or was given up meanwhile."""
        job = self._coming.get(name)
        if job is None:
            return None
        if job.after and name not in self._waits_for:
            before = {other for other in job.after if self._alive(other) or other in self._coming}
            if before:
                self._waits_for[name] = before
                for other in before:
                    self._followers.setdefault(other, []).append(name)
                return None
        self._waits_for.pop(name, None)
        return self._coming.pop(name)

    def give_up(self, name: str, now: int) -> bool:
        """Whether the job was held back, and never arrives."""
        if self._coming.pop(name, None) is None:
            return False
        self._waits_for.pop(name, None)
        self.given_up += 1
        self.ended(name, now)
        return True

    def ended(self, name: str, now: int) -> None:
        """A job has ended: those that come after it alone arrive."""
        for follower in self._followers.pop(name, ()):
            before = self._waits_for.get(follower)
            if before is not None:
                before.discard(name)
                if not before:
                    self._agenda.add(now, ARRIVE, follower)

    def __contains__(self, name: str) -> bool:
        """Whether the job was submitted and has not arrived."""
        return name in self._coming

    def __len__(self) -> int:
        return len(self._coming) + (self._next is not None)

    def _read(self) -> tuple[int, Job] | None:
        job = next(self._jobs, None)
        return None if job is None else (moment(job.submitted_at, self._start), job)
