"""What the service does around an answer: the host's clock, ids, metrics, the log, reading it back and replaying."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from time import monotonic, perf_counter
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping

from app.answering.answers import Answered, stats_of
from app.answering.operations import Inquiry, Operation
from app.answering.snapshots import FollowedAge
from app.answering.sources import Documents, LogDocument, Used
from app.auth.audit import current_actor
from app.base import ticket
from app.base.errors import NotFound, Unavailable
from app.base.identifiers import Identifiers
from app.db.database import Database, Intervals
from app.decisions import repository
from app.decisions.kept import LoggedStates, Resolver, unsqueezed
from app.decisions.log import DecisionLog, Entry
from app.decisions.repository import Filters, Mentions
from app.decisions.schemas import (
    Asked,
    DecisionCounts,
    DecisionPage,
    DecisionRecord,
    DecisionSummary,
    EvictionCount,
    OutcomeCount,
    Purpose,
    Replay,
    Spared,
    Stop,
    WorkloadEvent,
    WorkloadHistory,
)
from app.http.openapi import decode_id, encode_cursor
from app.metrics import Metrics
from app.search.service import Hit, ids_beginning
from app.solver.model.base import to_datetime
from app.solver.model.decision import ConfigurationUsed, Decision, Plan, PlannedEviction, ProposalVerdict, Victim
from app.solver.model.problems import pointer
from app.workers.dispatcher import Dispatcher, Named, named_in


class _Answer(msgspec.Struct, frozen=True):
    """The parts of an answer that tell of workloads."""

    decisions: list[Decision]
    plan: Plan
    proposals: list[ProposalVerdict] = []


def history(workload: str, mentions: Mentions, limit: int) -> WorkloadHistory:
    """What the log says of one workload: who stopped it, what spared it, and what became of its own asks. ``mentions``
    may have one row more than ``limit``, which says that there is another page."""
    rows = mentions.rows[:limit]
    more = encode_cursor(str(rows[-1]["id"])) if len(mentions.rows) > limit else None
    return WorkloadHistory(
        workload=workload,
        stopped=mentions.stopped,
        asked=mentions.asked,
        items=[_event(row, repository.storable(workload)) for row in rows],
        next_cursor=more,
    )


def _event(row: RowMapping, workload: str) -> WorkloadEvent:
    answer = msgspec.json.decode(unsqueezed(row["answer"]), type=_Answer)
    asks: Sequence[str] = row["asks"]
    of: Sequence[str] = row["workloads"] or asks
    pod = row["pods"][0] if row["pods"] else None  # that the guard was asked for
    mine = [d for d, ask, owner in zip(answer.decisions, asks, of, strict=True) if workload in (ask, owner, pod)]
    identity: UUID = row["id"]
    return WorkloadEvent(
        decision=identity,
        created_at=row["created_at"],
        now=to_datetime(row["now"]),
        engine=row["engine"],
        release=row["release"],
        configuration=_configuration(row),
        actor=row["actor"],
        stopped=_stops(answer, workload),
        asked=[_asked(decision) for decision in mine],
        spared=_spared(answer, workload, asks[0] if asks else None),
        purpose=row["purpose"] or repository.REAL,
    )


def _stops(answer: _Answer, workload: str) -> list[Stop]:
    """The workload's evictions; one that several asks, each alone, would cause is told for each."""
    plans = [answer.plan, *(d.plan for d in answer.decisions if d.plan is not None)]
    victims = {(d.ask, v.workload, v.task): v for d in answer.decisions for v in d.victims}
    stops: dict[tuple[str | None, str | None], Stop] = {}
    for plan in plans:
        for eviction in plan.evictions:
            if repository.storable(eviction.workload) == workload:
                victim = victims.get((eviction.for_ask or "", eviction.workload, eviction.task))
                stops.setdefault((eviction.for_ask, eviction.task), _stop(eviction, victim))
    return list(stops.values())


def _stop(eviction: PlannedEviction, victim: Victim | None) -> Stop:
    return Stop(
        task=eviction.task, queue=eviction.queue, node=eviction.node, reason=eviction.reason,
        message=None if victim is None else victim.message, for_ask=eviction.for_ask,
    )  # fmt: skip


def _spared(answer: _Answer, workload: str, ask: str | None) -> list[Spared]:
    return [
        Spared(task=refusal.task, node=verdict.node, rule=refusal.rule, message=refusal.detail, for_ask=ask)
        for verdict in answer.proposals
        for refusal in verdict.refusals
        if repository.storable(refusal.workload) == workload
    ]


def _asked(decision: Decision) -> Asked:
    first = decision.conditions[0] if decision.conditions else None
    return Asked(
        ask=decision.ask, outcome=decision.outcome, reason=first and first.reason, message=first and first.message
    )


_MOST = 50


def differences(answer: bytes, other: bytes) -> list[str]:
    """Pointers of the first 50 places where the documents differ, in document order; empty when they are equal."""
    if answer == other:
        return []
    return list(islice(_walk(msgspec.json.decode(answer), msgspec.json.decode(other), ()), _MOST))


def _walk(value: Any, other: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(other, dict):
        left, right = cast(dict[str, Any], value), cast(dict[str, Any], other)
        for key in left | right:
            if (key in left) != (key in right):
                yield pointer(*path, key)
            else:
                yield from _walk(left[key], right[key], (*path, key))
    elif isinstance(value, list) and isinstance(other, list):
        first, second = cast(list[Any], value), cast(list[Any], other)
        for i in range(max(len(first), len(second))):
            if i >= len(first) or i >= len(second):
                yield pointer(*path, i)
            else:
                yield from _walk(first[i], second[i], (*path, i))
    elif repr(cast(object, value)) != repr(other):  # 1 and 1.0 are other bytes
        yield pointer(*path)


_SETTLE_SECONDS = 1.0
_COUNTED = timedelta(hours=1)
_MOST_PAIRS = 200
_BRIEF = 8192
"""Bytes of a body that is most likely answered in less time than it takes to hand it to a thread."""

ExplainLevel = Literal["summary", "full"]


class Decided(NamedTuple):
    """An answer, and what is done when its log entry is stored, where the answer waits for that."""

    answer: bytes
    stored: "Future[None] | None"


class FollowedAges:
    """Which snapshots follow a cluster, and when their followers last knew them to be it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, float]] = {}

    def heard(self, snapshot: str, cluster: str, age: float | None) -> None:
        """A follower says that its snapshot is ``age`` seconds old; None: it has kept none yet, and what another one
        kept before it grows older."""
        if age is not None:
            self._known[snapshot] = cluster, monotonic() - age

    def forget(self, cluster: str) -> None:
        """Nobody follows it any more."""
        self._known = {snapshot: known for snapshot, known in self._known.items() if known[0] != cluster}

    def of(self, snapshot: str | None) -> FollowedAge | None:
        """How old it is now; None: no follower keeps it."""
        known = None if snapshot is None else self._known.get(snapshot)
        if known is None:
            return None
        cluster, since = known
        return FollowedAge.of(cluster, round(monotonic() - since, 1))

    def added_to(self, snapshot: str | None, answer: bytes) -> bytes:
        """``answer``, a JSON object that is about the snapshot, with ``followed`` where a follower keeps that."""
        age = self.of(snapshot)
        return answer if age is None else b'%b,"followed":%b}' % (answer[:-1], msgspec.json.encode(age))


class Decider:
    """Answers requests, counts them, and remembers the decisions."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        log: DecisionLog,
        metrics: Metrics,
        database: Database,
        waits: float | None = None,
        documents: Documents | None = None,
        logged_states: LoggedStates | None = None,
    ) -> None:
        """``waits``: seconds that an answer waits for its entry to be stored; None: it does not wait. ``documents``:
        where stored configurations are; ``logged_states``: what the log has of snapshots."""
        self._dispatcher = dispatcher
        self._log = log
        self._metrics = metrics
        self._database = database
        self._waits = waits
        self._logged_states = logged_states or LoggedStates()
        self.ages = FollowedAges()
        self._resolver = Resolver(database, documents)
        self._identifiers = Identifiers()

    async def answer(self, body: bytes, purpose: Purpose = "decision") -> bytes:
        """The answer to a decision request, which is logged, from the place that its class of requests has. Raises what
        deciding does, TooManyRequests, DeadlinePassed.

        Where it waits for its log entry it takes nobody's place meanwhile.
        """
        of, named = self._dispatcher.looked_into(Operation.DECISION, body)
        return await self.acknowledged(
            await self._dispatcher.offload.run(of, self.decide, body, purpose, named, brief=len(body) <= _BRIEF)
        )

    async def answer_question(self, operation: Operation, body: bytes) -> bytes:
        """The answer to another question, which is not. Raises as ``answer`` does."""
        of, named = self._dispatcher.looked_into(operation, body)
        return await self._dispatcher.offload.run(of, self.ask, operation, body, named, brief=len(body) <= _BRIEF)

    def decide(self, body: bytes, purpose: Purpose = "decision", named: Named | None = None) -> Decided:
        """The response body of ``POST /v1/decisions``. ``named``: what the body names, where somebody has looked.
        Raises InvalidInput, NotFound, Unavailable."""
        moment = datetime.now(UTC)
        snapshot, _ = named = named or named_in(body)
        known = None if snapshot is None or self._log.is_behind else self._logged_states.known(snapshot)
        reply = self._dispatcher.run(Inquiry(Operation.DECISION, moment, known=known), body, named)
        answered = reply.answered()
        identity, stored = self._remember(
            moment, body, answered, reply.documents, None if purpose == repository.REAL else purpose
        )
        return Decided(with_identity(identity, answered, self.ages.of(snapshot)), stored)

    def guard(self, configuration: str, snapshot: str, body: bytes) -> Decided:
        """What kube-scheduler reads of ``POST /v1/extenders/{name}/preempt``. Raises as ``decide``, and Conflict."""
        moment = datetime.now(UTC)
        known = None if self._log.is_behind else self._logged_states.known(snapshot)
        asked = Inquiry(Operation.PREEMPTION, moment, snapshot, known=known, configuration=configuration)
        reply = self._dispatcher.run(asked, body)
        stored = None
        if reply.logged is not None:
            _, stored = self._remember(moment, reply.logged.request, reply.answered(), reply.documents)
        return Decided(self.ages.added_to(snapshot, reply.body), stored)

    def _remember(
        self, moment: datetime, request: bytes, answered: Answered, documents: Sequence[LogDocument],
        purpose: str | None = None,
    ) -> "tuple[UUID, Future[None] | None]":  # fmt: skip
        """Count a decision and hand it to the log: its id, and what tells that it is stored."""
        facts = answered.facts
        if facts.effect:
            self._metrics.effects.labels(facts.effect).inc()
        self._metrics.decided(facts.engine, facts.outcomes, facts.reasons, facts.victims, answered.seconds)
        if facts.pending:
            request = _written_out(request, facts.pending)
        identity = self._identifiers.new(moment)
        stored = None if self._waits is None else Future[None]()
        entry = Entry(identity, moment, request, answered, stored, current_actor(), purpose=purpose)
        entry.ended = _told_when_logged()
        if facts.snapshot:
            self._offer(entry, documents)
        else:
            self._log.offer(entry)
        return identity, stored

    def _offer(self, entry: Entry, documents: Sequence[LogDocument]) -> None:
        """To the log, about a snapshot: with what is needed to decide it again."""
        facts = entry.answered.facts
        name, state, configuration = facts.snapshot, facts.state_digest, facts.configuration
        new = {document.digest for document in documents}
        if state not in new and not self._logged_states.has(name, state):
            self._log.offer(entry)
            return
        entry = replace(
            entry, documents=documents, kept_state=state,
            kept_configuration=configuration.digest if configuration.name is None else None,
        )  # fmt: skip
        if self._log.offer_whole(entry):
            self._logged_states.taken(name, state, configuration.digest, list(documents))

    async def acknowledged(self, decided: Decided) -> bytes:
        """The answer, once it may be sent: at once, or when its entry is stored. Raises Unavailable."""
        if decided.stored is not None:
            try:
                await asyncio.wait_for(asyncio.wrap_future(decided.stored), self._waits)
            except TimeoutError:
                raise Unavailable("the decision can't be logged in time") from None
        return decided.answer

    def ask(self, operation: Operation, body: bytes, named: Named | None = None) -> bytes:
        """The response body of the other questions; ``named`` as for ``decide``. Raises InvalidInput, NotFound,
        Unavailable."""
        snapshot, _ = named = named or named_in(body)
        reply = self._dispatcher.run(Inquiry(operation, datetime.now(UTC)), body, named)
        return self.ages.added_to(snapshot, reply.body)

    def listing(self, filters: Filters, cursor: str | None, limit: int) -> DecisionPage:
        """A page of the log, newest first; what this process has just answered is in it."""
        before = None if cursor is None else decode_id(cursor)
        self._log.settle(_SETTLE_SECONDS)
        with self._database.session() as session:
            rows = repository.page(session, filters, before, limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        return DecisionPage(items=[_summary(row) for row in rows[:limit]], next_cursor=more)

    def counts(self, filters: Filters) -> DecisionCounts:
        """How often what was decided, over the newest hour of what ``filters`` name unless they say since when."""
        self._log.settle(_SETTLE_SECONDS)
        end = filters.until or datetime.now(UTC)
        begin = filters.since or end - _COUNTED
        intervals = Intervals(begin, end)
        with self._database.session() as session:
            tally = repository.tally(session, replace(filters, since=begin, until=end), intervals, _MOST_PAIRS)
        return DecisionCounts(
            since=begin,
            until=end,
            decisions=tally.decisions,
            evictions=tally.evictions,
            intervals=[
                OutcomeCount(at=start, outcomes=outcomes) for start, outcomes in intervals.counted(tally.outcomes)
            ],
            stops=[EvictionCount(by=a, queue=b, reason=reason, times=n) for a, b, reason, n in tally.stops],
        )

    def find(self, part: str, limit: int) -> list[Hit]:
        """Decisions whose ids begin with ``part``; see ``app.search.service.Source``."""
        self._log.settle(_SETTLE_SECONDS)
        if (span := ids_beginning(part)) is None:
            return []
        with self._database.session() as session:
            return [Hit(kind="decision", name=str(identity)) for identity in repository.between(session, *span, limit)]

    def record(self, identity: UUID) -> DecisionRecord:
        """One entry of the log. Raises NotFound."""
        row = self._row(identity)
        body = msgspec.Raw(unsqueezed(row["answer"]))
        return DecisionRecord(**msgspec.structs.asdict(_summary(row)), answer=body)

    def size_of(self, identity: UUID) -> int:
        """Bytes of the answer as it is stored; 0: there is none. Raises Unavailable."""
        self._log.settle(_SETTLE_SECONDS)
        with self._database.session() as session:
            return repository.size_of(session, identity)

    def history(self, workload: str, cursor: str | None, limit: int) -> WorkloadHistory:
        """What the log says of one workload, newest first. Raises BadRequest, Unavailable."""
        before = None if cursor is None else decode_id(cursor)
        self._log.settle(_SETTLE_SECONDS)
        with self._database.session() as session:
            mentions = repository.mentions(session, workload, before, limit + 1)
        return history(workload, mentions, limit)

    def request(self, identity: UUID) -> bytes:
        """The request's body as it was received, asks beside a snapshot written out. Raises NotFound."""
        return unsqueezed(self._row(identity)["request"])

    def resolved(self, identity: UUID) -> bytes:
        """The request with all that it leaves to the service written in. Raises NotFound, Conflict, Unavailable."""
        return self._resolver.resolved(self._row(identity))

    def replay(self, identity: UUID) -> Replay:
        """Decide again on the same bytes, the same revision and the same ``now``. Raises NotFound."""
        row = self._row(identity)
        recorded = unsqueezed(row["answer"])
        replayed = self._again(row, recorded)
        return _compared(identity, recorded, replayed, replayed)

    def explain(self, identity: UUID, level: ExplainLevel) -> Replay:
        """The same with an explanation, which nothing is compared by. Raises NotFound."""
        row = self._row(identity)
        recorded = unsqueezed(row["answer"])
        explained = self._again(row, recorded, level)
        return _compared(identity, _unexplained(recorded), _unexplained(explained), explained)

    def _again(self, row: RowMapping, recorded: bytes, level: ExplainLevel | None = None) -> bytes:
        """The answer now, at another level where one is given."""
        used = msgspec.json.decode(recorded, type=Used)
        request = self._resolver.as_then(row, used)
        if level is not None:
            request = msgspec.json.encode(
                {**msgspec.json.decode(request, type=dict[str, msgspec.Raw]), "explain": level}
            )
        return self._dispatcher.run(Inquiry(Operation.DECISION, to_datetime(row["now"]), pinned=used), request).body

    def _row(self, identity: UUID) -> RowMapping:
        self._log.settle(_SETTLE_SECONDS)
        with self._database.session() as session:
            row = repository.find(session, identity)
        if row is None:
            raise NotFound(f"no decision {identity}")
        return row


def with_identity(identity: UUID, answered: Answered, followed: FollowedAge | None = None) -> bytes:
    """The answer's own bytes, unchanged, between ``id`` and what equal requests may differ in."""
    age = b"" if followed is None else b'"followed":%b,' % msgspec.json.encode(followed)
    return b'{"id":"%b",%b,%b"stats":%b}' % (
        str(identity).encode(),
        answered.body[1:-1],
        age,
        msgspec.json.encode(stats_of(answered.seconds)),
    )


def _told_when_logged() -> Callable[[str], None] | None:
    """What the log tells when it is done with an entry, where somebody wants to know how long that took."""
    if (listening := ticket.listener()) is None:
        return None
    begin = perf_counter()
    return lambda why_not: ticket.since("log", begin, listening, why_not and "Lost")


def _written_out(body: bytes, asks: bytes) -> bytes:
    """``body`` with the asks that it only referred to: those of a snapshot change."""
    return msgspec.json.encode({**msgspec.json.decode(body, type=dict[str, msgspec.Raw]), "asks": msgspec.Raw(asks)})


def _compared(identity: UUID, recorded: bytes, replayed: bytes, shown: bytes) -> Replay:
    return Replay(
        decision=identity,
        identical=replayed == recorded,
        recorded_digest=sha256(recorded).hexdigest(),
        replayed_digest=sha256(replayed).hexdigest(),
        differences=differences(recorded, replayed),
        answer=msgspec.Raw(shown),
    )


def _unexplained(answer: bytes) -> bytes:
    """``answer`` without its explanations; every other byte stays as it is."""
    said = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
    decisions = msgspec.json.decode(said["decisions"], type=list[dict[str, msgspec.Raw]])
    bare = [{name: value for name, value in decision.items() if name != "explanation"} for decision in decisions]
    return msgspec.json.encode({**said, "decisions": bare})


def _configuration(row: RowMapping) -> ConfigurationUsed:
    return ConfigurationUsed(
        name=row["configuration_name"], revision=row["configuration_revision"], digest=row["configuration_digest"]
    )


def _summary(row: RowMapping) -> DecisionSummary:
    return DecisionSummary(
        id=row["id"],
        created_at=row["created_at"],
        now=to_datetime(row["now"]),
        engine=row["engine"],
        release=row["release"],
        configuration=_configuration(row),
        state_digest=row["state_digest"],
        request_digest=row["request_digest"],
        asks=row["asks"],
        outcomes=row["outcomes"],
        evictions=row["evictions"],
        actor=row["actor"],
        queues=row["queues"] or [],
        circle=bool(row["circle"]),
        purpose=row["purpose"] or repository.REAL,
        stats=stats_of(row["seconds"]),
    )
