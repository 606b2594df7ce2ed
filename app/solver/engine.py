"""What every engine offers. One engine is one system's algorithm; ``registry.ENGINES`` lists them."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from app.solver.delta import Changes
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Result
from app.solver.model.problems import Finding
from app.solver.model.request import Options
from app.solver.model.rule import Rule
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Rounds

C = TypeVar("C")
S = TypeVar("S")


class Engine(ABC, Generic[C, S]):
    """``C``: a compiled configuration; ``S``: a state compiled against one. Both are immutable once built,
    kept by the service and shared between threads; everything a decision changes is its own."""

    name: str
    rules: ClassVar[tuple[Rule, ...]]
    """Every rule that its explanations name: the catalogue that ``GET /v1/rules`` serves."""
    implicit_parents: ClassVar[bool] = False
    """Whether a parent that the configuration does not list is a queue all the same."""
    looks: ClassVar[bool] = False
    """Whether ``load`` raises KeyError for a workload in an unknown queue and ValueError for tasks of one workload that
    share a name or stand on an unknown node, so that nobody has to look before."""

    @abstractmethod
    def configure(self, configuration: Configuration) -> C:
        """Compile a configuration alone. Raises InvalidInput with every problem."""

    @abstractmethod
    def load(self, configured: C, state: State) -> S:
        """Compile a state against it. Raises InvalidInput, QuantityError or KeyError; the caller diagnoses."""

    def update(self, loaded: S, configured: C, state: State, changes: Changes) -> S:
        """``state`` compiled, given what a delta changed since ``loaded``; equal to ``load(configured, state)``.

        Engines override this where compiling again costs too much; ``loaded`` must not change.
        """
        del loaded, changes
        return self.load(configured, state)

    @abstractmethod
    def plan(self, loaded: S, question: Question) -> Result:
        """Decide. Pure: the same arguments give the same result."""

    @abstractmethod
    def rounds(self, configured: C, configuration: Configuration) -> "Rounds[C, S]":
        """The keeper of what waits in one simulation; ``configuration`` is what ``configured`` was compiled from."""

    @abstractmethod
    def shares(self, loaded: S, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
        """The body of ``POST /v1/shares``: ``{queues: {...}, workloads?: {...}}``."""

    @abstractmethod
    def preemptibility(self, loaded: S, question: ProtectionQuestion) -> dict[str, Any]:
        """The body of ``POST /v1/preemptibility``."""

    @abstractmethod
    def effective_settings(self, configured: C, state: State | None) -> dict[str, Any]:
        """The body of ``POST /v1/effective-settings``; durations in seconds."""

    @abstractmethod
    def findings(self, configuration: Configuration) -> list[Finding]:
        """What an administrator should know: pointers are relative to the configuration document."""
