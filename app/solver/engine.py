"""What every engine offers. One engine is one system's algorithm; ``registry.ENGINES`` lists them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.solver.delta import Changes
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Refusal, Result
from app.solver.model.problems import Finding, Rule
from app.solver.model.request import Eviction, Options, RunOptions
from app.solver.model.state import Ask, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Rounds

C = TypeVar("C")
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine(Generic[C, S]):
    """``C``: a compiled configuration; ``S``: a state compiled against one. Both are immutable once built,
    kept by the service and shared between threads; everything a decision changes is its own."""

    name: str
    rules: tuple[Rule, ...]
    """Every rule that its explanations name: the catalogue that ``GET /v1/rules`` serves."""
    implicit_parents: bool = False
    """Whether a parent that the configuration does not list is a queue all the same."""
    looks: bool = False
    """Whether ``load`` raises KeyError for a workload in an unknown queue and ValueError for tasks of one workload that
    share a name or stand on an unknown node, so that nobody has to look before."""
    heads: bool = False
    """Whether a cycle decides on one ask of each queue only, its head, so that the others take further cycles."""
    configure: Callable[[Configuration], C]
    """Compile a configuration alone. Raises InvalidInput with every problem."""
    load: Callable[[C, State], S]
    """Compile a state against it. Raises InvalidInput, QuantityError or KeyError; the caller diagnoses."""
    update: Callable[[S, C, State, Changes], S]
    """The state compiled, given what a delta changed since the first argument, which must not change: equal to
    ``load``, and compiled anew where following costs more."""
    plan: Callable[[S, Question], Result]
    """Decide. Pure: the same arguments give the same result."""
    rounds: Callable[[C, Configuration, RunOptions], Rounds[C, S]]
    """The keeper of what waits in one simulation, by the configuration compiled and as written."""
    shares: Callable[[S, list[Ask], int, Options], dict[str, Any]]
    """The body of ``POST /v1/shares`` at an instant in microseconds: ``{queues: {...}, workloads?: {...}}``."""
    preemptibility: Callable[[S, ProtectionQuestion], dict[str, Any]]
    """The body of ``POST /v1/preemptibility``."""
    judge: Callable[[S, int, Ask, list[list[Eviction]]], list[list[Refusal]]] | None = None
    """Who of each proposal may not be evicted for the ask at an instant in microseconds, given that all of it would be:
    by the rules that a decision finds victims by. Every eviction is of something in the state; a refusal without a
    detail says what its rule says. None: the engine has no say in who else is evicted."""
    effective_settings: Callable[[C, State | None], dict[str, Any]]
    """The body of ``POST /v1/effective-settings``; durations in seconds."""
    findings: Callable[[Configuration], list[Finding]]
    """What an administrator should know: pointers are relative to the configuration document."""
