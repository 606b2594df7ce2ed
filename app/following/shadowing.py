"""Shadow: each real preemption goes to Arbiter, with the question that the scheduler had at the moment before."""

from collections.abc import Callable
from threading import Event, Thread

import msgspec
import structlog

from app.clusters.shadow.schemas import ShadowReport, ShadowVictim
from app.following.evidence import NOT_NAMED
from app.following.history import Items, Preemption
from app.following.keeping import ApiError, ApiUnavailable, Arbiter
from app.following.mirror import Mirror, View
from app.following.reading import Key, part
from app.following.translating import Translated, translate
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.request import DecisionRequest, StateOrReference

_LOOK_SECONDS = 0.25
_TRIES, _RETRY_SECONDS = 5, 2.0
_TOO_LONG_AGO = "what the cluster was before is not known: it was listed anew meanwhile, or changed too much"

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
        for _ in range(_TRIES):
            try:
                self._tell(self.report_of(one))
                return
            except ApiError as refused:
                try:
                    self._tell(self._bare(one, str(refused)))
                    return
                except (ApiUnavailable, ApiError) as error:
                    log.warning("shadow.not_reported", cluster=self._cluster, by=one.by, error=str(error))
            except ApiUnavailable as error:
                log.warning("shadow.not_reported", cluster=self._cluster, by=one.by, error=str(error))
            except Exception:  # an object like none before: the next preemption may be an ordinary one
                log.exception("shadow.failed", cluster=self._cluster, by=one.by)
                return
            if self._stopping.wait(_RETRY_SECONDS):
                return

    def _tell(self, report: ShadowReport) -> None:
        self._arbiter.ask("POST", "shadow", body=report)

    def report_of(self, one: Preemption) -> ShadowReport:
        """What was seen, with the question before it or why there is none. Raises ApiUnavailable, ApiError."""
        if not one.by:
            return self._bare(one, NOT_NAMED)
        moments = [items for number in one.moments if (items := self._mirror.before(number)) is not None]
        if not moments:
            return self._bare(one, _TOO_LONG_AGO)
        ask = _ask_id(self._engine, one.by, moments[0])
        if ask is None:
            return self._bare(one, f"{one.by}, for whom it was, is not known")
        reply = self._arbiter.ask("GET", "configurations", self._configuration)
        stored = msgspec.json.decode(reply.body, type=_Stored).configuration
        translated = [translate(self._engine, View(items, {}, None, None)) for items in moments]
        requests = [self._request(one, found, ask, stored) for found in translated if ask in found.asks]
        if not requests:
            return self._bare(one, f"{ask} did not wait at that moment")
        named = _named(self._engine, translated[0])
        return msgspec.structs.replace(
            self._bare(one, ""), ask=ask, victims=_victims(one, named), requests=requests, unjudged=None
        )

    def _request(self, one: Preemption, found: Translated, ask: str, stored: Configuration) -> DecisionRequest:
        """KAI takes all that waits into account, in its own order; the others ask for one at a time."""
        whole = self._engine == "kai"
        return DecisionRequest(
            engine=self._engine, now=one.seen_at, mode="cycle" if whole else "independent",
            configuration=msgspec.structs.replace(found.configuration, settings=stored.settings),
            state=StateOrReference(nodes=list(found.nodes.values()), workloads=list(found.workloads.values())),
            asks=list(found.asks.values()) if whole else [found.asks[ask]],
        )  # fmt: skip

    def _bare(self, one: Preemption, why: str) -> ShadowReport:
        return ShadowReport(
            cluster=self._cluster, engine=self._engine, ask=one.by or "(nobody)", seen_at=one.seen_at,
            victims=_victims(one, {}), unjudged=why[:2000],
        )  # fmt: skip


def _ask_id(engine: EngineName, by: str, items: Items) -> str | None:
    """What the ask is called in a translation that was evicted for."""
    if engine == "kai":
        return by
    found = items["Workload" if engine == "kueue" else "Pod"]
    return next((_id(key) for key, item in found.items() if part(item, "metadata").get("uid") == by), None)


def _id(key: Key) -> str:
    space, name = key
    return f"{space}/{name}" if space else name


def _named(engine: EngineName, found: Translated) -> dict[str, tuple[str, str]]:
    """Workload and task of each pod, by `namespace/name`. Kueue knows no pods."""
    if engine == "kueue":
        return {}
    if engine == "yunikorn":
        return {task.name: (one.id, task.name) for one in found.workloads.values() for task in one.tasks}
    return {
        f"{one.id.rpartition('/')[0]}/{task.name}": (one.id, task.name)
        for one in found.workloads.values()
        for task in one.tasks
    }


def _victims(one: Preemption, named: dict[str, tuple[str, str]]) -> list[ShadowVictim]:
    victims: list[ShadowVictim] = []
    for key, seen in sorted(one.victims.items()):
        workload, task = named.get(_id(key), (_id(key), None))
        victims.append(ShadowVictim(workload=workload, task=task, reason=seen.reason))
    return victims
