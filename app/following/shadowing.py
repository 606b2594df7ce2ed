"""Shadow: each real preemption goes to Arbiter, with the question that the scheduler had at the moment before."""

from collections.abc import Callable
from threading import Event, Thread

import msgspec
import structlog
from msgspec import structs

from app.clusters.shadow.schemas import ShadowReport
from app.following.history import Preemption
from app.following.judging import Judge
from app.following.keeping import ApiError, ApiUnavailable, Arbiter
from app.following.mirror import Mirror
from app.solver.model.configuration import Configuration, EngineName

_LOOK_SECONDS = 0.25
_JUDGE_SECONDS = 15.0
"""How long moments are looked for at which the answer agrees."""
_TRIES, _RETRY_SECONDS = 5, 2.0

log = structlog.get_logger()


class _Stored(msgspec.Struct, frozen=True):
    configuration: Configuration


class Shadowing(Thread):
    """Reports preemptions that ``mirror`` saw, as long as ``writes`` says that it is this follower's part."""

    def __init__(
        self, engine: EngineName, cluster: str, configuration: str, mirror: Mirror, arbiter: Arbiter,
        writes: Callable[[], bool],
    ) -> None:  # fmt: skip
        super().__init__(name="follow-shadow", daemon=True)
        self._engine: EngineName = engine
        self._cluster = cluster
        self._configuration = configuration
        self._mirror = mirror
        self._arbiter = arbiter
        self._writes = writes
        self._stopping = Event()

    def stop(self) -> None:
        """End soon; what is not reported yet is not any more."""
        self._stopping.set()

    def run(self) -> None:
        """Report until stopped."""
        while not self._stopping.wait(_LOOK_SECONDS):
            for one in self._mirror.preemptions():
                if self._writes():
                    self._report(one)

    def _report(self, one: Preemption) -> None:
        """Every cycle of it once; what the service refuses without its question."""
        waiting: list[ShadowReport] | None = None
        for _ in range(_TRIES):
            try:
                waiting = self.reports_of(one) if waiting is None else waiting
                while waiting:
                    self._tell(waiting[0])
                    waiting = waiting[1:]
                return
            except (ApiUnavailable, ApiError) as error:
                log.warning("shadow.not_reported", cluster=self._cluster, by=one.by, error=str(error))
            except Exception:  # an object like none before: the next preemption may be an ordinary one
                log.exception("shadow.failed", cluster=self._cluster, by=one.by)
                return
            if self._stopping.wait(_RETRY_SECONDS):
                return

    def _tell(self, report: ShadowReport) -> None:
        try:
            self._arbiter.ask("POST", "shadow", body=report)
        except ApiError as refused:
            if report.unjudged is not None:
                raise
            bare = structs.replace(
                report, requests=[], seconds=0, changes=0, assumed=[], unjudged=str(refused)[:2000], cause="refused"
            )
            self._arbiter.ask("POST", "shadow", body=bare)

    def reports_of(self, one: Preemption) -> list[ShadowReport]:
        """What was seen, a cycle each, with the question before it or why there is none. Raises ApiUnavailable,
        ApiError."""
        reply = self._arbiter.ask("GET", "configurations", self._configuration)
        settings = msgspec.json.decode(reply.body, type=_Stored).configuration.settings
        judge = Judge(self._engine, self._cluster, settings, seconds=_JUDGE_SECONDS)
        return [judged.report for judged in judge.judge(one, self._mirror.rewind())]
