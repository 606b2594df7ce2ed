"""An engine's idea of a round: what it asks, and what lets it ask again.

A simulation owns the clock, the jobs and the state; the engine's ``Rounds`` owns the order in which what waits is
asked for. A round is one decision request in mode ``cycle``: nothing is decided here.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from app.solver.engine import Question
from app.solver.model.decision import Result
from app.solver.model.state import Ask, Node, Workload

C = TypeVar("C")
Unit = Literal["job", "task"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a round's answer means for what waits. ``more``: whether another round follows at the same instant."""

    more: bool


class Rounds(ABC, Generic[C]):
    """What waits, as one engine keeps it. One run's own; not shared between threads."""

    unit: ClassVar[Unit]
    """What is evicted and asked for again: a job as a whole, or each of its tasks for itself."""

    @abstractmethod
    def arrive(self, ask: Ask) -> None:
        """``ask`` waits from now on, for the first time or again."""

    @abstractmethod
    def leave(self, ask: str) -> None:
        """The ask with this id waits no longer: it started, or was given up."""

    @abstractmethod
    def freed(self, queue: str) -> None:
        """Something that ran in ``queue`` finished, was evicted, or released what it held."""

    @abstractmethod
    def changed(self, configuration: C) -> None:
        """Quotas, settings or nodes are others now; ``configuration`` is the one in force."""

    @abstractmethod
    def due(self) -> bool:
        """Whether something has changed since the last round that could let a waiting job act."""

    @abstractmethod
    def question(self, now: int) -> Question:
        """What a round asks at ``now``, in microseconds."""

    @abstractmethod
    def answered(self, question: Question, result: Result, *, evicted: bool) -> Turn:
        """Take note of an answer. ``evicted``: whether it evicts somebody who was not being evicted already."""

    @abstractmethod
    def evicting(self, workload: Workload, task: str | None) -> Workload:
        """``workload`` as this engine's state has it while it (or one task) still holds what it was evicted from."""

    @abstractmethod
    def guarantees(self) -> dict[str, dict[str, int]]:
        """What each queue is entitled to, with all that is below it: steps by resource."""

    @abstractmethod
    def capacity(self, nodes: Sequence[Node]) -> dict[str, int]:
        """All that there is to be used: steps by resource."""

    def wakes_at(self, now: int) -> int | None:
        """When time alone could let a waiting job act, after ``now``; None: never."""
        del now
        return None
