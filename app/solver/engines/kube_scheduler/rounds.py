"""Rounds of kube-scheduler: every pod that waits asks for itself, nominated pods keep their claim, victims end in time.

What a cycle leaves behind is which pod is nominated to which node; a pod that is bound, or nominated elsewhere, gives
its claim up, and so do pods of lower priority nominated where a preemption just was. Source: ``schedule_one.go``,
``framework/preemption/executor.go``.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec.structs import replace

from app.solver.engines.kube_scheduler.pods import CompiledConfiguration, CompiledState
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, Reservation, TaskState
from app.solver.question import Question
from app.solver.rounds import Holds, PlacedRounds, Turn, Unit

_NO_OPTIONS = Options()


class KubeSchedulerRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. An ask is called as its job, or ``job/task`` where the job has several pods that are no gang.
    ``_names``: jobs by name of ask; ``_held``: the nomination of each ask."""

    unit: ClassVar[Unit] = "task"
    infeasible: ClassVar[bool] = False
    on_its_way: TaskState = "preempted"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._names: dict[str, str] = {}
        self._several: set[str] = set()
        self._held: dict[str, Reservation] = {}

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        if len(ask.tasks) > 1 and not self.configured.settings.workload_aware:
            self._several.add(ask.id)
        for task in ask.tasks:
            self._names[self._name(ask.id, task.name)] = ask.id

    def leave(self, job: str) -> None:
        super().leave(job)
        for name in [name for name, of in self._names.items() if of == job]:
            del self._names[name]
            self._held.pop(name, None)
        self._several.discard(job)

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        there = {node.name for node in nodes}
        self._held = {name: held for name, held in self._held.items() if held.node in there}

    def job_of(self, ask: str) -> str:
        return self._names[ask]

    def question(self, now: int, holds: Holds) -> Question:
        asks = [one for _, ask in sorted(self.waiting.items()) for one in self._asked(self.asked(ask, holds))]
        return Question(now, asks, "cycle", _NO_OPTIONS)

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        held = dict(self._held)
        asks = {ask.id: ask for ask in question.asks}
        turn = super().answered(question, result, leaving)
        for one in (result.notes or {}).get("nominations_cleared", ()):
            if (claim := self._held.get(one["ask"])) is not None and claim.node == one["node"]:
                del self._held[one["ask"]]
        for placement in result.plan.placements:
            if placement.ask is not None:
                self._held.pop(placement.ask, None)
                if placement.pipelined:
                    ask = replace(asks[placement.ask], nominated_node=None)
                    self._held[placement.ask] = Reservation(node=placement.node, ask=ask)
        if self._held != held:
            self.told(acted=True)
        turn.reservations = list(self._held.values())
        return turn

    def _asked(self, ask: Ask) -> list[Ask]:
        if ask.id not in self._several:
            return [self._with_claim(ask)]
        return [self._with_claim(replace(ask, id=self._name(ask.id, task.name), tasks=[task])) for task in ask.tasks]

    def _with_claim(self, ask: Ask) -> Ask:
        held = self._held.get(ask.id)
        return ask if held is None else replace(ask, nominated_node=held.node)

    def _name(self, job: str, task: str) -> str:
        return f"{job}/{task}" if job in self._several else job
