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
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from app.db import metadata

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

ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("id", Text(collation="C"), primary_key=True),
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
    found = session.execute(select(tokens.c.hash, *_TOKEN).where(tokens.c.hash == digest)).first()
    return None if found is None else (bytes(found[0]), TokenRow(*found[1:]))


def every_token(session: Session) -> list[TokenRow]:
    """Oldest first, revoked ones too."""
    return [TokenRow(*row) for row in session.execute(select(*_TOKEN).order_by(tokens.c.created_at, tokens.c.id))]


def revoke(session: Session, identity: UUID) -> TokenRow | None:
    """Revoke a token, once; None where there is none."""
    row = update(tokens).where(tokens.c.id == identity)
    row = row.values(revoked_at=func.coalesce(tokens.c.revoked_at, func.now()))
    found = session.execute(row.returning(*_TOKEN)).first()
    return None if found is None else TokenRow(*found)


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


def end_session(session: Session, identity: str, until: datetime) -> None:
    """Remember that a session is over, until its cookie would be; forget those whose cookies are."""
    session.execute(delete(ended_sessions).where(ended_sessions.c.until < func.now()))
    session.execute(upsert(ended_sessions).values(id=identity, until=until).on_conflict_do_nothing())


def every_ended_session(session: Session) -> frozenset[str]:
    """Ids of the sessions that are over and whose cookies are not."""
    return frozenset(session.scalars(select(ended_sessions.c.id).where(ended_sessions.c.until >= func.now())))
