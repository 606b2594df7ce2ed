"""An engine's idea of a round: what it asks, what its answer means, and what lets it ask again.

A simulation owns the clock, the jobs and the state; the engine's ``Rounds`` owns what waits and the order in which it
is asked for. A round is one decision request in mode ``cycle``: nothing is decided here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar

from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.state import Ask, Node, QueueState, Reservation, State, Task, Workload
from app.solver.question import Question

C = TypeVar("C")
S = TypeVar("S")
Unit = Literal["job", "gang", "task"]
Holds = Callable[[str], bool]
"""Whether the state has a workload of that name."""


@dataclass(frozen=True, slots=True)
class Start:
    """Tasks of a job that run from now on, with their nodes or flavors."""

    job: str
    tasks: list[Task]


@dataclass(frozen=True, slots=True)
class Move:
    """A running task of a job goes on elsewhere."""

    job: str
    task: str
    node: str


@dataclass(slots=True)
class Turn:
    """What a round's answer comes to. ``more``: whether another round may follow at the same instant; ``workloads``,
    ``nodes``: as they are now; ``reservations``: all there are now, None where they stay as they are; ``queues``: what
    queues carry over."""

    started: list[Start] = field(default_factory=list[Start])
    evicted: list[PlannedEviction] = field(default_factory=list[PlannedEviction])
    moved: list[Move] = field(default_factory=list[Move])
    workloads: list[Workload] = field(default_factory=list[Workload])
    nodes: list[Node] = field(default_factory=list[Node])
    reservations: list[Reservation] | None = None
    queues: dict[str, QueueState] = field(default_factory=dict[str, QueueState])
    more: bool = False


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

    @abstractmethod
    def arrive(self, ask: Ask) -> None:
        """``ask`` waits from now on, with these tasks, for the first time, again, or with more tasks than before."""

    @abstractmethod
    def leave(self, job: str) -> None:
        """Nothing of this job waits any longer: it was given up, or has finished."""

    @abstractmethod
    def freed(self, queue: str) -> None:
        """Something that ran in ``queue`` finished, was evicted, or released what it held."""

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
