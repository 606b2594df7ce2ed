"""Scenarios: a growing prefix of the victim order, the victims that earlier parts of the gang need, and a bound on
GPUs that tells at a glance which prefixes are too short."""

from collections.abc import Iterable, Sequence

from app.solver.engines.kai.compile import GPU, NOWHERE
from app.solver.engines.kai.job_order import Victim, VictimOrder, what_is_left
from app.solver.engines.kai.session import Session


class Group:
    """Pods of one job that are taken together: one above the gang, or the whole gang."""

    __slots__ = ("job", "tasks")

    def __init__(self, job: int, tasks: list[int]) -> None:
        self.job = job
        self.tasks = tasks


class Scenario:
    """What may be taken so far for ``part``, the first pods of the pending gang.

    ``recorded``: victims that a shorter part needed. ``listed``: every pod by job that the scenario may take,
    recorded ones first, whether this attempt takes it or not.
    """

    def __init__(self, session: Session, job: int, part: Sequence[int], recorded: Sequence[Group]) -> None:
        self.session = session
        self.job = job
        self.part = part
        self.recorded = recorded
        self.recorded_tasks = [t for group in recorded for t in group.tasks]
        self._is_recorded = set(self.recorded_tasks)
        self.listed: dict[int, list[int]] = {}
        self.groups: dict[int, list[Group]] = {}
        self._by_node: dict[int, list[int]] = {}
        self.latest: int | None = None
        self.room = GpuRoom(session, part)
        for group in recorded:
            self._list(group)

    def grow(self, order: VictimOrder) -> bool | None:
        """Add the next chunk of the victim order: one pod of a job above its gang, else all its pods. False where
        the next victim adds nothing, None at the end."""
        victim = order.pop()
        if victim is None:
            return None
        above = len(victim.tasks) > self.session.jobs.min_available[victim.job]
        chunk = victim.tasks[:1] if above else victim.tasks
        if not self._is_recorded.isdisjoint(chunk):
            self._push(order, victim, [t for t in victim.tasks if t not in self._is_recorded])
            return False
        if above:
            self._push(order, victim, victim.tasks[1:])
        if not chunk:
            return False
        self.latest = victim.job
        self._list(Group(victim.job, chunk))
        for t in chunk:
            on_node = self._by_node.setdefault(self.session.node[t], [])
            if victim.job not in on_node:
                on_node.append(victim.job)
        return True

    def _push(self, order: VictimOrder, victim: Victim, tasks: list[int]) -> None:
        if tasks or victim.others:
            order.push(what_is_left(self.session, victim, tasks))

    def _list(self, group: Group) -> None:
        self.groups.setdefault(group.job, []).append(group)
        self.listed.setdefault(group.job, []).extend(group.tasks)
        self.room.give(group.tasks)

    def nodes_of_latest(self) -> list[int]:
        """Where the latest victim has pods, NOWHERE for pending ones: those of its latest chunk first."""
        if self.latest is None:
            return []
        node, chunk = self.session.node, set(self.groups[self.latest][-1].tasks)
        tasks = self.session.jobs.tasks[self.latest]
        first = dict.fromkeys(node[t] for t in tasks if t in chunk)
        return list(first | dict.fromkeys(node[t] for t in tasks))

    def victims_on(self, node: int) -> list[int]:
        """Every listed pod of the jobs that have a chunk on this node, recorded and on other nodes too."""
        if node == NOWHERE:
            return []
        return [t for job in self._by_node.get(node, ()) for group in self.groups[job] for t in group.tasks]


class GpuRoom:
    """Whether nodes could hold the part's GPUs if everybody listed were gone: first fit, largest first."""

    def __init__(self, session: Session, part: Sequence[int]) -> None:
        self._session = session
        self._free = session.free[GPU].copy()
        self._needs = sorted((need for t in part if (need := session.request[t][GPU])), reverse=True)
        self._size = self._needs[0] if self._needs and self._needs[-1] == self._needs[0] else 0
        self._slots = sum(free // self._size for free in self._free if free > 0) if self._size else 0

    def give(self, tasks: Iterable[int]) -> None:
        """Count these pods' GPUs as free."""
        size = self._size
        for t in tasks:
            n = self._session.node[t]
            if n != NOWHERE and (amount := self._session.request[t][GPU]):
                before = self._free[n]
                self._free[n] = before + amount
                if size:
                    self._slots += max(0, before + amount) // size - max(0, before) // size

    def enough(self) -> bool:
        """Whether the part fits by this bound."""
        if self._size:
            return self._slots >= len(self._needs)
        return not self._needs or self._first_fit()

    def _first_fit(self) -> bool:
        left = sorted(self._free, reverse=True)[: len(self._needs)]
        for need in self._needs:
            for i, have in enumerate(left):
                if have >= need:
                    left[i] = have - need
                    break
            else:
                return False
        return True
