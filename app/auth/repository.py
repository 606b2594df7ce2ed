"""All SQL about tokens, sessions and the audit log."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Identity,
    Index,
    LargeBinary,
    Select,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Session

from app.db.database import metadata

tokens = Table(
    "tokens",
    metadata,
    Column("id", postgresql.UUID(as_uuid=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("created_by", Text, nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("detail", JSONB),
    Index("ix_audit_actor", "actor", "id"),
    Index("ix_audit_action", "action", "id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", postgresql.UUID(as_uuid=True), primary_key=True),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("token", LargeBinary),  # the hash of the one that it began with: it ends with that
    Column("address", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("ended_at", DateTime(timezone=True)),
)

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("said", JSONB, nullable=False),
    Column("until", DateTime(timezone=True), nullable=False),
)

_TOKEN = (
    tokens.c.id, tokens.c.name, tokens.c.scopes, tokens.c.created_at, tokens.c.created_by, tokens.c.expires_at,
    tokens.c.revoked_at,
)  # fmt: skip


class TokenRow(NamedTuple):
    """A token without its hash."""

    id: UUID
    name: str
    scopes: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


_SESSION = (
    sessions.c.id, sessions.c.name, sessions.c.scopes, sessions.c.address, sessions.c.created_at, sessions.c.expires_at,
)  # fmt: skip


class SessionRow(NamedTuple):
    """A session without its cookie."""

    id: UUID
    name: str
    scopes: list[str]
    address: str
    created_at: datetime
    expires_at: datetime


class AuditRow(NamedTuple):
    """One line of the audit log."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    detail: dict[str, Any] | None


def add(
    session: Session, identity: UUID, name: str, scopes: list[str], digest: bytes, author: str, expires: datetime | None
) -> TokenRow:
    """Store a token by the hash of its secret."""
    row = insert(tokens).values(
        id=identity, name=name, scopes=scopes, hash=digest, created_by=author, expires_at=expires
    )
    return TokenRow(*session.execute(row.returning(*_TOKEN)).one())


def by_hash(session: Session, digest: bytes) -> tuple[bytes, TokenRow] | None:
    """The token with that hash, and the hash as stored."""
    row = session.execute(select(tokens.c.hash, *_TOKEN).where(tokens.c.hash == digest)).first()
    return None if row is None else (bytes(row[0]), TokenRow(*row[1:]))


def every_token(session: Session) -> list[TokenRow]:
    """Oldest first, revoked ones too."""
    return [TokenRow(*row) for row in session.execute(select(*_TOKEN).order_by(tokens.c.created_at, tokens.c.id))]


def revoke(session: Session, identity: UUID) -> TokenRow | None:
    """Revoke a token, once; None where there is none."""
    row = update(tokens).where(tokens.c.id == identity)
    row = row.values(revoked_at=func.coalesce(tokens.c.revoked_at, func.now()))
    revoked = session.execute(row.returning(*_TOKEN)).first()
    return None if revoked is None else TokenRow(*revoked)


def record(session: Session, actor: str, action: str, target: str, detail: dict[str, Any] | None) -> None:
    """Append a line; the database refuses to change or remove it. Paths may hold NUL, PostgreSQL's texts may not."""
    shown = target.replace("\x00", "\\x00")
    session.execute(insert(audit).values(actor=actor, action=action, target=shown, detail=detail))


def lines(session: Session, before: int | None, limit: int, actor: str | None, action: str | None) -> list[AuditRow]:
    """Newest first."""
    if "\x00" in f"{actor}{action}":  # which no text in PostgreSQL holds, so no line can match
        return []
    wanted = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(audit.c.id < before)
    if actor is not None:
        wanted = wanted.where(audit.c.actor == actor)
    if action is not None:
        wanted = wanted.where(audit.c.action == action)
    return [AuditRow(*row) for row in session.execute(wanted)]


MOST_SESSIONS = 1000
"""Of one name: with one more the oldest ends."""
MOST_SIGN_INS = 20_000
"""Begun and not finished, by anybody: with one more the oldest is forgotten."""


def begin_session(session: Session, digest: bytes, token: bytes | None, row: SessionRow) -> None:
    """Store a session by the hash of its cookie, and of the token that it began with; forget those that are past."""
    session.execute(delete(sessions).where(sessions.c.expires_at < func.now()))
    newest = select(sessions.c.id).where(sessions.c.name == row.name).order_by(sessions.c.created_at.desc())
    session.execute(delete(sessions).where(sessions.c.id.in_(newest.offset(MOST_SESSIONS - 1))))
    session.execute(insert(sessions).values(hash=digest, token=token, **row._asdict()))


def session_by_hash(session: Session, digest: bytes) -> SessionRow | None:
    """The session with that hash, where it is not over and the token that it began with is good."""
    row = session.execute(_alive().where(sessions.c.hash == digest)).first()
    return None if row is None else SessionRow(*row)


def every_session(session: Session) -> list[SessionRow]:
    """Those that are not over, oldest first."""
    return [SessionRow(*row) for row in session.execute(_alive().order_by(sessions.c.created_at))]


def end_session(session: Session, *, digest: bytes | None = None, identity: UUID | None = None) -> SessionRow | None:
    """End the session with that hash or that id; None where there is none that is not over."""
    row = update(sessions).values(ended_at=func.now()).where(sessions.c.ended_at.is_(None))
    row = row.where(sessions.c.hash == digest if digest is not None else sessions.c.id == identity)
    ended = session.execute(row.returning(*_SESSION)).first()
    return None if ended is None else SessionRow(*ended)


def keep_sign_in(session: Session, digest: bytes, said: dict[str, Any], until: datetime) -> None:
    """What ties the steps of a sign-in together; forget those that were not finished."""
    session.execute(delete(sign_ins).where(sign_ins.c.until < func.now()))
    newest = select(sign_ins.c.hash).order_by(sign_ins.c.until.desc())
    session.execute(delete(sign_ins).where(sign_ins.c.hash.in_(newest.offset(MOST_SIGN_INS - 1))))
    session.execute(insert(sign_ins).values(hash=digest, said=said, until=until))


def take_sign_in(session: Session, digest: bytes, state: str) -> dict[str, Any] | None:
    """What was kept with that ``state``, which is gone with that; None where it is past, was taken or is another's."""
    row = delete(sign_ins).where(sign_ins.c.hash == digest, sign_ins.c.said["state"].astext == state)
    row = row.returning(sign_ins.c.said, sign_ins.c.until > func.now())
    taken = session.execute(row).first()
    return taken[0] if taken is not None and taken[1] else None


def _alive() -> Select[Any, Any, Any, Any, Any, Any]:
    good = (tokens.c.hash == sessions.c.token) & tokens.c.revoked_at.is_(None)
    good &= tokens.c.expires_at.is_(None) | (tokens.c.expires_at > func.now())
    of_token = sessions.c.token.is_(None) | select(tokens.c.id).where(good).exists()
    return select(*_SESSION).where(sessions.c.ended_at.is_(None), sessions.c.expires_at > func.now(), of_token)
