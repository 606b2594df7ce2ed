"""Scenarios: a growing prefix of the victim order, and the victims that earlier parts of the gang need."""

from collections.abc import Collection, Iterable, Sequence

from app.solver.engines.kai.compile import NOWHERE
from app.solver.engines.kai.gpu_room import GpuRoom
from app.solver.engines.kai.min_runtime import is_elastic
from app.solver.engines.kai.resident import Victim
from app.solver.engines.kai.session import Session
from app.solver.engines.kai.victim_order import VictimOrder, what_is_left


class Group:
    """Pods of one job that are taken together: one above the gang, or the whole gang."""

    __slots__ = ("job", "tasks")

    def __init__(self, job: int, tasks: list[int]) -> None:
        self.job = job
        self.tasks = tasks


class Scenario:
    """What may be taken so far for ``part``, the first pods of the pending gang.

    ``recorded``: victims that a shorter part needed. ``listed``: every pod by job that the scenario may take,
    recorded ones first, whether this try takes it or not. ``taking``: the jobs that this try takes from. Made before
    the attempt evicts anybody.
    """

    def __init__(self, session: Session, job: int) -> None:
        self.session = session
        self.job = job
        self.part: Sequence[int] = ()
        self._free = session.gpu_free().copy()
        self.taking: Collection[int] = ()
        self._clear()

    def _clear(self) -> None:
        self.recorded: list[Group] = []
        self.recorded_jobs: dict[int, tuple[int, ...]] = {}
        self.is_recorded: set[int] = set()
        self.listed: dict[int, list[int]] = {}
        self.groups: dict[int, list[Group]] = {}
        self.elastic: list[int] = []
        self.latest: int | None = None
        self._by_node: dict[int, dict[int, None]] = {}
        self._with_others: set[int] = set()
        self.pods = 0

    def start(self, part: Sequence[int], recorded: Sequence[Group]) -> None:
        """Nobody is listed but the victims recorded for a shorter part."""
        self._clear()
        self.part = part
        self.room = GpuRoom(self.session, part, self._free)
        self._record(recorded)
        for group in recorded:
            self._list(group)

    def go_on(self, part: Sequence[int], recorded: Sequence[Group]) -> bool:
        """Take a longer part and its recorded victims without walking the order again. False where only walking it
        again tells: some prefix of what is listed might do, or the order would run differently.

        What a job gives back to the order depends on what of it is recorded only if that is several chunks, or if
        the job keeps pods that can't be taken.
        """
        jobs = [group.job for group in (*self.recorded, *recorded)]
        if len({group.job for group in recorded}) < len(recorded) or not self._with_others.isdisjoint(jobs):
            return False
        if len(self.recorded_jobs) < len(self.recorded):
            return False
        self.room.need(part)
        if self.room.enough():
            return False
        self.part = part
        before = self.recorded_jobs
        self._record(recorded)
        for job in before:
            if job not in self.recorded_jobs:
                self._place_again(job)
        for job in self.recorded_jobs:
            if job not in before:
                self._place_again(job)
        return True

    def _record(self, recorded: Sequence[Group]) -> None:
        self.recorded = list(recorded)
        self.recorded_jobs = {}
        for group in recorded:
            self.recorded_jobs[group.job] = (*self.recorded_jobs.get(group.job, ()), group.tasks[0])
        self.is_recorded = {t for group in recorded for t in group.tasks}

    def _place_again(self, job: int) -> None:
        """List the job's chunks as if its recorded one had come first, and only the others on nodes."""
        groups = self.groups[job]
        if len(groups) > 1:
            groups.sort(key=lambda group: group.tasks[0] not in self.is_recorded)
            self.listed[job] = [t for group in groups for t in group.tasks]
        for on_node in self._by_node.values() if len(groups) > 1 else self._nodes_of(groups[0]):
            on_node.pop(job, None)
        for group in groups:
            if group.tasks[0] not in self.is_recorded:
                self._put_on_nodes(group)

    def _nodes_of(self, group: Group) -> list[dict[int, None]]:
        return [self._by_node.setdefault(self.session.node[t], {}) for t in group.tasks]

    def grow(self, order: VictimOrder) -> bool | None:
        """Add the next chunk of the victim order: one pod of a job above its gang, else all its pods. False where
        the next victim adds nothing, None at the end."""
        victim = order.pop()
        if victim is None:
            return None
        tasks = victim.tasks
        above = len(tasks) > self.session.jobs.min_available[victim.job]
        chunk = tasks[:1] if above else tasks
        if not self.is_recorded.isdisjoint(chunk):
            self._push(order, victim, [t for t in tasks if t not in self.is_recorded])
            return False
        if above:
            self._push(order, victim, tasks[1:])
        if not chunk:
            return False
        self.latest = victim.job
        if victim.others:
            self._with_others.add(victim.job)
        group = Group(victim.job, chunk)
        self._list(group)
        self._put_on_nodes(group)
        return True

    def _push(self, order: VictimOrder, victim: Victim, tasks: list[int]) -> None:
        if tasks or victim.others:
            order.push(what_is_left(self.session, victim, tasks))

    def _list(self, group: Group) -> None:
        job = group.job
        listed = self.listed.get(job)
        if listed is None:
            self.groups[job] = [group]
            self.listed[job] = group.tasks
            jobs = self.session.jobs
            if is_elastic(len(jobs.tasks[job]), jobs.min_available[job]):
                self.elastic.append(job)
        else:
            self.groups[job].append(group)
            self.listed[job] = listed + group.tasks
        self.pods += len(group.tasks)
        self.room.give(group.tasks)

    def _put_on_nodes(self, group: Group) -> None:
        node = self.session.node
        for t in group.tasks:
            self._by_node.setdefault(node[t], {})[group.job] = None

    def chunks_of(self, jobs: Iterable[int]) -> list[Group]:
        """The listed chunks of these jobs that are not recorded."""
        return [g for job in jobs for g in self.groups[job] if g.tasks[0] not in self.is_recorded]

    def nodes_of_latest(self) -> list[int]:
        """Where the latest victim has pods, NOWHERE for pending ones: those of its latest chunk first."""
        if self.latest is None:
            return []
        node, tasks = self.session.node, self.session.jobs.tasks[self.latest]
        if len(tasks) == 1:
            return [node[tasks[0]]]
        chunk = set(self.groups[self.latest][-1].tasks)
        first = dict.fromkeys(node[t] for t in tasks if t in chunk)
        return list(first | dict.fromkeys(node[t] for t in tasks))

    def victims_on(self, node: int) -> list[int]:
        """Every listed pod of the jobs that have a chunk on this node, recorded and on other nodes too."""
        if node == NOWHERE:
            return []
        return [t for job in self._by_node.get(node, ()) for group in self.groups[job] for t in group.tasks]
