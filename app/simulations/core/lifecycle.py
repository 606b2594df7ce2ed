"""What becomes of jobs, task by task where the engine knows tasks: start, eviction, release, move, end."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from app.simulations.core.accounting import Accounting
from app.simulations.core.life import FINISH, RELEASE, Agenda, Clock, LiveJob
from app.simulations.core.scenario import Scenario
from app.simulations.core.sink import Amounts, amounts_of, time_of
from app.simulations.core.state import SimulatedCluster
from app.simulations.schemas import Evicted
from app.solver.apply import workload_of
from app.solver.model.base import micros
from app.solver.model.decision import PlannedEviction
from app.solver.model.state import Task, Workload
from app.solver.rounds import Move, Rounds, Start

Ending = tuple[str, int]
"""(task, or "" for the job; run of its clock)."""


class JobLifecycle:
    """Everything here happens at ``now``, in microseconds; ``n`` is the round that decided it."""

    def __init__(
        self,
        scenario: Scenario,
        cluster: SimulatedCluster,
        rounds: Rounds[Any, Any],
        accounting: Accounting,
        agenda: Agenda,
        lives: dict[str, LiveJob],
    ) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._rounds = rounds
        self._whole = rounds.unit == "job"
        self._accounting = accounting
        self._agenda = agenda
        self._lives = lives

    def leaving(self, eviction: PlannedEviction) -> bool:
        """Whether what is to be evicted is on its way out already."""
        life = self._lives[eviction.workload]
        return not life.running if eviction.task is None or self._whole else eviction.task not in life.running

    def adopt(self, workload: Workload, life: LiveJob, *, whole: bool) -> None:
        """It runs, or is being evicted, when the run begins. ``whole``: its clocks have the duration from its start on,
        of which it has run what has passed since; what of it still waits has run nothing."""
        now = self._scenario.start
        life.initial = True
        running = {task.name: task for task in workload.tasks}
        gone = set(running) if workload.evicted else self._going(running)
        self._lives[life.name] = life
        self._accounting.submitted(life, now)
        tasks = [replace(task, state="running") for task in running.values()]
        for name, task in running.items():
            life.tasks.setdefault(name, _asked(task))
            if self._rounds.unit == "task":
                first = next(iter(life.clocks.values()))
                life.clocks.setdefault(name, Clock(now, first.duration, first.every, first.cost))
            began = (task.started_at if self._rounds.unit == "task" else None) or workload.started_at
            if whole and began is not None:
                life.clock(name).had_run(now - micros(began))
        if len(life.tasks) > len(life.ask.tasks):
            life.ask = replace(life.ask, tasks=list(life.tasks.values()))
        self._run(life, tasks, None, now)
        if gone:
            self._stop(life, list(running) if workload.evicted else sorted(gone), now)
            self._agenda.add(now + self._scenario.grace, RELEASE, life.name, None if workload.evicted else sorted(gone))
            if self._rounds.occupies:
                self._remove(life, sorted(gone))
                self._occupy(life, sorted(gone), 1)
        if life.waiting and not self._whole:
            self._rounds.arrive(life.pending())

    def _going(self, running: dict[str, Task]) -> set[str]:
        """The tasks on their way out when the run begins; a job that runs as a whole has one state."""
        return set() if self._whole else {name for name, task in running.items() if task.state != "running"}

    def start(self, start: Start, n: int, now: int) -> None:
        """Tasks of a job run from now on."""
        life = self._lives[start.job]
        self._run(life, start.tasks, n, now)
        workload = self._cluster.workload(start.job)
        if workload is None:
            workload = workload_of(life.ask, start.job, time_of(now), start.tasks)
        else:
            workload = replace(workload, tasks=[*workload.tasks, *start.tasks])
        self._cluster.set(workload)

    def evict(self, evictions: Sequence[Evicted], n: int, now: int) -> None:
        """A job, or some of its tasks, one an eviction, lose what they hold, once the grace is over."""
        life = self._lives[evictions[0].job]
        workload, gone, whole = self._cluster.workload(life.name), list[str](), False
        for eviction in evictions:
            whole = eviction.task is None or self._whole
            names = list(life.running) if eviction.task is None or whole else [eviction.task]
            lost = self._stop(life, names, now)
            gone += names
            if workload is not None:
                workload = self._rounds.evicting(workload, eviction.task)
            task = None if whole or len(life.tasks) == 1 else eviction.task
            self._accounting.evicted(life, now, lost, task=task, round=n, by=eviction.by, rule=eviction.rule)
        self._agenda.add(now + self._scenario.grace, RELEASE, life.name, None if whole else gone)
        if workload is not None:
            self._cluster.set(workload) if workload.tasks else self._cluster.remove(life.name)
        self._occupy(life, gone, 1)
        self._rounds.stopping(life.ask.queue)

    def going(self, name: str, names: list[str] | None, now: int) -> dict[str, Task]:
        """The tasks of a job (``names``; None: all) that are leaving and whose grace is over."""
        life = self._lives.get(name)
        if life is None:
            return {}
        since, leaving, evicted = now - self._scenario.grace, life.leaving, life.evicted_at
        those = leaving if names is None else [name for name in names if name in leaving]
        return {task: leaving[task] for task in those if evicted[task] <= since}

    def release(self, name: str, names: list[str] | None, now: int) -> None:
        """What was evicted, and has had its grace, holds nothing any more, and is asked for again. ``names``: of tasks;
        None: the job as a whole."""
        if gone := self.going(name, names, now):
            self._release(self._lives[name], gone, now, whole=names is None)

    def _release(self, life: LiveJob, gone: dict[str, Task], now: int, *, whole: bool) -> None:
        names, again = list(gone), life.ended_at is None
        self._remove(life, names)
        self._occupy(life, names, -1)
        for name in names:
            del life.leaving[name]
        if again:
            self._wait_again(life, names, now)
        wanted = amounts_of([life.tasks[name] for name in names if again])
        named = [None] if whole or len(life.tasks) == 1 else names
        self._accounting.released(life, named, gone.values(), wanted, now)
        if again:
            self._rounds.arrive(life.pending())
        elif not life.leaving:
            del self._lives[life.name]
        self._rounds.released(life.name, now)
        self._rounds.freed(life.ask.queue)

    def move(self, move: Move, n: int, now: int) -> None:
        """A task goes on elsewhere."""
        life = self._lives[move.job]
        task = replace(life.running[move.task], node=move.node)
        life.running[move.task] = task
        workload = self._cluster.workload(move.job)
        if workload is not None:
            tasks = [task if other.name == move.task else other for other in workload.tasks]
            self._cluster.set(replace(workload, tasks=tasks))
        named = move.task if len(life.tasks) > 1 else None
        self._accounting.event(now, "moved", life, task=named, round=n, node=move.node)
        self._accounting.remark(life)

    def finish(self, name: str, endings: Sequence[Ending], now: int) -> bool:
        """Whether one of these runs of a job, or of tasks of it, has come to its end now."""
        ended = self.current(name, endings)
        if not ended:
            return False
        life, gone = self._lives[name], list[str]()
        for task, clock in ended:
            names = [task] if task else list(life.running)
            self._ran(life, amounts_of([life.running.pop(name) for name in names]), clock.finish(now), now, held=-1)
            gone += names
        self._remove(life, gone)
        over = all(other.phase == "ended" for other in life.clocks.values())
        for task, _ in ended[:-1] if over else ended:
            self._accounting.event(now, "finished", life, task=task)
        if over:
            self._end(life, now)
        else:
            self._accounting.remark(life)
        self._rounds.released(life.name, now)
        self._rounds.freed(life.ask.queue)
        return True

    def cancel(self, life: LiveJob, now: int) -> None:
        """Its owner gives it up: it stops at once; what is being evicted keeps what it holds until that is over."""
        held = life.holds()
        for name, clock in life.clocks.items():
            if clock.phase == "running":
                amounts = amounts_of([life.running[name]]) if name else held
                self._ran(life, amounts, clock.halt(now, "ended"), now)
            clock.end(now)
        self._accounting.ledger.count(now, life.ask.queue, held, held=-1)
        self._remove(life, list(life.running))
        life.running.clear()
        life.cancelled = True
        self._end(life, now)
        self._rounds.released(life.name, now)
        self._rounds.freed(life.ask.queue)

    def lose(self, nodes: set[str], now: int) -> None:
        """These nodes go: what runs there is evicted, and holds nothing from now on."""
        if not nodes:
            return
        for name, life in sorted(self._lives.items()):
            hit = [task.name for task in (*life.running.values(), *life.leaving.values()) if task.node in nodes]
            for task in hit:
                if task in life.running:
                    eviction = Evicted(job=name, task=task, queue=life.ask.queue, rule="NodeRemoved")
                    self.evict([eviction], 0, now)
                self._release(life, {task: life.leaving[task]}, now, whole=False)

    def look(self, life: LiveJob, end: int) -> None:
        """The run ends: add what the job has run so far."""
        held = life.holds()
        for name, clock in life.clocks.items():
            if clock.phase == "running":
                amounts = amounts_of([life.running[name]]) if name else held
                self._ran(life, amounts, clock.halt(end, "running"), end)
            elif clock.phase == "waiting":
                clock.waited += end - clock.since

    def count(self, now: int, sign: int) -> None:
        """Put what everybody holds and waits for on the accounts, or take it off."""
        ledger = self._accounting.ledger
        for life in self._lives.values():
            held = [*life.running.values(), *life.leaving.values()]
            ledger.count(now, life.ask.queue, amounts_of(held), held=sign)
            ledger.count(now, life.ask.queue, amounts_of(life.waiting.values()), wanted=sign)

    def current(self, name: str, endings: Sequence[Ending]) -> list[tuple[str, Clock]]:
        """The clocks whose present run ends so, by task; not those whose run was cut short."""
        life = self._lives.get(name)
        if life is None:
            return []
        ended = list[tuple[str, Clock]]()
        for task, run in endings:
            clock = life.clocks.get(task)
            if clock is not None and clock.run == run and clock.phase == "running":
                ended.append((task, clock))
        return ended

    def _run(self, life: LiveJob, tasks: list[Task], n: int | None, now: int) -> None:
        """``tasks`` run from now on; clocks start where enough of them do."""
        wanted = amounts_of([life.waiting.pop(task.name) for task in tasks if task.name in life.waiting])
        for task in tasks:
            life.running[task.name] = task
        self._accounting.started(life, tasks, wanted, now)
        if self._rounds.unit == "task":
            ends: dict[int, list[Ending]] = {}
            for task in tasks:
                clock = life.clocks[task.name]
                ends.setdefault(clock.start(now), []).append((task.name, clock.run))
            for end, endings in ends.items():
                self._agenda.add(end, FINISH, life.name, endings)
        else:
            clock = life.clocks[""]
            if clock.phase != "running" and len(life.running) >= life.least:
                self._agenda.add(clock.start(now), FINISH, life.name, [("", clock.run)])
                life.holding.begin()
            if clock.phase == "running" and not self._whole:
                life.holding.level(now, life.holds())
        self._accounting.began(life, None if self._whole else tasks, now, n)

    def _stop(self, life: LiveJob, names: list[str], now: int) -> int:
        """Running tasks are on their way out; how much running is thrown away, in microseconds."""
        lost = 0
        held = life.holds() if self._whole else {}
        for name in names:
            task = life.running.pop(name)
            life.leaving[name], life.evicted_at[name] = task, now
            clock = life.clocks.get(name)
            if clock is not None and clock.phase == "running":
                spent = clock.stop(now)
                lost += spent[1]
                self._accounting.ledger.count(now, life.ask.queue, amounts_of([task]), spent=spent)
        clock = life.clocks.get("")
        if clock is not None and clock.phase == "running":
            if len(life.running) < life.least:
                spent = clock.stop(now)
                lost += spent[1]
                self._ran(life, held, spent, now)
            elif not self._whole:
                life.holding.level(now, life.holds())
        return lost

    def _ran(self, life: LiveJob, amounts: Amounts, spent: tuple[int, int, int], now: int, *, held: int = 0) -> None:
        """A run is over, or is looked at: of all that makes progress with one clock, which held so much. ``held``: -1
        where it does no longer."""
        count, queue = self._accounting.ledger.count, life.ask.queue
        if self._rounds.unit == "gang":
            done, lost, overhead = life.holding.split(now, spent)
            count(now, queue, done, spent=(1, 0, 0))
            count(now, queue, lost, spent=(0, 1, 0))
            count(now, queue, overhead, spent=(0, 0, 1))
            count(now, queue, amounts, held=held)
        else:
            count(now, queue, amounts, held=held, spent=spent)

    def _wait_again(self, life: LiveJob, names: list[str], now: int) -> None:
        """Tasks that were evicted at once wait, in the order in which they were first asked for."""
        again = {*life.waiting, *names}
        life.waiting = {name: task for name, task in life.tasks.items() if name in again}
        if self._scenario.request.requeue == "evicted":
            life.ask = replace(life.ask, created_at=time_of(life.evicted_at[names[0]]))
        for name in names:
            clock = life.clock(name)
            if clock.phase == "releasing" and (name in life.clocks or not life.leaving):
                clock.wait(now)

    def _occupy(self, life: LiveJob, names: list[str], sign: int) -> None:
        """Tasks that leave hold their nodes as if they were somebody else's, where the engine has it so."""
        if self._rounds.occupies:
            for name in names:
                node = life.leaving[name].node
                if node is not None:
                    self._cluster.occupy(node, amounts_of([life.leaving[name]]), sign)

    def _remove(self, life: LiveJob, names: list[str]) -> None:
        """Tasks are in the state no longer; nor is the workload, once nothing of it is."""
        workload = self._cluster.workload(life.name)
        if workload is None:
            return
        gone = set(names)
        left = [task for task in workload.tasks if task.name not in gone]
        if len(left) == len(workload.tasks):
            return  # what was evicted is no part of it any more where it occupies its node
        if left:
            self._cluster.set(replace(workload, tasks=left))
        else:
            self._cluster.remove(life.name)

    def _end(self, life: LiveJob, now: int) -> None:
        """It has finished, or was given up."""
        self._accounting.ledger.count(now, life.ask.queue, amounts_of(life.waiting.values()), wanted=-1)
        life.waiting.clear()
        life.ended_at = now
        self._rounds.leave(life.name)
        if not life.leaving:
            del self._lives[life.name]
        self._accounting.over(life, now)


def _asked(task: Task) -> Task:
    """A running task as it would be asked for."""
    return replace(task, node=None, flavors=None, started_at=None, state="running")
