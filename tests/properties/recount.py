"""A run's events counted by somebody who knows nothing of how it was made: who holds what and where, at every moment.

An event without a task is about all of a job, or its only task. What was evicted holds what it held until it is
released."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.simulations.schemas import Event, Job, SimulationRequest, Trace
from app.solver.model.configuration import Configuration
from app.solver.model.instant import micros

S = 10**6


@dataclass
class Part:
    """Of one job: what it asks for in one part, which is a task, or all of it. ``node``: where it runs."""

    cpu: int
    phase: str = "waiting"
    node: str | None = None


@dataclass
class Counted:
    """One queue, or all. Areas in cpu times microseconds (a gpu goes with each cpu)."""

    jobs: int = 0
    finished: int = 0
    cancelled: int = 0
    evictions: int = 0
    waits: list[int] = field(default_factory=list[int])
    completions: list[int] = field(default_factory=list[int])
    running: int = 0
    held: int = 0
    lost: int = 0
    short: int = 0


class Recount:
    """Counts ``events`` of a run of ``request``."""

    def __init__(self, request: SimulationRequest, engine: str) -> None:
        trace, configuration = request.trace, request.configuration
        assert isinstance(trace, Trace)
        assert isinstance(configuration, Configuration)
        self._engine = engine
        self._jobs: dict[str, Job] = {job.ask.id: job for job in trace.jobs}
        self._amended = {name: one.quota for change in trace.changes for name, one in change.queues.items()}
        self.parts: dict[str, dict[str | None, Part]] = {}
        self.by_job: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.counted: dict[str, Counted] = defaultdict(Counted)
        self.quotas = {queue.name: queue.quota or {} for queue in configuration.queues}
        self._over: set[str] = set()
        self._held: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self._first: dict[str, int] = {}
        self._submitted: dict[str, int] = {}
        self._at: int | None = None

    def count(self, events: Sequence[Event], end: int) -> Iterator[Event]:
        """Each event, when it has been counted; the time up to ``end`` after the last."""
        for event in events:
            self._pass(micros(event.at))
            if event.job is not None:
                self._happened(event, micros(event.at))
            elif event.kind == "configuration":
                assert event.queue is not None
                self.quotas[event.queue] = self._amended[event.queue] or {}
            yield event
        self._pass(end)

    def held(self, *, leaving: bool = True) -> tuple[dict[str, int], dict[str, int]]:
        """By node, and by queue (``""``: all)."""
        nodes, queues = dict[str, int](), dict[str, int]()
        for job, parts in self.parts.items():
            for part in parts.values():
                if part.phase == "running" or (leaving and part.phase == "leaving"):
                    for name in (self._jobs[job].ask.queue, ""):
                        queues[name] = queues.get(name, 0) + part.cpu
                    if part.node is not None:
                        nodes[part.node] = nodes.get(part.node, 0) + part.cpu
        return nodes, queues

    def _happened(self, event: Event, now: int) -> None:
        name = event.job or ""
        job = self._jobs[name]
        if event.kind == "submitted":
            self.parts[name] = self._parts(job)
            self._submitted[name] = now
            self._each(job, "jobs", 1)
            return
        mine = self.parts[name]
        if event.kind == "started":
            part = mine[event.task]
            assert part.phase == "waiting", event
            part.phase, part.node = "running", event.node
            if name not in self._first:
                self._first[name] = now
                for counted in self._of(job):
                    counted.waits.append(now - self._submitted[name])
        elif event.kind == "moved":
            assert mine[event.task].phase == "running", event
            mine[event.task].node = event.node
        elif event.kind == "evicted":
            self._evicted(event, job, mine, now)
        elif event.kind == "released":
            for part in _those(mine, event.task, "leaving"):
                part.phase, part.node = "over" if name in self._over else "waiting", None
        elif event.kind in ("finished", "cancelled"):
            self._ended(event, job, mine, now)

    def _ran_since(self, job: str, since: int) -> int:
        """What all of a gang held in a time up to now, running."""
        return sum(held * (until - max(begun, since)) for begun, until, held in self._held[job] if until > since)

    def _evicted(self, event: Event, job: Job, mine: dict[str | None, Part], now: int) -> None:
        going = _those(mine, event.task, "running")
        assert going, event
        lost = round((event.lost or 0) * S)
        if self._engine == "kai":
            self._each(job, "lost", self._ran_since(job.ask.id, now - lost))
        else:
            self._each(job, "lost", sum(part.cpu for part in going) * lost)
        self._each(job, "evictions", 1)
        self.by_job[job.ask.id]["evictions"] += 1
        for part in going:
            part.phase = "leaving"

    def _ended(self, event: Event, job: Job, mine: dict[str | None, Part], now: int) -> None:
        gone = _those(mine, event.task, "running")
        for part in gone:
            part.phase, part.node = "over", None
        if event.task is not None:
            assert gone, event
            return
        for part in mine.values():
            if part.phase == "waiting":
                part.phase = "over"
        self._over.add(job.ask.id)
        self._each(job, event.kind, 1)
        if event.kind == "finished":
            assert all(part.phase == "over" for part in mine.values()), event
            for counted in self._of(job):
                counted.completions.append(now - self._submitted[job.ask.id])

    def _pass(self, now: int) -> None:
        """What everybody held since the last event, and waited for."""
        passed = 0 if self._at is None else now - self._at
        self._at = now
        if not passed:
            return
        totals: dict[tuple[str, str], int] = defaultdict(int)
        for name, parts in self.parts.items():
            held = sum(part.cpu for part in parts.values() if part.phase == "running")
            self._held[name].append((now - passed, now, held))
            for part in parts.values():
                self.by_job[name][part.phase] += passed
                for queue in (self._jobs[name].ask.queue, ""):
                    totals[queue, part.phase] += part.cpu
        for queue in {queue for queue, _ in totals}:
            held = totals[queue, "running"] + totals[queue, "leaving"]
            due = min(self.guaranteed(queue), held + totals[queue, "waiting"])
            counted = self.counted[queue]
            counted.held += held * passed
            counted.running += totals[queue, "running"] * passed
            counted.short += max(0, due - held) * passed

    def _each(self, job: Job, what: str, much: int) -> None:
        for counted in self._of(job):
            setattr(counted, what, getattr(counted, what) + much)

    def _of(self, job: Job) -> tuple[Counted, Counted]:
        return self.counted[job.ask.queue], self.counted[""]

    def _parts(self, job: Job) -> dict[str | None, Part]:
        (task,) = job.ask.tasks
        cpu = task.requests["cpu"]
        assert isinstance(cpu, int)
        if self._engine == "kueue" or task.count == 1:
            return {None: Part(cpu * task.count)}
        return {f"{task.name}-{i}": Part(cpu) for i in range(task.count)}

    def guaranteed(self, queue: str) -> int:
        """What a queue is guaranteed now."""
        cell = self.quotas.get(queue, {}).get("cpu")
        found = 0 if cell is None else cell.guaranteed
        assert isinstance(found, int)
        return found

    def bound(self, queue: str) -> int | None:
        """The most that a queue may hold now; None: no bound."""
        cell = self.quotas[queue]["cpu"]
        if self._engine != "kueue":
            most = cell.limit
        else:
            most = None if cell.borrowing_limit is None else self.guaranteed(queue) + int(cell.borrowing_limit)
        assert most is None or isinstance(most, int)
        return most


def _those(parts: dict[str | None, Part], task: str | None, phase: str) -> list[Part]:
    """A task, or everything that is in a phase."""
    if task is not None:
        assert parts[task].phase == phase
        return [parts[task]]
    return [part for part in parts.values() if part.phase == phase]
