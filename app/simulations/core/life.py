"""The life of a job: waiting, running, evicted, releasing, waiting again, and its end; jobs and events to come.

Lengths and instants are in microseconds.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, Literal

from msgspec.structs import replace

from app.simulations.core.sink import Amounts, amounts_of, moment, time_of
from app.simulations.schemas import Job, JobLine, JobStatus
from app.solver.model.base import seconds
from app.solver.model.state import Ask, Task
from app.solver.rounds import Unit

Areas = dict[str, int]
"""Steps times microseconds, by resource."""


class Holding:
    """What a gang held while it made progress, where tasks came and went meanwhile.

    One run of a gang: what its tasks held since when. It begins anew with each start of the gang's clock.
    """

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: list[tuple[int, Amounts]] = []

    def begin(self) -> None:
        """The clock starts."""
        self._levels = []

    def level(self, now: int, amounts: Amounts) -> None:
        """So much is held from now on."""
        self._levels.append((now, amounts))

    def split(self, now: int, spent: tuple[int, int, int]) -> tuple[Areas, Areas, Areas]:
        """What was held up to now while progress was made and kept, while what is thrown away was made, and while
        checkpoints were taken. ``spent``: how long each took. What is thrown away is the end of the run; of the rest
        checkpoints have their part by time."""
        progressed, lost, overhead = spent
        useful: Areas = {}
        thrown: Areas = {}
        cut = now - lost
        ends = [since for since, _ in self._levels[1:]] + [now]
        for (since, amounts), until in zip(self._levels, ends, strict=True):
            before, after = max(0, min(until, cut) - since), max(0, until - max(since, cut))
            for resource, amount in amounts.items():
                useful[resource] = useful.get(resource, 0) + amount * before
                thrown[resource] = thrown.get(resource, 0) + amount * after
        share = {resource: area * overhead // max(1, progressed + overhead) for resource, area in useful.items()}
        done = {resource: area - share[resource] for resource, area in useful.items()}
        return done, thrown, share


Phase = Literal["waiting", "running", "releasing", "ended"]


class Clock:
    """How far a job, or a task that runs for itself, has come.

    ``progress`` of ``duration`` was made and kept; ``every`` and ``cost`` of its checkpoints, ``every`` 0 without.
    ``run``: how often it started, so that the ends of runs that never came to theirs are known; ``since``: when its
    phase began; ``_before``: what of its progress a run made before the simulation began, and no eviction has met."""

    __slots__ = (
        "_before", "cost", "duration", "every", "lost", "overhead", "phase", "progress", "ran", "run", "since",
        "waited",
    )  # fmt: skip

    def __init__(self, now: int, duration: int, every: int = 0, cost: int = 0) -> None:
        self.duration = duration
        self.every = every
        self.cost = cost
        self.phase: Phase = "waiting"
        self.since = now
        self.progress = self.waited = self.ran = self.lost = self.overhead = self.run = self._before = 0

    def had_run(self, span: int) -> None:
        """It runs when the simulation begins, and had run for ``span`` by then."""
        self.progress = self._before = max(self.progress, min(self.duration, span))

    def start(self, now: int) -> int:
        """It runs from ``now`` on; when it will finish, unless evicted."""
        self.waited += now - self.since
        self.phase, self.since = "running", now
        self.run += 1
        return now + self.needs()

    def needs(self) -> int:
        """How long it must still run, checkpoints included; it takes none at its very end."""
        left = self.duration - self.progress
        if not self.every or left <= 0:
            return left
        return left + (-(-(left + self._since_checkpoint()) // self.every) - 1) * self.cost

    def stop(self, now: int) -> tuple[int, int, int]:
        """It runs no longer: progress that this run made and kept, what of it is thrown away, what checkpoints took."""
        ran = now - self.since
        open_before = self._since_checkpoint()
        saved, overhead = self._saved(open_before + ran)
        useful = max(0, saved - open_before)
        self.progress += saved - open_before - useful
        self._before = 0
        return self._account(now, useful, ran - useful - overhead, overhead, "releasing")

    def halt(self, now: int, phase: Phase) -> tuple[int, int, int]:
        """It stops running, or is looked at while it runs; nothing of this run is thrown away. Of a checkpoint that is
        being taken, what it has taken so far is no progress."""
        ran = now - self.since
        overhead = 0
        if self.every:
            done, rest = divmod(self._since_checkpoint() + ran, self.every + self.cost)
            overhead = done * self.cost + max(0, rest - self.every)
        return self._account(now, ran - overhead, 0, overhead, phase)

    def finish(self, now: int) -> tuple[int, int, int]:
        """All its duration has run."""
        useful = self.duration - self.progress
        return self._account(now, useful, 0, now - self.since - useful, "ended")

    def wait(self, now: int) -> None:
        """It waits from ``now`` on."""
        self.phase, self.since = "waiting", now

    def end(self, now: int) -> None:
        """It will not run any more."""
        if self.phase == "waiting":
            self.waited += now - self.since
        self.phase, self.since = "ended", now

    def _since_checkpoint(self) -> int:
        """What it had run before the simulation since the last checkpoint there; all of it without any."""
        return self._before % self.every if self.every else self._before

    def _saved(self, ran: int) -> tuple[int, int]:
        """Of ``ran``: the progress that a checkpoint has kept, and what the checkpoints took."""
        if not self.every:
            return 0, 0
        done = ran // (self.every + self.cost)
        return done * self.every, done * self.cost

    def _account(self, now: int, useful: int, lost: int, overhead: int, phase: Phase) -> tuple[int, int, int]:
        self.progress += useful
        self.lost += lost
        self.overhead += overhead
        self.ran += now - self.since
        self.phase, self.since = phase, now
        return useful, lost, overhead


class LiveJob:
    """One job that is alive. Tasks by name: ``waiting`` as asked for, ``running`` as they run, ``leaving`` evicted and
    not released. ``evicted_at``: when each task last was. ``clocks`` by task, or one under ``""`` where the job makes
    progress as a whole; ``holding``: what it holds while it does, where its tasks come and go."""

    __slots__ = (
        "ask",
        "cancelled",
        "clocks",
        "ended_at",
        "evicted_at",
        "evictions",
        "first_started",
        "holding",
        "initial",
        "least",
        "leaving",
        "mark",
        "name",
        "running",
        "starts",
        "submitted",
        "tasks",
        "waiting",
    )  # fmt: skip

    def __init__(self, ask: Ask, now: int, clock: Clock, unit: Unit) -> None:
        self.ask = ask
        self.name = ask.id
        self.submitted = now
        self.tasks = {task.name: task for task in ask.tasks}
        self.clocks = {"": clock}
        self.holding = Holding()
        if unit == "task":
            self.clocks = {name: Clock(now, clock.duration, clock.every, clock.cost) for name in self.tasks}
        needed = len(self.tasks) if unit == "job" or ask.min_available is None else ask.min_available
        self.least = min(len(self.tasks), max(1, needed))
        self.waiting: dict[str, Task] = dict(self.tasks)
        self.running: dict[str, Task] = {}
        self.leaving: dict[str, Task] = {}
        self.evicted_at: dict[str, int] = {}
        self.first_started: int | None = None
        self.ended_at: int | None = None
        self.cancelled = self.initial = False
        self.evictions = self.starts = self.mark = 0

    @property
    def status(self) -> JobStatus:
        """What it is now, as the wire has it."""
        if self.ended_at is not None:
            return "cancelled" if self.cancelled else "finished"
        return "running" if self.running else "releasing" if self.leaving else "waiting"

    def pending(self) -> Ask:
        """The ask for what waits of it."""
        if len(self.waiting) == len(self.tasks):
            return self.ask
        return replace(self.ask, tasks=list(self.waiting.values()))

    def clock(self, task: str) -> Clock:
        """The clock that counts for a task."""
        return self.clocks.get(task) or self.clocks[""]

    def holds(self) -> Amounts:
        """What its running tasks hold."""
        return amounts_of(self.running.values())

    def standing(self) -> int:
        """A number of 64 bits that stands for what runs where of it, and what waits, in this process; 0 once nothing
        does. The exclusive or of such numbers stands for all jobs: among a million situations two that differ have the
        same by a chance of one in tens of millions."""
        if not (self.waiting or self.running or self.leaving):
            return 0
        return hash((self.name, frozenset(self.waiting), _places(self.running), _places(self.leaving)))

    def line(self) -> JobLine:
        """The job as the wire has it."""
        first, clocks = self.first_started, self.clocks.values()
        return JobLine(
            job=self.ask.id, queue=self.ask.queue, status=self.status, submitted_at=time_of(self.submitted),
            started_at=None if first is None else time_of(first),
            ended_at=None if self.ended_at is None else time_of(self.ended_at),
            wait=None if first is None else seconds(first - self.submitted),
            waited=seconds(sum(c.waited for c in clocks)), starts=self.starts, evictions=self.evictions,
            ran=seconds(sum(c.ran for c in clocks)), lost=seconds(sum(c.lost for c in clocks)),
            overhead=seconds(sum(c.overhead for c in clocks)),
        )  # fmt: skip


def _places(tasks: Mapping[str, Task]) -> Hashable:
    return frozenset([(name, task.node or str(task.flavors)) for name, task in tasks.items()]) if tasks else None


def one_by_one(ask: Ask) -> Ask:
    """``ask`` with a task for each unit of count: ``name``, or ``name-0``, ``name-1`` ... where there are several."""
    if all(task.count == 1 for task in ask.tasks):
        return ask
    return replace(ask, tasks=[unit for task in ask.tasks for unit in _units(task)])


def _units(task: Task) -> Iterable[Task]:
    if task.count == 1:
        return [task]
    return [replace(task, name=f"{task.name}-{i}", count=1) for i in range(task.count)]


FINISH, RELEASE, CANCEL, CHANGE, ARRIVE = 0, 1, 2, 3, 4
"""The order of kinds at one instant."""

Item = tuple[int, int, str, int, Any]
"""(instant, kind, job, serial number, what else there is to know: never compared)."""


class Agenda:
    """What is to happen, in order: by instant, then by kind, then by job. Events that turn out never to happen are
    dropped by whoever takes them out."""

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._serial = 0

    def add(self, when: int, kind: int, job: str, detail: Any = None) -> None:
        """Something is to happen at ``when``, in microseconds."""
        self._serial += 1
        heappush(self._heap, (when, kind, job, self._serial, detail))

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
    """Jobs on their way: read from the trace when their time comes, and held back until those before them have ended.
    ``jobs`` in order of submission; ``start``: of the run; ``alive``: whether a job has come and not ended.

    Never reads further ahead than one job past the present instant.
    """

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
            arrives, job = self._next
            name = job.ask.id
            self._coming[name] = job
            self._agenda.add(max(self._start, arrives), ARRIVE, name)
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
