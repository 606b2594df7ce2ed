"""Rounds of the engines that place tasks on nodes: everything that waits is asked for at once."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from app.solver.model.configuration import Configuration, Queue
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.instant import at
from app.solver.model.quantity import UNLIMITED, parse, scale_of
from app.solver.model.request import Options
from app.solver.model.state import Ask, Node, Task, TaskState, Workload
from app.solver.question import Question
from app.solver.quotas import quotas
from app.solver.rounds import C, Holds, Move, Rounds, S, Start, Turn

_NO_OPTIONS = Options()


class PlacedRounds(Rounds[C, S]):
    """``waiting`` by job; ``version`` rises with all that a round's answer depends on but time, so that what was tried
    in vain is not tried again at the same one. An engine says what differs: its unit, what it carries over, when time
    alone matters."""

    on_its_way: TaskState = "releasing"
    """What a task is called that was told to stop."""

    def __init__(self, configured: C, configuration: Configuration) -> None:
        self.configured = configured
        self.waiting: dict[str, Ask] = {}
        self._entitled = _guarantees(configuration.queues)
        self.version: int = 0
        self._seen: int = 0

    def arrive(self, ask: Ask) -> None:
        self.waiting[ask.id] = ask
        self.version += 1

    def leave(self, job: str) -> None:
        self.waiting.pop(job, None)

    def freed(self, queue: str) -> None:
        del queue
        self.version += 1

    def changed(self, configured: C, configuration: Configuration, nodes: Sequence[Node]) -> None:
        del nodes
        self.configured = configured
        self._entitled = _guarantees(configuration.queues)
        self.version += 1

    def due(self, now: int) -> bool:
        if not self.waiting:
            return False
        wakes = self.wakes_at()
        return self.version != self._seen or (wakes is not None and wakes <= now)

    def question(self, now: int, holds: Holds) -> Question:
        asks = [self.asked(ask, holds) for _, ask in sorted(self.waiting.items())]
        return Question(now, asks, "cycle", _NO_OPTIONS)

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        """``ask`` as a request has it: it belongs to the workload of its name where something of it runs."""
        return replace(ask, workload=ask.id) if holds(ask.id) else ask

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        """Placements that wait for somebody to go are no starts yet: the next round finds the room."""
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        started: dict[str, list[Task]] = {}
        when = at(question.now)
        for placement in result.plan.placements:
            if placement.ask is None and placement.workload is not None:
                turn.moved.append(Move(placement.workload, placement.task, placement.node))
            elif placement.ask is not None and not placement.pipelined:
                job = self.job_of(placement.ask)
                task = next(one for one in self.waiting[job].tasks if one.name == placement.task)
                started.setdefault(job, []).append(replace(task, node=placement.node, started_at=when, state="running"))
        for job, tasks in started.items():
            turn.started.append(Start(job, tasks))
            gone = {task.name for task in tasks}
            left = [task for task in self.waiting[job].tasks if task.name not in gone]
            if left:
                self.waiting[job] = replace(self.waiting[job], tasks=left)
            else:
                del self.waiting[job]
        self.told(acted=bool(turn.started or turn.evicted or turn.moved))
        return turn

    def told(self, *, acted: bool) -> None:
        """A round has seen everything that there was to see; what it did itself is news only for those after it."""
        self.version += acted
        self._seen = self.version

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        tasks = [
            replace(one, state=self.on_its_way) if task is None or one.name == task else one for one in workload.tasks
        ]
        return replace(workload, tasks=tasks)

    def guarantees(self) -> dict[str, dict[str, int]]:
        """What the configuration guarantees to each queue; one above includes those below."""
        return self._entitled

    def capacity(self, nodes: Sequence[Node]) -> dict[str, int]:
        """What the nodes have, less what others occupy there."""
        total: dict[str, int] = {}
        for node in nodes:
            for resource, value in node.capacity.items():
                total[resource] = total.get(resource, 0) + parse(value, scale_of(resource))
            for resource, value in node.occupied.items():
                if resource in node.capacity:
                    total[resource] -= parse(value, scale_of(resource))
        return total


def _guarantees(queues: Iterable[Queue]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for queue in queues:
        mine = found.setdefault(queue.name, {})
        for placed in quotas(queue):
            given = placed.quota.guaranteed
            if given is not None and given != UNLIMITED:
                mine[placed.resource] = mine.get(placed.resource, 0) + parse(given, scale_of(placed.resource))
    return found
