"""The life of one job: waiting, running, evicted, releasing, waiting again, and its end. Lengths in microseconds."""

from app.simulations.core.amounts import Amounts
from app.simulations.core.times import time_of
from app.simulations.schemas import JobLine, JobStatus
from app.solver.model.duration import seconds
from app.solver.model.state import Ask

NEVER = 2**63 - 1


class Life:
    """One job that is alive. ``progress`` of ``duration`` was made and kept; ``every`` and ``cost`` of its checkpoints,
    ``every`` 0 where it has none. ``run``: how often it started, so that ends of runs that never came to theirs are
    known. ``amounts``: what it holds, or asks for."""

    __slots__ = (
        "amounts", "ask", "cancelled_at", "cost", "duration", "ended_at", "every", "evictions", "first_started",
        "lost", "overhead", "progress", "ran", "run", "since", "status", "submitted", "waited",
    )  # fmt: skip

    def __init__(
        self, ask: Ask, submitted: int, duration: int, amounts: Amounts, every: int = 0, cost: int = 0
    ) -> None:
        self.ask = ask
        self.submitted = submitted
        self.duration = duration
        self.amounts = amounts
        self.every = every
        self.cost = cost
        self.cancelled_at = NEVER
        self.status: JobStatus = "waiting"
        self.since = submitted
        self.first_started: int | None = None
        self.ended_at: int | None = None
        self.progress = self.waited = self.ran = self.lost = self.overhead = 0
        self.run = self.evictions = 0

    def start(self, now: int) -> int:
        """It runs from ``now`` on; when it will finish, unless evicted."""
        self.waited += now - self.since
        self.status, self.since = "running", now
        self.run += 1
        if self.first_started is None:
            self.first_started = now
        return now + self.needs()

    def needs(self) -> int:
        """How long it must still run, checkpoints included; it takes none at its very end."""
        left = self.duration - self.progress
        return left + (-(-left // self.every) - 1) * self.cost if self.every and left > 0 else left

    def stop(self, now: int) -> int:
        """It runs no longer; how much of this run is thrown away."""
        ran = now - self.since
        made, overhead = self._saved(ran)
        lost = ran - made - overhead
        self.progress += made
        self.ran += ran
        self.overhead += overhead
        self.lost += lost
        self.since = now
        return lost

    def halt(self, now: int) -> None:
        """It stops running, or is looked at while it runs; nothing of this run is thrown away."""
        ran = now - self.since
        overhead = self._saved(ran)[1]
        self.progress += ran - overhead
        self.overhead += overhead
        self.ran += ran
        self.since = now

    def finish(self, now: int) -> None:
        """All its duration has run."""
        ran = now - self.since
        self.overhead += ran - (self.duration - self.progress)
        self.ran += ran
        self.progress = self.duration
        self.end("finished", now)

    def end(self, status: JobStatus, now: int) -> None:
        """It will not be heard of again."""
        if self.status == "waiting":
            self.waited += now - self.since
        self.status, self.since, self.ended_at = status, now, now

    def _saved(self, ran: int) -> tuple[int, int]:
        """Of ``ran``: the progress that a checkpoint has kept, and what the checkpoints took."""
        if not self.every:
            return 0, 0
        done = ran // (self.every + self.cost)
        return done * self.every, done * self.cost

    def line(self) -> JobLine:
        """The job as the wire has it."""
        first = self.first_started
        return JobLine(
            job=self.ask.id, queue=self.ask.queue, status=self.status, submitted_at=time_of(self.submitted),
            started_at=None if first is None else time_of(first),
            ended_at=None if self.ended_at is None else time_of(self.ended_at),
            wait=None if first is None else seconds(first - self.submitted), waited=seconds(self.waited),
            starts=self.run, evictions=self.evictions, ran=seconds(self.ran), lost=seconds(self.lost),
            overhead=seconds(self.overhead),
        )  # fmt: skip
