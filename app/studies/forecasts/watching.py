"""What a run tells of the asks that somebody waits for: first starts, and what they waited for before."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.simulations.core.sink import Asked, Silence, time_of
from app.simulations.schemas import Event, Job
from app.solver.model.decision import Decision
from app.solver.model.instant import micros
from app.studies.forecasts.schemas import Waiting

MOST = 20
_ROOM = frozenset({"finished", "cancelled", "evicted", "released"})
_REMEMBERED = 1000


@dataclass
class Awaited:
    """One ask. ``asked_at``, ``starts_at`` in microseconds, None: not yet; ``last``: when it was last found
    waiting, and how much room had been made by then; ``seen``: the same of the last earlier instant."""

    queue: str
    asked_at: int | None = None
    starts_at: int | None = None
    waits: list[Waiting] = field(default_factory=list[Waiting])
    freed_by: list[str] = field(default_factory=list[str])
    evicts: dict[str, None] = field(default_factory=dict[str, None])
    last: tuple[int, int] = (0, 0)
    seen: int = 0

    def look(self, now: int, made: int) -> None:
        """It waits, or starts, in a round at ``now``."""
        if self.last[0] < now:
            self.seen = self.last[1]
        self.last = (now, made)


class Watcher(Silence):
    """Sink and watch of one run. ``ready``: whether every one of ``jobs`` has started; ``rounds`` so far."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.found = {job.ask.id: Awaited(job.ask.queue) for job in jobs}
        self.rounds = 0
        self._left = set(self.found)
        self._here: dict[str, Awaited] = {}
        self._made = 0
        self._room: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED)

    @property
    def ready(self) -> bool:
        """See the class."""
        return not self._left

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        if event.kind in _ROOM and event.job is not None:
            self._made += 1
            self._room.append((self._made, event.job))
        if event.kind == "evicted" and event.by in self._here:
            evicts = self._here[event.by].evicts
            if event.job is not None and len(evicts) < MOST:
                evicts[event.job] = None
        awaited = self.found.get(event.job or "")
        if awaited is None:
            return
        if event.kind == "submitted":
            awaited.asked_at = micros(event.at)
            self._here[event.job or ""] = awaited
        elif event.kind == "started" and awaited.starts_at is None:
            awaited.starts_at = micros(event.at)
            awaited.look(awaited.starts_at, self._made)
            freed = dict.fromkeys(job for number, job in self._room if number > awaited.seen)
            awaited.freed_by = [] if not awaited.waits else list(freed)[-MOST:]
            self._left.discard(event.job or "")
            del self._here[event.job or ""]

    def look(self, asked: Asked) -> None:
        """A round was answered, and is not carried out yet."""
        self.rounds = asked.n
        heads: dict[str, str] = {}
        decided: dict[str, Decision] = {}
        starting: set[str] = set()
        decisions = {decision.ask: decision for decision in asked.result.decisions}
        for ask in asked.question.asks:
            heads.setdefault(ask.queue, ask.id)
            name = ask.id if ask.id in self._here else ask.id.rpartition("/")[0]  # YuniKorn asks task by task
            if decisions[ask.id].outcome == "admit":
                starting.add(name)
            else:
                decided.setdefault(name, decisions[ask.id])
        for name, awaited in self._here.items():
            if name not in starting:
                waiting = _waiting(asked.question.now, decided.get(name), heads.get(awaited.queue), awaited)
                if waiting is not None:
                    _note(awaited.waits, waiting)
                awaited.look(asked.question.now, self._made)


def _waiting(now: int, decision: Decision | None, head: str | None, awaited: Awaited) -> Waiting | None:
    """What a round says of it; None: nothing new."""
    if decision is not None:
        first = decision.conditions[0] if decision.conditions else None
        return Waiting(
            since=time_of(now), outcome=decision.outcome, reason="" if first is None else first.reason,
            message="" if first is None else first.message,
        )  # fmt: skip
    if head is not None and (not awaited.waits or awaited.waits[-1].outcome is None):
        return Waiting(since=time_of(now), reason="Queued", message=f"{head!r} is before it in {awaited.queue!r}")
    return None


def _note(waits: list[Waiting], waiting: Waiting) -> None:
    if waits and (waits[-1].outcome, waits[-1].message) == (waiting.outcome, waiting.message):
        return
    if len(waits) == MOST:
        waits.pop()
    waits.append(waiting)
