"""All SQL about configurations: their revisions, labels, what the follower reads, and answers kept by Idempotency-Key.

A trigger counts every change of ``configurations`` and of ``configuration_labels`` in ``change``, in the order in which
they were committed, and tells the channel ``CHANNEL``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, NamedTuple

from fastapi import Depends, Header, Request
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    literal_column,
    null,
    select,
    text,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.auth.audit import current_actor
from app.base.errors import BadInput, Conflict, TooManyRequests
from app.db.database import Database, metadata

CHANNEL = "arbiter_configurations"

configurations = Table(
    "configurations",
    metadata,
    Column("name", Text(collation="C"), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("deleted_at", DateTime(timezone=True)),
    Column("change", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("revision > 0", name="revision_positive"),
    Index("ix_configurations_change", "change"),
)

revisions = Table(
    "configuration_revisions",
    metadata,
    Column("name", Text(collation="C"), ForeignKey("configurations.name"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("author", Text, nullable=False, server_default="anonymous"),
    Column("comment", Text),
    Column("restored_from", Integer),
)

_IS_CURRENT = (
    (configurations.c.name == revisions.c.name)
    & (configurations.c.revision == revisions.c.revision)
    & configurations.c.deleted_at.is_(None)
)
_SUMMARY = (
    revisions.c.name, revisions.c.revision, revisions.c.digest, revisions.c.created_at, revisions.c.author,
    revisions.c.comment, revisions.c.restored_from,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Summary:
    """One revision without its document."""

    name: str
    revision: int
    digest: str
    created_at: datetime
    author: str
    comment: str | None
    restored_from: int | None


@dataclass(frozen=True, slots=True)
class Revision(Summary):
    """One immutable revision; ``document`` is JSON."""

    document: bytes


class New(NamedTuple):
    """What a new revision says."""

    digest: str
    document: bytes
    author: str
    comment: str | None
    restored_from: int | None = None


def current(session: Session, name: str) -> Revision | None:
    """The newest revision of a configuration that isn't deleted."""
    row = session.execute(
        select(*_SUMMARY, revisions.c.document).join(configurations, _IS_CURRENT).where(revisions.c.name == name)
    ).first()
    return None if row is None else Revision(*row)


def numbered(session: Session, name: str, revision: int) -> Revision | None:
    """Any revision ever stored, of a deleted configuration too: decisions in the log refer to it."""
    wanted = select(*_SUMMARY, revisions.c.document).where(revisions.c.name == name, revisions.c.revision == revision)
    row = session.execute(wanted).first()
    return None if row is None else Revision(*row)


def largest(session: Session, name: str, numbers: Sequence[int]) -> int:
    """Bytes of the largest document among these revisions, or of the current one where none is said; 0: there is none.
    PostgreSQL knows without reading them."""
    size = select(func.max(func.octet_length(revisions.c.document))).where(revisions.c.name == name)
    size = size.where(revisions.c.revision.in_(numbers)) if numbers else size.join(configurations, _IS_CURRENT)
    return session.execute(size).scalar_one() or 0


def exists(session: Session, name: str) -> bool:
    """Is there a configuration of that name that isn't deleted?"""
    head = select(configurations.c.name).where(configurations.c.name == name, configurations.c.deleted_at.is_(None))
    return session.execute(head).first() is not None


def locked(session: Session, name: str) -> tuple[int, Summary | None] | None:
    """Lock the name until the transaction ends: the last number given out, and the current revision unless deleted.

    ``None``: the name was never used.
    """
    wanted = select(configurations.c.revision, configurations.c.deleted_at)
    head = session.execute(wanted.where(configurations.c.name == name).with_for_update()).first()
    if head is None:
        return None
    if head.deleted_at is not None:
        return head.revision, None
    newest = select(*_SUMMARY).where(revisions.c.name == name, revisions.c.revision == head.revision)
    return head.revision, Summary(*session.execute(newest).one())


def claim(session: Session, name: str) -> bool:
    """Take a name that was never used, for revision 1; false when somebody else just did."""
    row = upsert(configurations).values(name=name, revision=1).on_conflict_do_nothing()
    return session.execute(row.returning(configurations.c.name)).first() is not None


def add(session: Session, name: str, revision: int, new: New) -> tuple[Revision, int]:
    """Store a revision and make it the current one; with the number of this change.

    The name is locked or claimed by this transaction.
    """
    row = insert(revisions).values(name=name, revision=revision, **new._asdict())
    created_at = session.execute(row.returning(revisions.c.created_at)).scalar_one()
    moved = update(configurations).where(configurations.c.name == name).values(revision=revision, deleted_at=None)
    change = session.execute(moved.returning(configurations.c.change)).scalar_one()
    stored = Revision(name, revision, new.digest, created_at, new.author, new.comment, new.restored_from, new.document)
    return stored, change


def delete_configuration(session: Session, name: str) -> int:
    """Hide a configuration; the number of this change. Its revisions stay for the decisions that used them."""
    hidden = update(configurations).where(configurations.c.name == name).values(deleted_at=func.now())
    return session.execute(hidden.returning(configurations.c.change)).scalar_one()


def page(session: Session, after: str | None, limit: int) -> list[Summary]:
    """Current revisions by name, from the first name past ``after``."""
    wanted = select(*_SUMMARY).join(configurations, _IS_CURRENT).order_by(revisions.c.name).limit(limit)
    if after is not None:
        wanted = wanted.where(revisions.c.name > after)
    return [Summary(*row) for row in session.execute(wanted)]


def history(session: Session, name: str, before: int | None, limit: int) -> list[Summary]:
    """Revisions of one configuration, newest first, from the first number below ``before``."""
    wanted = select(*_SUMMARY).where(revisions.c.name == name).order_by(revisions.c.revision.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(revisions.c.revision < before)
    return [Summary(*row) for row in session.execute(wanted)]


labels = Table(
    "configuration_labels",
    metadata,
    Column("name", Text(collation="C"), ForeignKey("configurations.name"), primary_key=True),
    Column("label", Text(collation="C"), primary_key=True),
    Column("revision", Integer),
    Column("version", Integer, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("author", Text, nullable=False),
    Column("comment", Text),
    Column("change", BigInteger, nullable=False, server_default="0"),
    ForeignKeyConstraint(
        ["name", "revision"],
        ["configuration_revisions.name", "configuration_revisions.revision"],
        name="fk_configuration_labels_revision",
    ),
    Index("ix_configuration_labels_change", "change"),
)

_ROW = (
    labels.c.label, labels.c.revision, labels.c.version, labels.c.updated_at, labels.c.author, labels.c.comment,
    labels.c.change,
)  # fmt: skip


class LabelRow(NamedTuple):
    """A label of one configuration. ``version`` counts its moves; without ``revision`` it has been taken off."""

    label: str
    revision: int | None
    version: int
    updated_at: datetime
    author: str
    comment: str | None
    change: int


def find(session: Session, name: str, label: str) -> LabelRow | None:
    """The label's row, taken off or not."""
    row = session.execute(select(*_ROW).where(labels.c.name == name, labels.c.label == label)).first()
    return None if row is None else LabelRow(*row)


def every(session: Session, name: str) -> list[LabelRow]:
    """Labels that point somewhere, by name."""
    wanted = select(*_ROW).where(labels.c.name == name, labels.c.revision.is_not(None)).order_by(labels.c.label)
    return [LabelRow(*row) for row in session.execute(wanted)]


def move(session: Session, name: str, label: str, revision: int | None, author: str, comment: str | None) -> LabelRow:
    """Point a label at ``revision``, or take it off. The configuration is locked by this transaction."""
    said = {"revision": revision, "author": author, "comment": comment}
    row = upsert(labels).values(name=name, label=label, version=1, **said)
    row = row.on_conflict_do_update(
        index_elements=[labels.c.name, labels.c.label],
        set_={**said, "version": labels.c.version + 1, "updated_at": func.now()},
    )
    return LabelRow(*session.execute(row.returning(*_ROW)).one())


def take_off_all(session: Session, name: str, author: str) -> list[LabelRow]:
    """Take every label of a configuration off."""
    row = update(labels).where(labels.c.name == name, labels.c.revision.is_not(None))
    row = row.values(revision=None, author=author, comment=None, version=labels.c.version + 1, updated_at=func.now())
    return [LabelRow(*label) for label in session.execute(row.returning(*_ROW))]


class HeadRow(NamedTuple):
    """What a name, or a label of a name, means since ``change``; without ``revision`` nothing any more."""

    name: str
    label: str | None
    revision: int | None
    change: int


def changed(session: Session, after: int) -> list[HeadRow]:
    """Names and labels whose last change is past ``after``, oldest change first."""
    live = case((configurations.c.deleted_at.is_(None), configurations.c.revision))
    heads = select(configurations.c.name, null().label("label"), live.label("revision"), configurations.c.change)
    moved = select(labels.c.name, labels.c.label, labels.c.revision, labels.c.change)
    wanted = union_all(
        heads.where(configurations.c.change > after), moved.where(labels.c.change > after)
    ).order_by(literal_column("change"))  # fmt: skip
    return [HeadRow(*row) for row in session.execute(wanted)]


def horizon(session: Session) -> int:
    """The last number of a change given out. Below what was seen before: the database was set back."""
    return session.execute(text("select last_value from configuration_change")).scalar_one()


_SWEPT_AT_ONCE = 100

keys = Table(
    "idempotency_keys",
    metadata,
    Column("actor", Text(collation="C"), primary_key=True),
    Column("key", Text(collation="C"), primary_key=True),
    Column("request", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("status", Integer),
    Column("headers", JSONB),
    Column("body", LargeBinary),
    Index("ix_idempotency_keys_created_at", "created_at"),
)


class StoredReply(NamedTuple):
    """The answer to an earlier request; ``request`` is that request's digest."""

    request: bytes
    status: int
    headers: dict[str, str]
    body: bytes


def claim_key(session: Session, actor: str, key: str, request: bytes) -> bool:
    """Take a key, for this transaction to answer; false where it has an answer.

    While another transaction is answering the same key, this waits for its end.
    """
    row = upsert(keys).values(actor=actor, key=key, request=request).on_conflict_do_nothing()
    return session.execute(row.returning(keys.c.key)).first() is not None


def answer_of(session: Session, actor: str, key: str) -> StoredReply | None:
    """The answer that a key has."""
    wanted = select(keys.c.request, keys.c.status, keys.c.headers, keys.c.body)
    row = session.execute(wanted.where(keys.c.actor == actor, keys.c.key == key)).first()
    return None if row is None else StoredReply(*row)


def keep(session: Session, actor: str, key: str, status: int, headers: dict[str, str], body: bytes) -> None:
    """Store the answer of a key that this transaction has claimed."""
    row = update(keys).where(keys.c.actor == actor, keys.c.key == key)
    session.execute(row.values(status=status, headers=headers, body=body))


class Room(NamedTuple):
    """How many answers are kept of an actor, their bytes, and seconds until the oldest of them is older than asked."""

    answers: int
    size: int
    seconds: float


def room_taken(session: Session, actor: str, age: timedelta) -> Room:
    """What the answers of ``actor`` take that are not older than ``age``, without what this transaction claims."""
    since = func.now() - age
    size = func.coalesce(func.sum(func.octet_length(keys.c.body)), 0)
    until = func.coalesce(func.extract("epoch", func.min(keys.c.created_at) - since), 0)
    mine = (keys.c.actor == actor, keys.c.created_at >= since, keys.c.status.is_not(None))
    answers, taken, seconds = session.execute(select(func.count(), size, until).where(*mine)).one()
    return Room(answers, int(taken), float(seconds))


def expire(session: Session, actor: str, key: str, age: timedelta) -> None:
    """Forget this key when it is older than ``age``, and some others that are and that nobody else is removing."""
    old = keys.c.created_at < func.now() - age
    session.execute(delete(keys).where(old, keys.c.actor == actor, keys.c.key == key))
    some = select(keys.c.actor, keys.c.key).where(old).limit(_SWEPT_AT_ONCE).with_for_update(skip_locked=True)
    session.execute(delete(keys).where(tuple_(keys.c.actor, keys.c.key).in_(some)))


HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_KEPT_HEADERS = ("content-type", "etag", "location")


@dataclass(frozen=True, slots=True)
class Once:
    """What a request says of itself: its key, if any, and all that makes it another request than others."""

    key: str | None
    said: tuple[str, ...]

    def digest(self, body: bytes) -> bytes:
        """SHA-256 over the parts, none of which can run into the next."""
        hashed = sha256()
        for part in (*(part_text.encode(errors="surrogatepass") for part_text in self.said), body):
            hashed.update(len(part).to_bytes(8))
            hashed.update(part)
        return hashed.digest()


def read_once(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            pattern=r"^[\x21-\x7e]{1,255}$",
            description="The same key again gives the first answer again, for a day; nothing happens twice",
        ),
    ] = None,
) -> Once:
    """Conditions are no part of the request: a repeated one may have read the document again."""
    return Once(key, (request.method, request.url.path, request.url.query, request.headers.get("x-comment", "")))


Keyed = Annotated[Once, Depends(read_once)]


class Writes:
    """Units of work that end in an answer. Answers are kept for ``seconds``, of one actor at most ``entries`` and no
    more once they take ``size`` bytes: nobody fills the database with keys."""

    def __init__(self, database: Database, seconds: float, entries: int, size: int) -> None:
        self._database = database
        self._age = timedelta(seconds=seconds)
        self._most = (entries, size)

    def run(self, once: Once, act: Callable[[Session], Response], body: bytes = b"") -> Response:
        """``act`` in one transaction, unless its key has an answer already. What it raises is not kept.

        Raises BadInput where the key stands for another request, TooManyRequests where the actor has too many,
        Unavailable, and what ``act`` raises.
        """
        with self._database.session() as session:
            if once.key is None:
                return act(session)
            who, digest = current_actor(), once.digest(body)
            expire(session, who, once.key, self._age)
            if not claim_key(session, who, once.key, digest):
                return _again(answer_of(session, who, once.key), digest)
            self._require_room(session, who)
            answer = act(session)
            headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
            keep(session, who, once.key, answer.status_code, headers, bytes(answer.body))
            return answer

    def _require_room(self, session: Session, who: str) -> None:
        taken = room_taken(session, who, self._age)
        if taken.answers >= self._most[0] or taken.size >= self._most[1]:
            detail = f"{taken.answers} answers of yours are kept by their {HEADER}: send it without a key, or later"
            raise TooManyRequests(detail, retry_after=max(1, math.ceil(taken.seconds)))


def _again(answer: StoredReply | None, digest: bytes) -> Response:
    if answer is None:
        raise Conflict(f"the request of this {HEADER} has just expired; send it again")
    if answer.request != digest:
        raise BadInput([], detail=f"this {HEADER} was used for another request")
    return Response(answer.body, answer.status, {**answer.headers, REPLAYED: "true"})
