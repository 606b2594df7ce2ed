"""All SQL about answers kept for their Idempotency-Key."""

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import (
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    delete,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from app.db import metadata

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


class Kept(NamedTuple):
    """The answer to an earlier request; ``request`` is that request's digest."""

    request: bytes
    status: int
    headers: dict[str, str]
    body: bytes


def claim(session: Session, actor: str, key: str, request: bytes) -> bool:
    """Take a key, for this transaction to answer; false where it has an answer.

    While another transaction is answering the same key, this waits for its end.
    """
    row = upsert(keys).values(actor=actor, key=key, request=request).on_conflict_do_nothing()
    return session.execute(row.returning(keys.c.key)).first() is not None


def kept(session: Session, actor: str, key: str) -> Kept | None:
    """The answer that a key has."""
    wanted = select(keys.c.request, keys.c.status, keys.c.headers, keys.c.body)
    found = session.execute(wanted.where(keys.c.actor == actor, keys.c.key == key)).first()
    return None if found is None else Kept(*found)


def keep(session: Session, actor: str, key: str, status: int, headers: dict[str, str], body: bytes) -> None:
    """Store the answer of a key that this transaction has claimed."""
    row = update(keys).where(keys.c.actor == actor, keys.c.key == key)
    session.execute(row.values(status=status, headers=headers, body=body))


def expire(session: Session, actor: str, key: str, age: timedelta) -> None:
    """Forget this key when it is older than ``age``, and some others that are and that nobody else is removing."""
    old = keys.c.created_at < func.now() - age
    session.execute(delete(keys).where(old, keys.c.actor == actor, keys.c.key == key))
    some = select(keys.c.actor, keys.c.key).where(old).limit(_SWEPT_AT_ONCE).with_for_update(skip_locked=True)
    session.execute(delete(keys).where(tuple_(keys.c.actor, keys.c.key).in_(some)))
