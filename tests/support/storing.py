"""What tests of storing share with those beside them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.jobs.repository import Chunk, Claimed
from app.jobs.worker import ChunkWriter, Unwanted, Work, lines_of
from app.simulations.core.scenario import in_order
from app.simulations.core.sink import FIRST
from app.simulations.results import Outcome
from app.simulations.schemas import Change, Job
from app.simulations.service import Limits, Simulating
from tests.support.kueue_run import two_queues
from tests.unit.simulations.running import job

JOBS = [job("one", "a", 3, 0, 10), job("two", "a", 2, 4, 5), job("own", "b", 2, 6, 5)]


TWICE = [{"name": "x"}, {"name": "y", "set": {"queues.a.quota.cpu.guaranteed": 5}}]


class Stored:
    """A stored trace that tells how often its jobs were read."""

    start: datetime | None = None

    def __init__(self, jobs: Any = JOBS, changes: Any = ()) -> None:
        self._changes = convert(list(changes), list[Change])
        self._jobs = in_order(convert(jobs, list[Job]), FIRST)
        self.total = len(self._jobs)
        self.read = self.checked = 0

    def changes(self) -> list[Change]:
        return self._changes

    def jobs(self) -> Iterator[Job]:
        self.read += 1
        return iter(self._jobs)

    def numbered(self) -> Iterator[tuple[int, Job]]:
        self.checked += 1
        return enumerate(self._jobs, 7)


class Bench:
    """Does one simulation. ``raw``, ``lines``: what is stored by stream, as it is and decoded; ``asked_for``: its
    request; ``progress``: what it told each time it was asked whether to stop."""

    def __init__(self) -> None:
        self.raw: dict[str, list[bytes]] = defaultdict(list)
        self.asked_for: dict[str, Any] = {}
        self.lines: dict[str, list[Any]] = defaultdict(list)
        self.progress: list[Any] = []
        self.asked = 0
        self.stop_at = -1
        self._writer = ChunkWriter(self._store, 1 << 30)
        self.work = Work(self._writer, self._check)

    def _store(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            found = lines_of(chunk, 0, None)[0].splitlines()
            self.raw[chunk.stream] += found
            self.lines[chunk.stream] += map(msgspec.json.decode, found)

    def _check(self) -> None:
        self.asked += 1
        self.progress.append(self.work.progress)
        if self.asked == self.stop_at:
            raise Unwanted

    def do(self, trace: Stored | None = None, days: float = 365, **more: Any) -> Outcome:
        body = {"configuration": two_queues(), "trace": "t" if trace else {"jobs": JOBS}, **more}
        self.asked_for = body
        claimed = Claimed(UUID(int=2), "simulation", 1, 0, UUID(int=1) if trace else None, b"")
        opened: Any = lambda _: trace  # noqa: E731
        doing = Simulating(Compiled(None), opened, Limits(days))
        outcome = doing.do(claimed, msgspec.json.encode(body), self.work)
        self._writer.flush()
        return msgspec.json.decode(outcome, type=Outcome)
