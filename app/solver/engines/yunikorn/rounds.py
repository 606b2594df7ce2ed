"""Rounds of YuniKorn: every pending task is an allocation ask of its own, in the order of a cycle.

What a cycle leaves behind is carried to the next: reservations, when preemption was last tried for an ask, and whether
it has triggered one. ``preemption.delay`` and the 15 seconds between attempts hold on the virtual clock.

Source: YuniKorn ``pkg/scheduler/objects``: application.go (tryAllocate), preemption.go (CheckPreconditions).
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from app.solver.engines.yunikorn.ask import CHECK_EVERY
from app.solver.engines.yunikorn.configuration import CompiledConfiguration
from app.solver.engines.yunikorn.state import CompiledState
from app.solver.model import yunikorn as wire
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, PlannedEviction, Result
from app.solver.model.instant import at, micros
from app.solver.model.request import Options, RunOptions
from app.solver.model.state import Ask, Node, Reservation, TaskState
from app.solver.question import Question
from app.solver.rounds import Holds, PlacedRounds, Start, Turn, Unit

_NO_OPTIONS = Options()


class YuniKornRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. An ask is called as its job, or ``job/task`` where the job has several tasks. ``_asks``: what is
    asked, by job and name; ``_of``: the job that an ask of a job that is alive is for; ``_held``: all reservations;
    ``_tried``: the version at which an ask last tried preemption; ``_retry``: when time alone lets it try again."""

    unit: ClassVar[Unit] = "task"
    infeasible: ClassVar[bool] = False
    on_its_way: TaskState = "preempted"

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._asks: dict[str, dict[str, Ask]] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._of: dict[str, str] = {}
        self._held: list[Reservation] = []
        self._tried: dict[str, int] = {}
        self._retry: dict[str, int] = {}

    def arrive(self, ask: Ask) -> None:
        super().arrive(ask)
        names = self._names.setdefault(ask.id, {})
        alone = not names and len(ask.tasks) == 1
        for task in ask.tasks:  # of what ran at the start, each comes for the first time when it is evicted
            if task.name not in names:
                names[task.name] = ask.id if alone else f"{ask.id}/{task.name}"
                self._of[names[task.name]] = ask.id
        mine = self._asks.setdefault(ask.id, {})
        for task in ask.tasks:
            name = names[task.name]
            if name not in mine:
                mine[name] = replace(ask, id=name, workload=None, tasks=[task])

    def leave(self, job: str) -> None:
        super().leave(job)
        for name in self._asks.pop(job, ()):
            self._settled(name)
        for name in self._names.pop(job, {}).values():
            self._of.pop(name, None)

    def job_of(self, ask: str) -> str:
        return self._of[ask]

    def changed(self, configured: CompiledConfiguration, configuration: Configuration, nodes: Sequence[Node]) -> None:
        super().changed(configured, configuration, nodes)
        names = {node.name for node in nodes}
        self._held = [held for held in self._held if held.node in names]

    def wakes_at(self) -> int | None:
        return min(self._retry.values(), default=None)

    def question(self, now: int, holds: Holds) -> Question:
        asks = [
            replace(ask, workload=job) if holds(job) else self._of_application(ask, job)
            for job in sorted(self.waiting)
            for _, ask in sorted(self._asks[job].items())
        ]
        return Question(now, asks, "cycle", _NO_OPTIONS)

    def _of_application(self, ask: Ask, job: str) -> Ask:
        """Where applications are counted, tasks of a job that does not run yet say whose they are."""
        if not self.configured.limits.some or ask.id == job:
            return ask
        return replace(ask, yunikorn=replace(ask.yunikorn or wire.Ask(), application=job))

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        version, held = self.version, list(self._held)
        notes = result.notes or {}
        for one in notes.get("cancelled_reservations", ()):
            self._held = [held for held in self._held if (held.node, held.ask.id) != (one["node"], one["ask"])]
        turn = Turn(evicted=[eviction for eviction in result.plan.evictions if not leaving(eviction)])
        decisions = {decision.ask: decision for decision in result.decisions}
        left: list[str] = []
        for name in result.order or ():
            decision = decisions[name]
            if decision.outcome == "admit":
                turn.started.append(self._placed(name, decision, question.now))
                continue
            self._carry(name, notes.get("asks", {}).get(name, {}))
            if decision.node is not None:
                self._hold(decision.node, name)
            left.append(name)
        self.told(acted=bool(turn.started or turn.evicted) or self._held != held)
        asks = {ask.id: ask for ask in question.asks}
        for name in left:
            self._wait(name, asks[name], question.now, version)
        turn.reservations = list(self._held)
        return turn

    def _placed(self, name: str, decision: Decision, now: int) -> Start:
        """One task runs from now on, and is asked for no longer."""
        job = self._of[name]
        (task,) = self._asks[job].pop(name).tasks
        self._settled(name)
        if self._asks[job]:
            left = {one.tasks[0].name for one in self._asks[job].values()}
            waiting = self.waiting[job]
            self.waiting[job] = replace(waiting, tasks=[one for one in waiting.tasks if one.name in left])
        else:
            del self._asks[job], self.waiting[job]
        return Start(job, [replace(task, node=decision.node, started_at=at(now), state="running")])

    def _carry(self, name: str, block: dict[str, Any]) -> None:
        """What this cycle did for an ask that goes on waiting, for it and for a reservation of its own."""
        asks = self._asks[self._of[name]]
        checked, triggered = block.get("last_preemption_check_at"), block.get("triggered_preemption", False)
        before = asks[name].yunikorn
        if before is None or (before.last_preemption_check_at, before.triggered_preemption) != (checked, triggered):
            told = replace(before or wire.Ask(), last_preemption_check_at=checked, triggered_preemption=triggered)
            asks[name] = replace(asks[name], yunikorn=told)

    def _hold(self, node: str, name: str) -> None:
        """The ask has triggered preemption, and never does so again: it holds one node at most."""
        self._held.append(Reservation(node=node, ask=self._asks[self._of[name]][name]))

    def _settled(self, name: str) -> None:
        """An ask is one no longer: it holds no node, and waits for no time."""
        self._held = [held for held in self._held if held.ask.id != name]
        self._tried.pop(name, None)
        self._retry.pop(name, None)

    def _wait(self, name: str, asked: Ask, now: int, version: int) -> None:
        """When time alone lets an ask that goes on waiting, ``asked`` for in a cycle begun at ``version``, try
        preemption again: once its queue's delay is over, or 15 seconds have passed since its last try and something has
        changed since."""
        told = self._asks[self._of[name]][name].yunikorn or wire.Ask()
        if told.last_preemption_check_at is not None and micros(told.last_preemption_check_at) == now:
            self._tried[name] = version
        self._retry.pop(name, None)
        if told.triggered_preemption or asked.preemption_policy == "Never":
            return
        created = asked.tasks[0].created_at or asked.created_at
        queue = self.configured.tree.index[asked.queue]
        delay = -(-self.configured.settings[queue].preemption_delay // 1000)
        if created is not None and micros(created) + delay > now:
            self._retry[name] = micros(created) + delay
            return
        last = None if asked.yunikorn is None else asked.yunikorn.last_preemption_check_at
        if last is not None and micros(last) + CHECK_EVERY > now and self._tried.get(name) != self.version:
            self._retry[name] = micros(last) + CHECK_EVERY
