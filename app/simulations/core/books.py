"""What a run tells and counts: events, lines of jobs, accounts."""

from typing import Any

from app.simulations.core.amounts import Amounts, amounts_of
from app.simulations.core.ledger import Ledger
from app.simulations.core.life import Life
from app.simulations.core.loops import mark_of
from app.simulations.core.sink import Sink
from app.simulations.core.times import time_of
from app.simulations.schemas import Event, EventKind
from app.solver.model.duration import seconds
from app.solver.model.state import Task


class Books:
    """``first``, ``last``: when the first job was asked for and the last one ended, if any; ``ended``: how many have.
    ``mark``: stands for what runs where and what waits."""

    def __init__(self, sink: Sink, ledger: Ledger) -> None:
        self.ledger = ledger
        self._sink = sink
        self.first: int | None = None
        self.last: int | None = None
        self.ended = 0
        self.mark = 0

    def submitted(self, life: Life, now: int) -> None:
        """A job is asked for."""
        if self.first is None:
            self.first = now
        for account in self.ledger.chain(life.ask.queue):
            account.jobs += 1
        self.ledger.want(now, life.ask.queue, amounts_of(life.waiting.values()), 1)
        self.event(now, "submitted", life)
        self.remark(life)

    def started(self, life: Life, tasks: list[Task], wanted: Amounts, now: int) -> None:
        """Tasks run that waited for ``wanted``."""
        queue = life.ask.queue
        self.ledger.want(now, queue, wanted, -1)
        self.ledger.hold(now, queue, amounts_of(tasks), 1)
        if life.first_started is None:
            life.first_started = now
            if not life.initial:
                for account in self.ledger.chain(queue):
                    account.started(now - life.submitted)
        self.remark(life)

    def began(self, life: Life, task: str | None, node: str | None, now: int, n: int | None) -> None:
        """The event of a start."""
        life.starts += 1
        self.event(now, "started", life, task=task, round=n, node=node)

    def ran(self, life: Life, amounts: Amounts, spent: tuple[int, int, int]) -> None:
        """A run is over, or is looked at: what it made and kept, what is thrown away, what checkpoints took."""
        self.ledger.ran(life.ask.queue, amounts, *spent)

    def evicted(self, life: Life, now: int, lost: int, **more: Any) -> None:
        """A job, or a task, was evicted."""
        life.evictions += 1
        for account in self.ledger.chain(life.ask.queue):
            account.evicted(life)
        self.event(now, "evicted", life, lost=seconds(lost), **more)
        self.remark(life)

    def released(self, life: Life, task: str | None, tasks: list[Task], now: int) -> None:
        """What was evicted holds nothing any more."""
        self.ledger.hold(now, life.ask.queue, amounts_of(tasks), -1)
        self.event(now, "released", life, task=task)
        self.remark(life)

    def over(self, life: Life, now: int) -> None:
        """A job has finished or was cancelled."""
        self.event(now, "cancelled" if life.cancelled else "finished", life)
        for account in self.ledger.chain(life.ask.queue):
            if life.cancelled:
                account.cancelled += 1
            else:
                account.done(life, now)
        self.ended += 1
        self.last = now
        self._sink.job(life.line())
        self.remark(life)

    def event(self, now: int, kind: EventKind, life: Life, **more: Any) -> None:
        """Something happened to a job."""
        self._sink.event(Event(at=time_of(now), kind=kind, job=life.ask.id, queue=life.ask.queue, **more))

    def other(self, now: int, kind: EventKind, **more: Any) -> None:
        """Something happened to no job."""
        self._sink.event(Event(at=time_of(now), kind=kind, **more))

    def remark(self, life: Life) -> None:
        """The job's part in ``mark`` is another now."""
        self.mark ^= life.mark
        life.mark = 0
        if life.waiting or life.running or life.leaving:
            life.mark = mark_of(_standing(life))
            self.mark ^= life.mark


def _standing(life: Life) -> str:
    """What runs where of a job, and what waits."""
    parts = [life.ask.id, *sorted(life.waiting)]
    for phase in (life.running, life.leaving):
        parts.append("|")
        parts += [f"{name}@{task.node or task.flavors}" for name, task in sorted(phase.items())]
    return "\0".join(parts)
