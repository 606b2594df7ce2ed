"""What an engine is asked (a request without its configuration and state), what it records of why, and where it may be
stopped.

One record at the moment of each choice, nothing at all when off: engines guard every call with ``if why.on``, so that
``explain: none`` costs one attribute read and can't change a decision. Records are plain facts (a stable rule id and
the numbers compared); prose is derived.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from app.solver.model.decision import Candidate, Change, Explanation, Group, Step, Verdict, grouped
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.request import Eviction, Explain, Mode, Options, Proposal
from app.solver.model.state import Ask

_STEP_LIMIT = 200
MOST_CANDIDATES = 1_000_000
"""That one answer explains in full, over all asks: half a gigabyte."""


@dataclass(slots=True)
class CandidateCount:
    """How many candidates the asks of a question have explained so far."""

    candidates: int = 0


class Why:
    """The record of one ask's decision. ``records``: what became of candidates, by workload and task."""

    __slots__ = (
        "_blocker", "_changes", "_count", "_headline", "_others", "_steps", "_steps_dropped", "_ties", "full", "on",
        "records",
    )  # fmt: skip

    def __init__(self, level: Explain, count: CandidateCount | None = None) -> None:
        self._count = count or CandidateCount()
        self.on = level != "none"
        self.full = level == "full"
        self.records: dict[tuple[str, str | None], Candidate] = {}
        self._others: list[Group] = []
        self._steps: list[Step] = []
        self._steps_dropped = 0
        self._blocker: str | None = None
        self._changes: list[Change] = []
        self._headline = ""
        self._ties: list[str] = []

    def candidate(
        self, verdict: Verdict, rule: str, workload: str, *, task: str | None = None, queue: str | None = None,
        node: str | None = None, detail: str = "", **numbers: Any,
    ) -> None:  # fmt: skip
        """Record what became of a candidate; a later record of the same one replaces it."""
        if self.on:
            self.records[(workload, task)] = Candidate(
                workload=workload,
                task=task,
                queue=queue,
                node=node,
                verdict=verdict,
                rule=rule,
                detail=detail,
                numbers=numbers,
            )

    def others(self, groups: Iterable[Group]) -> None:
        """Candidates of a summary that are alike, with the labels of the first ``EXAMPLES`` of each group."""
        self._others += groups

    def step(self, rule: str, detail: str, **numbers: Any) -> None:
        """Record a step; past a limit the summary only counts them."""
        if self.on:
            if self.full or len(self._steps) < _STEP_LIMIT:
                self._steps.append(Step(rule=rule, detail=detail, numbers=numbers))
            else:
                self._steps_dropped += 1

    def headline(self, text: str) -> None:
        """One sentence a person reads first."""
        if self.on:
            self._headline = text

    def blocked(self, blocker: str, *changes: Change) -> None:
        """What stands most in the way, and the smallest quota changes that would each let the ask in."""
        if self.on:
            self._blocker = blocker
            self.changed(*changes)

    def changed(self, *changes: Change) -> None:
        """The smallest changes that would each make the answer another."""
        if self.on:
            self._changes.extend(changes)

    def tied(self, among: list[str]) -> None:
        """The origin chooses among these by chance."""
        if self.on:
            self._ties.extend(name for name in among if name not in self._ties)

    def explanation(self) -> Explanation | None:
        """What was recorded, at the level asked for; None when off."""
        if not self.on:
            return None
        self._count.candidates += len(self.records) if self.full else 0
        if self._count.candidates > MOST_CANDIDATES:
            detail = f"more than {MOST_CANDIDATES} candidates: ask for a summary, or about fewer asks at once"
            raise InvalidInput([Problem(pointer="/explain", detail=detail)])
        steps = self._steps
        if self._steps_dropped:
            steps = [
                *steps,
                Step(rule="steps-dropped", detail=f"{self._steps_dropped} more steps; ask for explain: full"),
            ]
        return Explanation(
            level="full" if self.full else "summary", headline=self._headline, steps=steps,
            candidates=list(self.records.values()) if self.full else None,
            groups=None if self.full else [*self._others, *grouped(self.records.values())],
            blocker=self._blocker, smallest_change=self._changes or None, ties=self._ties or None,
        )  # fmt: skip


SILENT = Why("none")


@dataclass(frozen=True, slots=True)
class Question:
    """A decision request without its configuration and state. ``now`` in microseconds since 1970. ``draws``: whether
    what the origin leaves to chance is drawn many times, or once as is likeliest. ``brief``: a round that nobody
    watches: its plan tells what it comes to, and an engine may leave out decisions, and notes that say what the ask
    says; and asks that go on (``goes_on``) are not checked again. ``ordered``: whether anybody is told in which order
    asks had their turn."""

    now: int
    asks: list[Ask]
    mode: Mode = "independent"
    options: Options = field(default_factory=Options)
    explain: Explain = "none"
    proposals: list[Proposal] | None = None
    draws: bool = True
    brief: bool = False
    ordered: bool = True
    candidate_count: CandidateCount = field(default_factory=CandidateCount, compare=False)

    def why(self) -> Why:
        """A fresh record for one ask."""
        return Why(self.explain, self.candidate_count)


def goes_on(before: Ask, ask: Ask) -> bool:
    """Whether ``ask``, asked for under the same name as ``before``, is that one, with other notes of its engine or of
    what runs of its workload at most."""
    return before is ask or (
        before.tasks is ask.tasks
        and before.queue is ask.queue
        and before.created_at is ask.created_at
        and before.priority is ask.priority
        and before.limit is ask.limit
        and before.feasible_nodes is ask.feasible_nodes
        and before.required_node is ask.required_node
        and before.preemption_policy is ask.preemption_policy
    )


@dataclass(frozen=True, slots=True)
class ProtectionQuestion:
    """A preemptibility request without its configuration and state."""

    now: int
    asks: list[Ask]
    ask: Ask | None = None
    action: str | None = None
    evict: list[Eviction] = field(default_factory=list[Eviction])


Check = Callable[[], float | None]
"""Raises where work has to stop. What it returns: when it is to be asked again, by the clock that came with it; None:
at the next safe point."""


@dataclass(slots=True)
class _Stopping:
    check: Check
    clock: Callable[[], float]
    after: float


_stopping: ContextVar[_Stopping | None] = ContextVar("stopping", default=None)


@contextmanager
def stoppable(
    check: Check, clock: Callable[[], float] = lambda: 0.0, after: float | None = None
) -> Generator[None]:  # fmt: skip
    """Ask ``check`` at safe points inside, once ``clock`` has come to ``after`` and then to what it said last. What it
    raises ends the work; no engine may catch it."""
    token = _stopping.set(_Stopping(check, clock, after or 0.0))
    try:
        yield
    finally:
        _stopping.reset(token)


def safe_point() -> None:
    """A place to stop at. Costs next to nothing beside a step of a search; raises what the check raises."""
    stopping = _stopping.get()
    if stopping is not None and stopping.clock() >= stopping.after:
        stopping.after = stopping.check() or 0.0
