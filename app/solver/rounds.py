"""An engine's idea of a round: what it asks, what its answer means, and what lets it ask again.

A simulation owns the clock, the jobs and the state; the engine's ``Rounds`` owns what waits and the order in which it
is asked for. A round is one decision request in mode ``cycle``: nothing is decided here. ``PlacedRounds``: those of the
engines that place tasks on nodes ask for everything that waits at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from app.solver.model.base import UNLIMITED, parse_quantity, scale_of, to_datetime
from app.solver.model.configuration import Configuration, Queue, quotas
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, QueueState, Reservation, State, Task, TaskState, Workload
from app.solver.question import Question

C = TypeVar("C")
S = TypeVar("S")
Unit = Literal["job", "gang", "task"]
Spare = dict[tuple[str, str], dict[str, tuple[int, int]]]
"""By flavor and level of its topology, by resource: steps that are free in all domains, and the most in one of them."""
Holds = Callable[[str], bool]
"""Whether the state has a workload of that name."""
Leaving = Callable[[PlannedEviction], bool]
"""Whether what an eviction names is on its way out already."""


class Start(NamedTuple):
    """Tasks of a job that run from now on, with their nodes or flavors."""

    job: str
    tasks: list[Task]


@dataclass(frozen=True, slots=True)
class Move:
    """A running task of a job goes on elsewhere."""

    job: str
    task: str
    node: str


class Turn(msgspec.Struct):
    """What a round's answer comes to. ``more``: whether another round may follow at the same instant; ``workloads``,
    ``nodes``: as they are now; ``reservations``: all there are now, None where they stay as they are; ``queues``: what
    queues carry over."""

    started: list[Start] = []
    evicted: list[PlannedEviction] = []
    moved: list[Move] = []
    workloads: list[Workload] = []
    nodes: list[Node] = []
    reservations: list[Reservation] | None = None
    queues: dict[str, QueueState] = {}
    more: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """A round before it is carried out. ``order``: that of the asks of its question, by id; ``evictions``: as its
    question and answer have them; ``carry_out``: takes note of the answer, told who is on the way out, and says what it
    comes to."""

    order: Callable[[Question], list[str] | None]
    carry_out: Callable[[Leaving], Turn]
    evictions: Sequence[PlannedEviction] = ()


class Ahead(ABC, Generic[S]):
    """Goes ahead of a compiled state that has not followed what has changed."""

    @abstractmethod
    def moved(self, name: str, after: Workload | None) -> bool:
        """The workload is ``after`` now, or gone; False: from here on the state has to follow."""

    def occupied(self, node: str, amounts: Mapping[str, int], sign: int) -> bool:
        """Something that is no workload's any more holds so many steps of ``node``, or (``sign`` -1) no longer; False:
        from here on the state has to follow."""
        del node, amounts, sign
        return False

    def state(self, follow: Callable[[], S]) -> S | None:
        """The state of now, to be asked once; ``follow``: the same, compiled, for whoever looks at all of it. None: the
        state itself has to follow, and nobody goes ahead of it any more."""
        return follow()

    def left(self, node: Callable[[str], Node]) -> Turn:
        """What foreseen rounds have left behind on nodes and queues, which the state does not know; once. ``node``: as
        it is otherwise."""
        del node
        return Turn()


class Rounds(ABC, Generic[C, S]):
    """What waits, as one engine keeps it. One run's own; not shared between threads."""

    unit: ClassVar[Unit]
    """What runs and is evicted: ``job``: a job as a whole; ``gang``: its tasks one by one, while it makes progress as a
    whole; ``task``: each task for itself."""

    infeasible: ClassVar[bool] = True
    """Whether the engine tells what can never run from what waits; where it doesn't, a task that would wait with all
    nodes to itself never runs."""

    occupies: ClassVar[bool] = False
    """Whether a task that was evicted is no part of its workload any more while it goes, but counts as something else
    that occupies its node."""

    def before(self, loaded: S, state: State, now: int) -> Turn | None:
        """What is to be carried into a state before a round is asked of it; None: nothing. ``loaded``: compiled."""
        del loaded, state, now
        return None

    def aside(self, ask: Ask, now: int) -> tuple[str, str] | None:
        """Why ``ask`` is not tried at all, in the engine's own word and in a sentence; None: it is."""
        del ask, now
        return None

    def ahead(self, loaded: S) -> Ahead[S] | None:
        """What keeps up from ``loaded`` on with each workload that changes, where a round needs the state itself only
        now and then; ``before`` has nothing to carry then. None: nothing does."""
        del loaded
        return None

    def foreseen(self, ahead: Ahead[S], now: int) -> Outcome | None:
        """The round of ``now``, where ``ahead`` alone tells what it comes to; None: it has to be asked."""
        del ahead, now
        return None

    def idle(self, ahead: Ahead[S], now: int) -> Iterator[Hashable]:
        """The rounds of ``now`` that lead to nothing but another one, before the next of which that can't be said, with
        what is carried into each (see ``carried``); each is over once the next is asked for. ``foreseen`` follows."""
        del ahead, now
        return iter(())

    def in_vain(self, ahead: Ahead[S], now: int) -> bool:
        """Whether the round of ``now``, before which nothing has happened since the last one but that time has passed,
        leads to nothing; then it is over. False: that can't be said before it is asked."""
        del ahead, now
        return False

    @abstractmethod
    def arrive(self, ask: Ask) -> None:
        """``ask`` waits from now on, with these tasks, for the first time, again, or with more tasks than before."""

    @abstractmethod
    def leave(self, job: str) -> None:
        """Nothing of this job waits any longer: it was given up, or has finished."""

    @abstractmethod
    def freed(self, queue: str) -> None:
        """Something that ran in ``queue`` finished, or released what it held."""

    def released(self, job: str, now: int) -> None:
        """Something of ``job`` finished at ``now``, or released what it held."""
        del job, now

    def stopping(self, queue: str) -> None:
        """Something that runs in ``queue`` was evicted, and holds what it has until it is released."""
        self.freed(queue)

    @abstractmethod
    def changed(self, configured: C, configuration: Configuration, nodes: Sequence[Node]) -> None:
        """Quotas, settings or nodes are others now: these, quotas and settings compiled and as written."""

    @abstractmethod
    def due(self, now: int) -> bool:
        """Whether something has changed since the last round that could let a waiting job act."""

    def wakes_at(self) -> int | None:
        """When time alone could let a waiting job act; after a round always later than that. None: never."""
        return None

    @abstractmethod
    def question(self, now: int, holds: Holds) -> Question:
        """What a round asks at ``now``, in microseconds."""

    @abstractmethod
    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        """Take note of an answer. ``leaving``: whether what an eviction names is on its way out already."""

    def carried(self) -> tuple[Hashable, Hashable]:
        """What is carried from round to round beside the state and what waits, and how old that is as far as it counts:
        equal for equal."""
        return (), ()

    def spare(self, loaded: S) -> Spare:
        """What is free in a compiled state where pods are placed by topologies; empty where they are not."""
        del loaded
        return {}

    def job_of(self, ask: str) -> str:
        """The job that an ask is for."""
        return ask

    @abstractmethod
    def evicting(self, workload: Workload, task: str | None) -> Workload:
        """``workload`` as this engine's state has it while it (or one task) still holds what it was evicted from."""

    @abstractmethod
    def guarantees(self) -> dict[str, dict[str, int]]:
        """What each queue is entitled to, with all that is below it: steps by resource."""

    @abstractmethod
    def capacity(self, nodes: Sequence[Node]) -> dict[str, int]:
        """All that there is to be used: steps by resource."""


_NO_OPTIONS = Options()


class PlacedRounds(Rounds[C, S]):
    """``waiting`` by job; ``version`` rises with all that a round's answer depends on but time, so that what was tried
    in vain is not tried again at the same one. An engine says what differs: its unit, what it carries over, when time
    alone matters."""

    on_its_way: TaskState = "releasing"
    """What a task is called that was told to stop."""

    def __init__(self, configured: C, configuration: Configuration, options: RunOptions) -> None:
        del options  # none of these engines has one
        self.configured = configured
        self.waiting: dict[str, Ask] = {}
        self._grown: dict[str, tuple[Ask, Ask]] = {}
        self._entitled = _guarantees(configuration.queues)
        self.version: int = 0
        self._seen: int = 0

    def arrive(self, ask: Ask) -> None:
        self.waiting[ask.id] = ask
        self.version += 1

    def leave(self, job: str) -> None:
        self.waiting.pop(job, None)
        self._grown.pop(job, None)

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
        return Question(now, asks, "cycle", _NO_OPTIONS, draws=False)

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        """``ask`` as a request has it: it belongs to the workload of its name where something of it runs."""
        if not holds(ask.id):
            return ask
        grown = self._grown.get(ask.id)
        if grown is None or grown[0] is not ask:
            grown = self._grown[ask.id] = ask, replace(ask, workload=ask.id)
        return grown[1]

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        """Placements that wait for somebody to go are no starts yet: the next round finds the room."""
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        started: dict[str, list[Task]] = {}
        when = to_datetime(question.now)
        for placement in result.plan.placements:
            if placement.ask is None and placement.workload is not None:
                turn.moved.append(Move(placement.workload, placement.task, placement.node))
            elif placement.ask is not None and not placement.pipelined:
                job = self.job_of(placement.ask)
                task = next(waiting for waiting in self.waiting[job].tasks if waiting.name == placement.task)
                started.setdefault(job, []).append(replace(task, node=placement.node, started_at=when, state="running"))
        self.begin(turn, started)
        self.mark_seen(acted=bool(turn.started or turn.evicted or turn.moved))
        return turn

    def begin(self, turn: Turn, started: dict[str, list[Task]]) -> None:
        """Of each job these tasks start, and wait no longer."""
        for job, tasks in started.items():
            turn.started.append(Start(job, tasks))
            self.begun(job, tasks)

    def begun(self, job: str, tasks: Sequence[Task]) -> None:
        """These tasks of a job wait no longer."""
        gone = {task.name for task in tasks}
        left = [task for task in self.waiting[job].tasks if task.name not in gone]
        if left:
            self.waiting[job] = replace(self.waiting[job], tasks=left)
        else:
            del self.waiting[job]

    def mark_seen(self, *, acted: bool) -> None:
        """A round has seen everything that there was to see; what it did itself is news only for those after it."""
        self.version += acted
        self._seen = self.version

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        tasks = [
            replace(held, state=self.on_its_way) if task is None or held.name == task else held
            for held in workload.tasks
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
                total[resource] = total.get(resource, 0) + parse_quantity(value, scale_of(resource))
            for resource, value in node.occupied.items():
                if resource in node.capacity:
                    total[resource] -= parse_quantity(value, scale_of(resource))
        return total


def _guarantees(queues: Iterable[Queue]) -> dict[str, dict[str, int]]:
    guarantees: dict[str, dict[str, int]] = {}
    for queue in queues:
        mine = guarantees.setdefault(queue.name, {})
        for placed in quotas(queue):
            given = placed.quota.guaranteed
            if given is not None and given != UNLIMITED:
                mine[placed.resource] = mine.get(placed.resource, 0) + parse_quantity(given, scale_of(placed.resource))
    return guarantees


class Wakes:
    """Instants in microseconds by key. What is replaced or dropped leaves the heap when its turn comes, or when there
    is more of it than of anything else."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._instants: dict[str, int] = {}

    def set(self, key: str, instant: int | None) -> None:
        """``key`` has this instant from now on, or none."""
        if instant is None:
            self._instants.pop(key, None)
            return
        if self._instants.get(key) != instant:
            self._instants[key] = instant
            heappush(self._heap, (instant, key))
        if len(self._heap) > 2 * len(self._instants) + 64:
            self._heap = [(when, name) for name, when in self._instants.items()]
            heapify(self._heap)

    def keys(self) -> Iterable[str]:
        """Those that have an instant."""
        return self._instants.keys()

    def first(self) -> int | None:
        """The earliest instant; None: there is none."""
        heap = self._heap
        while heap and self._instants.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def passed(self, now: int) -> list[str]:
        """The keys whose instant is ``now`` or before, which they then have no longer."""
        keys: list[str] = []
        while (instant := self.first()) is not None and instant <= now:
            _, key = heappop(self._heap)
            del self._instants[key]
            keys.append(key)
        return keys

    def clear(self) -> None:
        """No key has an instant any more."""
        self._heap, self._instants = [], {}
