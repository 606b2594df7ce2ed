"""A run's events counted by somebody who knows nothing of how it was made: who holds what and where, at every moment.

An event without a task is about all of a job, or its only task. What was evicted holds what it held until it is
released."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.simulations.schemas import Event, Job, SimulationRequest, Trace
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration

S = 10**6
START = 946_684_800 * S
"""The year 2000, where these runs start."""


@dataclass
class Run:
    """What runs for a time of its own: a task, or a job as a whole while ``least`` of its parts run. Microseconds."""

    duration: int
    every: int
    cost: int
    least: int = 1
    kept: int = 0
    since: int | None = None
    ran: int = 0
    lost: int = 0
    overhead: int = 0

    def end(self, now: int) -> int:
        """It has come to its end, as it must just now; what of its progress this last run made."""
        assert self.since is not None
        left = self.duration - self.kept
        checkpoints = -(-left // self.every) - 1 if self.every else 0
        assert now - self.since == left + checkpoints * self.cost, "it ends when its duration has run"
        self.overhead += checkpoints * self.cost
        return self._over(now, left)

    def cut(self, now: int) -> tuple[int, int]:
        """It is evicted: what it made and keeps, and what is thrown away."""
        assert self.since is not None
        ran = now - self.since
        times = ran // (self.every + self.cost) if self.every else 0
        lost = ran - times * (self.every + self.cost)
        self.overhead += times * self.cost
        self.lost += lost
        return self._over(now, times * self.every), lost

    def close(self, now: int) -> int:
        """It is given up, or the run ends: what it made. A checkpoint that is being taken is no progress."""
        assert self.since is not None
        overhead = 0
        if self.every:
            times, rest = divmod(now - self.since, self.every + self.cost)
            overhead = times * self.cost + max(0, rest - self.every)
        self.overhead += overhead
        return self._over(now, now - self.since - overhead)

    def _over(self, now: int, made: int) -> int:
        assert self.since is not None
        self.ran += now - self.since
        self.kept += made
        self.since = None
        return made


@dataclass
class Part:
    """Of one job: what it asks for in one part, which is a task, or all of it. ``node``: where it runs; ``since``: when
    it was evicted last; ``created``: which time it has in queue order where it is asked for by itself."""

    cpu: int
    run: Run
    phase: str = "waiting"
    node: str | None = None
    since: int = 0
    created: int = 0


@dataclass
class Counted:
    """One queue, or all. Areas in cpu times microseconds (a gpu goes with each cpu)."""

    jobs: int = 0
    finished: int = 0
    cancelled: int = 0
    evictions: int = 0
    most_evictions: int = 0
    waits: list[int] = field(default_factory=list[int])
    completions: list[int] = field(default_factory=list[int])
    slowdowns: list[float] = field(default_factory=list[float])
    running: int = 0
    held: int = 0
    done: int = 0
    lost: int = 0
    short: int = 0
    due: int = 0
    """What is guaranteed; of all: what there is."""


class Recount:
    """Counts ``events`` of a run of ``request``."""

    def __init__(self, request: SimulationRequest, engine: str) -> None:
        trace, configuration = request.trace, request.configuration
        assert isinstance(trace, Trace)
        assert isinstance(configuration, Configuration)
        assert isinstance(request.grace, int)
        self._engine = engine
        self._grace = request.grace * S
        self._requeued = request.requeue == "evicted"
        self._jobs: dict[str, Job] = {job.ask.id: job for job in trace.jobs}
        self._amended = {name: one.quota for change in trace.changes for name, one in change.queues.items()}
        self.nodes = {node.name for node in request.state.nodes}
        self.parts: dict[str, dict[str | None, Part]] = {}
        self.created: dict[str, int] = {}
        """Which time each job has in queue order."""
        self.by_job: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.counted: dict[str, Counted] = defaultdict(Counted)
        self.quotas = {queue.name: queue.quota or {} for queue in configuration.queues if queue.name != "root"}
        self.first: int | None = None
        self.last: int | None = None
        """When the first job was submitted, and the last one ended."""
        self._over: set[str] = set()
        self._held: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        self._started: set[str] = set()
        self._submitted: dict[str, int] = {}
        self._at = START
        self._nodes_change: set[int] = set()
        self.moved_to: set[str | None] = set()
        """Nodes to which something has moved while others leave."""

    def count(self, events: Sequence[Event], end: int) -> Iterator[Event]:
        """Each event, when it has been counted; the time up to ``end`` after the last."""
        self._nodes_change = {micros(event.at) for event in events if event.kind == "node"}
        for event in events:
            now = micros(event.at)
            self._pass(now)
            if event.job is not None:
                self._happened(event, now)
            elif event.kind == "node":
                self.nodes ^= {event.node or ""}
            elif event.kind == "configuration":
                assert event.queue is not None
                self.quotas[event.queue] = self._amended[event.queue] or {}
            yield event
        self._pass(end)
        for name in self.parts:
            self._close(self._jobs[name], end)

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

    def runs(self, job: str) -> list[Run]:
        """What runs for a time of its own of a job."""
        return list({id(part.run): part.run for part in self.parts[job].values()}.values())

    def _happened(self, event: Event, now: int) -> None:
        name = event.job or ""
        job = self._jobs[name]
        if event.kind == "submitted":
            self.parts[name] = self._parts(job, now)
            self._submitted[name] = self.created[name] = now
            self.first = now if self.first is None else self.first
            self._each(job, "jobs", 1)
            return
        mine = self.parts[name]
        if event.kind == "started":
            self._start(event, job, mine[event.task], now)
        elif event.kind == "moved":
            assert mine[event.task].phase == "running", event
            mine[event.task].node = event.node
            self.moved_to.add(event.node)
        elif event.kind == "evicted":
            self._evicted(event, job, mine, now)
        elif event.kind == "released":
            self._released(event, name, mine, now)
        elif event.kind in ("finished", "cancelled"):
            self._ended(event, job, mine, now)

    def _start(self, event: Event, job: Job, part: Part, now: int) -> None:
        assert part.phase == "waiting", event
        part.phase, part.node = "running", event.node
        if part.run.since is None and self._running(job, part.run) >= part.run.least:
            part.run.since = now
        if job.ask.id not in self._started:
            self._started.add(job.ask.id)
            for counted in self._of(job):
                counted.waits.append(now - self._submitted[job.ask.id])

    def _running(self, job: Job, run: Run) -> int:
        return sum(part.phase == "running" for part in self.parts[job.ask.id].values() if part.run is run)

    def _ran_since(self, job: str, since: int) -> int:
        """What all of a gang held in a time up to now, running."""
        return sum(held * (until - max(begun, since)) for begun, until, held in self._held[job] if until > since)

    def _evicted(self, event: Event, job: Job, mine: dict[str | None, Part], now: int) -> None:
        going = _those(mine, event.task, "running")
        assert going, event
        lost = 0
        for part in going:
            part.phase, part.since = "leaving", now
            run = part.run
            if run.since is not None and self._running(job, run) < run.least:
                made, thrown = run.cut(now)
                self._each(job, "done", part.cpu * made)
                lost += thrown
                self._each(job, "lost", self._ran_since(job.ask.id, now - thrown) if self._gang else part.cpu * thrown)
        assert round((event.lost or 0) * S) == lost, event
        self._each(job, "evictions", 1)
        mine_now = self.by_job[job.ask.id]
        mine_now["evictions"] += 1
        for counted in self._of(job):
            counted.most_evictions = max(counted.most_evictions, mine_now["evictions"])

    def _released(self, event: Event, name: str, mine: dict[str | None, Part], now: int) -> None:
        gone = _those(mine, event.task, "leaving")
        assert gone, event
        for part in gone:
            assert now - part.since == self._grace or now in self._nodes_change, event
            self.moved_to.discard(part.node)
            part.phase, part.node = "over" if name in self._over else "waiting", None
            if self._requeued:
                self.created[name] = part.created = part.since

    def _ended(self, event: Event, job: Job, mine: dict[str | None, Part], now: int) -> None:
        gone = _those(mine, event.task, "running")
        if event.kind == "cancelled":
            self._close(job, now)
        else:
            assert gone, event
            for run in {id(part.run): part.run for part in gone}.values():
                cpu = sum(part.cpu for part in gone if part.run is run)
                self._each(job, "done", cpu * run.end(now))
        for part in gone:
            part.phase, part.node = "over", None
        if event.task is not None:
            return
        for part in mine.values():
            if part.phase == "waiting":
                part.phase = "over"
        self._over.add(job.ask.id)
        self.last = now
        self._each(job, event.kind, 1)
        if event.kind == "finished":
            assert isinstance(job.duration, int)
            assert all(part.phase == "over" or self._gang for part in mine.values()), event
            lasted = now - self._submitted[job.ask.id]
            for counted in self._of(job):
                counted.completions.append(lasted)
                counted.slowdowns.append(lasted / (job.duration * S))

    def _close(self, job: Job, now: int) -> None:
        for run in self.runs(job.ask.id):
            if run.since is not None:
                mine = self.parts[job.ask.id].values()
                cpu = sum(part.cpu for part in mine if part.run is run and part.phase == "running")
                self._each(job, "done", cpu * run.close(now))

    def _pass(self, now: int) -> None:
        """What everybody held since the last event, and waited for."""
        passed = now - self._at
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
        for queue in ("", *self.quotas):
            held = totals[queue, "running"] + totals[queue, "leaving"]
            entitled = self.guaranteed(queue) if queue else self._capacity()
            counted = self.counted[queue]
            counted.held += held * passed
            counted.running += totals[queue, "running"] * passed
            counted.short += max(0, min(entitled, held + totals[queue, "waiting"]) - held) * passed
            counted.due += entitled * passed

    def _each(self, job: Job, what: str, much: int) -> None:
        for counted in self._of(job):
            setattr(counted, what, getattr(counted, what) + much)

    def _of(self, job: Job) -> tuple[Counted, Counted]:
        return self.counted[job.ask.queue], self.counted[""]

    @property
    def _gang(self) -> bool:
        return self._engine == "kai"

    def _parts(self, job: Job, now: int) -> dict[str | None, Part]:
        (task,) = job.ask.tasks
        cpu = task.requests["cpu"]
        assert isinstance(cpu, int)
        if self._engine == "kueue" or task.count == 1:
            return {None: Part(cpu * task.count, _run(job), created=now)}
        together = _run(job, task.count if job.ask.min_available is None else job.ask.min_available)
        return {
            f"{task.name}-{i}": Part(cpu, together if self._gang else _run(job), created=now) for i in range(task.count)
        }

    def _capacity(self) -> int:
        """All that there is: the quotas of Kueue, elsewhere the nodes."""
        return sum(map(self.guaranteed, self.quotas)) if self._engine == "kueue" else 4 * len(self.nodes)

    def guaranteed(self, queue: str) -> int:
        """What a queue is guaranteed now."""
        cell = self.quotas.get(queue, {}).get("cpu")
        found = 0 if cell is None else cell.guaranteed
        assert isinstance(found, int)
        return found

    def bound(self, queue: str) -> int | None:
        """The most that a queue may hold now; None: no bound."""
        cell = self.quotas[queue].get("cpu")
        if cell is None:
            return None
        if self._engine != "kueue":
            most = cell.limit
        else:
            most = None if cell.borrowing_limit is None else self.guaranteed(queue) + int(cell.borrowing_limit)
        assert most is None or isinstance(most, int)
        return most


def _run(job: Job, least: int = 1) -> Run:
    saved = job.checkpoint
    every, cost = (saved.every, saved.cost) if saved is not None else (0, 0)
    assert isinstance(job.duration, int)
    assert isinstance(every, int)
    assert isinstance(cost, int)
    return Run(job.duration * S, every * S, cost * S, least)


def _those(parts: dict[str | None, Part], task: str | None, phase: str) -> list[Part]:
    """A task, or everything that is in a phase."""
    if task is not None:
        assert parts[task].phase == phase
        return [parts[task]]
    return [part for part in parts.values() if part.phase == phase]
