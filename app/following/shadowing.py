"""Evictions that were seen go to Arbiter: all of them for their history, and with shadow each preemption with the
question that the scheduler had."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from threading import Event, Thread
from uuid import UUID

import msgspec
import structlog
from msgspec import structs

from app.clusters.schemas import EvictionReport, SeenEviction, ShadowOutcome, ShadowReport
from app.following.history import Eviction, Preemption, Rewind
from app.following.judging import SETTLED_SECONDS, Judge, Judgement, is_settled
from app.following.keeping import ApiError, ApiUnavailable, Arbiter
from app.following.memory import ask_id
from app.following.mirror import Mirror
from app.following.objects import WORK, owner_of
from app.formats.objects import part
from app.solver.model.configuration import Configuration, EngineName

LOOK_SECONDS = 0.25
_JUDGE_SECONDS = 15.0
"""How long moments are looked for at which the answer agrees."""
_LISTS_SECONDS = 60.0
_TRIES, RETRY_SECONDS = 5, 2.0
_MOST_TOLD = 1000

log = structlog.get_logger()


class _Stored(msgspec.Struct, frozen=True):
    configuration: Configuration


class _ShadowRecord(msgspec.Struct, frozen=True):
    id: UUID
    outcome: ShadowOutcome


class Shadowing(Thread):
    """Reports evictions that ``mirror`` saw, as long as ``writes`` says that it is this follower's part. ``shadow``:
    whether preemptions are compared."""

    def __init__(
        self, engine: EngineName, cluster: str, configuration: str, mirror: Mirror, arbiter: Arbiter,
        writes: Callable[[], bool], *, shadow: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(name="follow-shadow", daemon=True)
        self._engine: EngineName = engine
        self._cluster = cluster
        self._configuration = configuration
        self._mirror = mirror
        self._arbiter = arbiter
        self._writes = writes
        self._shadow = shadow
        self._stopping = Event()
        self._again: list[tuple[Preemption, list[Judgement]]] = []

    def stop(self) -> None:
        """End soon; what is not reported yet is not any more."""
        self._stopping.set()

    def run(self) -> None:
        """Report until stopped. What is seen while the cluster is listed for the first time waits for the lists: with a
        part of it nothing can be said."""
        begun = time.monotonic()
        while not self._stopping.wait(LOOK_SECONDS):
            if not self._mirror.complete() and time.monotonic() - begun < _LISTS_SECONDS:
                continue
            again, self._again = self._again, []
            for preemption, before in again:
                if time.monotonic() - preemption.last < SETTLED_SECONDS:
                    self._again.append((preemption, before))
                elif self._writes():
                    self._report(preemption.by, self._judged(preemption, before))
            seen, others = self._mirror.preemptions(), self._mirror.evictions()
            if not self._writes():
                continue
            for preemption in seen:
                self._report(
                    preemption.by,
                    self._judged(preemption) if self._shadow else self._unjudged(preemption.by, preemption.evictions),
                )
            if others:
                self._report("", self._unjudged("", others))

    def _report(self, by: str, telling: Iterator[Callable[[], None]]) -> None:
        """Tell everything once, in order; try again where Arbiter is away."""
        step: Callable[[], None] | None = None
        for _ in range(_TRIES):
            try:
                while (step := step or next(telling, None)) is not None:
                    step()
                    step = None
                return
            except (ApiUnavailable, ApiError) as error:
                log.warning("shadow.not_reported", cluster=self._cluster, by=by, error=str(error))
            except Exception:  # an object like none before: the next preemption may be an ordinary one
                log.exception("shadow.failed", cluster=self._cluster, by=by)
                return
            if self._stopping.wait(RETRY_SECONDS):
                return

    def _judged(self, preemption: Preemption, before: list[Judgement] | None = None) -> Iterator[Callable[[], None]]:
        """What is to be told of a preemption, cycle by cycle: the comparison, and its evictions with its outcome.
        ``before``: what a first look said, which stays where a second one knows less of the past."""
        judged: list[Judgement] = []
        rewind = self._mirror.rewind()
        yield lambda: judged.extend(self.judge(preemption, rewind))
        if not is_settled(judged, preemption, time.monotonic()):
            self._again.append((preemption, judged))
            return
        if before and _judgeable(before) and not _judgeable(judged):
            judged = before
        for cycle in judged:
            records: list[_ShadowRecord] = []
            yield lambda cycle=cycle, records=records: records.append(self._compared(cycle.report))
            queues = {w.id: w.queue for request in cycle.report.requests for w in request.state.workloads}
            by = None if cycle.report.ask == preemption.by or not preemption.by else cycle.report.ask
            seen = [
                structs.replace(
                    _seen(self._engine, eviction, rewind), workload=victim.workload, task=victim.task, by=by,
                    queue=queues.get(victim.workload), outcome=records[0].outcome, shadow=records[0].id,
                )
                for eviction, victim in zip(cycle.evictions, cycle.report.victims, strict=True)
            ]  # fmt: skip
            yield lambda seen=seen: self._tell(seen)

    def _unjudged(self, by: str, evictions: list[Eviction]) -> Iterator[Callable[[], None]]:
        rewind = self._mirror.rewind()
        ask = ask_id(self._engine, by, rewind) if by else None
        yield lambda: self._tell(
            [structs.replace(_seen(self._engine, eviction, rewind), by=ask) for eviction in evictions]
        )

    def _tell(self, seen: list[SeenEviction]) -> None:
        for first in range(0, len(seen), _MOST_TOLD):
            body = EvictionReport(engine=self._engine, evictions=seen[first : first + _MOST_TOLD])
            self._arbiter.ask("POST", "clusters", self._cluster, "evictions", body=body)

    def _compared(self, report: ShadowReport) -> _ShadowRecord:
        try:
            reply = self._arbiter.ask("POST", "shadow", body=report)
        except ApiError as refused:
            if report.unjudged is not None:
                raise
            bare = structs.replace(
                report, requests=[], seconds=0, changes=0, assumed=[], unjudged=str(refused)[:2000], cause="refused"
            )
            reply = self._arbiter.ask("POST", "shadow", body=bare)
        return msgspec.json.decode(reply.body, type=_ShadowRecord)

    def judge(self, preemption: Preemption, rewind: Rewind) -> list[Judgement]:
        """What was seen, a cycle each, with the question before it or why there is none. Raises ApiUnavailable,
        ApiError."""
        reply = self._arbiter.ask("GET", "configurations", self._configuration)
        settings = msgspec.json.decode(reply.body, type=_Stored).configuration.settings
        return Judge(self._engine, self._cluster, settings, seconds=_JUDGE_SECONDS).judge(preemption, rewind)


def _judgeable(judged: list[Judgement]) -> bool:
    return all(cycle.outcome != "unjudged" for cycle in judged)


def _seen(engine: EngineName, eviction: Eviction, rewind: Rewind) -> SeenEviction:
    """An eviction as the cluster tells it, with what owns who was evicted: a Workload's or a pod's controller."""
    space, name = eviction.seen.victim
    item = rewind.known(WORK[engine][-1], eviction.seen.victim)
    owner = owner_of(item)
    admission = part(part(item, "status"), "admission")
    return SeenEviction(
        at=eviction.seen.at or datetime.now(UTC), workload=f"{space}/{name}" if space else name,
        job=None if owner is None else f"{space}/{owner[1]}", job_kind=None if owner is None else owner[0],
        queue=str(admission["clusterQueue"]) if "clusterQueue" in admission else None,
        reason=eviction.seen.reason, message=eviction.seen.message[:2000] or None,
    )  # fmt: skip
