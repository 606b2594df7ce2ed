"""Rounds of KAI: a session over all pending jobs; what one pipelines, a later one binds.

Where something waits, the end of a minimum runtime makes a session too, whoever it protected may be a victim now, and
so does the end of a delay before preemption. When a job was last evicted, from which that delay counts, is carried.

Source: KAI Scheduler ``pkg/scheduler/scheduler.go`` (a session every schedule period over a fresh snapshot).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar

from msgspec.structs import replace

from app.solver.engines.kai.configuration import CompiledConfiguration, unprotected_from
from app.solver.engines.kai.state import CompiledState
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.duration import parse as span
from app.solver.model.instant import at, micros
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, State, Workload
from app.solver.question import Question
from app.solver.rounds import Holds, PlacedRounds, Turn, Unit, Wakes


class KaiRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. Victims are ``releasing`` until their grace is over; room that is being released is room.

    ``_since``: queue and start of what runs, by job; ``_known``: whether that is all that runs; ``_evicted``: when a
    job was last evicted; ``_delays``: when those that wait may make somebody go."""

    unit: ClassVar[Unit] = "gang"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._since: dict[str, tuple[str, int]] = {}
        self._wakes = Wakes()
        self._known = False
        self._evicted: dict[str, int] = {}
        self._delays = Wakes()

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        delays = self.configured.policy.release.delays_preemption
        if delays and ask.preemption_delay is not None and ask.created_at is not None:
            since = max(micros(ask.created_at), self._evicted.get(ask.id, 0))
            self._delays.set(ask.id, since + span(ask.preemption_delay))

    def leave(self, job: str) -> None:
        super().leave(job)
        self._gone(job)
        self._delays.set(job, None)
        self._evicted.pop(job, None)

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        evicted = self._evicted.get(ask.id) if ask.preemption_delay is not None else None
        return super().asked(ask if evicted is None else replace(ask, last_evicted_at=at(evicted)), holds)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        self._known = False

    def wakes_at(self) -> int | None:
        first = [when for when in (self._wakes.first(), self._delays.first()) if when is not None]
        return min(first, default=None) if self.waiting else None

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """Nothing is carried over; what runs that no round started is taken note of."""
        if not self._known:
            self._known = True
            self._since.clear()
            self._wakes.clear()
            for workload in state.workloads:
                running = any(task.state == "running" for task in workload.tasks)
                if workload.started_at is not None and running:
                    self._runs(workload.id, workload.queue, micros(workload.started_at), now)
        return None

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        queues = {ask.id: ask.queue for ask in question.asks}
        turn = super().answered(question, result, leaving)
        for start in turn.started:
            if start.job not in self._since:
                self._runs(start.job, queues[start.job], question.now, question.now)
        for job in self._wakes.passed(question.now):
            self._runs(job, *self._since[job], question.now)
        self._delays.passed(question.now)
        for start in turn.started:
            if start.job not in self.waiting:
                self._delays.set(start.job, None)
        self._evicted |= dict.fromkeys((eviction.workload for eviction in turn.evicted), question.now)
        return turn

    def carried(self) -> tuple[Hashable, Hashable]:
        """Whose delay is not over; when that is moves on with time."""
        return (), tuple(job for job in sorted(self.waiting) if self._delays.has(job))

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        after = super().evicting(workload, task)
        if not any(one.state == "running" for one in after.tasks):
            self._gone(workload.id)
        return after

    def _runs(self, job: str, queue: str, since: int, now: int) -> None:
        """It runs; it may be unprotected at some later time."""
        self._since[job] = queue, since
        configured = self.configured
        lengths = configured.min_runtimes.lengths(configured.tree.index[queue])
        ends = (unprotected_from(since, length, configured.policy.rules) for length in lengths)
        self._wakes.set(job, min((at for at in ends if at > now), default=None))

    def _gone(self, job: str) -> None:
        self._since.pop(job, None)
        self._wakes.set(job, None)
