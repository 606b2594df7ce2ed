"""All SQL of the decision log, and of what it keeps of snapshots.

A state is kept whole, or as what changed since another one, its ``base``. States that build on one another share a
``root``, the whole one at their beginning; they go together, when no decision in the log needs any of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, NamedTuple, cast
from uuid import UUID

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, insert, psycopg
from sqlalchemy.orm import Session

from app.base.identifiers import earliest
from app.db.connecting import Statement
from app.db.database import Intervals, metadata, past_retention
from app.search.repository import ANY, fitting, pattern
from app.search.service import Kind, fold
from app.solver.model.decision import Outcome

kept_documents = sa.Table(
    "kept_documents",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("base", sa.BigInteger, sa.ForeignKey("kept_documents.id", name="fk_kept_documents_base")),
    sa.Column("root", sa.BigInteger),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("ix_kept_documents_digest", "digest", unique=True),
    sa.Index("ix_kept_documents_base", "base", postgresql_where=sa.text("base is not null")),
    sa.Index("ix_kept_documents_root", "root", postgresql_where=sa.text("root is not null")),
)

_DOCUMENTS_AT_ONCE = 10


class New(NamedTuple):
    """``digest`` and ``base`` are SHA-256; ``content`` is compressed."""

    digest: bytes
    base: bytes | None
    content: bytes


def save(session: Session, documents: Sequence[New]) -> None:
    """Keep ``documents`` in order; what is there stays as it is, what builds on something that is not there is left."""
    whole = [{"d": document.digest, "c": document.content} for document in documents if document.base is None]
    changes = [
        {"d": document.digest, "c": document.content, "b": document.base}
        for document in documents
        if document.base is not None
    ]
    if whole:
        session.execute(_WHOLE, whole)
    if changes:
        session.execute(_CHANGES, changes)


_DIGEST, _BASE, _CONTENT = (sa.bindparam(name, type_=sa.LargeBinary()) for name in "dbc")
_WHOLE = (
    insert(kept_documents)
    .from_select(["digest", "depth", "content"], sa.select(_DIGEST, sa.literal(0, sa.Integer), _CONTENT))
    .on_conflict_do_nothing()
)
_CHANGES = (
    insert(kept_documents)
    .from_select(
        ["digest", "base", "root", "depth", "content"],
        sa.select(
            _DIGEST,
            kept_documents.c.id,
            sa.func.coalesce(kept_documents.c.root, kept_documents.c.id),
            kept_documents.c.depth + 1,
            _CONTENT,
        ).where(kept_documents.c.digest == _BASE),
    )
    .on_conflict_do_nothing()
)


def missing(session: Session, digests: Sequence[bytes]) -> set[bytes]:
    """Those of ``digests`` that nothing is kept of."""
    there = session.scalars(sa.select(kept_documents.c.digest).where(kept_documents.c.digest.in_(digests)))
    return set(digests) - {bytes(digest) for digest in there}


def chain(session: Session, identity: int) -> list[bytes]:
    """The contents that make up one document: the whole one first, then each change."""
    step = sa.select(kept_documents.c.base, kept_documents.c.depth, kept_documents.c.content)
    walk = step.where(kept_documents.c.id == identity).cte("walk", recursive=True)
    walk = walk.union_all(step.where(kept_documents.c.id == walk.c.base))
    return [bytes(content) for content in session.scalars(sa.select(walk.c.content).order_by(walk.c.depth))]


def prune_documents(session: Session, before: datetime, decisions: sa.Table) -> int:
    """Delete what no row of ``decisions`` needs: up to ten roots with all that builds on them, none of which was made
    since ``before``. How many documents went."""
    root, member = kept_documents.alias("root"), kept_documents.alias("member")

    def needed(identity: Any) -> sa.ColumnElement[bool]:
        return sa.exists().where((decisions.c.kept_state == identity) | (decisions.c.kept_configuration == identity))

    members = sa.exists().where(member.c.root == root.c.id, (member.c.created_at >= before) | needed(member.c.id))
    unused = root.c.root.is_(None) & (root.c.created_at < before) & ~needed(root.c.id) & ~members
    doomed = sa.select(root.c.id).where(unused).limit(_DOCUMENTS_AT_ONCE).scalar_subquery()
    of = sa.func.coalesce(kept_documents.c.root, kept_documents.c.id)
    gone = session.execute(sa.delete(kept_documents).where(of.in_(doomed)).returning(kept_documents.c.id))
    return len(gone.all())


PRUNED_AT_ONCE = 1000
REAL = "decision"
"""The purpose of what is neither a what-if nor a round of a simulation: such rows have none."""

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("now", sa.BigInteger, nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("configuration_name", sa.Text(collation="C")),
    sa.Column("configuration_revision", sa.Integer),
    sa.Column("configuration_digest", sa.Text, nullable=False),
    sa.Column("state_digest", sa.Text, nullable=False),
    sa.Column("asks", ARRAY(sa.Text), nullable=False),
    sa.Column("outcomes", ARRAY(sa.Text), nullable=False),
    sa.Column("evicted", ARRAY(sa.Text), nullable=False),
    sa.Column("evictions", sa.Integer, nullable=False),
    sa.Column("seconds", JSONB, nullable=False),
    sa.Column("request_digest", sa.Text, nullable=False),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("answer", sa.LargeBinary, nullable=False),
    sa.Column("actor", sa.Text(collation="C")),
    sa.Column("queues", ARRAY(sa.Text)),
    sa.Column("workloads", ARRAY(sa.Text)),
    sa.Column("kept_state", sa.BigInteger, sa.ForeignKey(kept_documents.c.id, name="fk_decisions_kept_state")),
    sa.Column(
        "kept_configuration", sa.BigInteger, sa.ForeignKey(kept_documents.c.id, name="fk_decisions_kept_configuration")
    ),
    sa.Column("kept_bytes", sa.Integer, nullable=False, server_default="0"),
    sa.Column("pairs", ARRAY(sa.BigInteger)),
    sa.Column("circle", sa.Boolean),
    sa.Column("spared", ARRAY(sa.Text)),
    sa.Column("pods", ARRAY(sa.Text)),
    sa.Column("purpose", sa.Text),
    sa.Column("stops", JSONB(none_as_null=True)),
    sa.Column("release", sa.Text),
    sa.Index(
        "ix_decisions_pairs", "pairs", postgresql_using="gin", postgresql_where=sa.text("pairs is not null"),
        postgresql_with={"fastupdate": "off"},
    ),
    sa.Index("ix_decisions_spared", "spared", postgresql_using="gin", postgresql_where=sa.text("spared is not null")),
    sa.Index("ix_decisions_pods", "pods", postgresql_using="gin", postgresql_where=sa.text("pods is not null")),
    sa.Index("ix_decisions_circle", "id", postgresql_where=sa.text("circle")),
    sa.Index("ix_decisions_configuration_name", "configuration_name", "id"),
    sa.Index("ix_decisions_engine", "engine", "id"),
    sa.Index("ix_decisions_outcomes", "outcomes", postgresql_using="gin"),
    sa.Index("ix_decisions_asks", "asks", postgresql_using="gin"),
    sa.Index("ix_decisions_evicted", "evicted", postgresql_using="gin"),
    sa.Index("ix_decisions_actor", "actor", "id", postgresql_where=sa.text("actor is not null")),
    sa.Index("ix_decisions_queues", "queues", postgresql_using="gin", postgresql_where=sa.text("queues is not null")),
    sa.Index(
        "ix_decisions_workloads", "workloads", postgresql_using="gin",
        postgresql_where=sa.text("workloads is not null"),
    ),
    sa.Index("ix_decisions_kept_state", "kept_state", postgresql_where=sa.text("kept_state is not null")),
    sa.Index(
        "ix_decisions_kept_configuration", "kept_configuration",
        postgresql_where=sa.text("kept_configuration is not null"),
    ),
)  # fmt: skip

_KEPT = ("kept_state", "kept_configuration")
_HEAVY = {"request", "answer", "evicted", "workloads", "spared", "pods", *_KEPT, "kept_bytes", "pairs", "stops"}
_SUMMARY = [column for column in decisions.c if column.name not in _HEAVY]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a listing is limited to; None: anything. ``since`` is included, ``until`` is not. Of a configuration, an
    ask, a workload, a queue and whoever asked a ``*`` stands for any text."""

    engine: str | None = None
    outcome: str | None = None
    configuration: str | None = None
    revision: int | None = None
    ask: str | None = None
    pod: str | None = None
    evicted: str | None = None
    actor: str | None = None
    queue: str | None = None
    circle: bool | None = None
    purpose: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Returns(msgspec.Struct, frozen=True):
    """A decision that may close circles: ``returns`` has the keys that would do so."""

    id: UUID
    now: int
    returns: list[int]


def storable(text: str) -> str:
    """``text`` as PostgreSQL can hold it: it has no NUL."""
    return text.replace("\0", "\ufffd")


def saving(rows: Iterable[tuple[bytes, int]]) -> Statement:
    """What stores ``rows``: each a JSON object by column (``encoded``), and its ``kept_bytes``. One that is there
    already (a retry after a lost connection) stays as it is. The documents that ``kept_state`` and
    ``kept_configuration`` name by digest, in hexadecimal digits, are there already, or not meant.

    All of them travel as one JSON document, which the database takes apart: row by row, putting the parameters
    together takes so much of this process that answers would have to wait for it."""
    whole = [b'%b,"kept_bytes":%d}' % (row[:-1], size) for row, size in rows]
    return _SAVE, {"rows": (b"[%b]" % b",".join(whole)).decode()}


def encoded(row: Mapping[str, Any]) -> bytes:
    """A row by column, but for ``kept_bytes``; bytes become base64."""
    return _encode(row)


def _save() -> LiteralString:
    as_text = {c.name for c in decisions.c if isinstance(c.type, sa.LargeBinary)} | set(_KEPT)
    shape = [sa.column(c.name, sa.Text() if c.name in as_text else c.type) for c in decisions.c]
    row = sa.func.json_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text()), JSON)).table_valued(*shape)
    row = row.render_derived(with_types=True)

    def value(name: str) -> sa.ColumnElement[Any]:
        if name in _KEPT:
            digest = sa.func.decode(row.c[name], sa.literal_column("'hex'"))
            return sa.select(kept_documents.c.id).where(kept_documents.c.digest == digest).scalar_subquery()
        return sa.func.decode(row.c[name], sa.literal_column("'base64'")) if name in as_text else row.c[name]

    values = [value(c.name) for c in decisions.c]
    rows = insert(decisions).from_select([c.name for c in decisions.c], sa.select(*values)).on_conflict_do_nothing()
    return cast(LiteralString, str(rows.compile(dialect=psycopg.dialect())))


_SAVE = _save()
_encode = msgspec.json.Encoder().encode


def marking(rows: Sequence[Returns], within: int) -> tuple[Statement, Statement]:
    """What marks decisions that close a circle with one of ``rows``, and those of ``rows`` with which they do.
    ``within``: microseconds between both. A row that somebody else is marking at the same time is left to them."""
    return (_BY_INDEXES, {}), (_MARK, {"rows": msgspec.json.encode(rows).decode(), "within": within})


_BY_INDEXES: LiteralString = (
    "select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),"
    " set_config('enable_mergejoin', 'off', true)"
)
"""Whatever the planner thinks of how many there are."""
_MARK: LiteralString = """
    with mine as (select * from json_to_recordset(cast(%(rows)s as json)) as x(id uuid, now bigint, returns bigint[])),
    met as materialized (
        select mine.id as one, d.id as other, d.circle from mine join decisions d
        on d.pairs && mine.returns and d.now between mine.now - %(within)s and mine.now + %(within)s
    ),
    ids as materialized (select one as id from met union select other from met where circle is null),
    found as (
        select d.id from ids join decisions d on d.id = ids.id where d.circle is null for no key update of d skip locked
    )
    update decisions set circle = true from found where decisions.id = found.id
    """


def page(session: Session, filters: Filters, before: UUID | None, limit: int) -> Sequence[sa.RowMapping]:
    """Up to ``limit`` decisions without request and answer, newest first, older than ``before``."""
    query = sa.select(*_SUMMARY).where(*_conditions(filters)).order_by(decisions.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(decisions.c.id < before)
    return session.execute(query).mappings().all()


def count(session: Session, filters: Filters) -> int:
    """How many decisions there are."""
    return session.execute(sa.select(sa.func.count()).select_from(decisions).where(*_conditions(filters))).scalar_one()


class Tally(NamedTuple):
    """How many decisions and evictions; how often each outcome by interval, from 0; and evictions by the queue of the
    ask, that of the victim and the reason, most frequent first."""

    decisions: int
    evictions: int
    outcomes: Sequence[tuple[int, Outcome, int]]
    stops: Sequence[tuple[str, str, str, int]]


def tally(session: Session, filters: Filters, intervals: Intervals, most: int) -> Tally:
    """``most``: rows of ``stops``."""
    of, where = decisions.c, _conditions(filters)
    total = session.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(of.evictions), 0)).where(*where)
    ).one()
    interval = intervals.number(of.created_at)
    outcome = sa.func.unnest(of.outcomes)
    outcomes = session.execute(sa.select(interval, outcome, sa.func.count()).where(*where).group_by(interval, outcome))
    met = sa.func.jsonb_array_elements(of.stops).table_valued(sa.column("value", JSONB), name="met")
    by, victim, reason = (met.c.value[i].astext for i in range(3))
    times = sa.func.sum(met.c.value[3].as_integer())
    stops = session.execute(
        sa.select(by, victim, reason, times)
        .select_from(decisions.join(met, sa.true()))
        .where(of.stops.is_not(None), *where)
        .group_by(by, victim, reason)
        .order_by(times.desc(), by, victim, reason)
        .limit(most)
    )
    return Tally(
        total[0], int(total[1]), [(number, what, n) for number, what, n in outcomes], [(*row,) for row in stops]
    )


def oldest(session: Session, filters: Filters, after: UUID | None, limit: int) -> Sequence[sa.RowMapping]:
    """Up to ``limit`` whole rows, oldest first, younger than ``after``."""
    query = sa.select(decisions).where(*_conditions(filters)).order_by(decisions.c.id).limit(limit)
    if after is not None:
        query = query.where(decisions.c.id > after)
    return session.execute(query).mappings().all()


def _conditions(filters: Filters) -> list[sa.ColumnElement[bool]]:
    of = decisions.c
    conditions: list[sa.ColumnElement[bool]] = []
    called = ((of.configuration_name, filters.configuration), (of.actor, filters.actor))
    conditions += [_called(column, wanted) for column, wanted in called if wanted is not None]
    if filters.engine is not None:
        conditions.append(of.engine == storable(filters.engine))
    among = ((of.outcomes, filters.outcome), (of.pods, filters.pod))
    conditions += [column.contains([storable(wanted)]) for column, wanted in among if wanted is not None]
    if filters.evicted is not None:
        conditions.append(_has(of.evicted, filters.evicted, "workload"))
    if filters.queue is not None:
        conditions.append(_has(of.queues, filters.queue, "queue"))
    if filters.revision is not None:
        conditions.append(of.configuration_revision == filters.revision)
    if filters.ask is not None:
        conditions.append(_has(of.asks, filters.ask, "ask") if ANY in filters.ask else _asked_by(storable(filters.ask)))
    if filters.circle is not None:
        conditions.append(of.circle.is_(True) if filters.circle else of.circle.is_(None))
    if filters.purpose is not None:
        conditions.append(of.purpose.is_(None) if filters.purpose == REAL else of.purpose == filters.purpose)
    if filters.since is not None:
        conditions.append(of.id >= earliest(filters.since))
    if filters.until is not None:
        conditions.append(of.id < earliest(filters.until))
    return conditions


def _asked_by(name: str) -> sa.ColumnElement[bool]:
    """Whether a decision is about the ask of that id, or about the pod of that name."""
    pod = decisions.c.pods.contains([name]) & (decisions.c.pods[1] == name)
    return decisions.c.asks.contains([name]) | sa.func.coalesce(pod, False)


def _called(column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
    return column.like(pattern(name)) if ANY in name else column == storable(name)


def _has(column: sa.Column[Any], name: str, kind: Kind) -> sa.ColumnElement[bool]:
    """Whether a column of names has that one, or one of those that it stands for."""
    if ANY not in name:
        return column.contains([storable(name)])
    return column.overlap(sa.func.array(fitting(kind, fold(name)).scalar_subquery()))


def find(session: Session, identity: UUID) -> sa.RowMapping | None:
    """The whole row, or None."""
    return session.execute(sa.select(decisions).where(decisions.c.id == identity)).mappings().one_or_none()


def size_of(session: Session, identity: UUID) -> int:
    """Bytes of the answer as it is stored, which PostgreSQL knows without reading it; 0: there is none."""
    size = sa.select(sa.func.octet_length(decisions.c.answer)).where(decisions.c.id == identity)
    return session.execute(size).scalar_one_or_none() or 0


def between(session: Session, first: UUID, last: UUID, limit: int) -> Sequence[UUID]:
    """Ids of decisions, newest first."""
    query = sa.select(decisions.c.id).where(decisions.c.id.between(first, last))
    return session.scalars(query.order_by(decisions.c.id.desc()).limit(limit)).all()


class Mentions(NamedTuple):
    """``stopped``, ``asked``: how many decisions stop a workload and how many are about asks of it; ``rows``: a page of
    them, newest first, with their answers."""

    stopped: int
    asked: int
    rows: Sequence[sa.RowMapping]


def mentions(session: Session, workload: str, before: UUID | None, limit: int) -> Mentions:
    """Decisions that stop ``workload``, spare it, or were asked for it; up to ``limit`` of them, older than ``before``.
    Found by the indexes first, whatever the planner thinks of how many there are."""
    me = [storable(workload)]
    stopped = decisions.c.evicted.contains(me)
    asked = _asked_by(me[0]) | decisions.c.workloads.contains(me)
    hits = sa.select(decisions.c.id, stopped.label("stopped"), sa.func.coalesce(asked, False).label("asked"))
    mentioning = (
        hits.where(stopped | asked | decisions.c.spared.contains(me))
        .cte("found")
        .prefix_with("materialized", dialect="postgresql")
    )
    counts = session.execute(
        sa.select(
            sa.func.count().filter(mentioning.c.stopped).label("stopped"),
            sa.func.count().filter(mentioning.c.asked).label("asked"),
        )
    ).one()
    page = sa.select(mentioning.c.id).order_by(mentioning.c.id.desc()).limit(limit)
    if before is not None:
        page = page.where(mentioning.c.id < before)
    query = sa.select(*_SUMMARY, decisions.c.workloads, decisions.c.pods, decisions.c.answer).where(
        decisions.c.id.in_(page.scalar_subquery())
    )
    rows = session.execute(query.order_by(decisions.c.id.desc())).mappings().all()
    return Mentions(counts.stopped, counts.asked, rows)


def prune(session: Session, *, before: datetime | None, keep: int | None, keep_bytes: int | None) -> int:
    """Delete up to 1000 of the oldest entries: past the age ``before``, beyond the newest ``keep``, or beyond the
    newest that take ``keep_bytes`` compressed, with what was kept of snapshots for them. How many went."""
    size = sa.func.octet_length(decisions.c.request) + sa.func.octet_length(decisions.c.answer) + decisions.c.kept_bytes
    since = None if before is None else earliest(before)
    past = past_retention(decisions.c.id, size, before=since, keep=keep, keep_bytes=keep_bytes)
    if past is None:
        return 0
    doomed = sa.select(decisions.c.id).where(past).order_by(decisions.c.id).limit(PRUNED_AT_ONCE)
    gone = session.execute(sa.delete(decisions).where(decisions.c.id.in_(doomed)).returning(decisions.c.id))
    return len(gone.all())
